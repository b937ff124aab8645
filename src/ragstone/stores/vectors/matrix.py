"""Scores every row of a matrix: on all cores while they are free, on one while they are not.

BLAS gives each core its share and waits for all of them. When another process has a core, it waits for the share that
nobody works on: a scan of half a millisecond then takes eight. One core alone needs one or two, whoever else is busy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ragstone.core.types import Candidate, Matrix, Vector
from ragstone.stores.indexes import best_first, largest

Product = Callable[[Matrix, Vector], Vector]
TINY = 2 * 1024 * 1024
"""Bytes that one core has through before another would have begun."""
PATIENCE = 50
"""Scans on one core before all are tried again."""
FORGETTING = 1.05
"""How fast the best time of one core gives way to worse ones: machines change."""


class Scan:
    """Product of a matrix and a vector. Any thread may call it; what it knows is a guess anyway."""

    def __init__(
        self, together: Product = np.matmul, alone: Product = np.vecdot, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._together = together
        self._alone = alone
        self._clock = clock
        self._best_alone = float("inf")
        self._left_alone = 1

    def __call__(self, rows: Matrix, vector: Vector) -> Vector:
        size = rows.nbytes
        if size <= TINY:
            return self._alone(rows, vector)
        started = self._clock()
        if self._left_alone > 0:
            self._left_alone -= 1
            scores = self._alone(rows, vector)
            self._best_alone = min(self._best_alone * FORGETTING, (self._clock() - started) / size)
            return scores
        scores = self._together(rows, vector)
        if (self._clock() - started) / size > self._best_alone:
            self._left_alone = PATIENCE
        return scores


scan = Scan()
"""The one of this process: all matrices share the machine."""


FIRST_CAPACITY = 1024
ROUNDING = 1e-5
"""More than two ways of adding up the dot product of unit vectors differ by in float32."""


class VectorMatrix:
    """Rows of unit vectors, each known by a number and an id. Not thread-safe: its owner locks."""

    def __init__(self, dimension: int) -> None:
        self._rows: Matrix = np.empty((0, dimension), np.float32)
        self._numbers: NDArray[np.int64] = np.empty(0, np.int64)
        self._ids: list[str] = []
        self._row_of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def bytes(self) -> int:
        """Return its size in memory, ids included."""
        return self._rows.nbytes + self._numbers.nbytes + 200 * len(self._ids)

    def put(self, numbers: Sequence[int], ids: Sequence[str], vectors: Matrix) -> None:
        """Add rows; a number that is already there is replaced."""
        self.remove(number for number in numbers if number in self._row_of)
        size = len(self._ids)
        self._reserve(size + len(numbers))
        self._rows[size : size + len(numbers)] = vectors
        self._numbers[size : size + len(numbers)] = numbers
        self._ids.extend(ids)
        self._row_of.update(zip(numbers, range(size, size + len(numbers)), strict=True))

    def remove(self, numbers: Iterable[int]) -> None:
        """Drop rows; the last row moves to the gap, so that the scan stays dense."""
        for number in list(numbers):
            row = self._row_of.pop(number, None)
            if row is None:
                continue
            last = len(self._ids) - 1
            if row != last:
                self._rows[row] = self._rows[last]
                self._numbers[row] = self._numbers[last]
                self._ids[row] = self._ids[last]
                self._row_of[int(self._numbers[row])] = row
            self._ids.pop()

    def nearest(self, vector: Vector, k: int, allowed: NDArray[np.int64] | None = None) -> list[Candidate]:
        """The k rows with the largest dot product, best first, ties by id; only allowed numbers if given."""
        size = len(self._ids)
        if allowed is None:
            near = largest(scan(self._rows[:size], vector), k, ROUNDING)
        else:
            rows = np.flatnonzero(np.isin(self._numbers[:size], allowed, kind="sort"))
            near = rows[largest(scan(self._rows[rows], vector), k, ROUNDING)]
        # The fast product rounds by partition in the matrix; added up row by row, equal vectors score the same.
        scores = np.vecdot(self._rows[near], vector)
        return best_first(self._ids, near, scores, k)

    def _reserve(self, size: int) -> None:
        capacity = len(self._rows)
        if size <= capacity:
            return
        # A quarter more each time: doubling would leave up to half of a large matrix unused.
        grown = max(FIRST_CAPACITY, size, capacity + capacity // 4)
        rows = np.empty((grown, self._rows.shape[1]), np.float32)
        rows[:capacity] = self._rows
        numbers = np.empty(grown, np.int64)
        numbers[:capacity] = self._numbers
        self._rows, self._numbers = rows, numbers
