"""Lookups in shops that are kept for a minute, each with its age."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")
KEPT_SECONDS = 60.0
MOST_KEPT = 1000
"""Lookups of all tenants together."""


class LookupCache:
    """Keeps what was found for a minute. What this process changes is read again at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, ...], tuple[float, Any]] = OrderedDict()
        self._changes = 0

    async def read(self, tenant: str, key: tuple[str, ...], read: Callable[[], Awaitable[T]]) -> tuple[T, float]:
        """Return what `read` gives, or gave within the last minute, and how many seconds ago that was."""
        whole = (tenant, *key)
        moment, found = self._kept.get(whole, (0.0, None))
        started = self._clock()
        if found is not None and started - moment < KEPT_SECONDS:
            return found, started - moment
        changes = self._changes
        fresh = await read()
        # What was read while something was changed may be from before that.
        if changes == self._changes:
            self._kept[whole] = started, fresh
            self._kept.move_to_end(whole)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return fresh, 0.0

    def forget(self, tenant: str) -> None:
        """Forget everything of a tenant, since something of it was changed."""
        self._changes += 1
        for key in [key for key in self._kept if key[0] == tenant]:
            del self._kept[key]
