"""Claim jobs, and reclaim those of workers that died."""

from __future__ import annotations

import math

from ragstone.core.clock import canonical, now
from ragstone.core.jobs import Job, JobKind, Lane
from ragstone.stores.ledger.job_reads import may_begin, of_lane, read_these
from ragstone.stores.ledger.jobs import end_job
from ragstone.stores.sql.database import Connection


def claim(
    connection: Connection,
    tenant_id: str,
    worker: str,
    kind: JobKind,
    *,
    lease_seconds: float,
    attempts: int,
    most: int,
    most_bytes: int,
    lane: Lane,
) -> list[Job]:
    """Take the next jobs of one kb and number of attempts; those that lost a worker before come first."""
    reclaim(connection, tenant_id, attempts)
    present, boot = connection.dialect.lease_now(connection), connection.dialect.boot()
    chosen, free = of_lane(lane, attempts), may_begin(kind)
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
        f"AND priority = ? AND attempts = ? AND (not_before <= ? OR boot <> ?){free} ORDER BY not_before, seq LIMIT ?",
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
    return read_these(connection, tenant_id, taken)


def _share(most: int, tried: int, attempts: int) -> int:
    """How many jobs to take together: fewer with each death, one alone at last, so that only the guilty one fails."""
    return 1 if tried >= attempts - 1 else math.ceil(most ** (1 / 2**tried))


def reclaim(connection: Connection, tenant_id: str, attempts: int) -> None:
    """Give back what nobody has renewed the lease of."""
    _give_back(
        connection,
        tenant_id,
        attempts,
        "(lease_until < ? OR boot <> ?)",
        (connection.dialect.lease_now(connection), connection.dialect.boot()),
    )


def take_back(connection: Connection, tenant_id: str, worker: str, attempts: int) -> int:
    """Give back what a worker held that is dead; how many jobs."""
    return _give_back(connection, tenant_id, attempts, "worker = ?", (worker,))


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
