"""The embedded ledger: one SQLite file per tenant, a small control file that knows their names."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from ragstone.core.audit import caller
from ragstone.core.background import run_apart
from ragstone.core.clock import now
from ragstone.core.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from ragstone.core.ids import check_name
from ragstone.stores.activity.old_files import OldFiles
from ragstone.stores.activity.removal import Removed, clean_up_log, forget_logged
from ragstone.stores.blobs import Blobs
from ragstone.stores.control import tenant_rows
from ragstone.stores.indexes import TransactionalIndex
from ragstone.stores.ledger.ledger import P, S, SqlLedger, T, Work, erasing
from ragstone.stores.ledger.repository import UnknownTenant
from ragstone.stores.ledger.sqlite.file import (
    BUSY_SECONDS,
    RECOVER,
    TASKS,
    SqliteFile,
    count_files,
    remove_folder,
    translate_errors,
)
from ragstone.stores.ledger.sqlite.tenant_file import SqliteUnit, TenantFile, scrub
from ragstone.stores.sql.database import Connection
from ragstone.stores.vault import Vault

logger = logging.getLogger(__name__)
PARTS = ("tenants", "documents", TASKS)
"""Folders that have one for each tenant."""
CLOSING_SECONDS = 60
"""A read or a write hangs in a file that takes longer to close."""


class SqliteLedger(SqlLedger):
    """A ledger on files under one folder. Any number of processes may share it."""

    def __init__(
        self,
        folder: Path,
        indexes: Sequence[TransactionalIndex] = (),
        open_tenants: int = 64,
        vault: Vault | None = None,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._folder = folder
        self._vault = vault or Vault()
        self._old_files = OldFiles(folder)
        self._indexes = indexes
        self._limit = open_tenants
        self._clock = clock
        self._control: SqliteFile | None = None
        self._tenants: OrderedDict[str, TenantFile] = OrderedDict()
        self._opening = asyncio.Lock()
        self._opening_control = asyncio.Lock()
        self._leaving: list[TenantFile] = []
        """Files that nobody is given any more, and that somebody still uses."""
        self._closing: dict[asyncio.Task[None], TenantFile] = {}
        self._retired: list[SqliteFile] = []
        """Control files that were open for reading only, until there was space again."""

    @asynccontextmanager
    async def file(self, tenant: str, *, make: bool = False) -> AsyncIterator[TenantFile]:
        """Yield the tenant's file; it stays open at least while the block runs. Only a writer may make a new one."""
        opened = self.at_hand(tenant)
        if opened is None:
            async with self._opening:
                opened = self.at_hand(tenant) or await self._open(tenant, make)
                self._tenants[tenant] = opened
                self._close_idle(keep=tenant)
        opened.users += 1
        opened.idle.clear()
        try:
            yield opened
        except StoreError:
            await self._check_stays(tenant, opened.tenant_id)
            raise
        finally:
            opened.users -= 1
            if not opened.users:
                opened.idle.set()
                self._close_left()

    def at_hand(self, tenant: str) -> TenantFile | None:
        """Return the open file of a tenant, if its name still leads there: names change hands, and tenants go.

        It may be closed as soon as the caller awaits something: then use `file`.
        """
        opened, control = self._tenants.get(tenant), self._control
        if opened is None or control is None:
            return None
        if opened.is_stale or control.is_stale:
            self._leave(tenant)
            return None
        version = control.version()
        if opened.checked == version:
            self._tenants.move_to_end(tenant)
            return opened
        leads = control.glance(
            "SELECT id FROM tenants WHERE name = ? AND (state <> 'deleting' OR id = ?)", (tenant, erasing.get())
        )
        if leads != (opened.tenant_id,):
            self._leave(tenant)
            return None
        opened.checked = -1 if erasing.get() else version
        self._tenants.move_to_end(tenant)
        return opened

    def _leave(self, tenant: str) -> None:
        """Give a tenant's file to nobody any more, and close it once nobody uses it."""
        self._leaving.append(self._tenants.pop(tenant))
        self._close_left()

    def _try_writing_control_again(self) -> None:
        """Have the control file opened again if it is open for reading only: there may be space by now."""
        if self._control and self._control.is_read_only:
            self._retire_control()

    def _try_writing_again(self, tenant: str) -> None:
        """Do the same for the file of a tenant as well."""
        self._try_writing_control_again()
        if tenant in self._tenants and self._tenants[tenant].is_read_only:
            self._leave(tenant)

    def _retire_control(self) -> None:
        """Open the control file again when it is needed next; who still reads the old one may go on."""
        if self._control:
            self._retired.append(self._control)
        self._control = None

    @asynccontextmanager
    async def unit(self, tenant: str) -> AsyncIterator[SqliteUnit]:
        self._try_writing_again(tenant)
        async with self.file(tenant, make=True) as file, file.turn:
            yield SqliteUnit(file, self._indexes)

    async def read(self, tenant: str, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self.file(tenant) as file:
            return await file.look_up(lambda connection: work(connection, file.tenant_id, *args, **kwargs))

    async def write(self, tenant: str, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._try_writing_again(tenant)
        async with self.file(tenant) as file:
            return await file.transact(lambda connection: work(connection, file.tenant_id, *args, **kwargs))

    async def read_log(self, tenant: str, work: Work[[], T], otherwise: T) -> T:
        async with self.file(tenant) as file:
            return await file.log.read(lambda connection: work(connection, file.tenant_id), otherwise)

    async def write_log(self, tenant: str, work: Work[[], T]) -> T:
        async with self.file(tenant) as file:
            return await file.log.write(lambda connection: work(connection, file.tenant_id))

    async def forget_logged(self, tenant: str, removed: Removed) -> None:
        async with self.file(tenant) as file:
            await file.log.write_if_there(lambda connection: forget_logged(connection, file.tenant_id, removed))

    async def clean_up_log(self, tenant: str) -> None:
        async with self.file(tenant) as file:
            await file.log.write_if_there(lambda connection: clean_up_log(connection, file.tenant_id))

    async def blobs(self, tenant: str, *, make: bool = False) -> Blobs:
        async with self.file(tenant, make=make) as file:
            return file.blobs

    async def work_signals(self) -> Mapping[str, int]:
        control = await self.control()
        if control is None:
            return {}
        known = "SELECT name, bell FROM tenants WHERE state = 'active' ORDER BY name"
        return await control.read(lambda db: dict(db.execute(known)))

    async def signal_work(self, tenant: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute("UPDATE tenants SET bell = bell + 1 WHERE name = ?", (tenant,))

        control = await self.control()
        if control is not None:
            async with control.turn:
                await control.write(work)

    async def close(self) -> None:
        async with self._opening:
            for file in (*self._tenants.values(), *self._leaving):
                self._close(file)
            self._tenants.clear()
            self._leaving.clear()
            await asyncio.gather(*self._closing)
            self._retire_control()
            for control in self._retired:
                await asyncio.to_thread(control.close)
            self._retired.clear()

    async def control(self, make: bool = False) -> SqliteFile | None:
        """Return the file that knows the tenants; None while there is none."""
        path = self._folder / "control.db"
        async with self._opening_control:
            if self._control and self._control.is_stale:
                self._retire_control()
            if self._control is None:
                with translate_errors(path):
                    try:
                        path.stat()
                    except FileNotFoundError:
                        if not make:
                            return None
                self._control = await asyncio.to_thread(SqliteFile, path, "control")
        return self._control

    async def control_read(self, work: Callable[[Connection], T], otherwise: T) -> T:
        control = await self.control()
        return otherwise if control is None else await control.read(work)

    async def control_write(self, work: Callable[[Connection], T]) -> T:
        self._try_writing_control_again()
        control = await self.control(make=True)
        assert control is not None
        return await control.transact(work)

    async def admit(self, tenant: str, measure: Work[[], S], decide: Callable[[Connection, S], T]) -> T:
        def decide_here(control: Connection) -> T:
            return decide(control, file.read_here(lambda connection: measure(connection, file.tenant_id)))

        async with self.file(tenant) as file:
            return await self.control_write(decide_here)

    async def forget(self, tenant: str, tenant_id: str) -> None:
        self.at_hand(tenant)  # drops a file whose tenant is gone
        for file in [file for file in self._leaving if file.tenant_id == tenant_id]:
            try:
                async with asyncio.timeout(BUSY_SECONDS):
                    await file.idle.wait()
            except TimeoutError:
                raise _still_at_work(tenant) from None
        await self._wait_until_closed(tenant, tenant_id)
        await self._old_files.remove(tenant_id)
        for part in PARTS:
            await asyncio.to_thread(_remove, self._folder / part / check_name(tenant_id, "tenant id"))

    async def remains(self, tenant_id: str) -> Mapping[str, int]:
        folders = [self._folder / part / check_name(tenant_id, "tenant id") for part in PARTS]
        return {"files": await asyncio.to_thread(lambda: sum(map(count_files, folders)))}

    async def scrub(self, tenant: str, kb_ids: Sequence[int]) -> bool:
        async with self.file(tenant) as file:
            await scrub(file, kb_ids)
        return True

    async def _open(self, tenant: str, make: bool) -> TenantFile:
        check_name(tenant, "tenant")
        control = await self.control(make)
        if control is None:
            raise UnknownTenant(tenant)
        known = await control.read(lambda db: tenant_rows.read_tenant(db, tenant))
        if known and known.state == "deleting" and known.id != erasing.get():
            raise tenant_rows.leaving(tenant)
        if known is None and not make:
            raise UnknownTenant(tenant)
        tenant_id = known.id if known else await self._register(control, tenant)
        made = await control.read(lambda db: tenant_rows.has_ledger(db, tenant_id))
        if made and tenant_id != erasing.get():
            await asyncio.to_thread(_require_ledger, self._folder / "tenants" / tenant_id / "ledger.db", tenant)
        try:
            opened = await asyncio.to_thread(self._open_file, tenant_id)
            if not made:
                await self._mark_ledger(control, tenant_id)
        except StoreError:
            await self._check_stays(tenant, tenant_id)
            raise
        try:
            await self._check_stays(tenant, tenant_id)
            await self._old_files.take_over(
                tenant_id,
                lambda rows: opened.transact(lambda connection: rows(connection, tenant_id)),
                lambda rows: opened.log.write(lambda connection: rows(connection, tenant_id)),
            )
        except BaseException:
            self._close(opened)
            raise
        return opened

    async def _mark_ledger(self, control: SqliteFile, tenant_id: str) -> None:
        """Note that a tenant's file was made; where nothing can be written, the next opening does."""
        try:
            await control.transact(lambda db: tenant_rows.mark_ledger(db, tenant_id))
        except (StoreFull, StoreReadOnly) as error:
            logger.warning("cannot note that a tenant has a ledger: %s", error)

    def _open_file(self, tenant_id: str) -> TenantFile:
        try:
            return TenantFile(self._folder, tenant_id, self._vault)
        except StoreCorrupt:
            if tenant_id != erasing.get():
                raise
            # What cannot be read must not keep its tenant from being deleted.
            remove_folder(self._folder / "tenants" / tenant_id)
            return TenantFile(self._folder, tenant_id, self._vault)

    async def _check_stays(self, tenant: str, tenant_id: str) -> None:
        """`TenantGone` when somebody has deleted the tenant, and its file, while that was opened or used."""
        state = "SELECT state FROM tenants WHERE id = ?"
        found = await self.control_read(lambda db: db.execute(state, (tenant_id,)).fetchone(), None)
        if found is None:
            # Opening may have made the file again after its deletion had looked for the last time.
            await asyncio.to_thread(_remove, self._folder / "tenants" / tenant_id)
            raise UnknownTenant(tenant)
        if found[0] == "deleting" and tenant_id != erasing.get():
            raise tenant_rows.leaving(tenant)

    async def _register(self, control: SqliteFile, tenant: str) -> str:
        who = caller()
        return await control.transact(lambda db: tenant_rows.register(db, tenant, self._clock(), who))

    def _close_idle(self, keep: str) -> None:
        idle = [name for name, file in self._tenants.items() if name != keep and not file.users]
        for name in idle[: max(0, len(self._tenants) - self._limit)]:
            self._close(self._tenants.pop(name))

    def _close_left(self) -> None:
        for file in [file for file in self._leaving if not file.users]:
            self._leaving.remove(file)
            self._close(file)

    def _close(self, file: TenantFile) -> None:
        """Begin to close a file: what was cancelled may still run there, and the loop must not wait for that."""
        closing = asyncio.create_task(run_apart(file.close))
        self._closing[closing] = file
        closing.add_done_callback(self._closing.pop)

    async def _wait_until_closed(self, tenant: str, tenant_id: str) -> None:
        """Wait until no thread reads or writes any more in the files of a tenant that nobody is given."""
        closing = [task for task, file in self._closing.items() if file.tenant_id == tenant_id]
        if closing and (await asyncio.wait(closing, timeout=CLOSING_SECONDS))[1]:
            raise _still_at_work(tenant)


def _still_at_work(tenant: str) -> StoreBusy:
    return StoreBusy(f"something still works for tenant '{tenant}'", hint="end it, then delete the tenant again")


def _require_ledger(path: Path, tenant: str) -> None:
    """Raise `StoreCorrupt` when a file that was made is missing or empty: opening it would make a new one."""
    if not path.exists() or path.stat().st_size == 0:
        raise StoreCorrupt(
            f"the documents of tenant '{tenant}' are lost: {path} is {'empty' if path.exists() else 'missing'}",
            hint=RECOVER,
        )


def _remove(folder: Path) -> None:
    with translate_errors(folder):
        # Without it, what is left is not taken for a database after a crash.
        (folder / "ledger.db").unlink(missing_ok=True)
    remove_folder(folder)
