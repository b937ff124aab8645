"""A tenant's SQLite file, and a unit of work on it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ragstone.core.errors import StoreError
from ragstone.stores.blobs import Blobs
from ragstone.stores.indexes import TransactionalIndex
from ragstone.stores.ledger.sqlite.file import SqliteConnection, SqliteFile
from ragstone.stores.ledger.sqlite.log import LogFile
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
    """Implements `UnitOfWork` for whoever has the file's turn. The write lock is taken by the first write."""

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
