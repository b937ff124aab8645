"""Events without async, for the loop of a `Ragstone`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import TypeVar

from ragstone.blocking.run import Run

T = TypeVar("T")
R = TypeVar("R")


def waited_for(events: AsyncIterator[T], run: Run) -> Iterator[T]:
    """Each event as it comes; whoever stops listening ends the work."""
    try:
        while (event := run(_next(events))) is not None:
            yield event
    finally:
        run(_closed(events))


async def _next(events: AsyncIterator[T]) -> T | None:
    return await anext(events, None)


async def _closed(events: AsyncIterator[T]) -> None:
    if isinstance(events, AsyncGenerator):
        await events.aclose()
