"""The change feed's writing end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragstone.core.clock import canonical
from ragstone.core.errors import ModelMismatch, NotFoundError
from ragstone.core.ids import chunk_id, content_hash
from ragstone.core.types import Chunk, Json, KnowledgeBase, NewVersion
from ragstone.stores.sql.database import Connection, next_number

SHORTEN_EVERY = 50_000
KEPT_CHANGES = 100_000


def publish(
    connection: Connection, tenant_id: str, kb_id: int, operation: str, chunks: Sequence[tuple[int, str]]
) -> None:
    """Tell those who follow: `upsert`, `tombstone`, or `vector` when only that came, for a chunk known before."""
    first = next_number(connection, tenant_id, "changes", len(chunks))
    connection.executemany(
        "INSERT INTO changes (seq, tenant_id, kb_id, operation, chunk_seq, chunk_id) VALUES (?, ?, ?, ?, ?, ?)",
        [(first + n, tenant_id, kb_id, operation, *chunk) for n, chunk in enumerate(chunks)],
    )
    newest = first + len(chunks) - 1
    if newest // SHORTEN_EVERY > (first - 1) // SHORTEN_EVERY:
        # Who has not looked for so long reads the chunks themselves.
        connection.execute("DELETE FROM changes WHERE tenant_id = ? AND seq <= ?", (tenant_id, newest - KEPT_CHANGES))


def next_version(connection: Connection, tenant_id: str, kb: KnowledgeBase, version: NewVersion, moment: str) -> int:
    """Return a number for a new version of a document, which is made if there is none."""
    row = connection.execute(
        "UPDATE documents SET last_version = last_version + 1, parent_id = coalesce(parent_id, ?) "
        "WHERE tenant_id = ? AND id = ? RETURNING last_version, kb_id",
        (version.parent_id or None, tenant_id, version.document_id),
    ).fetchone()
    if row and row[1] != kb.id:
        # Its chunks would be in one kb and the document in another.
        raise NotFoundError(f"knowledge base '{kb.name}' was renamed meanwhile", hint="ingest again")
    if row:
        return int(row[0])
    connection.execute(
        "INSERT INTO documents (id, tenant_id, kb_id, source, external_id, uri, title, content_hash, version, "
        "last_version, chunk_count, token_count, media_type, metadata, recipe, embedded, modified_at, created_at, "
        "updated_at, parent_id) VALUES (?, ?, ?, ?, ?, ?, ?, '', 0, 1, 0, 0, ?, '{}', '', 0, NULL, ?, ?, ?)",
        (
            *(version.document_id, tenant_id, kb.id, version.source, version.external_id, version.uri),
            *(version.title, version.media_type, moment, moment, version.parent_id or None),
        ),
    )
    return 1


def write_chunks(connection: Connection, tenant_id: str, kb: KnowledgeBase, version: NewVersion, number: int) -> int:
    """Write the chunks of a version with their terms; the number of the first."""
    first = next_number(connection, tenant_id, "chunks", len(version.chunks))
    rows = [
        _chunk_row(connection, first + n, tenant_id, kb, version, number, chunk)
        for n, chunk in enumerate(version.chunks)
    ]
    connection.executemany(
        "INSERT INTO chunks (seq, id, tenant_id, kb_id, document_id, version, chunk_index, content, context, "
        "content_hash, start, stop, page, section, parent, level, kind, token_count, metadata) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    connection.executemany(
        "INSERT INTO terms (chunk_seq, tenant_id, terms) VALUES (?, ?, ?)",
        [(first + n, tenant_id, connection.dialect.pack(terms)) for n, terms in enumerate(version.terms)],
    )
    return first


def write_vectors(connection: Connection, tenant_id: str, kb: KnowledgeBase, first: int, vectors: np.ndarray) -> None:
    space = kb.space
    if space is None or vectors.shape[1] != space.dimension:
        raise ModelMismatch(
            f"vectors of {vectors.shape[1]} dimensions do not fit knowledge base '{kb.name}'",
            hint="this is a defect: please report it",
        )
    halves = vectors.astype(np.float16)
    connection.executemany(
        "INSERT INTO vectors (space_id, chunk_seq, tenant_id, vector) VALUES (?, ?, ?, ?)",
        [
            (space.id, first + n, tenant_id, connection.dialect.pack_vector(row))
            for n, row in enumerate(halves)
            if row.any()
        ],
    )


def write_bands(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, document_id: str, bands: Sequence[int]
) -> None:
    connection.execute("DELETE FROM resemblances WHERE tenant_id = ? AND document_id = ?", (tenant_id, document_id))
    connection.executemany(
        "INSERT INTO resemblances (kb_id, band, document_id, tenant_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(kb.id, band, document_id, tenant_id) for band in bands],
    )


def short_hash(text: str) -> bytes:
    """Half of the SHA-256: enough to know equal text, half the index."""
    return bytes.fromhex(content_hash(text))[:16]


def facts_of(version: NewVersion, kb: KnowledgeBase) -> Json:
    return {
        "uri": version.uri,
        "title": version.title,
        "content_hash": version.content_hash,
        "chunks": len(version.chunks),
        "tokens": sum(chunk.tokens for chunk in version.chunks),
        "media_type": version.media_type,
        "metadata": dict(version.metadata),
        "recipe": version.recipe,
        "embedded": int(version.vectors is not None),
        "space": kb.space.id if kb.space else None,
        "modified_at": canonical(version.modified_at) if version.modified_at else None,
        "signature": version.signature.hex(),
        "bands": version.bands,
        "read": version.read,
    }


def _chunk_row(
    connection: Connection, seq: int, tenant_id: str, kb: KnowledgeBase, version: NewVersion, number: int, chunk: Chunk
) -> tuple[object, ...]:
    to_json = connection.dialect.to_json
    return (
        *(seq, chunk_id(version.document_id, number, seq), tenant_id, kb.id, version.document_id, number),
        *(chunk.index, chunk.text, chunk.context, short_hash(chunk.contextual), chunk.start, chunk.end),
        *(chunk.page, to_json(chunk.section), chunk.parent, chunk.level, chunk.kind, chunk.tokens),
        to_json(chunk.metadata),
    )
