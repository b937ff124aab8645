"""What has become of documents, and which documents a source has."""

from __future__ import annotations

from ragstone.core.clock import parse_moment
from ragstone.core.jobs import DocumentStatus, JobState, Status
from ragstone.core.types import KnowledgeBase
from ragstone.stores.database import Connection
from ragstone.stores.ledger.job_reads import newest_job

_STATUS: dict[JobState, Status] = {
    "pending": "pending",
    "running": "processing",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


def read_status(connection: Connection, tenant_id: str, document_id: str) -> DocumentStatus | None:
    """A document that can be found is `completed`, whatever its newest job does; another is where its job is."""
    row = connection.execute(
        "SELECT uri, title, version, chunk_count, token_count, updated_at FROM documents "
        "WHERE tenant_id = ? AND id = ?",
        (tenant_id, document_id),
    ).fetchone()
    if row is None:
        return None
    uri, title, version, chunks, tokens, updated = row
    job = newest_job(connection, tenant_id, document_id)
    if not version and job and job.state == "completed":
        # An archive is no document itself: it is what came in with it.
        chunks, tokens, version, updated = connection.execute(
            "SELECT coalesce(sum(chunk_count), 0), coalesce(sum(token_count), 0), count(*), max(updated_at) "
            "FROM documents WHERE tenant_id = ? AND parent_id = ? AND version > 0",
            (tenant_id, document_id),
        ).fetchone()
    status: Status = "completed" if version or job is None else _STATUS[job.state]
    failed = job is not None and job.state == "failed"
    return DocumentStatus(
        document_id=document_id,
        status=status,
        uri=uri,
        title=title,
        chunk_count=chunks,
        total_tokens=tokens,
        processed_at=parse_moment(updated) if version else None,
        processing_error=job.error if job and failed else "",
        job=job,
    )


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
