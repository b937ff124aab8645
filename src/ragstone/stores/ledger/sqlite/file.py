"""The dialect of SQLite."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import shutil
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragstone.core import clock as host_clock
from ragstone.core.background import ReaderPool, closed_error
from ragstone.core.errors import (
    InputError,
    RagstoneError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    deleted_meanwhile,
)
from ragstone.core.filters import Filter
from ragstone.core.types import Json, Vector
from ragstone.stores.ledger.sqlite.read_only import (
    DISK_ERRORS,
    full_error,
    is_refused,
    read_only_address,
    refuse_writes,
    stamp,
)
from ragstone.stores.migrations import Schema, create, is_current, upgrade
from ragstone.stores.sql.database import Connection
from ragstone.stores.sql.filters import condition


class SqliteDialect:
    """Implements `stores.database.Dialect`."""

    has_log = False

    def json_text(self, column: str, key: str) -> str:
        return f"json_extract({column}, '$.{key}')"

    def json_true(self, column: str, key: str) -> str:
        return f"coalesce(json_extract({column}, '$.{key}'), 0)"

    def to_json(self, value: Json) -> str:
        try:
            return json.dumps(value, allow_nan=False, default=str)  # with NaN, no function of SQLite's reads it
        except ValueError as error:
            raise InputError(f"this cannot be stored: {error}") from error

    def condition(self, where: Filter, parameters: list[Any], *, chunks: bool = True) -> str:
        return condition(where, parameters, chunks=chunks)

    def pack(self, text: str) -> bytes:
        return zlib.compress(text.encode(), 1)

    def unpack(self, packed: bytes) -> str:
        return zlib.decompress(packed).decode()

    def packed_bytes(self, column: str) -> str:
        return f"length({column})"  # of a blob it is bytes, and SQLite reads only its header

    def pack_vector(self, half: NDArray[Any]) -> bytes:
        return half.tobytes()

    def unpack_vector(self, packed: bytes) -> Vector:
        return np.frombuffer(packed, np.float16).astype(np.float32)

    def lease_now(self, connection: Connection) -> float:
        return host_clock.host_seconds()

    def boot(self) -> str:
        return host_clock.boot_id()

    def bytes_used(self, connection: Connection, tenant_id: str) -> int:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        return int(pages * size)

    def look_around(self, connection: Connection, tenant_id: str) -> None:
        """Nothing: it plans by its indexes alone."""


class SqliteConnection(sqlite3.Connection):
    """A connection that knows its dialect."""

    dialect = SqliteDialect()

    def pages(self, sql: str, parameters: Sequence[Any], size: int) -> Iterator[list[Any]]:
        cursor = self.execute(sql, parameters)
        while rows := cursor.fetchmany(size):
            yield rows


logger = logging.getLogger(__name__)
T = TypeVar("T")
BUSY_SECONDS = 60
RECOVER = "restore it from a backup, or delete the tenant and ingest its documents again"
LOOK = "look at the disk that holds it, and at the limits of this process"
_openings = itertools.count(1)
TASKS = "tasks"
"""The folder of what tasks write while they run, with a folder for each tenant."""
READERS = 4
"""Of the indexes and of the ledger each, that read at once; one more thread is for what is read ahead."""


class SqliteFile:
    """A database file opened by this process. Several processes may have it open at once."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.path = path
        self._idle: LifoQueue[SqliteConnection] = LifoQueue()
        self._opened: list[SqliteConnection] = []
        self._guard = threading.Lock()
        self._closed = False
        self._opening = next(_openings)
        self._refused: BaseException | None = None
        """Why the file is open for reading only, if so."""
        with translate_errors(path):
            try:
                self._prepare(schema)
                self._writer = self._connect()
                self._watcher = self._connect()
            except (sqlite3.Error, OSError) as error:
                self._open_read_only(schema, error)
        self._stamp = stamp(path)
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="ragstone-writer")
        self._searching = ReaderPool(READERS + 1, path.name)
        self._looking = ReaderPool(READERS, path.name)
        self.turn = asyncio.Lock()
        """Held while a transaction is open: one writer at a time, first come first served."""

    @property
    def is_read_only(self) -> bool:
        """Return whether nothing could be written where the file is when it was opened."""
        return self._refused is not None

    @property
    def is_stale(self) -> bool:
        """Return whether a file that was opened for reading only has been written to since, or its log has."""
        return self._refused is not None and self._stamp != stamp(self.path)

    async def write(self, work: Callable[[SqliteConnection], T]) -> T:
        """Run on the writer's thread. Only the holder of `turn` may call this."""
        if self._refused is not None:
            raise refuse_writes(self.path, self._refused)
        guarded = self._translating(lambda: work(self._writer))
        try:
            writing = asyncio.get_running_loop().run_in_executor(self._writing, guarded)
        except RuntimeError as error:
            raise closed_error(self.path.name) from error
        return await writing

    async def read(self, work: Callable[[SqliteConnection], T]) -> T:
        """Run on a reader's thread, in one snapshot; for the indexes, whose reads may be long."""
        return await self._searching.run(self._translating(lambda: self.read_here(work)))

    async def look_up(self, work: Callable[[SqliteConnection], T]) -> T:
        """The same for the ledger's rows: an index that hangs does not keep them from being read."""
        return await self._looking.run(self._translating(lambda: self.read_here(work)))

    def read_here(self, work: Callable[[SqliteConnection], T]) -> T:
        """Read on the calling thread, in one snapshot."""
        connection = self._borrow()
        try:
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        finally:
            self._idle.put(connection)

    def version(self) -> int:
        """Return a number that changes whenever anyone commits. Costs microseconds; only for the loop's own thread."""
        with translate_errors(self.path):
            # SQLite counts for each connection: a number of another opening must not look like one of this.
            return self._opening << 32 | int(self._watcher.execute("PRAGMA data_version").fetchone()[0])

    def glance(self, sql: str, parameters: Sequence[str]) -> tuple[Any, ...] | None:
        """Return one row. Costs microseconds; only for the loop's own thread."""
        with translate_errors(self.path):
            row: tuple[Any, ...] | None = self._watcher.execute(sql, parameters).fetchone()
            return row

    async def transact(self, work: Callable[[SqliteConnection], T]) -> T:
        """Run as a transaction of its own when it is its turn, to the end even if nobody waits for it any more."""

        def whole(db: SqliteConnection) -> T:
            db.execute("BEGIN IMMEDIATE")
            try:
                result = work(db)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            return result

        async with self.turn:
            writing = asyncio.ensure_future(self.write(whole))
            try:
                return await asyncio.shield(writing)
            except asyncio.CancelledError:
                writing.add_done_callback(_tell_of_failure)
                raise

    def read_later(self, work: Callable[[SqliteConnection], object]) -> None:
        """Read on a reader's thread while the caller goes on; closing waits for it."""
        self._searching.run_later(lambda: self.read_here(work))

    def _translating(self, work: Callable[[], T]) -> Callable[[], T]:
        def run() -> T:
            with translate_errors(self.path):
                return work()

        return run

    def _borrow(self) -> SqliteConnection:
        with suppress(Empty):
            return self._idle.get_nowait()
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _prepare(self, schema: Schema) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.path.exists():
            # Made before SQLite does, so that it is never readable by others, not even for a moment.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = self._connect()
        write_ahead(connection)
        current = is_current(connection, schema) or create(connection, schema)
        connection.close()
        self._opened.remove(connection)
        if not current:
            upgrade(self.path, schema)

    def _open_read_only(self, schema: Schema, error: sqlite3.Error | OSError) -> None:
        """Open the file without writing anything, or raise the error that kept it from being opened for writing."""
        self._close_connections()
        if not is_refused(error) or not self.path.exists() or not self.path.stat().st_size:
            raise error
        self._refused = error
        try:
            self._writer = self._connect()
            self._watcher = self._connect()
            current = is_current(self._watcher, schema)
        except sqlite3.Error:
            self._close_connections()
            raise error from None
        if not current:
            self._close_connections()
            raise refuse_writes(self.path, error)
        logger.warning("%s", refuse_writes(self.path, error))

    def _close_connections(self) -> None:
        for connection in self._opened:
            connection.close()
        self._opened.clear()

    def _connect(self) -> SqliteConnection:
        connection = sqlite3.connect(
            self.path if self._refused is None else read_only_address(self.path),
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            factory=SqliteConnection,
            uri=self._refused is not None,
        )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -4000")
        connection.execute("PRAGMA trusted_schema = OFF")
        # What is deleted is overwritten, also on pages that fall free: measured, it costs nothing that can be seen.
        connection.execute("PRAGMA secure_delete = ON")
        with self._guard:
            self._opened.append(connection)
        return connection

    def close(self) -> None:
        """Finish what runs, also what nobody waits for any more, then close the file; never call it on the loop."""
        if self._closed:
            return
        self._closed = True
        self._writing.shutdown()
        self._searching.close()
        self._looking.close()
        self._close_connections()


def write_ahead(connection: sqlite3.Connection) -> None:
    """Keep a log beside the file. Of two who begin with that at once, SQLite refuses one without letting it wait."""
    ends = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > ends:
                raise
        time.sleep(0.01)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's and the system's errors into Ragstone's."""
    try:
        yield
    except RagstoneError:
        raise
    except sqlite3.OperationalError as error:
        raise _operational(path, error) from error
    except sqlite3.IntegrityError as error:
        foreign = "FOREIGN KEY" in str(error)
        raise (deleted_meanwhile() if foreign else StoreError(f"{path.name}: {error}")) from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"{error.object[:80]!r} is no text: it holds half of a surrogate pair",
            hint="write names and ids in characters that UTF-8 has",
        ) from error
    except sqlite3.ProgrammingError as error:
        raise (closed_error(path.name) if "closed" in str(error) else StoreError(f"{path.name}: {error}")) from error
    except sqlite3.DatabaseError as error:
        raise StoreCorrupt(
            f"{path.name} cannot be read: {error}",
            hint="restore it from a backup, or delete the tenant and ingest its documents again",
        ) from error
    except OSError as error:
        if error.errno in DISK_ERRORS:
            raise refuse_writes(path, error) from error
        refused = isinstance(error, PermissionError | NotADirectoryError)
        hint = "check the owner and permissions of its folder, or set data_dir to another one" if refused else LOOK
        raise StoreError(f"{path} cannot be used: {error.strerror or error}", hint=hint) from error


def _operational(path: Path, error: sqlite3.OperationalError) -> StoreError:
    text = str(error)
    if "locked" in text or "busy" in text:
        return StoreBusy(
            f"{path.name} was locked by another process for {BUSY_SECONDS} s",
            hint="end the other process or wait for it, then try again",
        )
    if "disk is full" in text:
        return full_error(path, text)
    refused = refuse_writes(path, error)
    if isinstance(refused, StoreFull) or "readonly" in text:
        return refused
    if "unable to open" in text:
        return StoreError(f"{path} cannot be opened: {text}", hint="check the folder's owner and permissions")
    return StoreError(f"{path.name}: {text}", hint=LOOK)


def _tell_of_failure(writing: asyncio.Future[Any]) -> None:
    if not writing.cancelled() and (error := writing.exception()):
        logger.warning("what was written for someone who no longer waited came to nothing: %s", error)


def count_files(folder: Path) -> int:
    """Count the files under a folder; 0 when it does not exist."""
    return sum(len(files) for _, _, files in os.walk(folder))


def remove_folder(folder: Path) -> None:
    """Remove a folder with all in it: it is gone also after a loss of power."""

    def ignore_missing(_function: object, _path: str, problem: tuple[Any, BaseException, Any]) -> None:
        if not isinstance(problem[1], FileNotFoundError):  # somebody else may be at it too
            raise problem[1]

    with translate_errors(folder):
        shutil.rmtree(folder, onerror=ignore_missing)
        if folder.parent.exists():
            handle = os.open(folder.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
