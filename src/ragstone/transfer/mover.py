"""All moves, over the stores of one engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ragstone.gate import Gate
from ragstone.settings.tree import Adapter, Settings
from ragstone.stores.factory import Stores
from ragstone.stores.ledger.source_book import SecretKeys
from ragstone.transfer.archive.read import import_archive
from ragstone.transfer.archive.write import export_archive
from ragstone.transfer.migrate.migrate import migrate
from ragstone.transfer.reports import ExportReport, ImportReport, MoveReport, OnMove


class Mover:
    """Takes data out, brings it in, and moves it to other stores. `tenant` defaults to that of the settings."""

    def __init__(self, stores: Stores, settings: Settings, gate: Gate, secret_keys: SecretKeys) -> None:
        self._stores = stores
        self._settings = settings
        self._gate = gate
        self._secret_keys = secret_keys

    async def export_archive(
        self,
        path: str | Path,
        *,
        kbs: Sequence[str] | None = None,
        files: bool = True,
        overwrite: bool = False,
        tenant: str | None = None,
        on_progress: OnMove | None = None,
    ) -> ExportReport:
        """Write all kbs of a tenant, or some, into one archive. It is not encrypted."""
        owner = self._settings.tenant if tenant is None else tenant
        await self._gate.read(owner)
        await self._gate.audit.changed(owner, "tenant.export", outcome="begun")
        report = await export_archive(
            self._stores,
            owner,
            Path(path),
            kbs=kbs,
            files=files,
            overwrite=overwrite,
            secret_keys=self._secret_keys,
            on_progress=on_progress,
        )
        await self._gate.audit.changed(owner, "tenant.export", count=report.documents)
        return report

    async def import_archive(
        self,
        path: str | Path,
        *,
        kbs: Sequence[str] | None = None,
        overwrite: bool = False,
        tenant: str | None = None,
        on_progress: OnMove | None = None,
    ) -> ImportReport:
        """Take in the documents of an archive, all of it checked first; what is there already stays."""
        owner = self._settings.tenant if tenant is None else tenant
        await self._gate.write(owner)
        report = await import_archive(
            self._stores,
            owner,
            Path(path),
            kbs=kbs,
            overwrite=overwrite,
            admission=self._gate,
            secret_keys=self._secret_keys,
            on_progress=on_progress,
        )
        await self._gate.audit.changed(owner, "tenant.import", count=report.added)
        return report

    async def migrate(
        self, to: Adapter, *, tenants: Sequence[str] | None = None, on_progress: OnMove | None = None
    ) -> MoveReport:
        """Build another vector index or another ledger from what is here, and compare every chunk of it."""
        return await migrate(
            self._stores,
            self._settings,
            to,
            tenants=tenants,
            secret_keys=self._secret_keys,
            tell=on_progress or (lambda _what, _done, _total: None),
        )
