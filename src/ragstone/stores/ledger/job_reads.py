"""Read a tenant's queue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ragstone.core.clock import parse_moment
from ragstone.core.jobs import Job, JobProgress, UnderWay, read_of
from ragstone.core.remedies import Remedy
from ragstone.stores.sql.database import Connection, in_parts, marks

JOB = (
    "SELECT j.id, j.kind, k.name, j.state, j.priority, j.document_id, j.source, j.external_id, j.uri, "
    "j.content_hash, j.size, j.facts, j.progress, j.attempts, j.token, j.worker, j.error_code, j.error, j.created_at, "
    "j.started_at, j.finished_at FROM jobs j "
    "JOIN knowledge_bases k ON k.tenant_id = j.tenant_id AND k.id = j.kb_id WHERE j.tenant_id = ?"
)


def read_job(connection: Connection, tenant_id: str, job_id: str) -> Job | None:
    row = connection.execute(f"{JOB} AND j.id = ?", (tenant_id, job_id)).fetchone()
    return job_of(row) if row else None


def newest_job(connection: Connection, tenant_id: str, document_id: str) -> Job | None:
    """The last job there was for a document."""
    row = connection.execute(
        f"{JOB} AND j.document_id = ? ORDER BY j.seq DESC LIMIT 1", (tenant_id, document_id)
    ).fetchone()
    return job_of(row) if row else None


def newest_jobs(connection: Connection, tenant_id: str, document_ids: Sequence[str]) -> dict[str, Job]:
    """The last job there was for each document."""
    found = {identity: newest_job(connection, tenant_id, identity) for identity in document_ids}
    return {identity: job for identity, job in found.items() if job}


def under_way(connection: Connection, tenant_id: str, document_ids: Sequence[str]) -> dict[str, UnderWay]:
    """The last job that has not ended, by document."""
    found: dict[str, UnderWay] = {}
    for part in in_parts(list(dict.fromkeys(document_ids))):
        rows = connection.execute(
            "SELECT document_id, id, content_hash, facts FROM jobs WHERE tenant_id = ? "
            f"AND state IN ('pending', 'running') AND document_id IN ({marks(part)}) ORDER BY seq",
            (tenant_id, *part),
        )
        for document_id, job_id, hashed, facts in rows:
            found[document_id] = UnderWay(job_id, hashed, read_of(json.loads(facts)))
    return found


def job_of(row: Sequence[Any]) -> Job:
    """A row of `JOB` as what it is."""
    facts, progress, attempts, token, worker, code, error, created, started, finished = row[11:]
    made = parse_moment(created)
    assert made is not None
    identity, kind, kb, state, priority, document_id, source, external_id, uri, hashed, size = row[:11]
    return Job(
        *(identity, kind, kb, state, priority, document_id, source, external_id, uri, hashed, size),
        *(json.loads(facts), _progress(progress), attempts, token, worker, code, error, made),
        *(parse_moment(started) if started else None, parse_moment(finished) if finished else None),
    )


def _progress(text: str) -> JobProgress:
    stored = json.loads(text)
    remedy = Remedy.from_json(stored.pop("remedy", None))
    return JobProgress(**stored | {"remarks": tuple(stored.get("remarks", ()))}, remedy=remedy)


def forget_notices(connection: Connection, tenant_id: str, kb_id: int, source: str = "") -> None:
    """Remove what was told of a kb, or of the jobs of one of its sources."""
    if not source:
        connection.execute(
            "DELETE FROM notices WHERE tenant_id = ? AND kind = 'warning' AND uri = "
            "(SELECT 'quality:' || name FROM knowledge_bases WHERE tenant_id = ? AND id = ?)",
            (tenant_id, tenant_id, kb_id),
        )
    narrowed, given = (" AND source = ?", (source,)) if source else ("", ())
    connection.execute(
        "DELETE FROM notices WHERE tenant_id = ? AND job_id IN "
        f"(SELECT id FROM jobs WHERE tenant_id = ? AND kb_id = ?{narrowed})",
        (tenant_id, tenant_id, kb_id, *given),
    )
