"""A file for each tenant beside the ledger: searches, votes, golden queries, conversations.

The last second may be lost.

It is opened for each piece of work and closed again: nothing is in the way when a tenant goes, and any number of
processes take turns. With a database server as the ledger, each machine has files of its own.
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
from ragstone.core.ids import check_name
from ragstone.stores.activity_schema import VERSION, bring_up_to_date
from ragstone.stores.ledger.sqlite.file import translated, write_ahead

T = TypeVar("T")
BUSY_SECONDS = 2
"""What is remembered here is worth no longer wait."""


class ActivityFiles:
    """The files of all tenants, by the tenant's id: a name may come to mean somebody else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def run(self, tenant_id: str, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Work in one transaction on what there is; `otherwise` when there is nothing yet."""
        if not tenant_id or not self._path(tenant_id).exists():
            return otherwise
        return await asyncio.to_thread(_run, self._path(tenant_id), work)

    async def read(self, tenant_id: str, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """The same for what only reads: it waits for nobody who writes."""
        if not tenant_id or not self._path(tenant_id).exists():
            return otherwise
        return await asyncio.to_thread(_run, self._path(tenant_id), work, begin="BEGIN")

    async def write(self, tenant_id: str, work: Callable[[sqlite3.Connection], T]) -> T:
        """The same, in a file that is made if there is none."""
        return await asyncio.to_thread(_run, self._path(tenant_id), work, make=True)

    async def remove(self, tenant_id: str) -> None:
        """Remove all that is known of a tenant."""
        await asyncio.to_thread(_remove, self._path(tenant_id))

    def _path(self, tenant_id: str) -> Path:
        return self._folder / f"{check_name(tenant_id, 'tenant id')}.db"


def _run(
    path: Path,
    work: Callable[[sqlite3.Connection], T],
    *,
    make: bool = False,
    begin: str = "BEGIN IMMEDIATE",
) -> T:
    with _explained(path), translated(path):
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # never readable by others
        with closing(_connect(path)) as connection, _transaction(connection, begin):
            return work(connection)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say how long was waited here, and that no document is lost with this file."""
    try:
        yield
    except StoreBusy as error:
        raise StoreBusy(
            f"{path.parent.name}/{path.name} was locked by another process for {BUSY_SECONDS} s",
            hint="end the other process or wait for it, then try again",
        ) from error
    except StoreCorrupt as error:
        raise StoreCorrupt(
            f"{path.parent.name}/{path.name} cannot be read: {error.__cause__ or error}",
            hint="restore it from a backup or remove it: "
            "it holds searches, votes, golden queries and conversations, no documents",
        ) from error


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, isolation_level=None)
    try:
        _prepare(connection, path.stem)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, tenant_id: str) -> None:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA secure_delete = ON")
    if connection.execute("PRAGMA user_version").fetchone()[0] != VERSION:
        write_ahead(connection)
        bring_up_to_date(connection, tenant_id)


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _remove(path: Path) -> None:
    with translated(path):
        for ending in ("", "-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
