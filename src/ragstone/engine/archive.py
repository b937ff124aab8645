"""Archives: everything of a tenant in one file, and out of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragstone.engine.access import WorkspacePart, record_caller

if TYPE_CHECKING:
    from ragstone.transfer.reports import ExportReport, ImportReport, OnMove


@record_caller
class Archive(WorkspacePart):
    """Writes the kbs of a tenant into an archive, and takes them in from one."""

    async def export(
        self,
        path: str | Path,
        *,
        kbs: Sequence[str] | None = None,
        files: bool = True,
        overwrite: bool = False,
        on_progress: OnMove | None = None,
    ) -> ExportReport:
        """Write all kbs, or some, into one archive. It is not encrypted."""
        from ragstone.engine.components import secret_keys
        from ragstone.transfer.archive.write import export_archive

        tenant, components = await self._scope.admit(), self._scope.components
        await components.audit.record_change(tenant, "tenant.export", outcome="begun")
        report = await export_archive(
            components.stores,
            tenant,
            Path(path),
            kbs=kbs,
            files=files,
            overwrite=overwrite,
            secret_keys=secret_keys,
            on_progress=on_progress,
        )
        await components.audit.record_change(tenant, "tenant.export", count=report.documents)
        return report

    async def restore(
        self,
        path: str | Path,
        *,
        kbs: Sequence[str] | None = None,
        overwrite: bool = False,
        on_progress: OnMove | None = None,
    ) -> ImportReport:
        """Import the documents of an archive, all of it checked first; what is there already stays."""
        from ragstone.engine.components import secret_keys
        from ragstone.transfer.archive.read import import_archive

        tenant, components = await self._scope.write(), self._scope.components
        report = await import_archive(
            components.stores,
            tenant,
            Path(path),
            kbs=kbs,
            overwrite=overwrite,
            admission=components.access,
            secret_keys=secret_keys,
            remote=self._scope.is_remote,
            on_progress=on_progress,
        )
        await components.audit.record_change(tenant, "tenant.import", count=report.added)
        return report
