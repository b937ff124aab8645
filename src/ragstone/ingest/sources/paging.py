"""Pages of a source: how far a run has come, and cursors for the next one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TypeVar

from ragstone.core.errors import SourceError
from ragstone.core.types import Failure, Item

PAGE_ITEMS = 16
PAGE_SECONDS = 60.0
"""Far below what a sync waits for a page, since one request may take as long again."""
MAX_PAGES = 20_000
_HINT = "check the address of the service, or narrow down what is asked for"
MAX_ITEMS = 32
MAX_BYTES = 64 * 1024 * 1024
T = TypeVar("T")
Entries = tuple[Item | Failure, ...]


class PageTurn:
    """Counts from the moment it is made."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def due(self, entries: int) -> bool:
        """Return whether a page is full or due by time; an empty one then shows that the source is alive."""
        return entries >= PAGE_ITEMS or time.monotonic() - self._begun >= PAGE_SECONDS


class PageTokens:
    """The tokens of one listing, each of which leads on once."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._seen: set[str] = set()

    def follow(self, token: str) -> str:
        """Return the token of the next page, empty behind the last. Raises `SourceError` for an endless listing."""
        if not token:
            return ""
        if token in self._seen:
            raise SourceError(f"{self._who} lists in a circle: a page leads back to one before it", hint=_HINT)
        if len(self._seen) == MAX_PAGES:
            raise SourceError(f"{self._who} lists more than {MAX_PAGES:,} pages", hint=_HINT)
        self._seen.add(token)
        return token


async def in_batches(entries: Iterable[Item | Failure]) -> AsyncIterator[Entries]:
    """Yield the entries, up to 32 at once and fewer when they are large; nothing is read before it is asked for."""
    batches = split(entries)
    while batch := await asyncio.to_thread(next, batches, ()):
        yield batch


def split(entries: Iterable[Item | Failure]) -> Iterator[Entries]:
    """Do the same inside a thread."""

    def weigh(entry: Item | Failure) -> int:
        return len(entry.content) if isinstance(entry, Item) else 0

    return batch_by_size(entries, weigh, MAX_ITEMS, MAX_BYTES)


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
