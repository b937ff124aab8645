"""What has become of documents, and which documents a source has."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ragstone.core.clock import parse_moment
from ragstone.core.documents import CATEGORY, FILE_PATH, TITLE, file_type_of, filename_of, tags_of, text_of
from ragstone.core.jobs import DocumentStatus, JobState, Status
from ragstone.core.model_types import model_name
from ragstone.core.types import KnowledgeBase, Metadata
from ragstone.stores.database import Connection
from ragstone.stores.ledger.job_reads import newest_job

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
    """What a job brought."""

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
    metadata = (
        json.loads(packed) or file.metadata
    )  # nothing is known of what is not live but what it came with
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


def belongings(
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


def identify(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, source: str, external_id: str
) -> str | None:
    """The id of a document by what its source calls it, live or not yet."""
    row = connection.execute(
        "SELECT id FROM documents WHERE tenant_id = ? AND kb_id = ? AND source = ? AND external_id = ?",
        (tenant_id, kb.id, source, external_id),
    ).fetchone()
    return row[0] if row else None
