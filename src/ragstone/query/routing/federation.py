"""Search documents, records and the web together, and rank their results."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ragstone.core.errors import ModelError, RemoteError, SourceError, StoreError
from ragstone.core.protocols import RecordFindings, RecordSearch
from ragstone.core.search import QueryAnalysis, SearchResult, SourceKind, Stage, WebFindings, no_web_search, web_hits
from ragstone.core.types import Hit, KnowledgeBase
from ragstone.language.analyzer import analyze_query
from ragstone.language.relevance import measure_coverage
from ragstone.query.cache import SearchCache
from ragstone.query.context import SearchRequest
from ragstone.query.pipeline import SearchPipeline
from ragstone.query.routing.analyse import add_names, analyse
from ragstone.settings.retrieval import RetrievalSettings

logger = logging.getLogger(__name__)
JudgeConfidence = Callable[[SearchResult], Awaitable[float]]
"""Judges how relevant the best passage is to the query, from 0 to 1."""
AskWeb = Callable[[], Awaitable[WebFindings]]
AskRecords = Callable[[], Awaitable[RecordFindings]]


@dataclass(frozen=True, slots=True)
class SourceSearches:
    """The searches of one query in each source; None leaves a source out."""

    kb: Callable[[], Awaitable[SearchResult]]
    confidence: JudgeConfidence
    sufficient: float
    seconds: float
    """Seconds that `confidence` may take; after them the web is asked."""
    web: AskWeb | None = None
    web_at_once: bool = False
    """True asks the web together with the others, not only if they do not suffice."""
    database: AskRecords | None = None


async def search_all(request: SearchRequest, sources: SourceSearches) -> SearchResult:
    """Return the passages of the kb, the rows and the pages that the sources find, each apart."""
    if sources.web is None and sources.database is None:
        return await sources.kb()
    started = time.perf_counter()
    at_once = sources.web if sources.web_at_once else None
    found, rows, pages = await asyncio.gather(
        _search_kb(request, sources), _search_records(sources.database), _search_web(at_once)
    )
    found = _add_rows(found, *rows) if rows else found
    if sources.web and not at_once:
        pages = await _web_if_needed(found, sources, sources.web)
    joined = _add_pages(found, *pages) if pages else found
    return replace(joined, took_ms=_ms_since(started))


async def _search_kb(request: SearchRequest, sources: SourceSearches) -> SearchResult:
    try:
        return await sources.kb()
    except (StoreError, RemoteError, ModelError) as error:
        # R-REL-03: with several sources, one that is down must not keep the others from answering.
        logger.warning("cannot search the knowledge base: %s", error)
        return SearchResult(request.query, request.query, request.mode, (), (), (f"documents: {error}",), 0.0)


_Rows = tuple[RecordFindings, Stage]
_Pages = tuple[WebFindings, Stage]


async def _search_records(find: AskRecords | None) -> _Rows | None:
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


async def _search_web(find: AskWeb | None) -> _Pages | None:
    if find is None:
        return None
    started = time.perf_counter()
    findings = await find()
    return findings, Stage("web", _ms_since(started), 1, len(findings.results))


async def _web_if_needed(found: SearchResult, sources: SourceSearches, web: AskWeb) -> _Pages | None:
    """Ask the web, unless what was found without it suffices."""
    known = replace(found, hits=found.hits + found.records)
    if known.hits and await _suffices(known, sources):
        return WebFindings(found.query, ()), Stage("web", 0.0, 0, 0, "the passages suffice")
    return await _search_web(web)


async def _suffices(found: SearchResult, sources: SourceSearches) -> bool:
    try:
        async with asyncio.timeout(sources.seconds):
            return await sources.confidence(found) >= sources.sufficient
    except TimeoutError:
        # A model that hangs would keep the search, and its turn, for all its retries.
        logger.warning("asking the web: whether the passages suffice could not be told within %g s", sources.seconds)
        return False


def _add_rows(found: SearchResult, findings: RecordFindings, stage: Stage) -> SearchResult:
    noted = (f"database: {findings.problem}",) if findings.problem else ()
    return replace(found, records=findings.rows, trace=(*found.trace, stage), degraded=(*found.degraded, *noted))


def _add_pages(found: SearchResult, findings: WebFindings, stage: Stage) -> SearchResult:
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
"""Weight of a source: the tenant's own words come first."""
OWN_SCORE = 0.5
"""The share of a passage's relevance that comes from its own source."""
MOST_TERMS = 64


def passages_of(found: SearchResult) -> tuple[Hit, ...]:
    """Return all that was found, best first; results of the kb alone keep their order."""
    if not found.records and not found.web:
        return found.hits
    return rank_results((*found.hits, *found.records, *web_hits(found.web)), found.query)


def rank_results(results: Sequence[Hit], query: str) -> tuple[Hit, ...]:
    """Return the results by relevance times confidence, both added to their scores; ties keep their order."""
    texts = [f"{hit.title}\n{hit.section}\n{hit.text}" for hit in results]
    coverage = measure_coverage(analyze_query(query)[:MOST_TERMS], texts)
    ranked = [_with_scores(hit, share) for hit, share in zip(results, coverage, strict=True)]
    return tuple(sorted(ranked, key=lambda hit: -hit.scores["relevance"] * hit.scores["confidence"]))


def source_kind(hit: Hit) -> SourceKind:
    """Return the kind of source that a result is from."""
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


SearchWeb = Callable[[str, str], Awaitable[WebFindings]]
"""Searches the web for a tenant's query."""


@dataclass(frozen=True, slots=True)
class RoutingOverrides:
    """Choices of the caller that the analysis must not change."""

    mode: bool = False
    """True if the caller chose the mode."""
    web: bool | None = None
    """True asks the web, False does not; None leaves it to the analysis."""
    records: bool = True
    """False leaves out rows of databases."""


class FederatedSearch:
    """Searches as the settings and the query's analysis say, through the cache."""

    def __init__(
        self,
        pipeline: Callable[[RetrievalSettings], SearchPipeline],
        cache: SearchCache,
        web: SearchWeb | None,
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
        confidence: JudgeConfidence,
        overrides: RoutingOverrides,
    ) -> SearchResult:
        """Search the sources that the analysis and the overrides choose."""
        if overrides.web and self._web is None:
            raise no_web_search()
        started = time.perf_counter()
        analysis = self.analysis(settings, request, overrides.web, records=overrides.records)
        ms = round((time.perf_counter() - started) * 1000, 3)
        if analysis and not analysis.sources:
            return _empty_result(request, analysis)
        if analysis and analysis.mode and not overrides.mode:
            request = replace(request, mode=analysis.mode)
        search = partial(self._pipeline(settings).search, tenant, kb, request)
        kb_search = partial(self._cache.search, tenant, kb, settings, request, search)
        sources = self._others(
            tenant,
            request,
            SourceSearches(kb_search, confidence, settings.sufficient, settings.timeout),
            overrides,
            analysis,
        )
        found = await search_all(request, sources)
        return _add_analysis(found, analysis, ms) if analysis else found

    def analysis(
        self, settings: RetrievalSettings, request: SearchRequest, web: bool | None = None, *, records: bool = True
    ) -> QueryAnalysis | None:
        """Return the analysis of the query; None if the settings turn routing off."""
        if settings.routing == "off":
            return None
        # A filter may be a restriction, and no row can show that it fits: a filtered search gets no rows.
        about = self._records.about if self._records and records and request.where is None else ()
        may_ask = bool(self._web) and web is None
        analysis = analyse(request.query, settings.vocabulary, web=may_ask, database=about)
        if not web:
            return analysis
        sources = (*(analysis.sources or ("documents",)), "internet")
        return replace(analysis, sources=sources, mode=None, reason="the web was asked for")

    def _others(
        self,
        tenant: str,
        request: SearchRequest,
        kb: SourceSearches,
        overrides: RoutingOverrides,
        analysis: QueryAnalysis | None,
    ) -> SourceSearches:
        """Return the search of the kb together with those of the other sources."""
        if self._web and (overrides.web or (analysis and overrides.web is None)):
            at_once = analysis is None or "internet" in analysis.sources
            kb = replace(kb, web=partial(self._web, tenant, request.query), web_at_once=at_once)
        if self._records and analysis and "database" in analysis.sources:
            kb = replace(kb, database=partial(self._records.find, tenant, request.query, analysis.type))
        return kb


def _empty_result(request: SearchRequest, analysis: QueryAnalysis) -> SearchResult:
    stage = Stage("route", 0.0, 1, 0, analysis.reason)
    nothing = SearchResult(request.query, request.query, request.mode, (), (stage,), (), 0.0)
    return replace(nothing, route="none", analysis=analysis)


def _add_analysis(found: SearchResult, analysis: QueryAnalysis, ms: float) -> SearchResult:
    """Return the result with its analysis, and the query's names as the passages spell them."""
    stage = Stage("analyse", ms, 1, len(analysis.sources))
    texts = (hit.text for hit in (*found.hits, *found.records))
    named = add_names(analysis, found.query, texts)
    return replace(found, trace=(stage, *found.trace), analysis=named)
