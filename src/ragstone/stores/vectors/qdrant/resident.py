"""An engine in this process: one thread works with it, and one process holds its folder."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import pickle
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Generic, TypeVar

from ragstone.core.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull
from ragstone.core.remedies import Action, Remedy

E = TypeVar("E")
R = TypeVar("R")
LOCK = "ragstone.lock"
REBUILD = "delete the folder; a repair builds it again from the ledger"
USE_A_SERVER = (
    "end the other process, or let both use a server: "
    "docker run -p 6333:6333 -v qdrant:/qdrant/storage qdrant/qdrant, then set store.vectors.url"
)


class Resident(Generic[E]):
    """Opens an engine on first use, works with it one call after the other, and opens it again after a fork."""

    def __init__(self, folder: Path, opener: Callable[[Path], E], closer: Callable[[E], None]) -> None:
        self.folder = folder
        self._open = opener
        self._close = closer
        self._starting = threading.Lock()
        self._process = os.getpid()
        self._thread: ThreadPoolExecutor | None = None
        self._engine: E | None = None
        self._lock: IO[str] | None = None
        self._inherited: list[object] = []

    async def run(self, work: Callable[[E], R]) -> R:
        """Run `work` on the engine, in the engine's own thread."""

        def guard() -> R:
            with translate_errors(self.folder):
                return work(self._engine if self._engine is not None else self._enter())

        return await asyncio.get_running_loop().run_in_executor(self._start(), guard)

    async def close(self) -> None:
        """End the thread and unlock the folder."""
        self._forget_the_parents()
        thread, self._thread = self._thread, None
        if thread is not None:
            try:
                await asyncio.get_running_loop().run_in_executor(thread, self._leave)
            finally:
                thread.shutdown()

    def _start(self) -> ThreadPoolExecutor:
        self._forget_the_parents()
        with self._starting:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="ragstone-qdrant")
            return self._thread

    def _forget_the_parents(self) -> None:
        """Drop what was inherited by a fork: it works no more, and closing it would close the parent's."""
        if self._process != os.getpid():
            self._inherited += [self._thread, self._engine, self._lock]
            self._thread = self._engine = self._lock = None
            self._starting = threading.Lock()
            self._process = os.getpid()

    def _enter(self) -> E:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        lock = (self.folder / LOCK).open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._engine = self._open(self.folder)
        except BlockingIOError as error:
            lock.close()
            raise in_use(self.folder) from error
        except BaseException:
            lock.close()
            raise
        self._lock = lock
        return self._engine

    def _leave(self) -> None:
        engine, lock, self._engine, self._lock = self._engine, self._lock, None, None
        if engine is not None and lock is not None:
            try:
                self._close(engine)
            finally:
                lock.close()


def in_use(folder: Path) -> StoreBusy:
    """Return the error for a second process."""
    return StoreBusy(f"another process holds the Qdrant folder {folder}", hint=USE_A_SERVER)


@contextmanager
def translate_errors(folder: Path) -> Iterator[None]:
    """Translate the errors of an engine in this process."""
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:
        if getattr(error, "errno", None) == errno.ENOSPC or "disk is full" in str(error):
            raise StoreFull(f"no space is left for the Qdrant folder {folder}", hint="free some") from error
        hint = "check that the folder can be written and is on a local disk"
        raise StoreError(f"the Qdrant folder {folder} cannot be used: {error}", hint=hint) from error
    except (sqlite3.DatabaseError, pickle.UnpicklingError, ValueError, KeyError, EOFError) as error:
        raise StoreCorrupt(
            f"the Qdrant folder {folder} cannot be read", hint=REBUILD, remedy=Remedy(Action.REPAIR_STORES)
        ) from error
