"""A tenant's SQLite file, the retrieval log beside it, units of work on it, and scrubbing of deleted rows."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from ragstone.core.errors import StoreBusy, StoreCorrupt, StoreError
from ragstone.stores.blobs import Blobs
from ragstone.stores.indexes import TransactionalIndex
from ragstone.stores.ledger.sqlite.file import SqliteConnection, SqliteFile, translate_errors, write_ahead
from ragstone.stores.ledger.sqlite.read_only import is_refused, read_only_address
from ragstone.stores.migrations import create, is_current, upgrade
from ragstone.stores.sql.database import Connection
from ragstone.stores.vault import Vault

T = TypeVar("T")


class TenantFile(SqliteFile):
    """A tenant's file together with the opaque id that its rows carry, and its original files."""

    def __init__(self, folder: Path, tenant_id: str, vault: Vault) -> None:
        super().__init__(folder / "tenants" / tenant_id / "ledger.db", "tenant")
        self.tenant_id = tenant_id
        self.checked = -1
        """The control file's version when the tenant's name was last seen to lead here."""
        self.users = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self.log = LogFile(self.path)
        self.blobs = Blobs(folder / "documents" / tenant_id, vault, tenant_id)


class SqliteUnit:
    """Implements `UnitOfWork` for the caller that holds the file's turn. The write lock is taken by the first write."""

    def __init__(self, file: TenantFile, indexes: Sequence[TransactionalIndex]) -> None:
        self._file = file
        self._asked = False
        self._begun = False
        self.tenant_id = file.tenant_id
        self.blobs = file.blobs
        self.indexes = indexes

    async def run(self, work: Callable[[Connection], T]) -> T:
        def begin_and_work(connection: SqliteConnection) -> T:
            if not self._begun:
                connection.execute("BEGIN IMMEDIATE")
                self._begun = True
            elif not connection.in_transaction:
                raise StoreError("the transaction was undone by an earlier failure", hint="begin another")
            return work(connection)

        self._asked = True
        return await asyncio.shield(self._file.write(begin_and_work))

    async def end(self, *, commit: bool) -> None:
        if self._asked:
            # A cancelled caller must not leave the connection inside a transaction: what it asked for last may
            # still wait for the writer's thread, so this waits its turn there, shielded.
            await asyncio.shield(self._file.write(_commit if commit else _rollback))


def _commit(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.Error:
        _rollback(connection)
        raise


def _rollback(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


BUSY_SECONDS = 2
"""A log is worth no longer wait."""


class LogFile:
    """The retrieval log of the tenant whose ledger lies in the same folder, which has to be open.

    It is a file of its own, whose last second a crash may cost, opened for each piece of work and closed again: nothing
    is in the way when a tenant goes, and any number of processes take turns. The ledger is attached for reading, so
    that statements name kbs and documents as elsewhere.
    """

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._path = ledger.with_name("retrieval_log.db")

    async def read(self, work: Callable[[Connection], T], otherwise: T) -> T:
        """Read in one snapshot, without waiting for writers; return `otherwise` when there is no log yet."""
        if not self._path.exists():
            return otherwise
        return await asyncio.to_thread(self._run, work, "BEGIN")

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run as a transaction, in a file that is made if there is none."""
        return await asyncio.to_thread(self._run, work, "BEGIN IMMEDIATE")

    async def write_if_there(self, work: Callable[[Connection], None]) -> None:
        """Run as a transaction unless there is no log."""
        if self._path.exists():
            await self.write(work)

    def _run(self, work: Callable[[Connection], T], begin: str) -> T:
        reads = begin == "BEGIN"
        with self._explain_errors(), translate_errors(self._path), closing(self._connect(reads)) as connection:
            connection.execute(begin)
            try:
                result = work(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            return result

    def _connect(self, reads: bool) -> SqliteConnection:
        try:
            return self._connect_writable()
        except (sqlite3.Error, OSError) as error:
            if not reads or not is_refused(error):
                raise
        connection = self._open(read_only_address(self._path))
        try:
            connection.execute("ATTACH ? AS ledger", (read_only_address(self._ledger),))
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_writable(self) -> SqliteConnection:
        if not self._path.exists():
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))  # never readable by others
        connection = self._open()
        try:
            if not is_current(connection, "log"):
                write_ahead(connection)
                if not create(connection, "log"):
                    upgrade(self._path, "log")
                    connection.close()
                    connection = self._open()  # it would take tables it has not seen for those of the ledger
            # Read-only, or BEGIN IMMEDIATE would wait for a writer of the ledger.
            connection.execute("ATTACH ? AS ledger", (f"{self._ledger.resolve().as_uri()}?mode=ro",))
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self, address: str | None = None) -> SqliteConnection:
        connection = sqlite3.connect(
            address or self._path, timeout=BUSY_SECONDS, isolation_level=None, uri=True, factory=SqliteConnection
        )
        for setting in ("synchronous = NORMAL", "foreign_keys = ON", "trusted_schema = OFF", "secure_delete = ON"):
            connection.execute(f"PRAGMA {setting}")
        return connection

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Say how long was waited here, and that no document is lost with this file."""
        try:
            yield
        except StoreBusy as error:
            raise StoreBusy(
                f"{self._path.name} was locked by another process for {BUSY_SECONDS} s",
                hint="end the other process or wait for it, then try again",
            ) from error
        except StoreCorrupt as error:
            raise StoreCorrupt(
                f"{self._path.name} cannot be read: {error.__cause__ or error}",
                hint="restore it from a backup or remove it: it holds the log of searches, no documents",
            ) from error


PAGES = 500
"""Of the full-text index, merged in one transaction: others may write in between."""
MOST_STEPS = 20_000
"""A stop for what should end by itself: ten million pages are 40 GB of index."""


async def scrub(file: SqliteFile, kb_ids: Sequence[int]) -> None:
    """Overwrite what is left of the deleted chunks of some kbs.

    Pages are overwritten as rows go (`secure_delete`). What is left are the words in the segments of the full-text
    index, until they are merged, and the write-ahead log, until it is emptied.
    """
    for kb_id in kb_ids:
        for step in range(MOST_STEPS):
            # A negative number has all segments merged into one; a positive one goes on with that.
            if not await file.transact(partial(_merge, kb_id=kb_id, first=not step)):
                break
    await empty_log(file)


async def empty_log(file: SqliteFile) -> None:
    """Bring the write-ahead log into the file, and cut it to nothing."""
    async with file.turn:
        busy, *_ = await file.write(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())
    if busy:
        raise StoreBusy(
            f"{file.path.name} is being read all the time, and its log cannot be emptied",
            hint="it is emptied when the last process that has it open ends",
        )


def _merge(connection: SqliteConnection, kb_id: int, *, first: bool) -> bool:
    """Merge some of a kb's index; whether there may be more to do."""
    table = f"lexical_{int(kb_id)}"
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
        return False
    before = connection.total_changes
    connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-PAGES if first else PAGES,))
    return first or connection.total_changes - before >= 2
