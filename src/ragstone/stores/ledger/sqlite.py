"""The embedded ledger: one SQLite file per tenant, a small control file that knows their names."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ragstone.core.clock import canonical, now
from ragstone.core.ids import check_name, opaque_id
from ragstone.stores.blobs import Blobs
from ragstone.stores.colocated import ColocatedIndex
from ragstone.stores.ledger.ledger import P, SqlLedger, T, UnknownTenant, Work
from ragstone.stores.ledger.sqlite_dialect import SqliteConnection
from ragstone.stores.ledger.sqlite_file import SqliteFile
from ragstone.stores.ledger.sqlite_unit import SqliteUnit, TenantFile


class SqliteLedger(SqlLedger):
    """A ledger on files under one folder. Any number of processes may share it."""

    def __init__(self, folder: Path, indexes: Sequence[ColocatedIndex] = (), open_tenants: int = 64) -> None:
        self._folder = folder
        self._indexes = indexes
        self._limit = open_tenants
        self._control: SqliteFile | None = None
        self._tenants: OrderedDict[str, TenantFile] = OrderedDict()
        self._opening = asyncio.Lock()
        self._opening_control = asyncio.Lock()
        self._busy: dict[str, int] = {}

    @asynccontextmanager
    async def file(self, tenant: str, *, make: bool = False) -> AsyncIterator[TenantFile]:
        """The tenant's file; it stays open at least while the block runs. Only a writer may make a new one."""
        opened = self._tenants.get(tenant)
        if opened is None:
            async with self._opening:
                opened = self._tenants.get(tenant) or await self._open(tenant, make)
                self._tenants[tenant] = opened
                self._busy[tenant] = self._busy.get(tenant, 0)
                self._close_idle(keep=tenant)
        self._tenants.move_to_end(tenant)
        self._busy[tenant] += 1
        try:
            yield opened
        finally:
            self._busy[tenant] -= 1

    @asynccontextmanager
    async def unit(self, tenant: str) -> AsyncIterator[SqliteUnit]:
        async with self.file(tenant, make=True) as file, file.turn:
            yield SqliteUnit(file, self._indexes)

    async def read(self, tenant: str, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self.file(tenant) as file:
            return await file.read(lambda connection: work(connection, file.tenant_id, *args, **kwargs))

    async def write(self, tenant: str, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def whole(db: SqliteConnection) -> T:
            db.execute("BEGIN IMMEDIATE")
            try:
                result = work(db, file.tenant_id, *args, **kwargs)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            return result

        async with self.file(tenant) as file, file.turn:
            return await asyncio.shield(file.write(whole))

    async def blobs(self, tenant: str, *, make: bool = False) -> Blobs:
        async with self.file(tenant, make=make) as file:
            return file.blobs

    async def bells(self) -> Mapping[str, int]:
        control = await self.control()
        if control is None:
            return {}
        return await control.read(lambda db: dict(db.execute("SELECT name, bell FROM tenants ORDER BY name")))

    async def ring(self, tenant: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute("UPDATE tenants SET bell = bell + 1 WHERE name = ?", (tenant,))

        control = await self.control()
        if control is not None:
            async with control.turn:
                await control.write(work)

    async def close(self) -> None:
        async with self._opening:
            for file in self._tenants.values():
                await asyncio.to_thread(file.close)
            self._tenants.clear()
            if self._control:
                await asyncio.to_thread(self._control.close)
                self._control = None

    async def control(self, make: bool = False) -> SqliteFile | None:
        """The file that knows the tenants; None while there is none."""
        path = self._folder / "control.db"
        async with self._opening_control:
            if self._control is None:
                if not make and not path.exists():
                    return None
                self._control = await asyncio.to_thread(SqliteFile, path, "control")
        return self._control

    async def _open(self, tenant: str, make: bool) -> TenantFile:
        check_name(tenant, "tenant")
        control = await self.control(make)
        if control is None:
            raise UnknownTenant(tenant)

        def known(db: sqlite3.Connection) -> str | None:
            row = db.execute("SELECT id FROM tenants WHERE name = ?", (tenant,)).fetchone()
            return row[0] if row else None

        def register(db: sqlite3.Connection) -> str:
            db.execute(
                "INSERT INTO tenants (name, id, created_at) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING",
                (tenant, opaque_id(), canonical(now())),
            )
            return str(known(db))

        tenant_id = await control.read(known)
        if tenant_id is None:
            if not make:
                raise UnknownTenant(tenant)
            async with control.turn:
                tenant_id = await control.write(register)
        return await asyncio.to_thread(TenantFile, self._folder, tenant_id)

    def _close_idle(self, keep: str) -> None:
        idle = [name for name in self._tenants if name != keep and not self._busy[name]]
        for name in idle[: max(0, len(self._tenants) - self._limit)]:
            del self._busy[name]
            self._tenants.pop(name).close()
