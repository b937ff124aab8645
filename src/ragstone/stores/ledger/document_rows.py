"""Rows of documents: read one by one, by pages, and with what came in for each."""

from __future__ import annotations

import json
from typing import Any

from ragstone.core.clock import parse_moment
from ragstone.core.documents import DocumentVersion, file_type_of, filename_of
from ragstone.core.filters import Filter, Scalar
from ragstone.core.jobs import JobState, Status
from ragstone.core.types import Document, KnowledgeBase
from ragstone.stores.ledger.originals import held_condition
from ragstone.stores.sql.database import Connection

DOCUMENT = (
    "SELECT d.id, k.name, d.source, d.external_id, d.uri, d.title, d.content_hash, d.version, d.chunk_count, "
    "d.token_count, d.media_type, d.metadata, d.recipe, d.embedded, d.modified_at, d.created_at, d.updated_at "
    "FROM documents d JOIN knowledge_bases k ON k.tenant_id = d.tenant_id AND k.id = d.kb_id "
    "WHERE d.tenant_id = ?"
)
LIVE = " AND d.version > 0"
OF_JOB: dict[JobState, Status] = {
    "pending": "pending",
    "running": "processing",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "failed",
}
LAST_STATE = (
    "(SELECT j.state FROM jobs j WHERE j.tenant_id = d.tenant_id AND j.document_id = d.id ORDER BY j.seq DESC LIMIT 1)"
)
READ_AT_ONCE = 500
MOST_VERSIONS = 100


def list_documents(
    connection: Connection,
    tenant_id: str,
    kb: KnowledgeBase,
    where: Filter | None,
    status: Status | None,
    file_type: str | None,
    after: str,
    limit: int,
) -> list[Document]:
    """Return a page of a kb's documents in order of id: those that can be found, or those of a status."""
    found: list[Document] = []
    size = limit if file_type is None else max(limit, READ_AT_ONCE)
    while len(found) < limit:
        parameters: list[Scalar] = [tenant_id, kb.id, after]
        filtered = f" AND {connection.dialect.condition(where, parameters, chunks=False)}" if where else ""
        rows = connection.execute(
            f"{DOCUMENT}{_of_status(status)} AND d.kb_id = ? AND d.id > ?{filtered} ORDER BY d.id LIMIT ?",
            (*parameters, size),
        ).fetchall()
        page = [document_of(row) for row in rows]
        found += [document for document in page if file_type is None or document_file_type(document) == file_type]
        if len(page) < size:
            break
        after = page[-1].id
    return found[:limit]


def document_file_type(document: Document) -> str:
    """Return the type of a document's file, as its name ends."""
    return file_type_of(filename_of(document.metadata, document.uri), document.media_type)


def _of_status(status: Status | None) -> str:
    if status is None:
        return LIVE
    if status == "completed":
        return f" AND (d.version > 0 OR coalesce({LAST_STATE}, 'completed') = 'completed')"
    states = ", ".join(f"'{state}'" for state, of_document in OF_JOB.items() if of_document == status)
    return f" AND d.version = 0 AND {LAST_STATE} IN ({states})"


def list_versions(connection: Connection, tenant_id: str, document_id: str) -> list[DocumentVersion]:
    """Return the contents that came in for a document, newest first."""
    rows = connection.execute(
        f"SELECT j.id, j.state, j.content_hash, j.size, j.error, j.created_at, j.finished_at, "
        f"CASE WHEN j.stored > 0 AND {held_condition(connection, 'j.')} THEN 1 ELSE 0 END, "
        "CASE WHEN d.version > 0 AND d.content_hash = j.content_hash AND j.state = 'completed' THEN 1 ELSE 0 END "
        "FROM jobs j JOIN documents d ON d.tenant_id = j.tenant_id AND d.id = j.document_id "
        "WHERE j.tenant_id = ? AND j.document_id = ? ORDER BY j.seq DESC LIMIT ?",
        (tenant_id, document_id, MOST_VERSIONS),
    ).fetchall()
    live = next((row[0] for row in rows if row[8]), "")  # equal content may have come in more than once
    return [_version(row, is_live=row[0] == live) for row in rows]


def _version(row: tuple[Any, ...], *, is_live: bool) -> DocumentVersion:
    job_id, state, hashed, size, error, created, finished, is_kept, _ = row
    came = parse_moment(created)
    assert came is not None
    ended = parse_moment(finished) if finished else None
    status: Status = OF_JOB[state]
    return DocumentVersion(job_id, status, hashed, int(size), error, came, ended, is_live, bool(is_kept))


def document_of(row: tuple[Any, ...]) -> Document:
    """Return the document of a row of `DOCUMENT`."""
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
