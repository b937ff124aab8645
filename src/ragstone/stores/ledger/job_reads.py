"""Read a tenant's queue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ragstone.core.clock import parse_moment
from ragstone.core.jobs import Job, JobKind, JobProgress, JobState, Lane, Notice, Priority, UnderWay, read_of
from ragstone.core.remedies import Remedy
from ragstone.core.types import KnowledgeBase
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


def read_these(connection: Connection, tenant_id: str, job_ids: Sequence[str]) -> list[Job]:
    """Some jobs, oldest first."""
    marks = ",".join("?" * len(job_ids))
    rows = connection.execute(f"{JOB} AND j.id IN ({marks}) ORDER BY j.seq", (tenant_id, *job_ids))
    return [job_of(row) for row in rows]


def newest_job(connection: Connection, tenant_id: str, document_id: str) -> Job | None:
    """The last job there was for a document."""
    row = connection.execute(
        f"{JOB} AND j.document_id = ? ORDER BY j.seq DESC LIMIT 1", (tenant_id, document_id)
    ).fetchone()
    return job_of(row) if row else None


def newest_of_kind(connection: Connection, tenant_id: str, kb: KnowledgeBase, kind: JobKind) -> Job | None:
    """The last job of a kind that a kb had."""
    row = connection.execute(
        f"{JOB} AND j.kb_id = ? AND j.kind = ? ORDER BY j.seq DESC LIMIT 1", (tenant_id, kb.id, kind)
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


def read_jobs(
    connection: Connection, tenant_id: str, states: Sequence[JobState], source: str | None, limit: int
) -> list[Job]:
    """Newest first; no states mean all of them."""
    marks = ",".join("?" * len(states))
    chosen = f" AND j.state IN ({marks})" if states else ""
    chosen += " AND j.source = ?" if source is not None else ""
    given = (*states, *([source] if source is not None else []))
    rows = connection.execute(f"{JOB}{chosen} ORDER BY j.seq DESC LIMIT ?", (tenant_id, *given, limit))
    return [job_of(row) for row in rows]


def count_jobs(connection: Connection, tenant_id: str, source: str | None = None) -> dict[str, int]:
    """Count the jobs of a tenant, or of one source, by state."""
    chosen, given = (" AND source = ?", (source,)) if source is not None else ("", ())
    rows = connection.execute(
        f"SELECT state, count(*) FROM jobs WHERE tenant_id = ?{chosen} GROUP BY state", (tenant_id, *given)
    )
    return dict(rows.fetchall())


def of_lane(lane: Lane, attempts: int) -> str:
    """The condition for jobs that a lane may take. A last attempt is made by the express lane only."""
    match lane:
        case "lost":
            return f" AND attempts > 0 AND attempts < {int(attempts) - 1}"
        case "express":
            return f" AND (attempts > 0 OR priority <= {int(Priority.RESEARCH)})"
        case "batch":
            return f" AND (attempts = 0 OR attempts < {int(attempts) - 1})"
        case _:
            return ""


def may_begin(kind: JobKind) -> str:
    """The condition for jobs of a kind that need not wait for another: a source is looked at by one at a time."""
    if kind != "sync":
        return ""
    return (
        " AND NOT EXISTS (SELECT 1 FROM jobs r WHERE r.tenant_id = jobs.tenant_id AND r.kb_id = jobs.kb_id "
        "AND r.kind = jobs.kind AND r.source = jobs.source AND r.state = 'running')"
    )


def next_due(connection: Connection, tenant_id: str, attempts: int, kind: JobKind, lane: Lane) -> float | None:
    """In how many seconds there is something to do: a job to start, or a lease that runs out."""
    pending = connection.execute(
        "SELECT min(CASE WHEN boot IN (?, '') THEN not_before ELSE 0 END) FROM jobs "
        f"WHERE tenant_id = ? AND kind = ? AND state = 'pending'{of_lane(lane, attempts)}{may_begin(kind)}",
        (connection.dialect.boot(), tenant_id, kind),
    ).fetchone()[0]
    held = connection.execute(
        "SELECT min(CASE WHEN boot = ? THEN lease_until ELSE 0 END) FROM jobs "
        "WHERE tenant_id = ? AND kind = ? AND state = 'running'",
        (connection.dialect.boot(), tenant_id, kind),
    ).fetchone()[0]
    present = connection.dialect.lease_now(connection)
    waits = [max(0.0, moment - present) for moment in (pending, held) if moment is not None]
    return min(waits, default=None)


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


NOTICE = "SELECT id, kind, job_id, document_id, uri, message, created_at, seen FROM notices WHERE tenant_id = ?"
KEPT = 1000


def read_notices(connection: Connection, tenant_id: str, unread: bool, limit: int) -> list[Notice]:
    """Newest first."""
    chosen = " AND seen = 0" if unread else ""
    rows = connection.execute(f"{NOTICE}{chosen} ORDER BY id DESC LIMIT ?", (tenant_id, limit))
    return [_notice(row) for row in rows]


def mark_read(connection: Connection, tenant_id: str, notices: Sequence[int]) -> None:
    connection.executemany(
        "UPDATE notices SET seen = 1 WHERE tenant_id = ? AND id = ?", [(tenant_id, one) for one in notices]
    )


def warn(connection: Connection, tenant_id: str, uri: str, message: str, moment: str, quiet_since: str) -> bool:
    """Write down a warning unless there is one of the same thing since then."""
    told = connection.execute(
        "SELECT 1 FROM notices WHERE tenant_id = ? AND kind = 'warning' AND uri = ? AND created_at >= ?",
        (tenant_id, uri, quiet_since),
    ).fetchone()
    if told:
        return False
    connection.execute(
        "INSERT INTO notices (tenant_id, kind, job_id, document_id, uri, message, created_at, seen, sent) "
        "VALUES (?, 'warning', '', '', ?, ?, ?, 0, 0)",
        (tenant_id, uri, message, moment),
    )
    return True


def unsent(connection: Connection, tenant_id: str, limit: int) -> list[Notice]:
    """Return the ended jobs not yet sent to the webhook, oldest first."""
    rows = connection.execute(f"{NOTICE} AND sent = 0 ORDER BY id LIMIT ?", (tenant_id, limit))
    return [_notice(row) for row in rows]


def mark_sent(connection: Connection, tenant_id: str, notice: int) -> None:
    connection.execute("UPDATE notices SET sent = 1 WHERE tenant_id = ? AND id = ?", (tenant_id, notice))
    connection.execute(
        "DELETE FROM notices WHERE tenant_id = ? AND sent = 1 AND seen = 1 AND id < "
        "(SELECT id FROM notices WHERE tenant_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (tenant_id, tenant_id, KEPT),
    )


def _notice(row: Sequence[Any]) -> Notice:
    created = parse_moment(row[6])
    assert created is not None
    identity, kind, job_id, document_id, uri, message = row[:6]
    return Notice(identity, kind, job_id, document_id, uri, message, created, bool(row[7]))


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
