"""One search over all sources: nowhere, in the kb, or in the kb and on the web, as its route says.

The web is asked beside the kb when the query asks for what changes from day to day, and after it when the kb's
passages do not suffice. Each source has its own time limit, and none keeps the others from answering.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from ragstone.core.errors import ModelError, RemoteError, StoreError
from ragstone.core.query_settings import RetrievalSettings
from ragstone.core.types import KnowledgeBase, SearchResult, Stage
from ragstone.core.web import WebFindings, no_web_search
from ragstone.query.cache import SearchCache
from ragstone.query.pipeline import SearchPipeline
from ragstone.query.request import SearchRequest
from ragstone.query.route import Route, route

logger = logging.getLogger(__name__)
Find = Callable[[str, str], Awaitable[WebFindings]]
"""What the web has for a tenant's query."""
Confidence = Callable[[SearchResult], Awaitable[float]]
"""How far the best passage is about the query, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a caller left to the route and what not."""

    mode: bool = False
    """Whether the mode is the caller's own."""
    web: bool | None = None
    """Whether to ask the web; None leaves it to the route."""


class Searcher:
    """Searches as the settings and the query's route say, through the cache."""

    def __init__(
        self, pipeline: Callable[[RetrievalSettings], SearchPipeline], cache: SearchCache, web: Find | None
    ) -> None:
        self._pipeline = pipeline
        self._cache = cache
        self._web = web

    async def search(
        self,
        tenant: str,
        kb: KnowledgeBase,
        settings: RetrievalSettings,
        request: SearchRequest,
        confidence: Confidence,
        wish: Wish,
    ) -> SearchResult:
        """One search over the sources that it is for."""
        chosen = self._route(settings, request.query, wish.web)
        if chosen.mode and not wish.mode:
            request = replace(request, mode=chosen.mode)
        search = partial(self._pipeline(settings).search, tenant, kb, request)
        find = self._web if wish.web or (settings.routing == "auto" and wish.web is None) else None
        sources = Sources(
            kb=partial(self._cache.search, tenant, kb, settings, request, search),
            web=partial(find, tenant, request.query) if find else None,
            confidence=confidence,
            sufficient=settings.sufficient,
        )
        return await search_sources(request, chosen, sources)

    def _route(self, settings: RetrievalSettings, query: str, web: bool | None) -> Route:
        if web:
            if self._web is None:
                raise no_web_search()
            return Route("web", reason="it was asked for")
        if settings.routing == "off":
            return Route("retrieve")
        return route(query, web=self._web is not None and web is None)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where one query can be looked for. `web` is None where it is not to be asked."""

    kb: Callable[[], Awaitable[SearchResult]]
    web: Callable[[], Awaitable[WebFindings]] | None
    confidence: Confidence
    sufficient: float


async def search_sources(request: SearchRequest, route: Route, sources: Sources) -> SearchResult:
    """What the sources have, the kb's passages and the web's results apart."""
    started = time.perf_counter()
    if route.kind == "none":
        return _nothing(request, route)
    if route.kind == "web" and sources.web:
        found, (findings, stage) = await asyncio.gather(_kb(request, sources), _web(sources.web))
        return _joined(found, findings, stage, started)
    if sources.web is None:
        return await sources.kb()
    found = await _kb(request, sources)
    if found.hits and await sources.confidence(found) >= sources.sufficient:
        skipped = Stage("web", 0.0, 0, 0, "the passages suffice")
        return replace(found, trace=(*found.trace, skipped))
    return _joined(found, *await _web(sources.web), started)


async def _kb(request: SearchRequest, sources: Sources) -> SearchResult:
    try:
        return await sources.kb()
    except (StoreError, RemoteError, ModelError) as error:
        # R-REL-03: with several sources, one that is down must not keep the others from answering.
        logger.warning("the knowledge base cannot be searched: %s", error)
        return SearchResult(request.query, request.query, request.mode, (), (), (f"documents: {error}",), 0.0)


async def _web(find: Callable[[], Awaitable[WebFindings]]) -> tuple[WebFindings, Stage]:
    started = time.perf_counter()
    findings = await find()
    spent = round((time.perf_counter() - started) * 1000, 3)
    return findings, Stage("web", spent, 1, len(findings.results))


def _joined(found: SearchResult, findings: WebFindings, stage: Stage, started: float) -> SearchResult:
    problem = (f"web: {findings.problem}",) if findings.problem else ()
    return replace(
        found,
        route="web",
        web=findings.results,
        trace=(*found.trace, stage),
        degraded=(*found.degraded, *problem),
        took_ms=round((time.perf_counter() - started) * 1000, 3),
    )


def _nothing(request: SearchRequest, route: Route) -> SearchResult:
    stage = Stage("route", 0.0, 1, 0, route.reason)
    return SearchResult(request.query, request.query, request.mode, (), (stage,), (), 0.0, route="none")
