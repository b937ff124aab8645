"""Bodies of the routes that come from the designs, under the names that their clients know."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field

from ragstone.core.collections import CollectionHealth, FileState
from ragstone.core.search import SearchResult
from ragstone.core.types import Hit, Json
from ragstone.schemas.knowledge_bases import CorpusBuildSchema
from ragstone.schemas.schema import Schema
from ragstone.schemas.tools import DocsSchema


class IngestedSchema(Schema):
    """The answer of `POST /ingest`: a collection that was built."""

    status: Literal["success"]
    result: CorpusBuildSchema


class DesignErrorSchema(Schema):
    """An error of `POST /ingest`, `POST /search` and `GET /health`."""

    status: Literal["error"]
    error: str
    code: str
    """In capitals, such as `COLLECTION_EXISTS`."""


class FoundChunkSchema(Schema):
    """A chunk that was found. The score of an arm is null when it did not find the chunk or was not asked."""

    chunk_id: str
    chunk_text: str
    score: float
    bm25_score: float | None
    vector_score: float | None
    metadata: dict[str, Json]
    """With `source`, `position` (in characters) and `chunk_index`."""

    @classmethod
    def of_hit(cls, hit: Hit) -> Self:
        """Build the shape of a hit."""
        own = {"source": hit.uri, "position": hit.start, "chunk_index": hit.metadata.get("chunk_index")}
        return cls.of(
            hit,
            chunk_text=hit.text,
            bm25_score=hit.scores.get("lexical"),
            vector_score=hit.scores.get("dense"),
            metadata={**own, **{name: value for name, value in hit.metadata.items() if name not in own}},
        )


class FoundChunksSchema(Schema):
    """The answer of `POST /search`."""

    query: str
    rewritten_query: str
    results: list[FoundChunkSchema]
    total_results: int
    retrieval_time_ms: float
    degraded: list[str] = Field(default_factory=list, exclude_if=lambda notes: not notes)
    """The parts that could not be used, and why; left out when there are none."""

    @classmethod
    def of_result(cls, found: SearchResult) -> Self:
        """Build the shape of a search result."""
        results = [FoundChunkSchema.of_hit(hit) for hit in found.hits]
        return cls.of(found, results=results, total_results=len(results), retrieval_time_ms=found.took_ms)


class DocsSearchSchema(DocsSchema):
    """The answer of `GET /knowledge/{kbId}/search`: that of `searchDocs`."""

    degraded: list[str] = Field(default_factory=list, exclude_if=lambda notes: not notes)
    """The parts that could not be used, and why; left out when there are none."""


class CollectionStateSchema(Schema):
    """The parts that the routes of a collection need. Those of the collection are there for callers with a key."""

    bm25_index: FileState | None = Field(default=None, exclude_if=lambda state: state is None)
    vector_db: Literal["connected", "unavailable"]
    collection: str | None = Field(default=None, exclude_if=lambda name: name is None)
    total_documents: int | None = Field(default=None, exclude_if=lambda count: count is None)
    """Chunks: what a vector database calls documents."""


class ServiceHealthSchema(Schema):
    """The answer of `GET /health`."""

    status: Literal["healthy", "unhealthy"]
    components: CollectionStateSchema

    @classmethod
    def of_state(cls, health: CollectionHealth | None, *, is_connected: bool) -> Self:
        """Build the shape; a caller without a key hears nothing of a collection."""
        components = CollectionStateSchema.of(
            bm25_index=health.bm25_index if health else None,
            vector_db="connected" if is_connected else "unavailable",
            collection=health.collection if health else None,
            total_documents=health.total_chunks if health else None,
        )
        return cls.of(status="healthy" if is_connected else "unhealthy", components=components)
