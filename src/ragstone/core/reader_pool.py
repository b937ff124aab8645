"""Threads that read one file or database.

A thread cannot be stopped: who gives up waiting for a read leaves its thread behind.

When all of them are left behind, nobody is kept waiting any more: a read is refused at once, until one comes back.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from ragstone.core.errors import StoreBusy, StoreError

T = TypeVar("T")
logger = logging.getLogger(__name__)


class Readers:
    """So many threads; who finds none free waits for one, unless none can be expected."""

    def __init__(self, threads: int, file: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ragstone-reader")
        self._threads = threads
        self._file = file
        self._guard = threading.Lock()
        self._left_behind = 0

    @property
    def left_behind(self) -> int:
        """How many reads run on that nobody waits for."""
        return self._left_behind

    async def run(self, work: Callable[[], T]) -> T:
        """What the work gives. Raises `StoreBusy` while every thread hangs, `StoreError` once they are closed."""
        if self._left_behind >= self._threads:
            raise StoreBusy(
                f"{self._left_behind} reads of {self._file} have not come back",
                hint="look at the disk that holds it; searches are as before once they are back",
            )
        try:
            future = self._pool.submit(work)
        except RuntimeError as error:
            raise closed(self._file) from error
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            # What has not begun never will; what has begun keeps its thread.
            if not future.cancel():
                self._leave(future)
            raise

    def later(self, work: Callable[[], object]) -> None:
        """Have it done while the caller goes on; once they are closed, nobody will want it."""
        try:
            future = self._pool.submit(work)
        except RuntimeError:
            return
        future.add_done_callback(self._note)

    def close(self) -> None:
        """Wait for what runs."""
        self._pool.shutdown()

    def _note(self, done: Future[object]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            logger.warning("%s could not be read ahead: %s", self._file, error)

    def _leave(self, future: Future[T]) -> None:
        with self._guard:
            self._left_behind += 1
        future.add_done_callback(self._come_back)

    def _come_back(self, _: Future[T]) -> None:
        with self._guard:
            self._left_behind -= 1


def closed(file: str) -> StoreError:
    """What to raise for a file or a database that is no longer open."""
    return StoreError(f"{file} is closed", hint="open the engine again")
