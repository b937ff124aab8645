"""All cores while they are free, one while they are not: the scores are the same."""

from __future__ import annotations

import numpy as np
import pytest

from ragstone.core.types import Matrix, Vector
from ragstone.stores.vectors.sqlite import PATIENCE, TINY, Scan

LARGE = np.ones((TINY // 4 // 8 + 1, 8), np.float32)
VECTOR = np.ones(8, np.float32)


class Machine:
    """Says how long a product takes, and notes which way it was made."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ways: list[str] = []
        self.together_takes, self.alone_takes = 1.0, 3.0

    def together(self, rows: Matrix, vector: Vector) -> Vector:
        self.now += self.together_takes
        self.ways.append("together")
        return np.asarray(rows @ vector)

    def alone(self, rows: Matrix, vector: Vector) -> Vector:
        self.now += self.alone_takes
        self.ways.append("alone")
        return np.asarray(np.vecdot(rows, vector))


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def scan(machine: Machine) -> Scan:
    return Scan(machine.together, machine.alone, lambda: machine.now)


def test_once_alone_for_comparison_then_together(machine: Machine, scan: Scan) -> None:
    for _ in range(4):
        assert np.array_equal(scan(LARGE, VECTOR), np.full(len(LARGE), 8.0))
    assert machine.ways == ["alone", "together", "together", "together"]


def test_who_waits_for_a_busy_core_goes_on_alone_for_a_while(machine: Machine, scan: Scan) -> None:
    scan(LARGE, VECTOR)
    machine.together_takes = 8.0
    for _ in range(2 * PATIENCE + 2):
        scan(LARGE, VECTOR)
    assert machine.ways == ["alone", *(["together", *["alone"] * PATIENCE] * 2)]


def test_a_free_machine_is_found_out(machine: Machine, scan: Scan) -> None:
    scan(LARGE, VECTOR)
    machine.together_takes = 8.0
    scan(LARGE, VECTOR)
    machine.together_takes = 1.0
    for _ in range(PATIENCE + 10):
        scan(LARGE, VECTOR)
    assert machine.ways[-10:] == ["together"] * 10


def test_one_core_may_become_slower(machine: Machine, scan: Scan) -> None:
    scan(LARGE, VECTOR)
    machine.together_takes, machine.alone_takes = 4.0, 12.0
    for _ in range(3 * PATIENCE):
        scan(LARGE, VECTOR)
    assert machine.ways[-10:] == ["together"] * 10


def test_a_tiny_matrix_is_not_worth_sharing(machine: Machine, scan: Scan) -> None:
    for _ in range(3):
        scan(LARGE[:100], VECTOR)
    assert machine.ways == ["alone"] * 3


def test_both_ways_give_the_same_scores_but_for_rounding() -> None:
    random = np.random.default_rng(1)
    rows = random.normal(size=(5000, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    one = Scan()
    alone, together = one(rows, rows[0]), one(rows, rows[0])
    assert np.allclose(alone, together, atol=1e-5)
