"""Web search for tenants: remembered for a day, and never in the way of an answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from ragstone.core.errors import BudgetSpent, RateLimited, RemoteError
from ragstone.core.model_types import add_cost, require_budget
from ragstone.core.protocols import WebResultCache, WebSearch
from ragstone.core.search import KeptResults, WebFindings, WebResult

logger = logging.getLogger(__name__)


class WebSearcher:
    """Asks an engine on behalf of tenants. `hits` and `misses` count what the cache had."""

    def __init__(self, engine: WebSearch, cache: Callable[[str], WebResultCache], k: int, price: float = 0.0) -> None:
        """`cache` gives the results that are kept for a tenant; `price` is that of a query in US dollars."""
        self._engine = engine
        self._cache = cache
        self._k = k
        self._price = price
        self.hits = 0
        self.misses = 0

    @property
    def hit_rate(self) -> float | None:
        """Return the share of searches that the cache answered; None before the first."""
        searches = self.hits + self.misses
        return self.hits / searches if searches else None

    async def find(self, tenant: str, query: str, k: int | None = None, since: datetime | None = None) -> WebFindings:
        """Return results for a query; when the engine fails none or earlier ones, and the problem.

        Results from before `since` are not used any more: what they are about has changed.
        """
        cache, wanted = self._cache(tenant), k or self._k
        kept = await cache.get(self._engine.name, query, wanted)
        if kept is not None and since is not None and not _is_from_after(kept, since):
            kept = None
        if kept is not None and kept.is_fresh:
            self._count(hit=True)
            return WebFindings(query, kept.results, cached=True)
        self._count(hit=False)
        try:
            if self._price:
                require_budget()
            # Also a query that fails may be counted by the engine.
            add_cost("web", self._price, units=1)
            found = await self._engine.search(query, wanted)
        except RemoteError as error:
            logger.warning("Internet search failed: %s", error)
            older = kept.results if kept and isinstance(error, RateLimited | BudgetSpent) else None
            return WebFindings(query, older or (), cached=older is not None, problem=str(error))
        if found:
            await cache.put(self._engine.name, query, wanted, found)
        return WebFindings(query, tuple(found))

    async def find_cached(self, tenant: str, query: str, k: int | None = None) -> tuple[WebResult, ...] | None:
        """Return the cached results of a query that are still fresh; None when there are none."""
        kept = await self._cache(tenant).get(self._engine.name, query, k or self._k)
        return kept.results if kept and kept.is_fresh else None

    def _count(self, *, hit: bool) -> None:
        self.hits += hit
        self.misses += not hit
        logger.info("web search cache: %d of %d searches answered from it", self.hits, self.hits + self.misses)

    async def close(self) -> None:
        await self._engine.close()


def _is_from_after(kept: KeptResults, since: datetime) -> bool:
    """Return whether results came after a moment; within the same second nobody can tell."""
    return kept.found_at is not None and kept.found_at.replace(microsecond=0) > since.replace(microsecond=0)
