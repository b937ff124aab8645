"""Events from a task of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def stream_events(produce: Callable[[Callable[[T], None]], Awaitable[None]]) -> AsyncGenerator[T]:
    """Yield what `produce` sends, as it sends it; it is cancelled when the consumer stops.

    A generator runs in the context of the caller that asks for the next item. Context variables that `produce` sets,
    such as who pays, would leak there and could not be undone; in a task they stay where they belong.
    """
    queue: asyncio.Queue[T | None] = asyncio.Queue()

    async def work() -> None:
        try:
            await produce(queue.put_nowait)
        finally:
            queue.put_nowait(None)

    task = asyncio.create_task(work())
    try:
        while (item := await queue.get()) is not None:
            yield item
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
