"""Which original files belong to which document: those that its jobs name."""

from __future__ import annotations

from ragstone.core.jobs import Job
from ragstone.stores.database import Connection


def of_document(connection: Connection, tenant_id: str, document_id: str) -> list[str]:
    """All files that jobs brought for a document."""
    rows = connection.execute(
        f"SELECT DISTINCT {_original(connection)} FROM jobs WHERE tenant_id = ? AND document_id = ?",
        (tenant_id, document_id),
    )
    return [name for (name,) in rows if name]


def of_kb(connection: Connection, tenant_id: str, kb: str) -> dict[str, list[str]]:
    """The same for all documents of a kb."""
    rows = connection.execute(
        f"SELECT j.document_id, {_original(connection, 'j.')} FROM jobs j "
        "JOIN knowledge_bases k ON k.id = j.kb_id WHERE j.tenant_id = ? AND k.name = ?",
        (tenant_id, kb),
    )
    found: dict[str, list[str]] = {}
    for document_id, name in rows:
        if name:
            found.setdefault(document_id, []).append(name)
    return found


def needed(connection: Connection, tenant_id: str, document_id: str) -> set[str]:
    """Those that are to be kept, or that a job may still be made of."""
    rows = connection.execute(
        f"SELECT {_original(connection)} FROM jobs WHERE tenant_id = ? AND document_id = ? "
        f"AND (state <> 'completed' OR {connection.dialect.json_true('facts', 'keep')})",
        (tenant_id, document_id),
    )
    return {name for (name,) in rows if name}


def older(connection: Connection, tenant_id: str, job: Job) -> list[str]:
    """Files that earlier jobs of the same document brought and that it no longer needs."""
    rows = connection.execute(
        f"SELECT DISTINCT {_original(connection)} FROM jobs WHERE tenant_id = ? AND document_id = ? "
        "AND seq < (SELECT seq FROM jobs WHERE id = ?)",
        (tenant_id, job.document_id, job.id),
    )
    return [name for (name,) in rows if name]


def _original(connection: Connection, of: str = "") -> str:
    return connection.dialect.json_text(f"{of}facts", "original")
