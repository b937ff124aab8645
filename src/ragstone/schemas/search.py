"""Search results and explanations."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from ragstone.core.search import QueryType, SourceKind
from ragstone.core.types import Json, Mode, RouteKind
from ragstone.schemas.schema import Schema


class HitSchema(Schema):
    """A passage that was found."""

    chunk_id: str
    document_id: str
    title: str
    uri: str
    section: str
    page: int | None
    text: str
    score: float
    relevance: float | None
    scores: dict[str, float]
    metadata: dict[str, Json]
    start: int
    end: int
    context: str

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a hit; its placement is part of its metadata."""
        return super().of(source, metadata={**dict(source.placement), **source.metadata}, **values)


class StageSchema(Schema):
    """The work of one stage; `skipped` says what it did not do and why, and is empty when it did all."""

    stage: str
    ms: float
    entered: int = Field(alias="in")
    left: int = Field(alias="out")
    skipped: str


class WebResultSchema(Schema):
    """A page that a web search found."""

    title: str
    url: str
    snippet: str
    date: str
    provider: str


class AnalysisSchema(Schema):
    """The analysis of a query."""

    type: QueryType
    entities: list[str]
    dates: list[str]
    sources: list[SourceKind]
    mode: Mode | None
    reason: str


class SearchSchema(Schema):
    """Hits, best first, with the trace of how they were found."""

    query: str
    rewritten_query: str
    mode: Mode
    hits: list[HitSchema]
    trace: list[StageSchema]
    degraded: list[str]
    took_ms: float
    route: RouteKind
    web: list[WebResultSchema]
    records: list[HitSchema]
    analysis: AnalysisSchema | None


class ExplanationSchema(Schema):
    """The rank of a document at each stage, and the stage that lost it."""

    query: str
    document_id: str
    title: str
    found: bool
    lost_at: str
    reason: str
    stages: list[dict[str, Json]]
