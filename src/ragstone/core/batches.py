"""Cut items into batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield consecutive slices of at most `size` items."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def batched_by_weight(items: Iterable[T], weigh: Callable[[T], int], *, most: int, heaviest: int) -> Iterator[list[T]]:
    """Yield consecutive items in lists of at most `most`, together no heavier than `heaviest` unless one alone is."""
    batch: list[T] = []
    total = 0
    for item in items:
        weight = weigh(item)
        if batch and (len(batch) == most or total + weight > heaviest):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += weight
    if batch:
        yield batch
