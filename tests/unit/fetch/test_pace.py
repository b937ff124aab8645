from __future__ import annotations

from tests.unit.fetch.conftest import Patience

from ragstone.fetch.polite import MANY, Pace


async def test_requests_to_one_host_are_kept_apart(patience: Patience) -> None:
    moment = 100.0
    pace = Pace(2.0, wait=patience, clock=lambda: moment)
    await pace.wait_turn("a.example")
    await pace.wait_turn("b.example")
    assert patience.waits == []
    await pace.wait_turn("a.example")
    await pace.wait_turn("a.example")
    assert patience.waits == [2.0, 4.0]
    moment = 105.5
    await pace.wait_turn("a.example")
    assert patience.waits == [2.0, 4.0, 0.5]
    moment = 200.0
    await pace.wait_turn("a.example")
    assert patience.waits == [2.0, 4.0, 0.5]


async def test_a_host_may_ask_for_more(patience: Patience) -> None:
    pace = Pace(2.0, wait=patience, clock=lambda: 0.0)
    await pace.wait_turn("a.example", 10.0)
    await pace.wait_turn("a.example", 1.0)
    await pace.wait_turn("a.example")
    assert patience.waits == [10.0, 12.0]


async def test_no_pace_means_no_waiting(patience: Patience) -> None:
    pace = Pace(0.0, wait=patience, clock=lambda: 0.0)
    for _ in range(3):
        await pace.wait_turn("a.example")
    assert patience.waits == []


async def test_hosts_long_past_are_forgotten(patience: Patience) -> None:
    moment = 0.0
    pace = Pace(1.0, wait=patience, clock=lambda: moment)
    for number in range(MANY):
        await pace.wait_turn(f"{number}.example")
    moment = 10.0
    await pace.wait_turn("new.example")
    assert list(pace._free_at) == ["new.example"]
