"""Cuts token sequences into windows, packs windows of like length into batches, and puts vectors together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragstone.core.types import Matrix
from ragstone.models.runtime import Ids

OVERLAP = 64
"""Tokens that neighbouring windows of a long text share, at most."""
BATCH_TOKENS = 2048
"""A batch beyond this is not faster, and what waits behind it waits longer."""
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


def plan(lengths: Sequence[int], *, batch_size: int, workers: int) -> list[list[int]]:
    """Positions grouped into batches, longest first, so that little is padded and the last ones are short."""
    share = sum(lengths) // max(workers, 1)
    budget = min(BATCH_TOKENS, max(share, SMALLEST_SHARE))
    batches: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lambda position: -lengths[position]):
        width = lengths[batches[-1][0]] if batches else 0
        if batches and len(batches[-1]) < batch_size and (len(batches[-1]) + 1) * width <= budget:
            batches[-1].append(position)
        else:
            batches.append([position])
    return batches


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
