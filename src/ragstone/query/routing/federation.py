"""Search documents, records and the web together, and rank their results."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ragstone.core.analysis import QueryAnalysis, SourceKind
from ragstone.core.errors import ModelError, RemoteError, SourceError, StoreError
from ragstone.core.protocols import RecordFindings, RecordSearch
from ragstone.core.types import Hit, KnowledgeBase, SearchResult, Stage
from ragstone.core.web import WebFindings, no_web_search, web_hits
from ragstone.language.analyzer import analyze, analyze_query
from ragstone.query.cache import SearchCache
from ragstone.query.pipeline import SearchPipeline
from ragstone.query.request import SearchRequest
from ragstone.query.routing.analyse import analyse, with_names
from ragstone.settings.retrieval import RetrievalSettings

logger = logging.getLogger(__name__)
Confidence = Callable[[SearchResult], Awaitable[float]]
"""How far the best passage is about the query, from 0 to 1."""
Web = Callable[[], Awaitable[WebFindings]]
Database = Callable[[], Awaitable[RecordFindings]]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where one query is looked for. A source that is None is not asked."""

    kb: Callable[[], Awaitable[SearchResult]]
    confidence: Confidence
    sufficient: float
    web: Web | None = None
    web_at_once: bool = False
    """Whether the web is asked together with the others, not only when they do not suffice."""
    database: Database | None = None


async def search_sources(request: SearchRequest, sources: Sources) -> SearchResult:
    """What the sources have: the kb's passages, rows and pages of the web, each apart."""
    if sources.web is None and sources.database is None:
        return await sources.kb()
    started = time.perf_counter()
    at_once = sources.web if sources.web_at_once else None
    found, rows, pages = await asyncio.gather(
        _kb(request, sources), _database(sources.database), _asked(at_once)
    )
    found = _with_rows(found, *rows) if rows else found
    if sources.web and not at_once:
        pages = await _web_if_needed(found, sources, sources.web)
    joined = _with_pages(found, *pages) if pages else found
    return replace(joined, took_ms=_ms_since(started))


async def _kb(request: SearchRequest, sources: Sources) -> SearchResult:
    try:
        return await sources.kb()
    except (StoreError, RemoteError, ModelError) as error:
        # R-REL-03: with several sources, one that is down must not keep the others from answering.
        logger.warning("the knowledge base cannot be searched: %s", error)
        return SearchResult(request.query, request.query, request.mode, (), (), (f"documents: {error}",), 0.0)


_Rows = tuple[RecordFindings, Stage]
_Pages = tuple[WebFindings, Stage]


async def _database(find: Database | None) -> _Rows | None:
    if find is None:
        return None
    started = time.perf_counter()
    try:
        findings = await find()
    except SourceError as error:
        findings = RecordFindings((), str(error))
    if findings.problem:
        logger.warning("Database unavailable: %s", findings.problem)
    return findings, Stage("database", _ms_since(started), 1, len(findings.rows))


async def _asked(find: Web | None) -> _Pages | None:
    if find is None:
        return None
    started = time.perf_counter()
    findings = await find()
    return findings, Stage("web", _ms_since(started), 1, len(findings.results))


async def _web_if_needed(found: SearchResult, sources: Sources, web: Web) -> _Pages | None:
    """Ask the web, unless what was found without it suffices."""
    known = replace(found, hits=found.hits + found.records)
    if known.hits and await sources.confidence(known) >= sources.sufficient:
        return WebFindings(found.query, ()), Stage("web", 0.0, 0, 0, "the passages suffice")
    return await _asked(web)


def _with_rows(found: SearchResult, findings: RecordFindings, stage: Stage) -> SearchResult:
    noted = (f"database: {findings.problem}",) if findings.problem else ()
    return replace(
        found, records=findings.rows, trace=(*found.trace, stage), degraded=(*found.degraded, *noted)
    )


def _with_pages(found: SearchResult, findings: WebFindings, stage: Stage) -> SearchResult:
    noted = (f"web: {findings.problem}",) if findings.problem else ()
    return replace(
        found,
        route="retrieve" if stage.skipped else "web",
        web=findings.results,
        trace=(*found.trace, stage),
        degraded=(*found.degraded, *noted),
    )


def _ms_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


CONFIDENCE: Mapping[SourceKind, float] = {"documents": 1.0, "database": 1.0, "internet": 0.7}
"""What a source is worth: the tenant's own words come before anybody else's."""
OWN_SCORE = 0.5
"""How much of its relevance is what its own source made of it."""
MOST_TERMS = 64


def passages_of(found: SearchResult) -> tuple[Hit, ...]:
    """All that was found, best first, whatever the source; the kb's order stays where it is the only one."""
    if not found.records and not found.web:
        return found.hits
    return rank_results((*found.hits, *found.records, *web_hits(found.web)), found.query)


def rank_results(results: Sequence[Hit], query: str) -> tuple[Hit, ...]:
    """The results by relevance times confidence, both added to their scores; equals stay in the order they came."""
    asked = analyze_query(query)[:MOST_TERMS]
    inside = [set(analyze(f"{hit.title}\n{hit.section}\n{hit.text}")) for hit in results]
    frequency = Counter(term for found in inside for term in found)
    weights = {term: math.log(1 + len(results) / (0.5 + frequency[term])) for term in asked}
    total = sum(weights.values()) or 1.0
    ranked = [
        _with_scores(hit, sum(weight for term, weight in weights.items() if term in found) / total)
        for hit, found in zip(results, inside, strict=True)
    ]
    return tuple(sorted(ranked, key=lambda hit: -hit.scores["relevance"] * hit.scores["confidence"]))


def source_kind(hit: Hit) -> SourceKind:
    """Which kind of source a result is of."""
    match hit.scores:
        case {"web": _}:
            return "internet"
        case {"database": _}:
            return "database"
    return "documents"


def _with_scores(hit: Hit, coverage: float) -> Hit:
    relevance = OWN_SCORE * hit.score + (1 - OWN_SCORE) * coverage
    confidence = CONFIDENCE[source_kind(hit)]
    added = {"relevance": round(relevance, 6), "confidence": confidence}
    return replace(hit, scores={**hit.scores, **added})


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
