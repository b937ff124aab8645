"""The ledger for many tenants and machines: one PostgreSQL database for all rows, original files beside it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from weakref import WeakValueDictionary

from ragstone.core.audit import caller
from ragstone.core.clock import now
from ragstone.core.errors import SettingsError
from ragstone.core.ids import check_name
from ragstone.stores.activity.old_files import OldFiles, Rows
from ragstone.stores.activity.removal import Removed
from ragstone.stores.blobs import Blobs
from ragstone.stores.indexes import TransactionalIndex
from ragstone.stores.ledger.ledger import P, S, SqlLedger, T, Work, erasing
from ragstone.stores.ledger.repository import UnknownTenant
from ragstone.stores.ledger.sqlite.file import TASKS, count_files, remove_folder
from ragstone.stores.sql.database import Connection
from ragstone.stores.vault import Vault

try:
    from ragstone.stores.ledger.postgres.errors import describe_database, translate_errors
    from ragstone.stores.ledger.postgres.pool import ConnectionPool
    from ragstone.stores.ledger.postgres.session import Session
    from ragstone.stores.ledger.postgres.unit import PostgresUnit, forget_tenant, left_of_tenant, register
    from ragstone.stores.migrations.postgres import ensure
except ModuleNotFoundError as missing:
    raise SettingsError("PostgreSQL's client is not installed", hint="pip install 'ragstone[postgres]'") from missing

PARTS = ("documents", TASKS)
"""Folders that have one for each tenant."""


class PostgresLedger(SqlLedger):
    """A ledger in one database. Any number of processes on any number of machines may share it.

    At most one of them writes for a tenant at a time, which is what makes the change feed follow the commits.
    """

    def __init__(
        self,
        dsn: str,
        folder: Path,
        indexes: Sequence[TransactionalIndex] = (),
        pool_size: int = 8,
        vault: Vault | None = None,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._dsn = dsn
        self._place = describe_database(dsn)
        self._folder = folder
        self._indexes = indexes
        self._vault = vault or Vault()
        self._clock = clock
        # Apart, since who writes may read meanwhile: from one pool, all could hold one and wait for another.
        writers = max(1, pool_size // 2)
        self._writers = ConnectionPool(dsn, writers, self._prepare)
        self._readers = ConnectionPool(dsn, max(1, pool_size - writers), self._prepare)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._old_files = OldFiles(folder)
        self._taken_over: set[str] = set()
        self._taking_over = asyncio.Lock()
        self._preparing = threading.Lock()
        self._prepared = False

    @asynccontextmanager
    async def unit(self, tenant: str) -> AsyncIterator[PostgresUnit]:
        await self._take_over(tenant)
        async with self._turn(tenant), self._writers.borrow() as thread:
            yield PostgresUnit(thread, tenant, self._indexes, self._files, self._clock, erasing.get())

    async def read(self, tenant: str, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        await self._take_over(check_name(tenant, "tenant"))
        erased = erasing.get()
        return await self._read(
            lambda session: session.read(tenant, erased),
            lambda session, tenant_id: work(session.rows, tenant_id, *args, **kwargs),
        )

    async def write(self, tenant: str, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        await self._take_over(tenant)
        erased = erasing.get()
        async with self._turn(tenant):
            return await self._write(
                lambda session: session.write(tenant, erased),
                lambda session, tenant_id: work(session.rows, tenant_id, *args, **kwargs),
            )

    async def read_log(self, tenant: str, work: Work[[], T], otherwise: T) -> T:
        return await self.read(tenant, work)

    async def write_log(self, tenant: str, work: Work[[], T]) -> T:
        await self._take_over(tenant)
        async with self._turn(tenant):
            return await self._write(
                lambda session: session.write_log(tenant), lambda session, tenant_id: work(session.rows, tenant_id)
            )

    async def forget_logged(self, tenant: str, removed: Removed) -> None:
        """Do nothing: foreign keys do it in the transaction that removes the documents."""

    async def clean_up_log(self, tenant: str) -> None:
        """Do nothing, for the same reason."""

    async def blobs(self, tenant: str, *, make: bool = False) -> Blobs:
        try:
            return self._files(await self.read(tenant, lambda _, tenant_id: tenant_id))
        except UnknownTenant:
            if not make:
                raise
        async with self._writers.borrow() as thread:
            who = caller()
            return self._files(await thread.run(lambda thread: register(thread, tenant, self._clock(), who)))

    async def work_signals(self) -> Mapping[str, int]:
        known = "SELECT name, bell FROM tenants WHERE state = 'active' ORDER BY name"
        return await self.control_read(lambda rows: dict(rows.execute(known).fetchall()), {})

    async def signal_work(self, tenant: str) -> None:
        louder = "UPDATE tenants SET bell = bell + 1 WHERE name = ?"
        await self._write(Session.touch_control, lambda session, _: session.rows.execute(louder, (tenant,)))

    async def control_read(self, work: Callable[[Connection], T], otherwise: T) -> T:
        return await self._read(Session.read_control, lambda session, _: work(session.rows))

    async def control_write(self, work: Callable[[Connection], T]) -> T:
        return await self._control(lambda session: work(session.rows))

    async def admit(self, tenant: str, measure: Work[[], S], decide: Callable[[Connection, S], T]) -> T:
        check_name(tenant, "tenant")
        return await self._control(lambda session: decide(session.rows, measure(session.rows, session.see(tenant))))

    async def forget(self, tenant: str, tenant_id: str) -> None:
        folders = self._folders(tenant_id)
        await self._control(lambda session: forget_tenant(session.rows, tenant_id))
        await self._old_files.remove(tenant_id)
        for folder in folders:
            await asyncio.to_thread(remove_folder, folder)

    async def outside(self, tenant: str, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what cannot be part of a transaction, such as building an index while others write."""
        check_name(tenant, "tenant")
        async with self._writers.borrow() as thread:
            return await thread.run(
                lambda thread: thread.outside(
                    tenant, lambda session, tenant_id: work(session.rows, tenant_id, *args, **kwargs)
                )
            )

    async def remains(self, tenant_id: str) -> Mapping[str, int]:
        rows = await self._read(Session.read_control, lambda session, _: left_of_tenant(session.rows, tenant_id))
        folders = self._folders(tenant_id)
        return {**rows, "files": await asyncio.to_thread(lambda: sum(map(count_files, folders)))}

    async def close(self) -> None:
        await self._writers.close()
        await self._readers.close()

    async def _take_over(self, tenant: str) -> None:
        """Move what files of earlier versions on this machine have of a tenant into the database, once."""
        if tenant in self._taken_over or erasing.get() or self._old_files.is_empty:
            return
        async with self._taking_over:
            state = "SELECT id FROM tenants WHERE name = ? AND state <> 'deleting'"
            found = await self.control_read(lambda rows: rows.execute(state, (tenant,)).fetchone(), None)
            if found is None or tenant in self._taken_over:
                return

            async def write(rows: Rows) -> None:
                async with self._turn(tenant):
                    await self._write(
                        lambda session: session.write(tenant), lambda session, tenant_id: rows(session.rows, tenant_id)
                    )

            await self._old_files.take_over(found[0], write)
            self._taken_over.add(tenant)

    async def _read(self, how: Callable[[Session], S], work: Callable[[Session, S], T]) -> T:
        async with self._readers.borrow() as thread:
            try:
                return await thread.run(lambda thread: thread.transact(how, work))
            except asyncio.CancelledError:
                thread.abandon()
                raise

    async def _write(self, how: Callable[[Session], S], work: Callable[[Session, S], T]) -> T:
        async with self._writers.borrow() as thread:
            return await thread.run(lambda thread: thread.transact(how, work))

    async def _control(self, work: Callable[[Session], T]) -> T:
        async with self._writers.borrow() as thread:
            return await thread.run(
                lambda thread: thread.transact_patiently(Session.write_control, lambda session, _: work(session))
            )

    def _turn(self, tenant: str) -> asyncio.Lock:
        """Held while this process writes for a tenant, so that other writers wait without a connection."""
        return self._turns.setdefault(check_name(tenant, "tenant"), asyncio.Lock())

    def _folders(self, tenant_id: str) -> list[Path]:
        return [self._folder / part / check_name(tenant_id, "tenant id") for part in PARTS]

    def _files(self, tenant_id: str) -> Blobs:
        return Blobs(self._folder / "documents" / tenant_id, self._vault, tenant_id)

    def _prepare(self) -> None:
        with self._preparing, translate_errors(self._place):
            if not self._prepared:
                ensure(self._dsn)
                self._prepared = True
