"""The queue of all tenants, on the rows of the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ragstone.core.clock import canonical, now
from ragstone.core.jobs import Job, JobKind, JobProgress, JobState, Lane, Notice, Ticket
from ragstone.core.remedies import Remedy
from ragstone.core.types import KnowledgeBase
from ragstone.stores.ledger import claims, job_reads, jobs, originals
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.repository import UnknownTenant


class SqlQueue:
    """Implements `core.jobs.Queue`."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger

    async def work_signals(self) -> Mapping[str, int]:
        return await self._ledger.work_signals()

    async def signal_work(self, tenant: str) -> None:
        await self._ledger.signal_work(tenant)

    async def claim(
        self,
        tenant: str,
        worker: str,
        kind: JobKind = "document",
        *,
        lease_seconds: float,
        attempts: int,
        most: int,
        most_bytes: int,
        lane: Lane = "all",
    ) -> list[Job]:
        return await self._ledger.write(
            tenant,
            claims.claim,
            worker,
            kind,
            lease_seconds=lease_seconds,
            attempts=attempts,
            most=most,
            most_bytes=most_bytes,
            lane=lane,
        )

    async def take_back(self, tenant: str, worker: str, attempts: int) -> int:
        return await self._ledger.write(tenant, claims.take_back, worker, attempts)

    async def heartbeat(
        self, tenant: str, held: Mapping[Ticket, JobProgress | None], lease_seconds: float
    ) -> set[Ticket]:
        return await self._ledger.write(tenant, jobs.heartbeat, held, lease_seconds)

    async def complete(self, tenant: str, ticket: Ticket, message: str, progress: JobProgress | None = None) -> None:
        done = progress or JobProgress(percent=100)
        await self._ledger.write(tenant, jobs.complete, ticket, done, message)

    async def fail(
        self, tenant: str, ticket: Ticket, code: str, error: str, hint: str = "", remedy: Remedy | None = None
    ) -> None:
        await self._ledger.write(tenant, jobs.fail, ticket, code, error, hint, remedy)

    async def put_back(
        self,
        tenant: str,
        ticket: Ticket,
        *,
        wait_seconds: float,
        code: str,
        error: str,
        counts: bool,
        hint: str = "",
        remedy: Remedy | None = None,
    ) -> None:
        await self._ledger.write(
            tenant,
            jobs.put_back,
            ticket,
            wait_seconds=wait_seconds,
            code=code,
            error=error,
            counts=counts,
            hint=hint,
            remedy=remedy,
        )

    async def cancel(self, tenant: str, job_id: str) -> bool:
        return await self._ledger.write(tenant, jobs.cancel, job_id)

    async def retry(self, tenant: str, job_id: str) -> bool:
        return await self._ledger.write(tenant, jobs.retry, job_id)

    async def job(self, tenant: str, job_id: str) -> Job | None:
        try:
            return await self._ledger.read(tenant, job_reads.read_job, job_id)
        except UnknownTenant:
            return None

    async def jobs(
        self, tenant: str, states: Sequence[JobState] = (), source: str | None = None, limit: int = 100
    ) -> list[Job]:
        try:
            return await self._ledger.read(tenant, job_reads.read_jobs, states, source, limit)
        except UnknownTenant:
            return []

    async def newest(self, tenant: str, kb: KnowledgeBase, kind: JobKind) -> Job | None:
        return await self._ledger.read(tenant, job_reads.newest_of_kind, kb, kind)

    async def counts(self, tenant: str, source: str | None = None) -> Mapping[str, int]:
        try:
            return await self._ledger.read(tenant, job_reads.count_jobs, source)
        except UnknownTenant:
            return {}

    async def next_due(
        self, tenant: str, attempts: int, kind: JobKind = "document", lane: Lane = "all"
    ) -> float | None:
        return await self._ledger.read(tenant, job_reads.next_due, attempts, kind, lane)

    async def spent_originals(self, tenant: str, jobs: Sequence[Job]) -> list[tuple[str, str]]:
        return await self._ledger.read(tenant, originals.spent, jobs)

    async def notices(self, tenant: str, *, unread: bool = False, limit: int = 100) -> list[Notice]:
        try:
            return await self._ledger.read(tenant, job_reads.read_notices, unread, limit)
        except UnknownTenant:
            return []

    async def mark_read(self, tenant: str, notices_read: Sequence[int]) -> None:
        await self._ledger.write(tenant, job_reads.mark_read, notices_read)

    async def warn(self, tenant: str, uri: str, message: str, *, quiet_since: datetime) -> bool:
        moments = canonical(now()), canonical(quiet_since)
        return await self._ledger.write(tenant, job_reads.warn, uri, message, *moments)

    async def unsent(self, tenant: str, limit: int = 100) -> list[Notice]:
        return await self._ledger.read(tenant, job_reads.unsent, limit)

    async def mark_sent(self, tenant: str, notice: int) -> None:
        await self._ledger.write(tenant, job_reads.mark_sent, notice)
