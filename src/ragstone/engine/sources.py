"""The configured sources of a tenant: set up, read when they are due, paused and removed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragstone.core.clock import now
from ragstone.core.errors import InputError, NotFoundError
from ragstone.core.ids import check_name
from ragstone.core.jobs import Job, SourceRecord
from ragstone.core.remedies import Action, Remedy
from ragstone.engine.access import TenantScope, WorkspacePart, record_caller, within_kbs

if TYPE_CHECKING:
    from ragstone.ingest.jobs.sync import SyncOutcome
    from ragstone.ingest.sources.files.source import Overlaps

RESERVED = ("files", "web", "upload")
"""Names under which documents come in that no configured source brings."""


@record_caller
class Sources(WorkspacePart):
    """Connectors of a tenant; `kb` is that of the settings unless another one is named."""

    def __init__(self, scope: TenantScope) -> None:
        super().__init__(scope)
        self._sources = scope.components.stores.sources
        self._queue = scope.components.stores.queue

    async def add(
        self, kind: str, name: str, config: Mapping[str, Any], *, schedule: str | None = None, kb: str | None = None
    ) -> SourceRecord:
        """Configure a connector; a setting that is missing or unknown is reported now, not at its first run.

        Without a schedule it has that of its kind: mail daily, feeds hourly, the others when they are asked for.
        A variable that is not set here may be set where it runs.
        """
        from ragstone.ingest.jobs.schedule import next_run
        from ragstone.ingest.sources import SCHEDULES, check_without_variables, refuse_local_source, unset_variables

        tenant = await self._scope.admit()
        if self._scope.is_remote:
            refuse_local_source(kind, config)
        check_name(name, "source")
        if name in RESERVED:
            raise InputError(f"'{name}' is what is ingested without a source", hint="choose another name")
        schedule = schedule or SCHEDULES.get(kind, "manual")
        first = next_run(schedule, now())
        if unset_variables(config):
            check_without_variables(kind, name, config)
        else:
            await self._components.build_source(kind, name, config).close()
        async with self._ledger.transaction(tenant) as tx:
            found = await tx.open_kb(self._scope.kb_name(kb))
        added = await self._sources.of(tenant).add(found, name, kind, config, schedule, first)
        await self._queue.signal_work(tenant)
        return added

    async def list(self, *, kb: str | None = None) -> Sequence[SourceRecord]:
        """Return the sources of all kbs, or of one."""
        return await self._sources.of(await self._scope.admit()).all(kb)

    @within_kbs
    async def get(self, name: str, *, kb: str | None = None) -> SourceRecord:
        """Return a source, or raise `NotFoundError`."""
        tenant, scope = await self._scope.admit(), self._scope.kb_name(kb)
        found = await self._sources.of(tenant).get(scope, name)
        if found is None:
            raise NotFoundError(f"knowledge base '{scope}' has no source '{name}'", remedy=Remedy(Action.LIST_SOURCES))
        return found

    @within_kbs
    async def sync(self, name: str, *, afresh: bool = False, kb: str | None = None) -> Job:
        """Queue a look at a source; `afresh` forgets its cursor and reads all of it."""
        record = await self.get(name, kb=kb)
        tenant = self._scope.tenant
        job = await self._components.maintenance.queue_sync(tenant, record, afresh)
        await self._queue.signal_work(tenant)
        return job

    async def sync_all(self) -> Sequence[Job]:
        """Queue a fresh look at every source of every kb but those that are paused."""
        tenant = await self._scope.admit()
        records = [record for record in await self._sources.of(tenant).all() if not record.paused]
        jobs = [await self._components.maintenance.queue_sync(tenant, record, True) for record in records]
        await self._queue.signal_work(tenant)
        return jobs

    async def pause(self, name: str, *, kb: str | None = None) -> None:
        """Suspend a source's schedule."""
        await self._set_paused(name, True, kb)

    async def resume(self, name: str, *, kb: str | None = None) -> None:
        """Follow a source's schedule again."""
        await self._set_paused(name, False, kb)

    async def remove(self, name: str, *, keep_documents: bool = False, kb: str | None = None) -> int:
        """Remove a source and, unless they are to be kept, its documents; return how many went."""
        record = await self.get(name, kb=kb)
        tenant, scope = self._scope.tenant, self._scope.kb_name(kb)
        found = await self._ledger.of(tenant).kb(scope)
        there = await self._ledger.of(tenant).source_documents(found, name) if found else {}
        audit = self._components.audit
        if found and not keep_documents:
            gone = sum(bool(hashed) for _, hashed in there.values())
            async with audit.record_action(tenant, "source.delete", [name], scope) as removal:
                async with self._ledger.transaction(tenant) as tx:
                    await tx.delete_source(found, name)
                removal.mark_done(name, gone)
            return gone
        await self._sources.of(tenant).remove(record.id)
        await audit.record_change(tenant, "source.remove", name, kb=scope)
        for identity in [identity for identity, hashed in there.values() if not hashed]:
            async with self._ledger.transaction(tenant) as tx:
                if not await tx.is_live(identity):
                    await tx.delete(identity)
        return 0

    async def work_and_report(self, syncs: Sequence[Job], work: Callable[[], Awaitable[None]]) -> Sequence[SyncOutcome]:
        """Have queued syncs worked on by `work`, and return what each of them led to."""
        from ragstone.ingest.jobs.sync import work_and_report

        tenant = await self._scope.admit()
        return await work_and_report(self._queue.of(tenant), self._sources.of(tenant), syncs, work)

    async def overlaps(self, added: SourceRecord) -> Overlaps | None:
        """Return what a new source of files has in common with others; None for a source of another kind."""
        from ragstone.ingest.sources.files.source import find_overlaps

        tenant = await self._scope.admit()
        return await find_overlaps(self._ledger, self._sources.of(tenant), tenant, added)

    async def _set_paused(self, name: str, paused: bool, kb: str | None) -> None:
        record = await self.get(name, kb=kb)
        await self._sources.of(self._scope.tenant).pause(record.id, paused)
