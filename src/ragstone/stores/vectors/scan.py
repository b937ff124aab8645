"""Scores every row of a matrix: on all cores while they are free, on one while they are not.

BLAS gives each core its share and waits for all of them. When another process has a core, it waits for the share that
nobody works on: a scan of half a millisecond then takes eight. One core alone needs one or two, whoever else is busy.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ragstone.core.types import Matrix, Vector

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
        self,
        together: Product = np.matmul,
        alone: Product = np.vecdot,
        clock: Callable[[], float] = time.perf_counter,
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
