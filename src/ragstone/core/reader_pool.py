"""Threads that read one file or database.

A thread cannot be stopped: a cancelled read leaves its thread behind. While all threads are left behind, reads are
refused at once.
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


class ReaderPool:
    """A fixed number of threads; a read waits for a free one unless all hang."""

    def __init__(self, threads: int, file: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ragstone-reader")
        self._threads = threads
        self._file = file
        self._guard = threading.Lock()
        self._left_behind = 0

    @property
    def left_behind(self) -> int:
        """The number of cancelled reads that still run."""
        return self._left_behind

    async def run(self, work: Callable[[], T]) -> T:
        """Return the result of the work. Raises `StoreBusy` while every thread hangs, `StoreError` once closed."""
        if self._left_behind >= self._threads:
            raise StoreBusy(
                f"{self._left_behind} reads of {self._file} have not come back",
                hint="look at the disk that holds it; searches are as before once they are back",
            )
        try:
            future = self._pool.submit(work)
        except RuntimeError as error:
            raise closed_error(self._file) from error
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            # A read that has begun keeps its thread.
            if not future.cancel():
                self._leave(future)
            raise

    def run_later(self, work: Callable[[], object]) -> None:
        """Run the work in the background; it is dropped once the pool is closed."""
        try:
            future = self._pool.submit(work)
        except RuntimeError:
            return
        future.add_done_callback(self._log_failure)

    def close(self) -> None:
        """Wait for running reads."""
        self._pool.shutdown()

    def _log_failure(self, done: Future[object]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            logger.warning("cannot read ahead in %s: %s", self._file, error)

    def _leave(self, future: Future[T]) -> None:
        with self._guard:
            self._left_behind += 1
        future.add_done_callback(self._come_back)

    def _come_back(self, _: Future[T]) -> None:
        with self._guard:
            self._left_behind -= 1


def closed_error(file: str) -> StoreError:
    """Return the error for a file or database that is no longer open."""
    return StoreError(f"{file} is closed", hint="open the engine again")
