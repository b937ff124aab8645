"""A session's memory: within one conversation or article no search is made twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ragstone.core.errors import InputError
from ragstone.core.types import KnowledgeBase, SearchResult
from ragstone.query.cache import Packed
from ragstone.settings.retrieval import RetrievalSettings

MOST_SEARCHES = 1000
Search = Callable[..., Awaitable[SearchResult]]


@dataclass(frozen=True, slots=True)
class Standing:
    """What is found depends on this and on what is asked: while both stay, so does the result.

    The tenant goes by its id, because its name may be another one's tomorrow.
    """

    tenant_id: str
    kb: KnowledgeBase
    settings: RetrievalSettings
    sequence: int
    """The last commit's place in the change feed."""


class Session:
    """Searches one kb of one tenant and remembers what it found until the kb changes."""

    def __init__(self, search: Search, standing: Callable[[], Awaitable[Standing]]) -> None:
        self._search = search
        self._standing = standing
        self._made: dict[str, asyncio.Future[Packed]] = {}
        self._at: Standing | None = None

    async def standing(self) -> Standing:
        """What everything found now depends on. A tenant that may not search now is refused, as in a search."""
        return await self._standing()

    async def search(self, query: str, **options: Any) -> SearchResult:
        """As the engine's `search`; the same query with the same options is answered from memory.

        White space makes no other query. Of two that ask at once, one searches and both get the result.
        A failure is not remembered, nor a result that is degraded.
        """
        if options.keys() & {"tenant", "kb"}:
            raise InputError("a session keeps to its tenant and kb", hint="make another session for others")
        standing = await self.standing()
        if standing != self._at:
            # Something was added or deleted: what was found before may not be there any more.
            self._made.clear()
            self._at = standing
        key = _key(query, options)
        made = self._made.get(key)
        if made is None:
            made = asyncio.ensure_future(self._packed(query, options))
            self._made[key] = made
            made.add_done_callback(partial(self._settle, key))
            if len(self._made) > MOST_SEARCHES:
                self._made.pop(next(iter(self._made)))
        return (await asyncio.shield(made)).unpacked()

    def __len__(self) -> int:
        return len(self._made)

    async def _packed(self, query: str, options: Mapping[str, Any]) -> Packed:
        return Packed.of(await self._search(query, **options))

    def _settle(self, key: str, made: asyncio.Future[Packed]) -> None:
        """Forget what is not worth remembering; a failure that nobody waits for is not one to complain about."""
        failed = made.cancelled() or made.exception() is not None
        if (failed or made.result().result.degraded) and self._made.get(key) is made:
            del self._made[key]


def _key(query: str, options: Mapping[str, Any]) -> str:
    given = {name: value for name, value in options.items() if value is not None}
    return repr((" ".join(query.split()), sorted(given.items())))
