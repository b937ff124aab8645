"""Time between two requests to one host."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from ragstone.fetch.fetcher import Wait

MANY = 1000


class Pace:
    """Gives every caller a turn of its own, each some seconds after the one before at the same host."""

    def __init__(
        self, seconds: float, *, wait: Wait = asyncio.sleep, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._wait = wait
        self._clock = clock
        self._free_at: dict[str, float] = {}

    async def turn(self, host: str, seconds: float = 0.0) -> None:
        """Wait for a turn at the host; `seconds` asks for more time after it than usual."""
        now = self._clock()
        at = max(now, self._free_at.get(host, now))
        # Taken before waiting, so that whoever comes meanwhile queues behind.
        self._free_at[host] = at + max(self._seconds, seconds)
        if len(self._free_at) > MANY:
            self._free_at = {name: free for name, free in self._free_at.items() if free > now}
        if at > now:
            await self._wait(at - now)
