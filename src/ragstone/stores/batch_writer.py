"""Writes entries in batches in the background, so that no caller waits for it or fails with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")
PAUSE_SECONDS = 1.0
MOST_WAITING = 2000
"""What is kept for the writer; what comes on top while it does not keep up is dropped and counted."""


class BatchWriter(Generic[T]):
    """Hands what was added to `write`, one batch at a time; `write` raises nothing."""

    def __init__(self, write: Callable[[list[T]], Awaitable[None]]) -> None:
        self._write = write
        self._waiting: list[T] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self.dropped = 0

    def add(self, entry: T) -> None:
        """Queue an entry and return at once."""
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        self._waiting.append(entry)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._start)

    async def flush(self) -> None:
        """Write the entries that wait."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        # Shielded: a caller that gives up cancels neither the batch nor the others who wait for it.
        if running := self._running():
            await asyncio.shield(running)
        if self._waiting or self._running():
            await asyncio.shield(self._running() or self._begin())

    def _start(self) -> None:
        self._timer = None
        if self._running() is None:
            self._begin()
        else:  # a slow disk: later entries take the next turn
            self._timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._start)

    def _running(self) -> asyncio.Task[None] | None:
        if self._writing and self._writing.done():
            self._writing = None
        return self._writing

    def _begin(self) -> asyncio.Task[None]:
        batch, self._waiting = self._waiting, []
        self._writing = asyncio.ensure_future(self._write(batch))
        return self._writing
