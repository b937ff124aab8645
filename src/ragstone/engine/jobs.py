"""The jobs of a tenant: what is queued, how it goes, and the notices of how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragstone.core.errors import NotFoundError
from ragstone.core.jobs import Job, JobState, Notice
from ragstone.core.remedies import Action, Remedy
from ragstone.engine.access import TenantScope, WorkspacePart, record_caller, within_kbs


@record_caller
class Jobs(WorkspacePart):
    """Uploads, syncs and refreshes that workers do in the background."""

    def __init__(self, scope: TenantScope) -> None:
        super().__init__(scope)
        self._queue = scope.components.stores.queue

    async def list(
        self, *, states: Sequence[JobState] = (), source: str | None = None, limit: int = 100
    ) -> Sequence[Job]:
        """Return jobs, newest first: all, or those in some states or of a source."""
        return await self._queue.of(await self._scope.admit()).jobs(states, source, limit)

    @within_kbs
    async def get(self, job_id: str) -> Job:
        """Return a job, or raise `NotFoundError`."""
        tenant = await self._scope.admit()
        found = await self._queue.of(tenant).job(job_id)
        if found is None or not self._sees(found):
            await self._scope.components.audit.record_denial(tenant, "job.read", job_id)
            raise NotFoundError(f"no job {job_id}", remedy=Remedy(Action.LIST_JOBS))
        return found

    @within_kbs
    async def cancel(self, job_id: str) -> bool:
        """Stop a job that has not ended; False when it has."""
        job = await self.get(job_id)
        return await self._queue.of(self._scope.tenant).cancel(job.id)

    @within_kbs
    async def retry(self, job_id: str) -> bool:
        """Try a job that failed or was cancelled once more; False when it did neither."""
        job, tenant = await self.get(job_id), self._scope.tenant
        again = await self._queue.of(tenant).retry(job.id)
        await self._queue.signal_work(tenant)
        return again

    async def counts(self, *, source: str | None = None) -> Mapping[str, int]:
        """Return how many jobs, or how many of a source, are in which state."""
        return await self._queue.of(await self._scope.admit()).counts(source)

    async def notices(self, *, unread: bool = False, limit: int = 100) -> Sequence[Notice]:
        """Return how uploads and syncs ended, newest first."""
        return await self._queue.of(await self._scope.admit()).notices(unread=unread, limit=limit)

    async def mark_read(self, notices: Sequence[int]) -> None:
        """Mark notices as read, by their ids."""
        await self._queue.of(await self._scope.admit()).mark_read(notices)

    def _sees(self, job: Job) -> bool:
        """Return whether a job exists for the caller: an archive may be of more kbs than the one that its job names."""
        is_archive = job.kind == "task" and job.source in ("export", "import")
        return self._scope.sees(job.kb) and not (is_archive and self._scope.is_limited)
