"""Chunks as others know them: under the names of the designs, with what follows from where they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ragstone.core.clock import canonical
from ragstone.core.document_facts import SECTION_TITLE, filename_of
from ragstone.core.types import Json, LiveChunk, Metadata


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """One chunk of a live document."""

    id: str
    document_id: str
    content: str
    chunk_index: int
    token_count: int
    embedding_model: str
    """Whose vector it has in the live Space; empty when it has none."""
    embedding_id: str
    """By which the vector is known in every store; empty when there is none."""
    page_number: int | None
    section_title: str
    metadata: Metadata
    created_at: datetime | None
    """When its version went live."""


def placement(live: LiveChunk) -> dict[str, Json]:
    """Where a chunk is from and how it stands in its document, as far as the chunk itself tells."""
    said = live.metadata
    return {
        "sourceFile": filename_of(said, live.uri),
        "chunkIndex": live.chunk.index,
        "totalChunks": live.total,
        "position": live.chunk.index,
        "hierarchy_level": live.chunk.level,
        "parent_id": live.document_id,
        "source_type": said.get("source_type") or live.source,
        "timestamp": said.get("date") or (canonical(live.updated_at) if live.updated_at else None),
        "url": said.get("url") or live.uri,
    }


def chunk_records(chunks: Sequence[LiveChunk], models: Mapping[str, str]) -> list[ChunkRecord]:
    """All chunks of a document; `models` are those of the chunks that have a vector, by chunk id."""
    ids = {live.chunk.index: live.id for live in chunks}
    return [_record(live, ids, models.get(live.id, "")) for live in chunks]


def _record(live: LiveChunk, ids: Mapping[int, str], model: str) -> ChunkRecord:
    chunk = live.chunk
    above = ids.get(chunk.parent, live.document_id) if chunk.parent is not None else live.document_id
    return ChunkRecord(
        id=live.id,
        document_id=live.document_id,
        content=chunk.text,
        chunk_index=chunk.index,
        token_count=chunk.tokens,
        embedding_model=model,
        embedding_id=live.id if model else "",
        page_number=chunk.page,
        section_title=chunk.section[-1][:SECTION_TITLE] if chunk.section else "",
        metadata={
            "author": None,
            "content_type": chunk.kind,
            "topic_shift_score": None,
            **placement(live),
            **live.metadata,
            **chunk.metadata,
            "parent_id": above,
        },
        created_at=live.updated_at,
    )
