"""Rows of several calls share batches, take turns, and leave when nobody waits for them any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.core.errors import ModelError
from ragstone.models.runtime.scheduler import BATCH_TOKENS, BatchScheduler

Room = BatchScheduler[str, str]


class Model:
    """Notes its batches; holds them while its gate is shut."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Semaphore(0)

    async def has_begun(self) -> None:
        """One more batch."""
        assert await asyncio.to_thread(self.begun.acquire, timeout=240)

    def __call__(self, rows: Sequence[str]) -> list[str]:
        self.batches.append(list(rows))
        self.begun.release()
        assert self.gate.wait(240)
        if "bad" in rows:
            raise ModelError("a bad row")
        return [row.upper() for row in rows]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def room(model: Model) -> Iterator[Callable[..., Room]]:
    opened: list[Room] = []

    def open_room(workers: int = 1, batch_size: int = 32) -> Room:
        opened.append(BatchScheduler(model, workers=workers, batch_size=batch_size))
        return opened[-1]

    yield open_room
    model.gate.set()
    for one in opened:
        one.close()


async def run(room: Room, rows: Sequence[str], length: int = 0) -> list[str]:
    return await room.run(rows, [length or len(row) for row in rows])


async def test_outputs_come_in_the_order_of_the_rows(room: Callable[..., Room]) -> None:
    assert await run(room(), ["ccc", "a", "bb"]) == ["CCC", "A", "BB"]


async def test_no_rows_are_no_work(model: Model, room: Callable[..., Room]) -> None:
    assert await run(room(), []) == []
    assert model.batches == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(1, 600), max_size=40), max_size=6), st.integers(1, 3), st.integers(1, 9))
def test_every_row_is_worked_on_once_within_bounds(calls: list[list[int]], workers: int, batch_size: int) -> None:
    batches: list[list[tuple[int, int]]] = []

    def work(rows: Sequence[tuple[int, int]]) -> list[int]:
        batches.append(list(rows))
        return [number for number, _ in rows]

    async def all_calls() -> None:
        numbers = iter(range(10_000))
        given_rows = [[(next(numbers), length) for length in lengths] for lengths in calls]
        made = await asyncio.gather(*(one.run(rows, [length for _, length in rows]) for rows in given_rows))
        assert made == [[number for number, _ in rows] for rows in given_rows]

    one: BatchScheduler[tuple[int, int], int] = BatchScheduler(work, workers=workers, batch_size=batch_size)
    asyncio.run(all_calls())
    one.close()
    worked_on = sorted(number for batch in batches for number, _ in batch)
    assert worked_on == list(range(sum(map(len, calls))))
    for batch in batches:
        longest = max(length for _, length in batch)
        assert len(batch) <= batch_size
        assert len(batch) == 1 or len(batch) * longest <= BATCH_TOKENS


async def test_a_small_job_is_shared_among_workers(model: Model, room: Callable[..., Room]) -> None:
    waiting = room(workers=2)
    await run(waiting, ["a", "b"], length=400)
    assert len(model.batches) == 2
    await run(waiting, ["a", "b"], length=10)
    assert len(model.batches) == 3


@pytest.mark.req("R-EMB-12")
async def test_no_batch_has_more_than_32_texts(model: Model, room: Callable[..., Room]) -> None:
    await run(room(), ["text"] * 70, length=20)
    assert sorted(map(len, model.batches)) == [6, 32, 32]


async def test_the_longest_come_first(model: Model, room: Callable[..., Room]) -> None:
    model.gate.clear()
    waiting = room(batch_size=1)
    call = asyncio.create_task(run(waiting, ["x" * length for length in (3, 40, 1, 200, 17)]))
    await model.has_begun()
    model.gate.set()
    await call
    # Two threads take them in order and may note them in either.
    assert {len(row) for (row,) in model.batches[:2]} == {200, 40}
    assert {len(row) for (row,) in model.batches[-2:]} <= {17, 3, 1}


async def test_rows_of_like_length_meet_whosever_they_are(model: Model, room: Callable[..., Room]) -> None:
    model.gate.clear()
    waiting = room()
    first = [asyncio.create_task(run(waiting, ["x" * 900])) for _ in range(2)]  # keeps both threads busy
    await model.has_begun()
    await model.has_begun()
    calls = [asyncio.create_task(run(waiting, ["s" * 10, "l" * 400])) for _ in range(2)]
    await asyncio.sleep(0.05)
    model.gate.set()
    await asyncio.gather(*first, *calls)
    assert sorted(model.batches[2:]) == [["l" * 400] * 2, ["s" * 10] * 2]


async def test_a_later_call_does_not_wait_until_an_earlier_one_has_ended(
    model: Model, room: Callable[..., Room]
) -> None:
    model.gate.clear()
    waiting = room(batch_size=1)
    long = asyncio.create_task(run(waiting, [f"long {number}" for number in range(50)]))
    await model.has_begun()
    late = asyncio.create_task(run(waiting, ["late"]))
    await asyncio.sleep(0.05)
    model.gate.set()
    assert await late == ["LATE"]
    order = [row for (row,) in model.batches]
    assert order.index("late") <= 4
    assert len(await long) == 50


async def test_large_calls_end_one_after_the_other(model: Model, room: Callable[..., Room]) -> None:
    model.gate.clear()
    waiting = room(batch_size=1)
    calls = [asyncio.create_task(run(waiting, [f"{name} {n:02}" for n in range(20)])) for name in "abc"]
    await asyncio.sleep(0.05)
    model.gate.set()
    await asyncio.gather(*calls)
    order = [row[0] for (row,) in model.batches]
    # Two threads take them in order and may note them in either.
    assert order.index("b") >= 19
    assert order.index("c") >= 39


async def test_a_large_call_is_not_held_up_by_many_small_ones(model: Model, room: Callable[..., Room]) -> None:
    model.gate.clear()
    waiting = room(batch_size=1)
    large = asyncio.create_task(run(waiting, [f"large {number}" for number in range(20)]))
    small = [asyncio.create_task(run(waiting, [f"small {number}"])) for number in range(100)]
    await asyncio.sleep(0.05)
    model.gate.set()
    await asyncio.gather(large, *small)
    order = [row[0] for (row,) in model.batches]
    assert len(order) - order[::-1].index("l") <= 2 * 20 + 2


async def test_what_nobody_waits_for_any_more_is_not_worked_on(model: Model, room: Callable[..., Room]) -> None:
    model.gate.clear()
    waiting = room(batch_size=1)
    call = asyncio.create_task(run(waiting, [f"row {number}" for number in range(50)]))
    await model.has_begun()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    model.gate.set()
    assert await run(waiting, ["next"]) == ["NEXT"]
    assert len(model.batches) <= 3


async def test_a_failure_ends_the_calls_of_its_batch_only(room: Callable[..., Room]) -> None:
    waiting = room(batch_size=1)
    with pytest.raises(ModelError, match="a bad row"):
        await run(waiting, ["bad", "row"])
    assert await run(waiting, ["fine"]) == ["FINE"]


async def test_closing_ends_those_who_wait(model: Model, room: Callable[..., Room]) -> None:
    model.gate.clear()
    waiting = room(batch_size=1)
    call = asyncio.create_task(run(waiting, [f"row {number}" for number in range(50)]))
    await model.has_begun()
    waiting.close()
    with pytest.raises(ModelError, match="closed"):
        await call
