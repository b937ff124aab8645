"""The queue: claims, leases and ends of a tenant's jobs, and notices of how they ended.

A worker holds a job by lease and by token. The lease says when others may take the job; the token goes up each
time someone does, and every write that a worker makes for a job names the token it was given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ragstone.core.clock import canonical, now, parse_moment
from ragstone.core.jobs import Job, JobKind, JobProgress, JobState, Lane, Notice, Priority, TaskResult, Ticket
from ragstone.core.remedies import Remedy
from ragstone.core.types import KnowledgeBase
from ragstone.stores.ledger import originals
from ragstone.stores.ledger.jobs import (
    JOB,
    advise,
    complete_job,
    end_job,
    holding,
    job_of,
    read_job,
    require_held,
    write_progress,
)
from ragstone.stores.ledger.repository import TenantRepository, in_snapshot, in_snapshot_or, in_transaction
from ragstone.stores.sql.database import Connection, in_parts, marks

if TYPE_CHECKING:
    from ragstone.stores.ledger.ledger import SqlLedger

NOTICE = "SELECT id, kind, job_id, document_id, uri, message, created_at, seen FROM notices WHERE tenant_id = ?"
KEPT = 1000
LARGEST_ID = 2**63 - 1
"""The number of notices that are kept after they were read and sent."""


class SqlQueue:
    """Implements `Queue`."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger

    def of(self, tenant: str) -> SqlTenantQueue:
        """Return the queue of one tenant."""
        return SqlTenantQueue(self._ledger, tenant)

    async def work_signals(self) -> Mapping[str, int]:
        return await self._ledger.work_signals()

    async def signal_work(self, tenant: str) -> None:
        await self._ledger.signal_work(tenant)


class SqlTenantQueue(TenantRepository):
    """Implements `TenantQueue`."""

    @in_transaction
    def claim(
        self,
        connection: Connection,
        tenant_id: str,
        worker: str,
        kind: JobKind = "document",
        *,
        lease_seconds: float,
        attempts: int,
        most: int,
        most_bytes: int,
        lane: Lane = "all",
    ) -> list[Job]:
        """Take the next jobs of one kb and number of attempts; those that lost a worker before come first."""
        expired = (connection.dialect.lease_now(connection), connection.dialect.boot())
        _give_back(connection, tenant_id, attempts, "(lease_until < ? OR boot <> ?)", expired)
        present, boot = connection.dialect.lease_now(connection), connection.dialect.boot()
        chosen, free = _in_lane(lane, attempts), _may_begin(kind)
        # Among equals what lost a worker comes first, and of that what has waited longest: none is lost again and again
        # while another waits.
        order = "attempts = 0, priority" if lane == "express" else "priority, attempts = 0"
        first = connection.execute(
            "SELECT kb_id, kind, priority, attempts FROM jobs WHERE tenant_id = ? AND kind = ? AND state = 'pending' "
            f"AND (not_before <= ? OR boot <> ?){chosen}{free} ORDER BY {order}, not_before, seq LIMIT 1",
            (tenant_id, kind, present, boot),
        ).fetchone()
        if first is None:
            return []
        share = _share(most, first[3], attempts) if kind == "document" else 1
        rows = connection.execute(
            "SELECT id, size FROM jobs WHERE tenant_id = ? AND state = 'pending' AND kb_id = ? AND kind = ? "
            f"AND priority = ? AND attempts = ? AND (not_before <= ? OR boot <> ?){free} "
            "ORDER BY not_before, seq LIMIT ?",
            (tenant_id, *first, present, boot, share),
        ).fetchall()
        taken: list[str] = []
        room = most_bytes
        for identity, size in rows:
            if taken and size > room:
                break
            taken.append(identity)
            room -= size
        moment = canonical(now())
        connection.executemany(
            "UPDATE jobs SET state = 'running', attempts = attempts + 1, token = token + 1, worker = ?, boot = ?, "
            "lease_until = ?, started_at = coalesce(started_at, ?), error_code = '', error = '' "
            "WHERE tenant_id = ? AND id = ?",
            [(worker, boot, present + lease_seconds, moment, tenant_id, identity) for identity in taken],
        )
        claimed = connection.execute(f"{JOB} AND j.id IN ({marks(taken)}) ORDER BY j.seq", (tenant_id, *taken))
        return [job_of(row) for row in claimed]

    @in_transaction
    def take_back(self, connection: Connection, tenant_id: str, worker: str, attempts: int) -> int:
        """Give back what a dead worker held, and return how many jobs."""
        return _give_back(connection, tenant_id, attempts, "worker = ?", (worker,))

    @in_transaction
    def heartbeat(
        self, connection: Connection, tenant_id: str, held: Mapping[Ticket, JobProgress | None], lease_seconds: float
    ) -> set[Ticket]:
        """Renew leases and write down progress; return the tickets of jobs that were taken or cancelled."""
        good = holding(connection, tenant_id, list(held))
        until = connection.dialect.lease_now(connection) + lease_seconds
        for part in in_parts([ticket.job_id for ticket in good]):
            connection.execute(
                f"UPDATE jobs SET lease_until = ? WHERE tenant_id = ? AND id IN ({marks(part)})",
                (until, tenant_id, *part),
            )
        news = [(ticket, progress) for ticket, progress in held.items() if progress and ticket in good]
        for ticket, progress in news:
            connection.execute(
                "UPDATE jobs SET progress = ? WHERE tenant_id = ? AND id = ?",
                (write_progress(connection, progress), tenant_id, ticket.job_id),
            )
        return set(held) - good

    @in_transaction
    def complete(
        self,
        connection: Connection,
        tenant_id: str,
        ticket: Ticket,
        message: str,
        progress: JobProgress | None = None,
        result: TaskResult | None = None,
    ) -> None:
        """End a job well that no document's transaction has ended; the result of a task takes its input's place."""
        if result:
            job = read_job(connection, tenant_id, ticket.job_id)
            facts = {**(job.facts if job else {}), "original": result.name, "keep": True}
            connection.execute(
                "UPDATE jobs SET facts = ?, stored = ? WHERE tenant_id = ? AND id = ? AND token = ?",
                (connection.dialect.to_json(facts), result.size, tenant_id, *ticket),
            )
        complete_job(connection, tenant_id, ticket, progress or JobProgress(percent=100), message)

    @in_transaction
    def fail(
        self,
        connection: Connection,
        tenant_id: str,
        ticket: Ticket,
        code: str,
        error: str,
        hint: str = "",
        remedy: Remedy | None = None,
    ) -> None:
        """End a job with a reason."""
        require_held(connection, tenant_id, ticket)
        end_job(connection, tenant_id, ticket.job_id, "failed", code, error, hint, remedy)

    @in_transaction
    def put_back(
        self,
        connection: Connection,
        tenant_id: str,
        ticket: Ticket,
        *,
        wait_seconds: float,
        code: str,
        error: str,
        counts: bool,
        hint: str = "",
        remedy: Remedy | None = None,
    ) -> None:
        """Let another worker have it, at once or later; `counts=False` when the attempt was not the job's fault."""
        require_held(connection, tenant_id, ticket)
        connection.execute(
            "UPDATE jobs SET state = 'pending', token = token + 1, attempts = attempts - ?, boot = ?, not_before = ?, "
            "error_code = ?, error = ? WHERE tenant_id = ? AND id = ?",
            (
                *(int(not counts), connection.dialect.boot()),
                *(connection.dialect.lease_now(connection) + wait_seconds, code, error, tenant_id, ticket.job_id),
            ),
        )
        advise(connection, tenant_id, ticket.job_id, hint, remedy)

    @in_transaction
    def cancel(self, connection: Connection, tenant_id: str, job_id: str) -> bool:
        """Stop a job that has not ended; a worker that has it finds its ticket void."""
        row = connection.execute(
            "SELECT state FROM jobs WHERE tenant_id = ? AND id = ?", (tenant_id, job_id)
        ).fetchone()
        if row is None or row[0] not in ("pending", "running"):
            return False
        end_job(connection, tenant_id, job_id, "cancelled", "cancelled", "cancelled on request")
        return True

    @in_transaction
    def retry(self, connection: Connection, tenant_id: str, job_id: str) -> bool:
        """Queue a job that failed or was cancelled once more, unless a newer one has taken its place."""
        found = connection.execute(
            "UPDATE jobs SET state = 'pending', attempts = 0, token = token + 1, not_before = 0, error_code = '', "
            "error = '', progress = '{}', finished_at = NULL, started_at = NULL "
            "WHERE tenant_id = ? AND id = ? AND state IN ('failed', 'cancelled') AND NOT EXISTS (SELECT 1 FROM jobs n "
            "WHERE n.tenant_id = jobs.tenant_id AND n.kb_id = jobs.kb_id AND n.kind = jobs.kind "
            "AND n.source = jobs.source AND n.external_id = jobs.external_id AND n.seq > jobs.seq)",
            (tenant_id, job_id),
        )
        return bool(found.rowcount)

    @in_transaction
    def forget_tasks(
        self, connection: Connection, tenant_id: str, *, keep: int = 0, before: datetime | None = None
    ) -> list[str]:
        """Forget ended tasks but for the newest, and those that ended before; return what their files are kept under.

        With `keep=0` and no moment, tasks that have not ended go as well: what they read may be about to be erased.
        """
        ended = "" if not keep and before is None else " AND state NOT IN ('pending', 'running')"
        rows = connection.execute(
            f"SELECT id, document_id, created_at FROM jobs WHERE tenant_id = ? AND kind = 'task'{ended} "
            "ORDER BY seq DESC",
            (tenant_id,),
        ).fetchall()
        moment = canonical(before) if before else ""
        old = [row for place, row in enumerate(rows) if place >= keep or row[2] < moment]
        for part in in_parts([row[0] for row in old]):
            connection.execute(f"DELETE FROM jobs WHERE tenant_id = ? AND id IN ({marks(part)})", (tenant_id, *part))
        return [row[1] for row in old]

    @in_snapshot_or(lambda: None)
    def job(self, connection: Connection, tenant_id: str, job_id: str) -> Job | None:
        return read_job(connection, tenant_id, job_id)

    @in_snapshot_or(list)
    def jobs(
        self,
        connection: Connection,
        tenant_id: str,
        states: Sequence[JobState] = (),
        source: str | None = None,
        limit: int = 100,
    ) -> list[Job]:
        """Return jobs, newest first; no states mean all of them."""
        chosen = f" AND j.state IN ({marks(states)})" if states else ""
        chosen += " AND j.source = ?" if source is not None else ""
        given = (*states, *([source] if source is not None else []))
        rows = connection.execute(f"{JOB}{chosen} ORDER BY j.seq DESC LIMIT ?", (tenant_id, *given, limit))
        return [job_of(row) for row in rows]

    @in_snapshot
    def newest(self, connection: Connection, tenant_id: str, kb: KnowledgeBase, kind: JobKind) -> Job | None:
        """Return the last job of a kind that a kb had."""
        row = connection.execute(
            f"{JOB} AND j.kb_id = ? AND j.kind = ? ORDER BY j.seq DESC LIMIT 1", (tenant_id, kb.id, kind)
        ).fetchone()
        return job_of(row) if row else None

    @in_snapshot_or(dict)
    def counts(self, connection: Connection, tenant_id: str, source: str | None = None) -> Mapping[str, int]:
        """Return the number of jobs in each state, of all or of one source."""
        chosen, given = (" AND source = ?", (source,)) if source is not None else ("", ())
        rows = connection.execute(
            f"SELECT state, count(*) FROM jobs WHERE tenant_id = ?{chosen} GROUP BY state", (tenant_id, *given)
        )
        return dict(rows.fetchall())

    @in_snapshot
    def next_due(
        self, connection: Connection, tenant_id: str, attempts: int, kind: JobKind = "document", lane: Lane = "all"
    ) -> float | None:
        """Return in how many seconds there is a job to start, or a lease that runs out; None when there is neither."""
        pending = connection.execute(
            "SELECT min(CASE WHEN boot IN (?, '') THEN not_before ELSE 0 END) FROM jobs "
            f"WHERE tenant_id = ? AND kind = ? AND state = 'pending'{_in_lane(lane, attempts)}{_may_begin(kind)}",
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

    @in_snapshot
    def spent_originals(self, connection: Connection, tenant_id: str, jobs: Sequence[Job]) -> list[tuple[str, str]]:
        """Return files that these jobs and earlier ones brought and nothing needs any more, by document and name."""
        found: list[tuple[str, str]] = []
        for job in jobs:
            rows = connection.execute(
                f"SELECT DISTINCT {originals.name_in(connection)} FROM jobs WHERE tenant_id = ? AND document_id = ? "
                "AND seq <= (SELECT seq FROM jobs WHERE tenant_id = ? AND id = ?)",
                (tenant_id, job.document_id, tenant_id, job.id),
            ).fetchall()
            kept = originals.list_needed(connection, tenant_id, job.document_id)
            found += [(job.document_id, name) for (name,) in rows if name and name not in kept]
        return found

    @in_snapshot_or(list)
    def notices(
        self, connection: Connection, tenant_id: str, *, unread: bool = False, limit: int = 100
    ) -> list[Notice]:
        """Return notices, newest first."""
        chosen = " AND seen = 0" if unread else ""
        rows = connection.execute(f"{NOTICE}{chosen} ORDER BY id DESC LIMIT ?", (tenant_id, limit))
        return [_notice(row) for row in rows]

    @in_transaction
    def mark_read(self, connection: Connection, tenant_id: str, notices_read: Sequence[int]) -> None:
        """Mark notices as read; a number that no notice has is passed over."""
        connection.executemany(
            "UPDATE notices SET seen = 1 WHERE tenant_id = ? AND id = ?",
            [(tenant_id, notice) for notice in notices_read if 0 < notice <= LARGEST_ID],
        )

    @in_transaction
    def warn(self, connection: Connection, tenant_id: str, uri: str, message: str, *, quiet_since: datetime) -> bool:
        """Tell the tenant something that no job did; False when it was told of the same thing since then."""
        told = connection.execute(
            "SELECT 1 FROM notices WHERE tenant_id = ? AND kind = 'warning' AND uri = ? AND created_at >= ?",
            (tenant_id, uri, canonical(quiet_since)),
        ).fetchone()
        if told:
            return False
        connection.execute(
            "INSERT INTO notices (tenant_id, kind, job_id, document_id, uri, message, created_at, seen, sent) "
            "VALUES (?, 'warning', '', '', ?, ?, ?, 0, 0)",
            (tenant_id, uri, message, canonical(now())),
        )
        return True

    @in_snapshot
    def unsent(self, connection: Connection, tenant_id: str, limit: int = 100) -> list[Notice]:
        """Return the notices that the webhook has not received yet, oldest first."""
        rows = connection.execute(f"{NOTICE} AND sent = 0 ORDER BY id LIMIT ?", (tenant_id, limit))
        return [_notice(row) for row in rows]

    @in_transaction
    def mark_sent(self, connection: Connection, tenant_id: str, notice: int) -> None:
        connection.execute("UPDATE notices SET sent = 1 WHERE tenant_id = ? AND id = ?", (tenant_id, notice))
        connection.execute(
            "DELETE FROM notices WHERE tenant_id = ? AND sent = 1 AND seen = 1 AND id < "
            "(SELECT id FROM notices WHERE tenant_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
            (tenant_id, tenant_id, KEPT),
        )


def _share(most: int, tried: int, attempts: int) -> int:
    """Return how many jobs to take together: fewer with each death, one at last, so that only the guilty one fails."""
    return 1 if tried >= attempts - 1 else math.ceil(most ** (1 / 2**tried))


def _give_back(
    connection: Connection, tenant_id: str, attempts: int, which: str, values: tuple[str | float, ...]
) -> int:
    """Let jobs be tried again; what has used up its attempts is put aside with a reason."""
    lost = connection.execute(
        f"SELECT id, uri, attempts FROM jobs WHERE tenant_id = ? AND state = 'running' AND {which}",
        (tenant_id, *values),
    ).fetchall()
    present, boot = connection.dialect.lease_now(connection), connection.dialect.boot()
    for identity, uri, tried in lost:
        if tried >= attempts:
            reason = f"{uri} ended its worker {tried} times; it is put aside until someone retries it"
            end_job(connection, tenant_id, identity, "failed", "worker_died", reason)
        else:
            connection.execute(
                "UPDATE jobs SET state = 'pending', token = token + 1, boot = ?, not_before = ? "
                "WHERE tenant_id = ? AND id = ?",
                (boot, present, tenant_id, identity),
            )
    return len(lost)


def _in_lane(lane: Lane, attempts: int) -> str:
    """Return the condition for jobs that a lane may take. A last attempt is made by the express lane only."""
    match lane:
        case "lost":
            return f" AND attempts > 0 AND attempts < {int(attempts) - 1}"
        case "express":
            return f" AND (attempts > 0 OR priority <= {int(Priority.RESEARCH)})"
        case "batch":
            return f" AND (attempts = 0 OR attempts < {int(attempts) - 1})"
        case _:
            return ""


def _may_begin(kind: JobKind) -> str:
    """Return the condition for jobs that need not wait for another: a source is read by one worker at a time."""
    if kind != "sync":
        return ""
    return (
        " AND NOT EXISTS (SELECT 1 FROM jobs r WHERE r.tenant_id = jobs.tenant_id AND r.kb_id = jobs.kb_id "
        "AND r.kind = jobs.kind AND r.source = jobs.source AND r.state = 'running')"
    )


def _notice(row: Sequence[Any]) -> Notice:
    created = parse_moment(row[6])
    assert created is not None
    identity, kind, job_id, document_id, uri, message = row[:6]
    return Notice(identity, kind, job_id, document_id, uri, message, created, bool(row[7]))
