"""Events from a task of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def relayed(produce: Callable[[Callable[[T], None]], Awaitable[None]]) -> AsyncGenerator[T]:
    """What `produce` sends, as it sends it; when nobody listens any more it is cancelled.

    A generator runs in the context of whoever asks for the next item. What `produce` sets up for itself, such as who
    pays, would leak there and could not be undone; in a task it stays where it belongs.
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
