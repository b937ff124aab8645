"""The retrieval log beside a tenant's SQLite ledger: a file of its own, whose last second a crash may cost.

It is opened for each piece of work and closed again: nothing is in the way when a tenant goes, and any number of
processes take turns. The ledger is attached for reading, so that statements name kbs and documents as elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from ragstone.core.errors import StoreBusy, StoreCorrupt
from ragstone.stores.ledger.sqlite.file import SqliteConnection, translate_errors, write_ahead
from ragstone.stores.migrations import create, is_current, upgrade
from ragstone.stores.sql.database import Connection

T = TypeVar("T")
BUSY_SECONDS = 2
"""A log is worth no longer wait."""


class LogFile:
    """The log of the tenant whose ledger lies in the same folder, which has to be open."""

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
        with self._explain_errors(), translate_errors(self._path), closing(self._connect()) as connection:
            connection.execute(begin)
            try:
                result = work(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            return result

    def _connect(self) -> SqliteConnection:
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
            # Read-only, or BEGIN IMMEDIATE would wait for whoever writes to the ledger.
            connection.execute("ATTACH ? AS ledger", (f"{self._ledger.resolve().as_uri()}?mode=ro",))
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self) -> SqliteConnection:
        connection = sqlite3.connect(
            self._path, timeout=BUSY_SECONDS, isolation_level=None, uri=True, factory=SqliteConnection
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
