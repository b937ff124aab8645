"""Results of searches and ingest runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ragstone.core.types import Failure, Hit, Json, Mode, RouteKind
from ragstone.core.web import WebResult

QueryType = Literal["product", "service", "general"]
SourceKind = Literal["documents", "database", "internet"]


@dataclass(frozen=True, slots=True)
class Stage:
    """The work of one stage. `skipped` says what it did not do and why; empty when it did all."""

    stage: str
    ms: float
    entered: int
    left: int
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """The kind of a query, the names and dates in it, and the sources to search."""

    type: QueryType
    entities: tuple[str, ...]
    """Names, as the tenant's own words or the query spell them."""
    dates: tuple[str, ...]
    """Days and times, as the query spells them."""
    sources: tuple[SourceKind, ...]
    """Where it is looked for at once; nowhere when nothing has to be looked for."""
    mode: Mode | None = None
    """How deep; None leaves it as it is."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first, and how they were found."""

    query: str
    rewritten_query: str
    mode: Mode
    hits: tuple[Hit, ...]
    trace: tuple[Stage, ...]
    degraded: tuple[str, ...]
    took_ms: float
    route: RouteKind = "retrieve"
    """Where it was looked for: nowhere, in the kb, or on the web as well."""
    web: tuple[WebResult, ...] = ()
    """What the web has to say, where it was asked."""
    records: tuple[Hit, ...] = ()
    """Rows of databases as they are now, where these were asked."""
    analysis: QueryAnalysis | None = None
    """What the query was taken for, where that decided who was asked."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The place of one document at each stage of a search, and the stage that lost it."""

    query: str
    document_id: str
    title: str
    found: bool
    lost_at: str
    reason: str
    stages: tuple[Mapping[str, Json], ...]


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The outcome of an ingest run."""

    added: int
    updated: int
    unchanged: int
    failed: tuple[Failure, ...]
    documents: int
    chunks: int
    seconds: float
    warnings: tuple[str, ...] = ()
    skipped_chunks: int = 0
    """Chunks stored without a vector because the model refused them."""
    degraded: tuple[str, ...] = ()
    removed: int = 0
    """Documents that their source no longer has."""
    moved: int = 0
    duplicates: int = 0
    """Documents left out because they are nearly the same as another."""
    stages: tuple[Stage, ...] = ()
    skipped: int = 0
    """Pictures that nobody asked for by name, or without words."""
