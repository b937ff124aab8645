"""An exact nearest-neighbour scan over one growing float32 matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ragstone.core.types import Candidate, Matrix, Vector
from ragstone.stores.ranking import best_first, largest
from ragstone.stores.vectors.scan import scan

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
        """What it takes in memory, ids included."""
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
        # The fast product rounds by place in the matrix; added up row by row, equal vectors score the same.
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
