"""The queue and the sources of all tenants, on the rows of the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ragstone.core.jobs import Job, JobKind, JobProgress, JobState, Notice, SourceRecord, Ticket
from ragstone.core.types import KnowledgeBase, Metadata
from ragstone.stores.ledger import job_reads as job_reads
from ragstone.stores.ledger import jobs as jobs
from ragstone.stores.ledger import notices as notices
from ragstone.stores.ledger import originals as originals
from ragstone.stores.ledger import sources as sources
from ragstone.stores.ledger.ledger import SqlLedger, UnknownTenant


class SqlQueue:
    """Implements `core.jobs.Queue`."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger

    async def bells(self) -> Mapping[str, int]:
        return await self._ledger.bells()

    async def ring(self, tenant: str) -> None:
        await self._ledger.ring(tenant)

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
    ) -> list[Job]:
        return await self._ledger.write(
            tenant,
            jobs.claim,
            worker,
            kind,
            lease_seconds=lease_seconds,
            attempts=attempts,
            most=most,
            most_bytes=most_bytes,
        )

    async def heartbeat(
        self, tenant: str, held: Mapping[Ticket, JobProgress], lease_seconds: float
    ) -> set[Ticket]:
        return await self._ledger.write(tenant, jobs.heartbeat, held, lease_seconds)

    async def complete(
        self, tenant: str, ticket: Ticket, message: str, progress: JobProgress | None = None
    ) -> None:
        done = progress or JobProgress(percent=100)
        await self._ledger.write(tenant, jobs.complete, ticket, done, message)

    async def fail(self, tenant: str, ticket: Ticket, code: str, error: str) -> None:
        await self._ledger.write(tenant, jobs.fail, ticket, code, error)

    async def put_back(
        self, tenant: str, ticket: Ticket, *, wait_seconds: float, code: str, error: str, counts: bool
    ) -> None:
        await self._ledger.write(
            tenant, jobs.put_back, ticket, wait_seconds=wait_seconds, code=code, error=error, counts=counts
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

    async def counts(self, tenant: str) -> Mapping[str, int]:
        try:
            return await self._ledger.read(tenant, job_reads.count_jobs)
        except UnknownTenant:
            return {}

    async def next_due(self, tenant: str, kind: JobKind = "document") -> float | None:
        return await self._ledger.read(tenant, job_reads.next_due, kind)

    async def older_originals(self, tenant: str, job: Job) -> list[str]:
        return await self._ledger.read(tenant, originals.older, job)

    async def notices(self, tenant: str, *, unread: bool = False, limit: int = 100) -> list[Notice]:
        try:
            return await self._ledger.read(tenant, notices.read_notices, unread, limit)
        except UnknownTenant:
            return []

    async def mark_read(self, tenant: str, notices_read: Sequence[int]) -> None:
        await self._ledger.write(tenant, notices.mark_read, notices_read)

    async def unsent(self, tenant: str, limit: int = 100) -> list[Notice]:
        return await self._ledger.read(tenant, notices.unsent, limit)

    async def mark_sent(self, tenant: str, notice: int) -> None:
        await self._ledger.write(tenant, notices.mark_sent, notice)


class SqlSourceBook:
    """Implements `core.jobs.SourceBook`."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger

    async def add(
        self,
        tenant: str,
        kb: KnowledgeBase,
        name: str,
        kind: str,
        config: Metadata,
        schedule: str,
        next_run_at: datetime | None,
    ) -> SourceRecord:
        return await self._ledger.write(
            tenant, sources.add_source, kb, name, kind, config, schedule, next_run_at
        )

    async def get(self, tenant: str, kb: str, name: str) -> SourceRecord | None:
        try:
            return await self._ledger.read(tenant, sources.read_source, kb, name)
        except UnknownTenant:
            return None

    async def all(self, tenant: str, kb: str | None = None) -> list[SourceRecord]:
        try:
            return await self._ledger.read(tenant, sources.read_sources, kb)
        except UnknownTenant:
            return []

    async def due(self, tenant: str, moment: datetime) -> list[SourceRecord]:
        return await self._ledger.read(tenant, sources.due_sources, moment)

    async def reschedule(self, tenant: str, source_id: str, next_run_at: datetime | None) -> None:
        await self._ledger.write(tenant, sources.reschedule, source_id, next_run_at)

    async def ran(self, tenant: str, source_id: str, error: str, next_run_at: datetime | None) -> None:
        await self._ledger.write(tenant, sources.ran, source_id, error, next_run_at)

    async def pause(self, tenant: str, source_id: str, paused: bool) -> None:
        await self._ledger.write(tenant, sources.pause, source_id, paused)

    async def remove(self, tenant: str, source_id: str) -> None:
        await self._ledger.write(tenant, sources.remove_source, source_id)
