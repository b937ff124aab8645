"""Cutting a score array down to its best, the same way in every index: best first, ties by id."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragstone.core.types import Candidate


def largest(scores: NDArray[np.float32], k: int, rounding: float = 0.0) -> NDArray[np.intp]:
    """Positions of the k largest scores and of all that, but for rounding, tie with the last, in no order."""
    if k >= len(scores):
        return np.arange(len(scores))
    cut = np.partition(scores, len(scores) - k)[len(scores) - k]
    return np.flatnonzero(scores >= cut - np.float32(rounding))


def best_first(ids: Sequence[str], scores: Sequence[float], k: int) -> list[Candidate]:
    """The k best as candidates."""
    ordered = sorted(zip([-score for score in scores], ids, strict=True))
    return [Candidate(chunk_id, -negative) for negative, chunk_id in ordered[:k]]
