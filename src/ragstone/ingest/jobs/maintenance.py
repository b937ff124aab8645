"""Maintain tenants between jobs: start scheduled syncs, clean up, enforce retention, and send notices."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from ragstone.core.audit import Auditor
from ragstone.core.clock import now
from ragstone.core.errors import PASSING, FetchError, NotFoundError, RagstoneError, SourceError
from ragstone.core.jobs import Job, NewJob, Priority, SourceFailures, SourceRecord
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import Queue, Source, SourceBook
from ragstone.core.tenants import Tenant
from ragstone.core.types import KnowledgeBase, failure_of
from ragstone.fetch.webhook import Webhook
from ragstone.ingest.backfill import SpaceMaintenance
from ragstone.ingest.jobs.schedule import next_run
from ragstone.ingest.jobs.sync import MOST_JOBS, Sync, SyncReport
from ragstone.ingest.prepare import Preparer
from ragstone.ingest.sources.files.owners import find_source_owners
from ragstone.schemas.jobs import WebhookSchema

logger = logging.getLogger(__name__)
SWEEP_SECONDS = 3600.0
BuildSource = Callable[[str, str, Mapping[str, Any]], Source]
"""Makes a source of a kind, with a name and a configuration."""


class TenantRecords(Protocol):
    """The part of the book of tenants that maintenance needs."""

    async def get(self, name: str) -> Tenant | None: ...

    async def finish_deletions(self) -> list[str]: ...

    async def list_expired(self, name: str, before: datetime) -> list[str]: ...


class Maintenance:
    """Keeps the sources of all tenants up to date and their storage clean."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        sources: SourceBook,
        preparer: Callable[[], Preparer],
        build_source: BuildSource,
        webhook: Webhook | None,
        *,
        space_maintenance: SpaceMaintenance,
        tenants: TenantRecords,
        audit: Auditor,
        forget_outdated: Callable[[str], Awaitable[None]],
        start_refresh: Callable[[str], Awaitable[None]],
        charge_store: Callable[[str], Awaitable[None]],
        remove_left_folders: Callable[[], Awaitable[None]],
    ) -> None:
        self._ledger = ledger
        self._queue = queue
        self._sources = sources
        self._preparer = preparer
        self._build_source = build_source
        self._webhook = webhook
        self._tenants = tenants
        self._audit = audit
        self._spaces = space_maintenance
        self._forget_outdated = forget_outdated
        self._start_refresh = start_refresh
        self._charge_store = charge_store
        self._remove_left_folders = remove_left_folders
        self._swept: dict[str, float] = {}
        self._kept_house = float("-inf")

    async def queue_sync(self, tenant: str, record: SourceRecord, afresh: bool) -> Job:
        """Queue a sync of a source."""
        kb = await self._kb_of(tenant, record)
        async with self._ledger.transaction(tenant) as tx:
            return await tx.enqueue(kb, _sync_job(record, afresh))

    async def run_sync(self, tenant: str, job: Job) -> SyncReport:
        """Read the source of a sync job and queue its new documents."""
        record = await self._sources.of(tenant).get(job.kb, job.source)
        kb = await self._ledger.of(tenant).kb(job.kb)
        if record is None or kb is None:
            raise SourceError(f"there is no source '{job.source}' any more")
        following = next_run(record.schedule, now())
        try:
            if record.damage:
                raise record.damage
            source = self._build_source(record.kind, record.name, record.config)
            try:
                owner = await self._tenants.get(tenant)
                seed = owner.seed if owner else ""
                owners = await find_source_owners(self._ledger, self._sources.of(tenant), tenant, kb, record)
                sync = Sync(self._ledger, self._preparer(), tenant, kb, record, job.ticket, seed, owners)
                report = await sync.run(source, afresh=bool(job.facts.get("afresh")))
                report.queued += await self._retry_failed(tenant, record)
            finally:
                await source.close()
        except RagstoneError as error:
            broken = SourceFailures(1, (failure_of(job.uri, error),), total=True)
            await self._sources.of(tenant).ran(record.id, str(error), following, broken, job.ticket)
            raise
        if report.queued:
            await self._audit.record_event(tenant, "source.sync", record.name, kb=job.kb, count=report.queued)
        if report.removed:
            await self._audit.record_event(tenant, "document.gone", record.name, kb=job.kb, count=report.removed)
        await self._sources.of(tenant).ran(record.id, "", following, report.source_failures, job.ticket)
        return report

    async def _retry_failed(self, tenant: str, record: SourceRecord) -> int:
        """Retry documents whose failure may have passed, and return how many: many sources do not give them again."""
        queue = self._queue.of(tenant)
        failed = {
            job.id: job.document_id
            for job in await queue.jobs(("failed",), record.name, MOST_JOBS)
            if job.kind == "document" and job.kb == record.kb and job.error_code in PASSING
        }
        newest = await self._ledger.of(tenant).newest_jobs(list(failed.values()))
        last = [job_id for job_id, document_id in failed.items() if newest[document_id].id == job_id]
        return sum([await queue.retry(job_id) for job_id in last])

    async def maintain(self, tenant: str) -> None:
        """Start scheduled syncs, remove leftovers of crashes, and send notices of ended jobs."""
        for record in await self._sources.of(tenant).due(now()):
            await self._start(tenant, record)
        sweeps = time.monotonic() - self._swept.get(tenant, float("-inf")) > SWEEP_SECONDS
        if sweeps:
            self._swept[tenant] = time.monotonic()
            await self._ledger.clean_up(tenant)
            await self._forget_outdated(tenant)
            await self._retire(tenant)
            await self._charge_store(tenant)
            await self._spaces.clean(tenant)
        await self._spaces.fill(tenant)
        if sweeps:
            await self._start_refresh(tenant)
        if self._webhook:
            await self._send_notices(self._webhook, tenant)

    async def _start(self, tenant: str, due: SourceRecord) -> None:
        """Queue a sync that is due, unless another worker has."""
        kb, following = await self._kb_of(tenant, due), next_run(due.schedule, now())
        async with self._ledger.transaction(tenant) as tx:
            if await tx.reschedule(due.id, due.next_run_at, following):
                await tx.enqueue(kb, _sync_job(due, afresh=False))
        await self._queue.signal_work(tenant)

    async def _kb_of(self, tenant: str, record: SourceRecord) -> KnowledgeBase:
        kb = await self._ledger.of(tenant).kb(record.kb)
        if kb is None:
            raise NotFoundError(f"knowledge base '{record.kb}' was deleted, and its sources with it")
        return kb

    async def reread(self, tenant: str, kb: str) -> int:
        """Queue a full sync of every source of a kb that is not paused, and return how many."""
        active = [record for record in await self._sources.of(tenant).all(kb) if not record.paused]
        for record in active:
            await self.queue_sync(tenant, record, afresh=True)
        await self._queue.signal_work(tenant)
        return len(active)

    async def keep_house(self) -> None:
        """Finish deletions of tenants that a crash interrupted, and remove what tasks have left."""
        if time.monotonic() - self._kept_house > SWEEP_SECONDS:
            self._kept_house = time.monotonic()
            await self._tenants.finish_deletions()
            await self._remove_left_folders()

    async def _retire(self, tenant: str) -> None:
        """Delete documents that were not updated within the tenant's retention period."""
        found = await self._tenants.get(tenant)
        if found is None or found.retention_days is None:
            return
        before = now() - timedelta(days=found.retention_days)
        while old := await self._tenants.list_expired(tenant, before):
            async with self._audit.record_action(tenant, "document.retire", old) as removal:
                for document_id in old:
                    async with self._ledger.transaction(tenant) as tx:
                        gone = await tx.delete(document_id)
                    removal.mark_done(document_id, int(gone))
                    logger.info(
                        "retention: document %s of tenant '%s' was not updated for %d days and is deleted",
                        *(document_id, tenant, found.retention_days),
                    )

    async def _send_notices(self, webhook: Webhook, tenant: str) -> None:
        for notice in await self._queue.of(tenant).unsent():
            try:
                await webhook.send(WebhookSchema.of_notice(tenant, notice).as_json())
            except FetchError as error:
                if error.retryable:
                    raise
                logger.warning("the webhook rejects a notice: %s", error)

            await self._queue.of(tenant).mark_sent(notice.id)


def _sync_job(source: SourceRecord, afresh: bool) -> NewJob:
    return NewJob(
        kind="sync",
        source=source.name,
        external_id=source.name,
        uri=f"source:{source.name}",
        priority=Priority.SYNC,
        facts={"afresh": afresh},
        notify=True,
    )
