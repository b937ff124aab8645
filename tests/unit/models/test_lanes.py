"""Batches of documents leave room for queries."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ragstone.models.runtime.inference import QUERY_SECONDS, BatchLanes

SECONDS = 30


class World:
    """A clock that stands still, and batches that run until they are let go."""

    def __init__(self, workers: int = 2) -> None:
        self.now = 100.0
        self.rests: list[float] = []
        self.lanes = BatchLanes(workers, lambda: self.now, self.rests.append)
        self.begun = threading.Semaphore(0)
        self.let_go = threading.Event()

    def batch(self) -> None:
        self.begun.release()
        assert self.let_go.wait(SECONDS)


@pytest.mark.parametrize(("workers", "queries", "at_once"), [(2, False, 2), (2, True, 1), (4, True, 3), (1, True, 1)])
def test_one_lane_is_left_to_queries_while_there_are_some(workers: int, queries: bool, at_once: int) -> None:
    world = World(workers)
    if queries:
        world.lanes.run_urgent(lambda: None)
    with ThreadPoolExecutor(workers + 1) as pool:
        for _ in range(workers + 1):
            pool.submit(world.lanes.run_batch, world.batch)
        for _ in range(at_once):
            assert world.begun.acquire(timeout=SECONDS)
        assert not world.begun.acquire(timeout=0.05)
        assert world.lanes.run_urgent(lambda: "answered") == "answered"
        world.let_go.set()


def test_the_processor_rests_after_a_batch_while_there_are_queries() -> None:
    world = World()

    def take(seconds: float) -> None:
        world.now += seconds

    world.lanes.run_batch(lambda: take(0.3))
    assert world.rests == []
    world.lanes.run_urgent(lambda: None)
    world.lanes.run_batch(lambda: take(0.3))
    assert world.rests == [pytest.approx(0.3)]
    take(QUERY_SECONDS)
    world.lanes.run_batch(lambda: take(0.3))
    assert len(world.rests) == 1


def test_a_batch_that_fails_frees_its_lane() -> None:
    world = World(1)
    with pytest.raises(ZeroDivisionError):
        world.lanes.run_batch(lambda: 1 // 0)
    assert world.lanes.run_batch(lambda: "done") == "done"
