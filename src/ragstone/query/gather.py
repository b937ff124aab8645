"""The sources of one search, asked at the same time: the kb, databases, the web.

The web is asked together with the others, or after them when what they have does not suffice. Each source has its
own time limit, and none keeps the others from answering.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from ragstone.core.errors import ModelError, RemoteError, SourceError, StoreError
from ragstone.core.protocols import RecordFindings
from ragstone.core.types import SearchResult, Stage
from ragstone.core.web import WebFindings
from ragstone.query.request import SearchRequest

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
