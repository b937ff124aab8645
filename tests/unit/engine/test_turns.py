"""Turns: so many at once, fair between tenants, refused at once when too many wait, and never lost."""

from __future__ import annotations

import asyncio

import pytest

from ragstone.core.errors import Overloaded
from ragstone.engine.turns import Turns


class Crowd:
    """Callers that hold their turn until they are let go."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.order: list[str] = []
        self._leave = asyncio.Semaphore(0)

    def come(self, tenant: str, *, admitted: bool = False) -> asyncio.Task[None]:
        return asyncio.create_task(self._come(tenant, admitted))

    async def _come(self, tenant: str, admitted: bool) -> None:
        async with self.turns.take(tenant, admitted=admitted):
            self.order.append(tenant)
            await self._leave.acquire()

    async def let_go(self, count: int = 1) -> None:
        for _ in range(count):
            self._leave.release()
            await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def turns(at_once: int = 1, waiting: int = 100, **options: float) -> Turns:
    return Turns("searches", at_once, waiting=waiting, seconds=options.pop("seconds", 60), **options)  # type: ignore[arg-type]


async def test_no_more_than_the_limit_run_at_once_and_all_get_their_turn() -> None:
    crowd = Crowd(turns(at_once=3))
    tasks = [crowd.come("acme") for _ in range(10)]
    await settle()
    assert (crowd.turns.running, crowd.turns.waiting) == (3, 7)
    await crowd.let_go(10)
    await asyncio.gather(*tasks)
    assert (len(crowd.order), crowd.turns.running, crowd.turns.waiting) == (10, 0, 0)


@pytest.mark.req("R-TEN-14")
async def test_a_flood_of_one_tenant_does_not_keep_others_waiting() -> None:
    crowd = Crowd(turns())
    tasks = [crowd.come("flood") for _ in range(20)]
    await settle()
    tasks += [crowd.come("acme"), crowd.come("globex"), crowd.come("acme")]
    await settle()
    await crowd.let_go(30)
    await asyncio.gather(*tasks)
    assert crowd.order[:6] == ["flood", "flood", "acme", "globex", "flood", "acme"]


async def test_a_full_queue_refuses_at_once_and_takes_from_the_tenant_with_most() -> None:
    crowd = Crowd(turns(waiting=3))
    flood = [crowd.come("flood") for _ in range(5)]
    await settle()
    with pytest.raises(Overloaded, match="too many searches at once: 3 others wait") as refused:
        await flood[4]
    assert refused.value.retry_after == 1
    other = crowd.come("acme")
    await settle()
    assert [task.done() for task in (*flood[:4], other)] == [False, False, False, True, False]
    assert isinstance(flood[3].exception(), Overloaded)
    part = crowd.come("flood", admitted=True)
    await settle()
    assert not part.done()
    await crowd.let_go(10)
    await asyncio.gather(*flood[:3], other, part)


async def test_a_tenant_cannot_hold_all_turns_where_they_are_long() -> None:
    crowd = Crowd(turns(at_once=4, most_of_one=3))
    tasks = [crowd.come("flood") for _ in range(6)]
    await settle()
    assert crowd.turns.running == 3
    tasks.append(crowd.come("acme"))
    await settle()
    assert crowd.order == ["flood", "flood", "flood", "acme"]
    await crowd.let_go(10)
    await asyncio.gather(*tasks)


async def test_who_waits_too_long_is_refused_and_leaves_no_place_behind() -> None:
    crowd = Crowd(turns(seconds=0))
    first = crowd.come("acme")
    await settle()
    with pytest.raises(Overloaded, match="no turn came within 0 s"):
        await crowd.come("acme")
    assert crowd.turns.waiting == 0
    await crowd.let_go()
    await first


@pytest.mark.parametrize("after_the_turn_came", [True, False])
async def test_who_goes_away_loses_no_turn(after_the_turn_came: bool) -> None:
    crowd = Crowd(turns())
    first, second, third = (crowd.come("acme") for _ in range(3))
    await settle()
    if after_the_turn_came:
        crowd._leave.release()
        await asyncio.wait([first])  # the second has its turn, and has not run yet
    second.cancel()
    await settle()
    await crowd.let_go(2)
    await asyncio.gather(first, third)
    assert (second.cancelled(), crowd.turns.running, crowd.turns.waiting) == (True, 0, 0)


async def test_a_failure_gives_the_turn_back() -> None:
    one = turns()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            async with one.take("acme"):
                raise ZeroDivisionError
    assert one.running == 0
