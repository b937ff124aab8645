"""Remember searches within one conversation or article, so that none is made twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from ragstone.core.errors import InputError
from ragstone.core.search import SearchQuery, SearchResult
from ragstone.core.types import KnowledgeBase
from ragstone.query.cache import PackedResult
from ragstone.settings.retrieval import RetrievalSettings

MOST_SEARCHES = 1000
RunSearch = Callable[[SearchQuery], Awaitable[SearchResult]]


@dataclass(frozen=True, slots=True)
class KbSnapshot:
    """The state that results depend on: while it stays, the same search has the same result.

    The tenant goes by its id, because a name can pass to another tenant.
    """

    tenant_id: str
    kb: KnowledgeBase
    settings: RetrievalSettings
    sequence: int
    """The last commit's place in the change feed."""


class SearchSession:
    """Searches one kb of one tenant and remembers what it found until the kb changes."""

    def __init__(self, search: RunSearch, snapshot: Callable[[], Awaitable[KbSnapshot]]) -> None:
        self._search = search
        self._take_snapshot = snapshot
        self._made: dict[str, asyncio.Future[PackedResult]] = {}
        self._at: KbSnapshot | None = None

    async def snapshot(self) -> KbSnapshot:
        """Return the state that results depend on now. Refuses a tenant that may not search, as a search does."""
        return await self._take_snapshot()

    async def search(self, query: SearchQuery | str) -> SearchResult:
        """Search as the workspace's `search` does; an equal query is answered from memory.

        White space does not count. Two callers that ask at once share one search. Failures and degraded results are
        not remembered.
        """
        asked = SearchQuery(query) if isinstance(query, str) else query
        if asked.kb is not None:
            raise InputError("a session keeps to its kb", hint="make another session for another one")
        snapshot = await self.snapshot()
        if snapshot != self._at:
            # Passages found before may be gone.
            self._made.clear()
            self._at = snapshot
        key = repr(replace(asked, text=" ".join(asked.text.split())))
        made = self._made.get(key)
        if made is None:
            made = asyncio.ensure_future(self._search_and_pack(asked))
            self._made[key] = made
            made.add_done_callback(partial(self._settle, key))
            if len(self._made) > MOST_SEARCHES:
                self._made.pop(next(iter(self._made)))
        return (await asyncio.shield(made)).unpack()

    def __len__(self) -> int:
        return len(self._made)

    async def _search_and_pack(self, query: SearchQuery) -> PackedResult:
        return PackedResult.of(await self._search(query))

    def _settle(self, key: str, made: asyncio.Future[PackedResult]) -> None:
        """Forget failures and degraded results; a failure without a caller is not reported."""
        failed = made.cancelled() or made.exception() is not None
        if (failed or made.result().result.degraded) and self._made.get(key) is made:
            del self._made[key]
