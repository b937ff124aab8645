"""The queue and the sources of all tenants, on the files of the SQLite ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime

from ragstone.core.jobs import Job, JobKind, JobProgress, JobState, Notice, SourceRecord, Ticket
from ragstone.core.types import KnowledgeBase, Metadata
from ragstone.stores.ledger import sqlite_job_reads as job_reads
from ragstone.stores.ledger import sqlite_jobs as jobs
from ragstone.stores.ledger import sqlite_notices as notices
from ragstone.stores.ledger import sqlite_originals as originals
from ragstone.stores.ledger import sqlite_sources as sources
from ragstone.stores.ledger.sqlite import SqliteLedger, UnknownTenant


class SqliteQueue:
    """Implements `core.jobs.Queue`."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    async def bells(self) -> Mapping[str, int]:
        control = await self._ledger.control()
        if control is None:
            return {}
        return await control.read(lambda db: dict(db.execute("SELECT name, bell FROM tenants ORDER BY name")))

    async def ring(self, tenant: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute("UPDATE tenants SET bell = bell + 1 WHERE name = ?", (tenant,))

        control = await self._ledger.control()
        if control is not None:
            async with control.turn:
                await control.write(work)

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
            lambda file, db: jobs.claim(
                db,
                file.tenant_id,
                worker,
                kind,
                lease_seconds=lease_seconds,
                attempts=attempts,
                most=most,
                most_bytes=most_bytes,
            ),
        )

    async def heartbeat(
        self, tenant: str, held: Mapping[Ticket, JobProgress], lease_seconds: float
    ) -> set[Ticket]:
        return await self._ledger.write(tenant, lambda _, db: jobs.heartbeat(db, held, lease_seconds))

    async def complete(
        self, tenant: str, ticket: Ticket, message: str, progress: JobProgress | None = None
    ) -> None:
        done = progress or JobProgress(percent=100)
        await self._ledger.write(tenant, lambda _, db: jobs.complete(db, ticket, done, message))

    async def fail(self, tenant: str, ticket: Ticket, code: str, error: str) -> None:
        await self._ledger.write(tenant, lambda _, db: jobs.fail(db, ticket, code, error))

    async def put_back(
        self, tenant: str, ticket: Ticket, *, wait_seconds: float, code: str, error: str, counts: bool
    ) -> None:
        await self._ledger.write(
            tenant,
            lambda _, db: jobs.put_back(
                db, ticket, wait_seconds=wait_seconds, code=code, error=error, counts=counts
            ),
        )

    async def cancel(self, tenant: str, job_id: str) -> bool:
        return await self._ledger.write(tenant, lambda file, db: jobs.cancel(db, file.tenant_id, job_id))

    async def retry(self, tenant: str, job_id: str) -> bool:
        return await self._ledger.write(tenant, lambda file, db: jobs.retry(db, file.tenant_id, job_id))

    async def job(self, tenant: str, job_id: str) -> Job | None:
        try:
            return await self._ledger.read(
                tenant, lambda file, db: job_reads.read_job(db, file.tenant_id, job_id)
            )
        except UnknownTenant:
            return None

    async def jobs(
        self, tenant: str, states: Sequence[JobState] = (), source: str | None = None, limit: int = 100
    ) -> list[Job]:
        try:
            return await self._ledger.read(
                tenant, lambda file, db: job_reads.read_jobs(db, file.tenant_id, states, source, limit)
            )
        except UnknownTenant:
            return []

    async def counts(self, tenant: str) -> Mapping[str, int]:
        try:
            return await self._ledger.read(tenant, lambda file, db: job_reads.count_jobs(db, file.tenant_id))
        except UnknownTenant:
            return {}

    async def next_due(self, tenant: str, kind: JobKind = "document") -> float | None:
        return await self._ledger.read(tenant, lambda file, db: job_reads.next_due(db, file.tenant_id, kind))

    async def older_originals(self, tenant: str, job: Job) -> list[str]:
        return await self._ledger.read(tenant, lambda file, db: originals.older(db, file.tenant_id, job))

    async def notices(self, tenant: str, *, unread: bool = False, limit: int = 100) -> list[Notice]:
        try:
            return await self._ledger.read(
                tenant, lambda file, db: notices.read_notices(db, file.tenant_id, unread, limit)
            )
        except UnknownTenant:
            return []

    async def mark_read(self, tenant: str, notices_read: Sequence[int]) -> None:
        await self._ledger.write(tenant, lambda file, db: notices.mark_read(db, file.tenant_id, notices_read))

    async def unsent(self, tenant: str, limit: int = 100) -> list[Notice]:
        return await self._ledger.read(tenant, lambda file, db: notices.unsent(db, file.tenant_id, limit))

    async def mark_sent(self, tenant: str, notice: int) -> None:
        await self._ledger.write(tenant, lambda file, db: notices.mark_sent(db, file.tenant_id, notice))


class SqliteSourceBook:
    """Implements `core.jobs.SourceBook`."""

    def __init__(self, ledger: SqliteLedger) -> None:
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
            tenant,
            lambda file, db: sources.add_source(
                db, file.tenant_id, kb, name, kind, config, schedule, next_run_at
            ),
        )

    async def get(self, tenant: str, kb: str, name: str) -> SourceRecord | None:
        try:
            return await self._ledger.read(
                tenant, lambda file, db: sources.read_source(db, file.tenant_id, kb, name)
            )
        except UnknownTenant:
            return None

    async def all(self, tenant: str, kb: str | None = None) -> list[SourceRecord]:
        try:
            return await self._ledger.read(
                tenant, lambda file, db: sources.read_sources(db, file.tenant_id, kb)
            )
        except UnknownTenant:
            return []

    async def due(self, tenant: str, moment: datetime) -> list[SourceRecord]:
        return await self._ledger.read(
            tenant, lambda file, db: sources.due_sources(db, file.tenant_id, moment)
        )

    async def reschedule(self, tenant: str, source_id: str, next_run_at: datetime | None) -> None:
        await self._ledger.write(
            tenant, lambda file, db: sources.reschedule(db, file.tenant_id, source_id, next_run_at)
        )

    async def ran(self, tenant: str, source_id: str, error: str, next_run_at: datetime | None) -> None:
        await self._ledger.write(
            tenant, lambda file, db: sources.ran(db, file.tenant_id, source_id, error, next_run_at)
        )

    async def pause(self, tenant: str, source_id: str, paused: bool) -> None:
        await self._ledger.write(
            tenant, lambda file, db: sources.pause(db, file.tenant_id, source_id, paused)
        )

    async def remove(self, tenant: str, source_id: str) -> None:
        await self._ledger.write(
            tenant, lambda file, db: sources.remove_source(db, file.tenant_id, source_id)
        )
