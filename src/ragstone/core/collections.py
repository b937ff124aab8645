"""Collections of a kb: names of the physical ones, and requests to build one from a corpus file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ragstone.core.errors import InputError
from ragstone.core.ids import check_name, content_hash, opaque_id
from ragstone.core.types import Json, LiveChunk, Metadata

PLURALS = {"email": "emails", "paper": "papers", "upload": "uploads"}


@dataclass(frozen=True, slots=True)
class Collection:
    """The documents of one source type."""

    name: str
    source_type: str
    documents: int
    chunks: int
    vectors: int | None = None
    """Vectors in the collection of that source type; None where the store has no such collections."""


def collection_name(source_type: str, tenant: str) -> str:
    """Return the collection name of a tenant's documents of a source type."""
    return f"{PLURALS.get(source_type, source_type)}_{tenant}"


COLLECTION = "corpus_embeddings"
"""The name of a collection unless another is given."""
EXISTS = "Collection already exists. Use overwrite=true to replace."
DRAFT = re.compile(r"building-.+-[0-9a-f]{6}-[0-9a-f]{8}")
FileState = Literal["loaded", "stale", "missing"]


@dataclass(frozen=True, slots=True)
class ChunkMetadata:
    """Facts about a chunk beside its text."""

    chunk_id: str
    source: str
    """The corpus it is from."""
    position: int
    """Its start in that, in characters."""
    fields: Metadata = field(default_factory=dict)
    """Whatever else there is to say."""

    @classmethod
    def of(cls, live: LiveChunk) -> ChunkMetadata:
        """Return the metadata of a chunk as the ledger has it."""
        chunk = live.chunk
        known = {
            "document_id": live.document_id,
            "title": live.title,
            "chunk_index": chunk.index,
            "end": chunk.end,
            "page": chunk.page,
            "section": " > ".join(chunk.section),
            "tokens": chunk.tokens,
        }
        return cls(live.id, live.uri, chunk.start, {**chunk.metadata, **known})


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A request to build a collection; None leaves a choice to the settings."""

    corpus_path: str
    collection: str | None = None
    overwrite: bool = False
    chunk_size: int | None = None
    chunk_overlap: int | None = None
    embedding_model: str | None = None


@dataclass(frozen=True, slots=True)
class BuildResult:
    """A collection that was built."""

    total_chunks: int
    bm25_index_path: str
    vector_db_collection: str
    metadata_path: str
    embedding_model: str
    embedding_dimension: int
    duration_seconds: float
    statistics: Mapping[str, Json]
    """`avg_chunk_size` and `total_tokens` in tokens of the model, and more."""


@dataclass(frozen=True, slots=True)
class CollectionHealth:
    """The state of a collection. One that was never built is healthy and empty."""

    collection: str
    exists: bool
    total_documents: int
    total_chunks: int
    bm25_index: FileState
    """The state of the index file compared with the collection now."""
    metadata: FileState


def is_draft_of(collection: str, name: str) -> bool:
    """Return whether a kb of that name is a build of this collection."""
    return is_draft(name) and name.startswith(draft_prefix(collection))


def draft_prefix(collection: str) -> str:
    """Return the prefix of the names of kbs in which a collection is built."""
    return f"building-{collection[:38]}-{content_hash(collection)[:6]}-"


def is_draft(name: str) -> bool:
    """Return whether a kb of that name is a collection under construction."""
    return DRAFT.fullmatch(name) is not None


def check_kb_name(name: str) -> str:
    """Return a name that a kb may be given, or refuse it; builds remove what is called like their drafts."""
    if is_draft(check_name(name, "knowledge base")):
        raise InputError(
            f"knowledge base '{name}' would be called like a collection that is being built",
            hint="choose a name that does not begin with building-",
        )
    return name


def draft_name(collection: str) -> str:
    """Return a name for the kb in which a collection is built: another one each time, so that no two builds meet."""
    return draft_prefix(collection) + opaque_id()[:8]
