"""How sure is a difference? Paired bootstrap over the queries, the same on every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragstone.core.errors import InputError

DRAWS_AT_ONCE = 2_000_000
"""Bounds the memory: this many drawn positions, 16 MB, are held at a time."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The difference of two means and the bounds it lies between with the given confidence."""

    difference: float
    low: float
    high: float
    confidence: float

    @property
    def certain(self) -> bool:
        """Whether all of the interval lies on one side of zero."""
        return self.low > 0 or self.high < 0


def paired_bootstrap(
    scores: Sequence[float],
    baseline: Sequence[float],
    *,
    confidence: float = 0.95,
    samples: int = 10_000,
    seed: int = 20260101,
) -> Interval:
    """Percentile interval of mean(scores) - mean(baseline), both over the same queries in the same order."""
    if len(scores) != len(baseline) or not scores:
        raise InputError(
            f"cannot compare {len(scores)} scores with {len(baseline)}: both systems need the same queries"
        )
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, not {confidence}")
    differences = np.asarray(scores, dtype=np.float64) - np.asarray(baseline, dtype=np.float64)
    means = _resampled_means(differences, samples, np.random.default_rng(seed))
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(differences.mean()), float(low), float(high), confidence)


def _resampled_means(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], samples: int, random: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    size = len(values)
    rows = max(1, DRAWS_AT_ONCE // size)
    means = np.empty(samples)
    for start in range(0, samples, rows):
        stop = min(start + rows, samples)
        means[start:stop] = values[random.integers(size, size=(stop - start, size))].mean(axis=1)
    return means
