"""Cuts token sequences into windows, says how large a batch may be and fills it up, and puts vectors together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragstone.core.types import Matrix
from ragstone.models.runtime.encoder import Ids

OVERLAP = 64
"""Tokens that neighbouring windows of a long text share, at most."""
BATCH_TOKENS = 1024
"""Beyond this a batch no longer fits the processor's own cache: twice as many take 2.1 times as long."""
SMALLEST_SHARE = 128
STEP = 16
"""Long rows are this many numbers wide or a multiple: vector instructions work off sixteen at a time."""
LONG = 128
"""From here on the columns that this adds cost less than the odd ones."""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of one text that fits the model."""

    text: int
    ids: tuple[int, ...]


def windows(text: int, ids: Sequence[int], longest: int) -> list[Window]:
    """All of a text in evenly spread windows of at most `longest` tokens; one window when it fits."""
    if len(ids) <= longest:
        return [Window(text, tuple(ids))]
    overlap = min(OVERLAP, longest // 4)
    count = -(-(len(ids) - overlap) // (longest - overlap))
    step = (len(ids) - longest) / (count - 1)
    starts = [round(index * step) for index in range(count)]
    return [Window(text, tuple(ids[start : start + longest])) for start in starts]


def budget_for(lengths: Sequence[int], workers: int) -> int:
    """Return the most tokens of a batch that keep all workers busy to the end."""
    workers = max(workers, 1)
    total = sum(lengths)
    rounds = max(1, -(-total // (workers * BATCH_TOKENS)))
    return min(BATCH_TOKENS, max(-(-total // (workers * rounds)), SMALLEST_SHARE))


def padded(rows: Sequence[Sequence[int]], padding: int, *, longest: int = 0) -> tuple[Ids, Ids]:
    """Rows as one matrix, filled up on the right, and the mask that says what is real.

    With `longest`, the most that the model takes, a long matrix gets a width that is fast to work off.
    """
    width = max(len(row) for row in rows)
    if width >= LONG:
        width = max(width, min(-(-width // STEP) * STEP, longest))
    ids = np.full((len(rows), width), padding, np.int64)
    mask = np.zeros((len(rows), width), np.int64)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
        mask[index, : len(row)] = 1
    return ids, mask


def unit_rows(matrix: Matrix) -> Matrix:
    """Rows scaled to length one; a zero row stays zero."""
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    scaled: Matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return scaled
