"""Knowledge bases, collections, and corpora that are built as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from pydantic import RootModel

from ragstone.core.collections import ChunkMetadata, FileState
from ragstone.core.types import Json, KnowledgeBase, Stats
from ragstone.schemas.schema import Schema


class KbSchema(Schema):
    """A kb with its counts; the model is null until something is embedded."""

    name: str
    documents: int
    chunks: int
    model: str | None
    dimension: int | None
    generation: int | None

    @classmethod
    def of_kb(cls, kb: KnowledgeBase, stats: Stats) -> Self:
        """Build the shape of a kb."""
        names = ("model", "dimension", "generation")
        space = {name: getattr(kb.space, name) if kb.space else None for name in names}
        return cls.of(stats, name=kb.name, **space)

    @classmethod
    def restore(cls, data: dict[str, Json]) -> Mapping[str, Json]:
        """Return the fields of a kb, with its space in one place."""
        return {**data, "space": {**data, "state": "live"} if data.get("model") else None}


class KbListSchema(Schema):
    """The knowledge bases of a tenant."""

    kbs: list[KbSchema]


class StatsSchema(Schema):
    """Counts of a kb's live content."""

    kb: str
    documents: int
    chunks: int
    tokens: int
    unembedded: int
    sequence: int
    bytes: int
    model: str


class CollectionSchema(Schema):
    """The documents of one type of source; `vectors` is null where it has no collection of its own in the store."""

    name: str
    source_type: str
    documents: int
    chunks: int
    vectors: int | None


class CollectionListSchema(Schema):
    """The collections of a tenant."""

    collections: list[CollectionSchema]


class RenamedKbSchema(Schema):
    """A kb that was renamed: its former and its present name."""

    renamed: str
    name: str


class ReindexedKbSchema(Schema):
    """A kb whose indexes were rebuilt."""

    kb: str
    rebuilt: list[str]


class CorpusBuildSchema(Schema):
    """A collection that was built from a corpus."""

    total_chunks: int
    bm25_index_path: str
    vector_db_collection: str
    metadata_path: str
    embedding_model: str
    embedding_dimension: int
    duration_seconds: float
    statistics: dict[str, Json]


class CollectionHealthSchema(Schema):
    """The counts and files of a collection that is built from a corpus."""

    collection: str
    exists: bool
    total_documents: int
    total_chunks: int
    bm25_index: FileState
    metadata: FileState


class ChunkMetadataSchema(Schema, RootModel[dict[str, Json]]):
    """Everything that is known of a chunk of a collection, with its `chunk_id`, `source` and `position`."""

    @classmethod
    def of_chunk(cls, chunk: ChunkMetadata) -> Self:
        """Build the shape of a chunk's metadata."""
        own = {"chunk_id": chunk.chunk_id, "source": chunk.source, "position": chunk.position}
        return cls.of(root={**chunk.fields, **own})
