"""One search over the sources that it is for, as the query's analysis and the caller say.

With routing off only the kb is searched, and the web when the caller asks for it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from ragstone.core.analysis import QueryAnalysis
from ragstone.core.protocols import RecordSearch
from ragstone.core.types import KnowledgeBase, SearchResult, Stage
from ragstone.core.web import WebFindings, no_web_search
from ragstone.query.analyse import analyse, with_names
from ragstone.query.cache import SearchCache
from ragstone.query.gather import Confidence, Sources, search_sources
from ragstone.query.pipeline import SearchPipeline
from ragstone.query.request import SearchRequest
from ragstone.settings.retrieval import RetrievalSettings

Find = Callable[[str, str], Awaitable[WebFindings]]
"""What the web has for a tenant's query."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a caller left to the analysis and what not."""

    mode: bool = False
    """Whether the mode is the caller's own."""
    web: bool | None = None
    """Whether to ask the web; None leaves it to the analysis."""


class Searcher:
    """Searches as the settings and the query's analysis say, through the cache."""

    def __init__(
        self,
        pipeline: Callable[[RetrievalSettings], SearchPipeline],
        cache: SearchCache,
        web: Find | None,
        records: RecordSearch | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._cache = cache
        self._web = web
        self._records = records

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
        if wish.web and self._web is None:
            raise no_web_search()
        started = time.perf_counter()
        analysis = self.analysis(settings, request, wish.web)
        ms = round((time.perf_counter() - started) * 1000, 3)
        if analysis and not analysis.sources:
            return _nothing(request, analysis)
        if analysis and analysis.mode and not wish.mode:
            request = replace(request, mode=analysis.mode)
        search = partial(self._pipeline(settings).search, tenant, kb, request)
        kb_search = partial(self._cache.search, tenant, kb, settings, request, search)
        sources = self._others(
            tenant, request, Sources(kb_search, confidence, settings.sufficient), wish, analysis
        )
        found = await search_sources(request, sources)
        return _analysed(found, analysis, ms) if analysis else found

    def analysis(
        self, settings: RetrievalSettings, request: SearchRequest, web: bool | None = None
    ) -> QueryAnalysis | None:
        """What the query is taken for; None where the settings do not let it decide anything."""
        if settings.routing == "off":
            return None
        # A filter may be a restriction, and no row can show that it fits: whoever filters is given none.
        about = self._records.about if self._records and request.where is None else ()
        may_ask = bool(self._web) and web is None
        analysis = analyse(request.query, settings.vocabulary, web=may_ask, database=about)
        if not web:
            return analysis
        sources = (*(analysis.sources or ("documents",)), "internet")
        return replace(analysis, sources=sources, mode=None, reason="the web was asked for")

    def _others(
        self, tenant: str, request: SearchRequest, kb: Sources, wish: Wish, analysis: QueryAnalysis | None
    ) -> Sources:
        """The kb together with whoever else may be asked."""
        if self._web and (wish.web or (analysis and wish.web is None)):
            at_once = analysis is None or "internet" in analysis.sources
            kb = replace(kb, web=partial(self._web, tenant, request.query), web_at_once=at_once)
        if self._records and analysis and "database" in analysis.sources:
            kb = replace(kb, database=partial(self._records.find, tenant, request.query, analysis.type))
        return kb


def _nothing(request: SearchRequest, analysis: QueryAnalysis) -> SearchResult:
    stage = Stage("route", 0.0, 1, 0, analysis.reason)
    nothing = SearchResult(request.query, request.query, request.mode, (), (stage,), (), 0.0)
    return replace(nothing, route="none", analysis=analysis)


def _analysed(found: SearchResult, analysis: QueryAnalysis, ms: float) -> SearchResult:
    """The result, with what the passages say of the query's names."""
    stage = Stage("analyse", ms, 1, len(analysis.sources))
    texts = (hit.text for hit in (*found.hits, *found.records))
    named = with_names(analysis, found.query, texts)
    return replace(found, trace=(stage, *found.trace), analysis=named)
