"""Reading in threads what a source offers, a page's worth at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TypeVar

from ragstone.core.types import Failure, Item

MAX_ITEMS = 32
MAX_BYTES = 64 * 1024 * 1024

T = TypeVar("T")
Entries = tuple[Item | Failure, ...]


async def in_batches(entries: Iterable[Item | Failure]) -> AsyncIterator[Entries]:
    """Yield the entries, up to 32 at once and fewer when they are large; nothing is read before it is asked for."""
    batches = split(entries)
    while batch := await asyncio.to_thread(next, batches, ()):
        yield batch


def split(entries: Iterable[Item | Failure]) -> Iterator[Entries]:
    """Do the same inside a thread."""
    return batch_by_size(entries, _weigh, MAX_ITEMS, MAX_BYTES)


def batch_by_size(
    things: Iterable[T], weigh: Callable[[T], int], most: int, most_bytes: int
) -> Iterator[tuple[T, ...]]:
    """Yield things in order, up to `most` at once and fewer when they weigh more than `most_bytes` together."""
    batch: list[T] = []
    size = 0
    for thing in things:
        weight = weigh(thing)
        if batch and (len(batch) == most or size + weight > most_bytes):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(thing)
        size += weight
    if batch:
        yield tuple(batch)


def _weigh(entry: Item | Failure) -> int:
    return len(entry.content) if isinstance(entry, Item) else 0
