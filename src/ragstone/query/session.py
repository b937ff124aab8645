"""A session's memory: within one conversation or article no search is made twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ragstone.core.types import SearchResult

MOST_SEARCHES = 1000
Search = Callable[..., Awaitable[SearchResult]]


class Session:
    """Searches one kb of one tenant and remembers what it found until the kb changes."""

    def __init__(self, search: Search, sequence: Callable[[], Awaitable[int]]) -> None:
        self._search = search
        self._sequence = sequence
        self._made: dict[str, asyncio.Future[SearchResult]] = {}
        self._at = 0

    async def search(self, query: str, **options: Any) -> SearchResult:
        """As the engine's `search`; the same query with the same options is answered from memory.

        White space makes no other query. Of two that ask at once, one searches and both get the result.
        """
        sequence = await self._sequence()
        if sequence != self._at:
            # Something was added or deleted: what was found before may not be there any more.
            self._made.clear()
            self._at = sequence
        key = _key(query, options)
        made = self._made.get(key)
        if made is None:
            made = asyncio.ensure_future(self._search(query, **options))
            made.add_done_callback(_seen)
            self._made[key] = made
            if len(self._made) > MOST_SEARCHES:
                self._made.pop(next(iter(self._made)))
        try:
            return await asyncio.shield(made)
        except BaseException:
            if made.done() and self._made.get(key) is made:
                del self._made[key]  # a failure is not remembered
            raise

    def __len__(self) -> int:
        return len(self._made)


def _seen(made: asyncio.Future[SearchResult]) -> None:
    """Whoever waited may have left: a failure that nobody asks for is not one to complain about."""
    if not made.cancelled():
        made.exception()


def _key(query: str, options: Mapping[str, Any]) -> str:
    given = {name: value for name, value in options.items() if value is not None}
    return repr((" ".join(query.split()), sorted(given.items())))
