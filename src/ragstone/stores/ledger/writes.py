"""What a transaction on a tenant's SQLite file does, as plain functions over its connection."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from ragstone.core.clock import canonical, now
from ragstone.core.errors import ModelMismatch, NotFoundError
from ragstone.core.ids import chunk_id, content_hash
from ragstone.core.types import Chunk, KnowledgeBase, NewVersion
from ragstone.stores.colocated import ColocatedIndex
from ragstone.stores.database import Connection, next_number
from ragstone.stores.ledger.jobs import forget_document
from ragstone.stores.ledger.reads import read_kb

Indexes = Sequence[ColocatedIndex]
SHORTEN_EVERY = 50_000
KEPT_CHANGES = 100_000


def open_kb(connection: Connection, tenant_id: str, indexes: Indexes, name: str) -> KnowledgeBase:
    """The kb of that name, made if it does not exist."""
    found = read_kb(connection, tenant_id, name)
    if found:
        return found
    inserted = connection.execute(
        "INSERT INTO knowledge_bases (tenant_id, name, created_at) VALUES (?, ?, ?) RETURNING id",
        (tenant_id, name, canonical(now())),
    ).fetchone()
    for index in indexes:
        index.open(connection, inserted[0])
    return KnowledgeBase(inserted[0], name, None)


def open_space(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, model: str, dimension: int
) -> KnowledgeBase:
    """The kb with a live Space of this model; refused when it already has one of another."""
    current = _kb_by_id(connection, tenant_id, kb)
    if current.space:
        if (current.space.model, current.space.dimension) != (model, dimension):
            raise ModelMismatch(
                f"knowledge base '{kb.name}' was built with {current.space.model} "
                f"({current.space.dimension} dimensions), not with {model} ({dimension})",
                hint=f"set embedding.model to {current.space.model.split('@')[0]}, or ingest into another --kb",
            )
        return current
    space = connection.execute(
        "INSERT INTO spaces (tenant_id, kb_id, model, dimension, generation, state, created_at) "
        "VALUES (?, ?, ?, ?, 1, 'live', ?) RETURNING id",
        (tenant_id, kb.id, model, dimension, canonical(now())),
    ).fetchone()
    connection.execute(
        "UPDATE knowledge_bases SET live_space = ? WHERE tenant_id = ? AND id = ?",
        (space[0], tenant_id, kb.id),
    )
    return _kb_by_id(connection, tenant_id, kb)


def stage(connection: Connection, tenant_id: str, kb: KnowledgeBase, version: NewVersion) -> int:
    """Write a version that no reader sees until it is activated; its number."""
    kb = _kb_by_id(connection, tenant_id, kb)
    moment = canonical(now())
    number = connection.execute(
        "INSERT INTO documents (id, tenant_id, kb_id, source, external_id, uri, title, content_hash, version, "
        "last_version, chunk_count, token_count, media_type, metadata, recipe, embedded, modified_at, created_at, "
        "updated_at, parent_id) VALUES (?, ?, ?, ?, ?, ?, ?, '', 0, 1, 0, 0, ?, '{}', '', 0, NULL, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET last_version = documents.last_version + 1 RETURNING last_version",
        (
            *(version.document_id, tenant_id, kb.id, version.source, version.external_id, version.uri),
            *(version.title, version.media_type, moment, moment, version.parent_id or None),
        ),
    ).fetchone()[0]
    connection.execute(
        "INSERT INTO versions (document_id, version, tenant_id, facts, text, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        (
            version.document_id,
            number,
            tenant_id,
            _facts(version),
            connection.dialect.pack(version.text),
            moment,
        ),
    )
    first = next_number(connection, tenant_id, "chunks", len(version.chunks))
    rows = [
        _chunk_row(first + n, tenant_id, kb, version, number, chunk) for n, chunk in enumerate(version.chunks)
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
    if version.vectors is not None:
        _write_vectors(connection, tenant_id, kb, first, version.vectors)
    return int(number)


def activate(
    connection: Connection,
    tenant_id: str,
    indexes: Indexes,
    kb: KnowledgeBase,
    document_id: str,
    number: int,
) -> None:
    """Make a staged version the live one; everything older goes."""
    row = connection.execute(
        "SELECT v.facts, d.version FROM versions v JOIN documents d ON d.id = v.document_id "
        "WHERE v.document_id = ? AND v.version = ? AND v.tenant_id = ?",
        (document_id, number, tenant_id),
    ).fetchone()
    if row is None:
        raise NotFoundError(f"document {document_id} has no staged version {number}")
    if row[1] == number:
        return
    facts = json.loads(row[0])
    fresh = _terms(connection, tenant_id, "document_id = ? AND version = ?", (document_id, number))
    _remove_chunks(
        connection, tenant_id, indexes, kb.id, "document_id = ? AND version < ?", (document_id, number)
    )
    connection.execute(
        "DELETE FROM versions WHERE tenant_id = ? AND document_id = ? AND version < ?",
        (tenant_id, document_id, number),
    )
    for index in indexes:
        index.add(connection, kb.id, fresh)
    arrived = connection.execute(
        "SELECT seq, id FROM chunks WHERE tenant_id = ? AND document_id = ? AND version = ? ORDER BY seq",
        (tenant_id, document_id, number),
    )
    _publish(connection, tenant_id, kb.id, "upsert", arrived.fetchall())
    connection.execute(
        "UPDATE documents SET uri = ?, title = ?, content_hash = ?, version = ?, chunk_count = ?, token_count = ?, "
        "media_type = ?, metadata = ?, recipe = ?, embedded = ?, modified_at = ?, updated_at = ?, signature = ? "
        "WHERE id = ? AND tenant_id = ?",
        (
            *(facts["uri"], facts["title"], facts["content_hash"], number, facts["chunks"], facts["tokens"]),
            *(facts["media_type"], json.dumps(facts["metadata"]), facts["recipe"], facts["embedded"]),
            *(facts["modified_at"], canonical(now()), bytes.fromhex(facts["signature"]) or None),
            *(document_id, tenant_id),
        ),
    )
    _write_bands(connection, tenant_id, kb, document_id, facts["bands"])
    connection.execute(
        "DELETE FROM checkpoints WHERE tenant_id = ? AND document_id = ?", (tenant_id, document_id)
    )


def delete_document(connection: Connection, tenant_id: str, indexes: Indexes, document_id: str) -> list[str]:
    """Remove a document and those that came in with it, with all their versions, postings, vectors and jobs."""
    row = connection.execute(
        "SELECT kb_id FROM documents WHERE id = ? AND tenant_id = ?", (document_id, tenant_id)
    ).fetchone()
    if row is None:
        return []
    gone = [document_id]
    for parent in gone:  # grows as it goes: an attachment may have some of its own
        children = connection.execute(
            "SELECT id FROM documents WHERE parent_id = ? AND tenant_id = ?", (parent, tenant_id)
        )
        gone += [child for (child,) in children if child not in gone]
    for identity in gone:
        _remove_chunks(connection, tenant_id, indexes, row[0], "document_id = ?", (identity,))
        connection.execute("DELETE FROM documents WHERE tenant_id = ? AND id = ?", (tenant_id, identity))
        forget_document(connection, tenant_id, identity)
    return gone


def delete_kb(connection: Connection, tenant_id: str, indexes: Indexes, name: str) -> list[str]:
    """Remove a kb with everything in it; the documents that went."""
    kb = read_kb(connection, tenant_id, name)
    if kb is None:
        return []
    found = connection.execute(
        "SELECT id FROM documents WHERE tenant_id = ? AND kb_id = ?", (tenant_id, kb.id)
    ).fetchall()
    gone = [document_id for (document_id,) in found]
    _remove_chunks(connection, tenant_id, indexes, kb.id, "kb_id = ?", (kb.id,))
    for index in indexes:
        index.drop(connection, kb.id)
    for document_id in gone:
        forget_document(connection, tenant_id, document_id)
    connection.execute("DELETE FROM knowledge_bases WHERE tenant_id = ? AND id = ?", (tenant_id, kb.id))
    return gone


def _remove_chunks(
    connection: Connection,
    tenant_id: str,
    indexes: Indexes,
    kb_id: int,
    which: str,
    parameters: tuple[str | int, ...],
) -> None:
    gone = connection.execute(
        "SELECT c.seq, c.id, c.version = d.version FROM chunks c JOIN documents d ON d.id = c.document_id "
        f"WHERE c.tenant_id = ? AND {_qualified(which)}",
        (tenant_id, *parameters),
    ).fetchall()
    if not gone:
        return
    live = {seq for seq, _, is_live in gone if is_live}
    indexed = [row for row in _terms(connection, tenant_id, which, parameters) if row[0] in live]
    for index in indexes:
        index.remove(connection, kb_id, indexed)
    seqs = [(tenant_id, seq) for seq, _, _ in gone]
    for (space,) in connection.execute("SELECT id FROM spaces WHERE kb_id = ?", (kb_id,)).fetchall():
        connection.executemany(
            "DELETE FROM vectors WHERE tenant_id = ? AND chunk_seq = ? AND space_id = ?",
            [(*seq, space) for seq in seqs],
        )
    connection.executemany("DELETE FROM terms WHERE tenant_id = ? AND chunk_seq = ?", seqs)
    connection.executemany("DELETE FROM chunks WHERE tenant_id = ? AND seq = ?", seqs)
    _publish(connection, tenant_id, kb_id, "tombstone", [(seq, identity) for seq, identity, _ in gone])


def _publish(
    connection: Connection,
    tenant_id: str,
    kb_id: int,
    operation: str,
    chunks: Sequence[tuple[int, str]],
) -> None:
    first = next_number(connection, tenant_id, "changes", len(chunks))
    connection.executemany(
        "INSERT INTO changes (seq, tenant_id, kb_id, operation, chunk_seq, chunk_id) VALUES (?, ?, ?, ?, ?, ?)",
        [(first + n, tenant_id, kb_id, operation, *chunk) for n, chunk in enumerate(chunks)],
    )
    newest = first + len(chunks) - 1
    if newest // SHORTEN_EVERY > (first - 1) // SHORTEN_EVERY:
        # Who has not looked for so long reads the chunks themselves.
        connection.execute(
            "DELETE FROM changes WHERE tenant_id = ? AND seq <= ?", (tenant_id, newest - KEPT_CHANGES)
        )


def _terms(
    connection: Connection, tenant_id: str, which: str, parameters: tuple[str | int, ...]
) -> list[tuple[int, str]]:
    rows = connection.execute(
        "SELECT t.chunk_seq, t.terms FROM chunks c JOIN terms t ON t.tenant_id = c.tenant_id AND t.chunk_seq = c.seq "
        f"WHERE c.tenant_id = ? AND {_qualified(which)}",
        (tenant_id, *parameters),
    )
    return [(seq, connection.dialect.unpack(packed)) for seq, packed in rows]


def _qualified(which: str) -> str:
    # Callers pass one of four constant conditions over the chunk's own columns, never a value.
    return " AND ".join(f"c.{part}" for part in which.split(" AND "))


def _kb_by_id(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> KnowledgeBase:
    found = read_kb(connection, tenant_id, kb.name)
    if found is None or found.id != kb.id:
        raise NotFoundError(f"knowledge base '{kb.name}' was deleted meanwhile", hint="ingest again")
    return found


def _write_vectors(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, first: int, vectors: np.ndarray
) -> None:
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


def _write_bands(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, document_id: str, bands: Sequence[int]
) -> None:
    connection.execute(
        "DELETE FROM resemblances WHERE tenant_id = ? AND document_id = ?", (tenant_id, document_id)
    )
    connection.executemany(
        "INSERT INTO resemblances (kb_id, band, document_id, tenant_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(kb.id, band, document_id, tenant_id) for band in bands],
    )


def _chunk_row(
    seq: int, tenant_id: str, kb: KnowledgeBase, version: NewVersion, number: int, chunk: Chunk
) -> tuple[object, ...]:
    return (
        *(
            seq,
            chunk_id(version.document_id, number, chunk.index),
            tenant_id,
            kb.id,
            version.document_id,
            number,
        ),
        *(chunk.index, chunk.text, chunk.context, short_hash(chunk.contextual), chunk.start, chunk.end),
        *(chunk.page, json.dumps(chunk.section), chunk.parent, chunk.level, chunk.kind, chunk.tokens),
        json.dumps(chunk.metadata),
    )


def short_hash(text: str) -> bytes:
    """Half of the SHA-256: enough to know equal text, half the index."""
    return bytes.fromhex(content_hash(text))[:16]


def _facts(version: NewVersion) -> str:
    return json.dumps(
        {
            "uri": version.uri,
            "title": version.title,
            "content_hash": version.content_hash,
            "chunks": len(version.chunks),
            "tokens": sum(chunk.tokens for chunk in version.chunks),
            "media_type": version.media_type,
            "metadata": dict(version.metadata),
            "recipe": version.recipe,
            "embedded": int(version.vectors is not None),
            "modified_at": canonical(version.modified_at) if version.modified_at else None,
            "signature": version.signature.hex(),
            "bands": version.bands,
        }
    )
