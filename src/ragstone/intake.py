"""What comes in and is worked on later: uploads, configured sources, their jobs, and the workers that do them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ragstone.core.clock import now
from ragstone.core.documents import checked_facts
from ragstone.core.errors import InputError, NotFoundError, QuotaExceeded
from ragstone.core.ids import check_name, content_hash
from ragstone.core.jobs import (
    DocumentStatus,
    Job,
    JobState,
    Notice,
    Priority,
    Queue,
    SourceBook,
    SourceRecord,
    UnderWay,
)
from ragstone.core.ledger import Ledger
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Failure, Item, KnowledgeBase, Metadata, failure_of
from ragstone.gate import Gate
from ragstone.ingest.diff import SourceDiff, assign_ids, with_read_time
from ragstone.ingest.jobs.leases import WorkerRegistry
from ragstone.ingest.jobs.maintenance import BuildSource, Maintenance
from ragstone.ingest.jobs.schedule import next_run
from ragstone.ingest.jobs.sync import new_jobs
from ragstone.ingest.jobs.sync_outcome import SyncOutcome, work_and_report
from ragstone.ingest.jobs.worker import OnEnd, RunRefresh, Worker
from ragstone.ingest.pipeline import IngestPipeline
from ragstone.ingest.prepare import Preparer, find_unusable
from ragstone.ingest.sources import check_without_variables, unset_variables
from ragstone.ingest.sources.files.listing import scan_paths
from ragstone.ingest.sources.files.overlaps import Overlaps, find_overlaps
from ragstone.ingest.uploads import SOURCE, check_external_id, check_upload
from ragstone.ingest.work import JobBatch, RunReport, WorkItem
from ragstone.settings.tree import Settings

WEB = "web"
BATCH = 32
RESERVED = ("files", WEB, SOURCE)
"""Names under which documents come in that no configured source brings."""


class Intake:
    """Queues work and does it. `tenant` and `kb` default to those of the settings in every method."""

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        queue: Queue,
        book: SourceBook,
        pipeline: Callable[[], IngestPipeline],
        preparer: Callable[[], Preparer],
        build_source: BuildSource,
        upkeep: Maintenance,
        gate: Gate,
        run_refresh: RunRefresh | None = None,
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._queue = queue
        self._book = book
        self._pipeline = pipeline
        self._preparer = preparer
        self._build_source = build_source
        self._upkeep = upkeep
        self._gate = gate
        self._run_refresh = run_refresh

    async def upload(
        self,
        content: bytes,
        filename: str,
        *,
        title: str = "",
        metadata: Metadata | None = None,
        external_id: str | None = None,
        priority: Priority = Priority.UPLOAD,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> DocumentStatus:
        """Take in a file to be worked on in the background. When this returns, it will not be lost.

        Equal bytes are one document unless an `external_id` tells them apart. Of the metadata, `description`,
        `category` and `tags` are shown with the document.
        """
        owner, name = await self._scope(tenant, kb)
        limits = self._settings.limits
        uri = check_upload(content, filename, limits.file_mb, limits.upload_types)
        checked_facts(title, metadata or {})
        item = Item(
            source=SOURCE,
            external_id=check_external_id(external_id or content_hash(content)),
            uri=uri,
            content=content,
            title=title,
            metadata={"source_type": "upload", "filename": uri, **(metadata or {})},
            modified_at=None,
        )
        if problem := find_unusable(item):
            raise InputError(problem.error)
        await self._gate.write(owner)
        async with self._ledger.transaction(owner) as tx:
            scope = await tx.open_kb(name)
        seed, called = await self._gate.seed(owner), item.external_id
        identity = (await assign_ids(self._ledger, owner, seed, scope, SOURCE, [called]))[called]
        live = (await self._ledger.find(owner, scope, SOURCE, [item.external_id])).get(item.external_id)
        waiting = (await self._ledger.under_way(owner, [identity])).get(identity, UnderWay())
        on_its_way = waiting.content_hash not in ("", content_hash(content))
        if on_its_way or not self._preparer().is_current(item, live):
            await self._queue_document(
                owner, scope, WorkItem(item, JobBatch(), document_id=identity), priority
            )
        return await self.status(identity, tenant=owner)

    async def queue(
        self, *paths: str | Path, tenant: str | None = None, kb: str | None = None
    ) -> tuple[list[DocumentStatus], list[Failure]]:
        """Queue files and the documents under folders, as `Engine.ingest` would take them in.

        What is live already and has not changed is given back as it is; what is gone from a folder goes. Among the
        failures those with the code `skipped` are pictures that were not named themselves.
        """
        owner, name = await self._scope(tenant, kb)
        await self._gate.write(owner)
        async with self._ledger.transaction(owner) as tx:
            scope = await tx.open_kb(name)
        seed = await self._gate.seed(owner)
        diff = SourceDiff(self._ledger, self._preparer(), owner, scope, RunReport(), seed=seed)
        entries, listings = await scan_paths(paths, self._settings.limits)
        for listing in listings:
            await diff.expect_listing(listing)
        queued, failed = [], []
        while batch := await asyncio.to_thread(lambda: list(islice(entries, BATCH))):
            failed += [entry for entry in batch if isinstance(entry, Failure)]
            items = [WorkItem(entry, JobBatch()) for entry in batch if isinstance(entry, Item)]
            todo, current = await diff.compare(items)
            for task in todo:
                try:
                    await self._queue_document(owner, scope, task, Priority.UPLOAD, keep=False)
                    current.append(task)
                except QuotaExceeded as error:
                    failed.append(failure_of(task.item.uri, error))
            # What somebody has deleted since is none of the others' business.
            told = [await self._ledger.status(owner, task.document_id) for task in current]
            queued += [status for status in told if status]
        await diff.remove_missing()
        return queued, failed

    async def _queue_document(
        self, tenant: str, kb: KnowledgeBase, task: WorkItem, priority: Priority, *, keep: bool = True
    ) -> None:
        # What is there already, or on its way, needs no room for another document.
        new = await self._gate.is_limited(tenant) and not await self._ledger.status(tenant, task.document_id)
        # A file that is kept and its text need room beside each other: what is let in can also be finished.
        size = len(task.item.content) * (2 if keep else 1)
        async with self._gate.taking_in(tenant, documents=int(new), size=size, queued=True):
            (wanted,) = await new_jobs(self._ledger, tenant, [task], priority, keep=keep, notify=True)
            async with self._ledger.transaction(tenant) as tx:
                job = await tx.enqueue(kb, wanted)
        if job.facts["original"] != wanted.facts["original"]:
            # The same bytes were on their way already: the job has its own copy.
            await self._ledger.drop_originals(tenant, [(task.document_id, wanted.facts["original"])])
        await self._queue.ring(tenant)

    async def status(self, document_id: str, *, tenant: str | None = None) -> DocumentStatus:
        """What has become of a document."""
        owner = await self._owner(tenant)
        found = await self._ledger.status(owner, document_id)
        if found is None:
            await self._gate.audit.denied(owner, "document.read", document_id)
            raise NotFoundError(f"no document {document_id}", remedy=Remedy(Action.LIST_DOCUMENTS))
        return found

    async def jobs(
        self,
        *,
        states: Sequence[JobState] = (),
        source: str | None = None,
        limit: int = 100,
        tenant: str | None = None,
    ) -> list[Job]:
        """Newest first."""
        return await self._queue.jobs(await self._owner(tenant), states, source, limit)

    async def job(self, job_id: str, *, tenant: str | None = None) -> Job:
        owner = await self._owner(tenant)
        found = await self._queue.job(owner, job_id)
        if found is None:
            await self._gate.audit.denied(owner, "job.read", job_id)
            raise NotFoundError(f"no job {job_id}", remedy=Remedy(Action.LIST_JOBS))
        return found

    async def cancel(self, job_id: str, *, tenant: str | None = None) -> bool:
        """Stop a job that has not ended; False when it has."""
        job = await self.job(job_id, tenant=tenant)
        return await self._queue.cancel(await self._owner(tenant), job.id)

    async def retry(self, job_id: str, *, tenant: str | None = None) -> bool:
        """Try a job that failed or was cancelled once more; False when it did neither."""
        job = await self.job(job_id, tenant=tenant)
        owner = await self._owner(tenant)
        again = await self._queue.retry(owner, job.id)
        await self._queue.ring(owner)
        return again

    async def counts(self, *, source: str | None = None, tenant: str | None = None) -> Mapping[str, int]:
        """How many jobs, or how many of a source, are in which state."""
        return await self._queue.counts(await self._owner(tenant), source)

    async def notices(
        self, *, unread: bool = False, limit: int = 100, tenant: str | None = None
    ) -> list[Notice]:
        """How uploads and syncs ended, newest first."""
        return await self._queue.notices(await self._owner(tenant), unread=unread, limit=limit)

    async def mark_read(self, notices: Sequence[int], *, tenant: str | None = None) -> None:
        await self._queue.mark_read(await self._owner(tenant), notices)

    async def fetch_pages(self, urls: Sequence[str]) -> list[Item | Failure]:
        """Web pages as items, known by their addresses, however they come in."""
        # Only who sets up a source may name variables of the environment; an address has no bare brace anyway.
        source = self._build_source("web", WEB, {"urls": [url.replace("{", "%7B") for url in urls]})
        try:
            return [
                with_read_time(one) if isinstance(one, Item) else one
                async for page in source.fetch(None)
                for one in page.items
            ]
        finally:
            await source.close()

    async def add_source(
        self,
        kind: str,
        name: str,
        config: Mapping[str, Any],
        *,
        schedule: str = "manual",
        tenant: str | None = None,
        kb: str | None = None,
    ) -> SourceRecord:
        """Configure a connector; what it lacks or has too much is said now, not at its first run.

        A variable that is not set here may be set where it runs.
        """
        owner, scope = await self._scope(tenant, kb)
        check_name(name, "source")
        if name in RESERVED:
            raise InputError(f"'{name}' is what is ingested without a source", hint="choose another name")
        first = next_run(schedule, now())
        if unset_variables(config):
            check_without_variables(kind, name, config)
        else:
            await self._build_source(kind, name, config).close()
        async with self._ledger.transaction(owner) as tx:
            found = await tx.open_kb(scope)
        added = await self._book.add(owner, found, name, kind, config, schedule, first)
        await self._queue.ring(owner)
        return added

    async def sources(self, *, tenant: str | None = None, kb: str | None = None) -> list[SourceRecord]:
        return await self._book.all(await self._owner(tenant), kb)

    async def source(self, name: str, *, tenant: str | None = None, kb: str | None = None) -> SourceRecord:
        owner, scope = await self._scope(tenant, kb)
        found = await self._book.get(owner, scope, name)
        if found is None:
            raise NotFoundError(
                f"knowledge base '{scope}' has no source '{name}'",
                remedy=Remedy(Action.LIST_SOURCES),
            )
        return found

    async def sync(
        self, name: str, *, afresh: bool = False, tenant: str | None = None, kb: str | None = None
    ) -> Job:
        """Queue a look at a source; `afresh` forgets its cursor and reads all of it."""
        record = await self.source(name, tenant=tenant, kb=kb)
        owner = await self._owner(tenant)
        job = await self._upkeep.queue_sync(owner, record, afresh)
        await self._queue.ring(owner)
        return job

    async def work_and_report(
        self, syncs: Sequence[Job], work: Callable[[], Awaitable[None]], *, tenant: str | None = None
    ) -> list[SyncOutcome]:
        """Have queued syncs worked on by `work`, and return what each of them led to."""
        return await work_and_report(self._queue, self._book, await self._owner(tenant), syncs, work)

    async def overlaps(self, added: SourceRecord, *, tenant: str | None = None) -> Overlaps | None:
        """Return what a new source of files has in common with others; None for a source of another kind."""
        return await find_overlaps(self._ledger, self._book, await self._owner(tenant), added)

    async def sync_all(self, *, tenant: str | None = None) -> list[Job]:
        """Queue a fresh look at every source of every kb but those that are paused."""
        owner = await self._owner(tenant)
        awake = [record for record in await self._book.all(owner) if not record.paused]
        jobs = [await self._upkeep.queue_sync(owner, record, True) for record in awake]
        await self._queue.ring(owner)
        return jobs

    async def pause(
        self, name: str, paused: bool = True, *, tenant: str | None = None, kb: str | None = None
    ) -> None:
        """Let a source's schedule rest, or go on."""
        record = await self.source(name, tenant=tenant, kb=kb)
        await self._book.pause(await self._owner(tenant), record.id, paused)

    async def remove_source(
        self, name: str, *, keep_documents: bool = False, tenant: str | None = None, kb: str | None = None
    ) -> int:
        """Remove a source and, unless they are to be kept, its documents; how many went."""
        record = await self.source(name, tenant=tenant, kb=kb)
        owner, scope = await self._scope(tenant, kb)
        found = await self._ledger.kb(owner, scope)
        there = await self._ledger.belongings(owner, found, name) if found else {}
        if found and not keep_documents:
            gone = sum(bool(hashed) for _, hashed in there.values())
            async with self._gate.audit.carrying_out(owner, "source.delete", [name], scope) as removal:
                async with self._ledger.transaction(owner) as tx:
                    await tx.delete_source(found, name)
                removal.did(name, gone)
            return gone
        await self._book.remove(owner, record.id)
        await self._gate.audit.changed(owner, "source.remove", name, kb=scope)
        for identity in [identity for identity, hashed in there.values() if not hashed]:
            async with self._ledger.transaction(owner) as tx:
                if not await tx.is_live(identity):
                    await tx.delete(identity)
        return 0

    def worker(self, *, only: str | None = None, on_end: OnEnd | None = None) -> Worker:
        """What works on the jobs of all tenants, or only of one; `on_end` hears of each that has ended."""
        return Worker(
            self._queue,
            self._ledger,
            self._pipeline(),
            self._settings.jobs,
            run_sync=self._upkeep.run_sync,
            maintain=self._upkeep.maintain,
            only=only,
            on_end=on_end,
            housekeeping=self._upkeep.finish_deletions,
            registry=WorkerRegistry(self._settings.data_dir / "workers"),
            run_refresh=self._run_refresh,
        )

    async def _owner(self, tenant: str | None) -> str:
        # Only None means the default: an empty name is a mistake that must not reach somebody's data.
        owner = self._settings.tenant if tenant is None else tenant
        await self._gate.read(owner)
        return owner

    async def _scope(self, tenant: str | None, kb: str | None) -> tuple[str, str]:
        return await self._owner(tenant), self._settings.kb if kb is None else kb
