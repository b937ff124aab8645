"""The embeddings of a tenant's kbs: moved to another model, filled in, checked, cleaned up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.core.spaces import GRACE_DAYS, ReembedMode, SpaceRecord
from ragstone.engine.access import WorkspacePart, record_caller

if TYPE_CHECKING:
    # Only some methods need these: they are imported there, and a search starts the sooner.
    from ragstone.core.jobs import Job
    from ragstone.engine.embeddings.reembed import ReembedReport
    from ragstone.engine.embeddings.refresh import RefreshReport
    from ragstone.engine.embeddings.resync import ResyncReport
    from ragstone.engine.embeddings.triggers import RefreshStatus
    from ragstone.ingest.backfill import OnFill


@record_caller
class KbEmbeddings(WorkspacePart):
    """The Spaces of a kb, which is that of the settings unless another one is named."""

    async def reembed(
        self,
        model: str | None = None,
        *,
        mode: ReembedMode | None = None,
        queries: str | Path | None = None,
        force: bool = False,
        grace_days: int = GRACE_DAYS,
        on_progress: OnFill | None = None,
        kb: str | None = None,
    ) -> ReembedReport:
        """Move a kb to another model while it is searched and written to; the same again goes on where it stopped.

        `queries` is a file of labelled queries to compare by; without it they are made of the kb's own text.
        `force` promotes also what finds worse.
        """
        tenant = await self._scope.write()
        async with self._components.access.paying(tenant):
            return await self._components.reembedder.run(
                tenant,
                self._scope.kb_name(kb),
                model,
                mode=mode,
                queries=queries,
                force=force,
                grace_days=grace_days,
                on_progress=on_progress,
            )

    async def queue(self, model: str | None = None, *, kb: str | None = None) -> Job:
        """Queue a job that makes all vectors of a kb again, by another model or by the same."""
        tenant = await self._scope.write()
        return await self._components.triggers.request(tenant, self._scope.kb_name(kb), model, self._scope.actor)

    async def resync(self, *, on_progress: OnFill | None = None, kb: str | None = None) -> ResyncReport:
        """Remove all vectors of a kb, make them again with the model of the settings, and read its sources again.

        Documents are found by word only until their vectors are there again; the same again goes on where it stopped.
        """
        from ragstone.engine.embeddings.resync import resync

        tenant, components = await self._scope.write(), self._components
        async with components.access.paying(tenant):
            return await resync(
                *(components.ledger, components.stores.spaces, components.embedders, components.maintenance.reread),
                *(tenant, self._scope.kb_name(kb), on_progress),
            )

    async def refresh(self, *, on_progress: OnFill | None = None, kb: str | None = None) -> RefreshReport:
        """Fill in vectors that are missing, compare some with fresh ones, and remake all if one differs."""
        tenant = await self._scope.write()
        sample = self._scope.settings.embedding.refresh.sample
        async with self._components.access.paying(tenant):
            return await self._components.refresher.run(
                tenant, self._scope.kb_name(kb), sample=sample, on_progress=on_progress
            )

    async def status(self, *, kb: str | None = None) -> RefreshStatus:
        """Return when a kb was last refreshed by a worker, how that ended, and when it is due."""
        return await self._components.triggers.status(await self._scope.admit(), self._scope.kb_name(kb))

    async def rollback(
        self, *, grace_days: int = GRACE_DAYS, on_progress: OnFill | None = None, kb: str | None = None
    ) -> ReembedReport:
        """Move a kb back to the Space that was live before, with all that came in since."""
        tenant = await self._scope.write()
        async with self._components.access.paying(tenant):
            return await self._components.reembedder.rollback(
                tenant, self._scope.kb_name(kb), grace_days=grace_days, on_progress=on_progress
            )

    async def spaces(self, *, kb: str | None = None) -> list[SpaceRecord]:
        """Return the Spaces of a kb, oldest generation first."""
        return await self._components.reembedder.spaces(await self._scope.admit(), self._scope.kb_name(kb))

    async def clean(self, *, retired: bool = False, building: bool = False, kb: str | None = None) -> int:
        """Remove Spaces whose grace period is over, or all retired ones, or those being built; return how many."""
        tenant, name = await self._scope.admit(), self._scope.kb_name(kb)
        return await self._components.reembedder.clean(tenant, name, retired=retired, building=building)
