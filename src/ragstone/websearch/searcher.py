"""Web search for tenants: remembered for a day, and never in the way of an answer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from ragstone.core.errors import RateLimited, RemoteError
from ragstone.core.protocols import WebSearch
from ragstone.core.web import WebFindings, WebResult
from ragstone.websearch.store import Search, WebResultStore

logger = logging.getLogger(__name__)
Identify = Callable[[str], Awaitable[str]]
"""The id of the tenant of a name, which is never another one's; empty while there is no such tenant."""


class WebSearcher:
    """Asks an engine on behalf of tenants. `hits` and `misses` count what the cache had."""

    def __init__(self, engine: WebSearch, store: WebResultStore, identify: Identify, k: int) -> None:
        self._engine = engine
        self._store = store
        self._identify = identify
        self._k = k
        self.hits = 0
        self.misses = 0

    async def find(self, tenant: str, query: str, k: int | None = None) -> WebFindings:
        """Results for a query; when the engine fails there are none, or those of before, and a word why."""
        search = await self._search(tenant, query, k)
        kept = await self._store.get(search)
        if kept is not None and kept.fresh:
            self.hits += 1
            return WebFindings(query, kept.results, cached=True)
        self.misses += 1
        try:
            found = await self._engine.search(query, search.k)
        except RateLimited as error:
            logger.warning("Internet search failed: %s", error)
            return WebFindings(
                query, kept.results if kept else (), cached=kept is not None, problem=str(error)
            )
        except RemoteError as error:
            logger.warning("Internet search failed: %s", error)
            return WebFindings(query, (), problem=str(error))
        if found:
            await self._store.put(search, found)
        return WebFindings(query, tuple(found))

    async def cached(self, tenant: str, query: str, k: int | None = None) -> tuple[WebResult, ...] | None:
        """What is kept for a query and still fresh; None when there is nothing."""
        kept = await self._store.get(await self._search(tenant, query, k))
        return kept.results if kept and kept.fresh else None

    async def close(self) -> None:
        await self._engine.close()

    async def _search(self, tenant: str, query: str, k: int | None) -> Search:
        return Search(await self._identify(tenant), self._engine.name, query, k or self._k)
