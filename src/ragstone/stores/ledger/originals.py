"""Which original files belong to which document: those that its jobs name."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.core.jobs import Job
from ragstone.stores.database import Connection


def of_document(connection: Connection, tenant_id: str, document_id: str) -> list[str]:
    """All files that jobs brought for a document."""
    rows = connection.execute(
        f"SELECT DISTINCT {_original(connection)} FROM jobs WHERE tenant_id = ? AND document_id = ?",
        (tenant_id, document_id),
    )
    return [name for (name,) in rows if name]


def of_kb(connection: Connection, tenant_id: str, kb: str, source: str = "") -> dict[str, list[str]]:
    """The same for all documents of a kb, or of one of its sources."""
    narrowed, given = (" AND j.source = ?", (source,)) if source else ("", ())
    rows = connection.execute(
        f"SELECT j.document_id, {_original(connection, 'j.')} FROM jobs j "
        "JOIN knowledge_bases k ON k.tenant_id = j.tenant_id AND k.id = j.kb_id "
        f"WHERE j.tenant_id = ? AND k.name = ?{narrowed}",
        (tenant_id, kb, *given),
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


def older(connection: Connection, tenant_id: str, jobs: Sequence[Job]) -> list[tuple[str, str]]:
    """Files that earlier jobs of the same documents brought and that they no longer need."""
    found: list[tuple[str, str]] = []
    for job in jobs:
        rows = connection.execute(
            f"SELECT DISTINCT {_original(connection)} FROM jobs WHERE tenant_id = ? AND document_id = ? "
            "AND seq < (SELECT seq FROM jobs WHERE tenant_id = ? AND id = ?)",
            (tenant_id, job.document_id, tenant_id, job.id),
        )
        found += [(job.document_id, name) for (name,) in rows if name]
    return found


def _original(connection: Connection, of: str = "") -> str:
    return connection.dialect.json_text(f"{of}facts", "original")
