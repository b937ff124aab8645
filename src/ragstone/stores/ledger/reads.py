"""What is read of a tenant's rows, as plain functions over a connection. Every read names the tenant."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragstone.core.clock import parse_moment
from ragstone.core.documents import CATEGORY, FILE_PATH, TITLE, file_type_of, filename_of, tags_of, text_of
from ragstone.core.filters import Filter, Scalar
from ragstone.core.jobs import DocumentStatus, JobState, Status
from ragstone.core.model_types import model_name
from ragstone.core.types import Chunk, Document, KnowledgeBase, LiveChunk, Metadata, Space, Stats, Vector
from ragstone.stores.ledger.job_reads import newest_job
from ragstone.stores.sql.database import Connection, in_parts, last_number, marks

DOCUMENT = (
    "SELECT d.id, k.name, d.source, d.external_id, d.uri, d.title, d.content_hash, d.version, d.chunk_count, "
    "d.token_count, d.media_type, d.metadata, d.recipe, d.embedded, d.modified_at, d.created_at, d.updated_at "
    "FROM documents d JOIN knowledge_bases k ON k.tenant_id = d.tenant_id AND k.id = d.kb_id "
    "WHERE d.tenant_id = ? AND d.version > 0"
)
CHUNK = (
    "SELECT c.id, c.document_id, c.version, c.chunk_index, c.content, c.context, c.start, c.stop, c.page, "
    "c.section, c.parent, c.level, c.kind, c.token_count, c.metadata, d.title, d.uri, d.source, d.metadata, "
    "d.chunk_count, d.updated_at "
    "FROM chunks c JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.version = c.version "
    "WHERE c.tenant_id = ?"
)


def read_kb(connection: Connection, tenant_id: str, name: str) -> KnowledgeBase | None:
    """The kb of that name with its live Space."""
    found = _kbs(connection, "WHERE k.tenant_id = ? AND k.name = ?", (tenant_id, name))
    return found[0] if found else None


def read_kbs(connection: Connection, tenant_id: str) -> list[KnowledgeBase]:
    """All kbs in order of name."""
    return _kbs(connection, "WHERE k.tenant_id = ? ORDER BY k.name", (tenant_id,))


def read_document(connection: Connection, tenant_id: str, document_id: str) -> Document | None:
    row = connection.execute(f"{DOCUMENT} AND d.id = ?", (tenant_id, document_id)).fetchone()
    return _document(row) if row else None


def read_documents(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, where: Filter | None, after: str, limit: int
) -> list[Document]:
    """A page in order of id."""
    parameters: list[Scalar] = [tenant_id, kb.id, after]
    filtered = f" AND {connection.dialect.condition(where, parameters, chunks=False)}" if where else ""
    rows = connection.execute(
        f"{DOCUMENT} AND d.kb_id = ? AND d.id > ?{filtered} ORDER BY d.id LIMIT ?", (*parameters, limit)
    )
    return [_document(row) for row in rows]


def find_documents(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, source: str, external_ids: Sequence[str]
) -> dict[str, Document]:
    """The documents of a source by external id."""
    found = {}
    for part in in_parts(external_ids):
        rows = connection.execute(
            f"{DOCUMENT} AND d.kb_id = ? AND d.source = ? AND d.external_id IN ({marks(part)})",
            (tenant_id, kb.id, source, *part),
        )
        found.update({row[3]: _document(row) for row in rows})
    return found


def read_text(connection: Connection, tenant_id: str, document_id: str) -> str | None:
    """The live version's text."""
    row = connection.execute(
        "SELECT v.text FROM versions v "
        "JOIN documents d ON d.tenant_id = v.tenant_id AND d.id = v.document_id AND d.version = v.version "
        "WHERE d.tenant_id = ? AND d.id = ?",
        (tenant_id, document_id),
    ).fetchone()
    return connection.dialect.unpack(row[0]) if row else None


def read_chunks(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, chunk_ids: Sequence[str]
) -> Mapping[str, LiveChunk]:
    """Live chunks of this tenant and kb among the ids; the others are left out."""
    found = {}
    for part in in_parts(chunk_ids):
        rows = connection.execute(f"{CHUNK} AND c.kb_id = ? AND c.id IN ({marks(part)})", (tenant_id, kb.id, *part))
        found.update({row[0]: _chunk(row) for row in rows})
    return found


def read_document_chunks(connection: Connection, tenant_id: str, document_id: str) -> list[LiveChunk]:
    """All live chunks of a document in order."""
    rows = connection.execute(f"{CHUNK} AND c.document_id = ? ORDER BY c.chunk_index", (tenant_id, document_id))
    return [_chunk(row) for row in rows]


def known_vectors(connection: Connection, tenant_id: str, space: Space, hashes: Sequence[bytes]) -> dict[bytes, Vector]:
    """Stored vectors of a Space by hash of the text they were made from."""
    found = {}
    for part in in_parts(hashes):
        rows = connection.execute(
            "SELECT c.content_hash, v.vector FROM chunks c JOIN vectors v ON v.tenant_id = c.tenant_id "
            f"AND v.chunk_seq = c.seq AND v.space_id = ? WHERE c.tenant_id = ? AND c.content_hash IN ({marks(part)})",
            (space.id, tenant_id, *part),
        )
        found.update({key: connection.dialect.unpack_vector(vector) for key, vector in rows})
    return found


def read_stats(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> Stats:
    documents, chunks, tokens, unembedded = connection.execute(
        "SELECT count(*), coalesce(sum(chunk_count), 0), coalesce(sum(token_count), 0), "
        "coalesce(sum(CASE WHEN embedded = 0 THEN 1 ELSE 0 END), 0) "
        "FROM documents WHERE tenant_id = ? AND kb_id = ? AND version > 0",
        (tenant_id, kb.id),
    ).fetchone()
    return Stats(
        documents=documents,
        chunks=chunks,
        tokens=tokens,
        unembedded=unembedded,
        sequence=read_sequence(connection, tenant_id),
        bytes=connection.dialect.bytes_used(connection, tenant_id),
        model=kb.space.model if kb.space else "",
    )


def read_sequence(connection: Connection, tenant_id: str) -> int:
    """The last commit's place in the change feed, also when the feed has been shortened."""
    return last_number(connection, tenant_id, "changes")


def _kbs(connection: Connection, which: str, parameters: tuple[str, ...]) -> list[KnowledgeBase]:
    rows = connection.execute(
        "SELECT k.id, k.name, s.id, s.model, s.dimension, s.generation, s.state "
        f"FROM knowledge_bases k LEFT JOIN spaces s ON s.tenant_id = k.tenant_id AND s.id = k.live_space {which}",
        parameters,
    )
    return [KnowledgeBase(row[0], row[1], Space(*row[2:]) if row[2] is not None else None) for row in rows]


def _document(row: tuple[Any, ...]) -> Document:
    modified, created, updated = (parse_moment(moment) if moment else None for moment in row[14:])
    assert created is not None
    assert updated is not None
    return Document(
        id=row[0],
        kb=row[1],
        source=row[2],
        external_id=row[3],
        uri=row[4],
        title=row[5],
        content_hash=row[6],
        version=row[7],
        chunks=row[8],
        tokens=row[9],
        media_type=row[10],
        metadata=json.loads(row[11]),
        recipe=row[12],
        embedded=bool(row[13]),
        modified_at=modified,
        created_at=created,
        updated_at=updated,
    )


def _chunk(row: tuple[Any, ...]) -> LiveChunk:
    chunk = Chunk(
        index=row[3],
        text=row[4],
        context=row[5],
        start=row[6],
        end=row[7],
        page=row[8],
        section=tuple(json.loads(row[9])),
        parent=row[10],
        level=row[11],
        kind=row[12],
        tokens=row[13],
        metadata=json.loads(row[14]),
    )
    return LiveChunk(
        id=row[0],
        document_id=row[1],
        version=row[2],
        chunk=chunk,
        title=row[15],
        uri=row[16],
        source=row[17],
        metadata=json.loads(row[18]),
        total=row[19],
        updated_at=parse_moment(row[20]),
    )


_STATUS: dict[JobState, Status] = {
    "pending": "pending",
    "running": "processing",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "failed",
}
_DOCUMENT = """
SELECT d.uri, d.title, d.version, d.chunk_count, d.token_count, d.updated_at, d.created_at, d.media_type, d.metadata,
    CASE WHEN d.embedded = 1 THEN s.model ELSE '' END
FROM documents d JOIN knowledge_bases k ON k.tenant_id = d.tenant_id AND k.id = d.kb_id
LEFT JOIN spaces s ON s.tenant_id = d.tenant_id AND s.id = k.live_space WHERE d.tenant_id = ? AND d.id = ?
"""


class _File(NamedTuple):
    """The content that a job brought."""

    size: int | None
    path: str
    metadata: Metadata


def read_status(connection: Connection, tenant_id: str, document_id: str) -> DocumentStatus | None:
    """A document that can be found is `completed`, whatever its newest job does; another is where its job is."""
    row = connection.execute(_DOCUMENT, (tenant_id, document_id)).fetchone()
    if row is None:
        return None
    uri, title, version, chunks, tokens, updated, created, media_type, packed, model = row
    job = newest_job(connection, tenant_id, document_id)
    if not version and job and job.state == "completed":
        # An archive is no document itself: it is what came in with it.
        chunks, tokens, version, updated = connection.execute(
            "SELECT coalesce(sum(chunk_count), 0), coalesce(sum(token_count), 0), count(*), max(updated_at) "
            "FROM documents WHERE tenant_id = ? AND parent_id = ? AND version > 0",
            (tenant_id, document_id),
        ).fetchone()
    file = _file(connection, tenant_id, document_id)
    metadata = json.loads(packed) or file.metadata  # nothing is known of what is not live but what it came with
    filename = filename_of(metadata, uri)
    return DocumentStatus(
        document_id=document_id,
        status="completed" if version or job is None else _STATUS[job.state],
        uri=uri,
        title=title[:TITLE],
        chunk_count=chunks,
        total_tokens=tokens,
        processed_at=parse_moment(updated) if version else None,
        processing_error=job.error if job and _STATUS[job.state] == "failed" else "",
        job=job,
        filename=filename,
        file_type=file_type_of(filename, media_type),
        file_size=file.size,
        file_path=file.path,
        description=text_of(metadata, "description"),
        category=text_of(metadata, "category", CATEGORY),
        tags=tags_of(metadata),
        uploaded_at=parse_moment(created),
        embedding_model=model_name(model or ""),
    )


def _file(connection: Connection, tenant_id: str, document_id: str) -> _File:
    """The file that the live version was made of or, while there is none, the one that came last."""
    row: Any = connection.execute(
        "SELECT size, stored, facts FROM jobs WHERE tenant_id = ? AND document_id = ? "
        "ORDER BY CASE WHEN state = 'completed' THEN 0 ELSE 1 END, seq DESC LIMIT 1",
        (tenant_id, document_id),
    ).fetchone()
    if row is None:
        return _File(None, "", {})
    size, stored, facts = int(row[0]), row[1], json.loads(row[2])
    path = f"documents/{tenant_id}/{document_id}/{facts.get('original')}" if stored else ""
    return _File(size, path[:FILE_PATH], facts.get("metadata") or {})


def source_documents(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, source: str, under: str
) -> dict[str, tuple[str, str]]:
    """Documents of a source whose external id begins with `under`: id and content hash by external id."""
    rows = connection.execute(
        "SELECT external_id, id, content_hash FROM documents WHERE tenant_id = ? AND kb_id = ? AND source = ? "
        "AND parent_id IS NULL AND substr(external_id, 1, ?) = ?",
        (tenant_id, kb.id, source, len(under), under),
    )
    return {external_id: (identity, hashed) for external_id, identity, hashed in rows}


def children(connection: Connection, tenant_id: str, document_id: str) -> list[str]:
    """Documents that came in with this one."""
    rows = connection.execute(
        "SELECT id FROM documents WHERE tenant_id = ? AND parent_id = ? ORDER BY id", (tenant_id, document_id)
    )
    return [row[0] for row in rows]


def identify(connection: Connection, tenant_id: str, kb: KnowledgeBase, source: str, external_id: str) -> str | None:
    """The id of a document by what its source calls it, live or not yet."""
    row = connection.execute(
        "SELECT id FROM documents WHERE tenant_id = ? AND kb_id = ? AND source = ? AND external_id = ?",
        (tenant_id, kb.id, source, external_id),
    ).fetchone()
    return row[0] if row else None
