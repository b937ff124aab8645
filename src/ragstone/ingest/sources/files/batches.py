"""Reading in threads what a source offers, a page's worth at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator

from ragstone.core.types import Failure, Item

MAX_ITEMS = 32
MAX_BYTES = 64 * 1024 * 1024

Entries = tuple[Item | Failure, ...]


async def in_batches(entries: Iterable[Item | Failure]) -> AsyncIterator[Entries]:
    """Yield the entries, up to 32 at once and fewer when they are large; nothing is read before it is asked for."""
    batches = split(entries)
    while batch := await asyncio.to_thread(next, batches, ()):
        yield batch


def split(entries: Iterable[Item | Failure]) -> Iterator[Entries]:
    """Do the same inside a thread."""
    batch: list[Item | Failure] = []
    size = 0
    for entry in entries:
        weight = len(entry.content) if isinstance(entry, Item) else 0
        if batch and (len(batch) == MAX_ITEMS or size + weight > MAX_BYTES):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(entry)
        size += weight
    if batch:
        yield tuple(batch)
