"""Work beside the event loop: reads in threads that may hang, and entries that are written in batches.

For callers without async there is a loop in a thread of its own, and methods that wait for those of an async class.

A thread cannot be stopped: a cancelled read leaves its thread behind. While all threads are left behind, reads are
refused at once.

Work that nobody waits for says so, and local models let questions go first.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from ragstone.core.errors import InputError, StoreBusy, StoreError

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
logger = logging.getLogger(__name__)
_is_patient: ContextVar[bool] = ContextVar("ragstone_patient", default=False)
PAUSE_SECONDS = 1.0
MOST_WAITING = 2000
"""The number of entries kept for the writer; further ones are dropped and counted while it does not keep up."""


@contextmanager
def let_questions_go_first() -> Iterator[None]:
    """Let local models work off what is asked of them in this block in batches, and rest between them for questions."""
    token = _is_patient.set(True)
    try:
        yield
    finally:
        _is_patient.reset(token)


def is_patient() -> bool:
    """Return whether questions go before the work at hand."""
    return _is_patient.get()


async def run_apart(work: Callable[[], T]) -> T:
    """Run work that may wait for a disk in a thread of its own, which no other work waits for."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="ragstone-apart")
    try:
        return await asyncio.wrap_future(pool.submit(work))
    finally:
        pool.shutdown(wait=False)


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


class BatchWriter(Generic[T]):
    """Hands what was added to `write`, one batch at a time; `write` raises nothing."""

    def __init__(self, write: Callable[[list[T]], Awaitable[None]]) -> None:
        self._write = write
        self._waiting: list[T] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self.dropped = 0

    def add(self, entry: T) -> None:
        """Queue an entry and return at once."""
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        self._waiting.append(entry)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._start)

    async def flush(self) -> None:
        """Write the entries that wait."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        # Shielded: a caller that gives up cancels neither the batch nor the others who wait for it.
        if running := self._running():
            await asyncio.shield(running)
        if self._waiting or self._running():
            await asyncio.shield(self._running() or self._begin())

    def _start(self) -> None:
        self._timer = None
        if self._running() is None:
            self._begin()
        else:  # a slow disk: later entries take the next turn
            self._timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._start)

    def _running(self) -> asyncio.Task[None] | None:
        if self._writing and self._writing.done():
            self._writing = None
        return self._writing

    def _begin(self) -> asyncio.Task[None]:
        batch, self._waiting = self._waiting, []
        self._writing = asyncio.ensure_future(self._write(batch))
        return self._writing


class RunOnLoop(Protocol):
    """Runs a coroutine on the loop of a `LoopThread` and returns what it returns."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> T: ...


class LoopThread:
    """An event loop in a thread of its own, so that it also works inside a notebook."""

    def __init__(self, owner: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._owner = owner
        self._thread = threading.Thread(target=self.loop.run_forever, name="ragstone", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns, or raise `InputError` once the thread has been stopped."""
        if self.loop.is_closed():
            work.close()
            raise InputError(f"this {self._owner} is closed", hint="make a new one, or work inside its `with` block")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()  # or the work would go on with no one waiting for it
            raise

    def stop(self) -> None:
        """End the thread and close the loop, after what was cancelled has tidied up."""
        asyncio.run_coroutine_threadsafe(_wait_for_cancelled(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


async def _wait_for_cancelled() -> None:
    cancelled = [task for task in asyncio.all_tasks() if task.cancelling()]
    await asyncio.gather(*cancelled, return_exceptions=True)


class BlockingPart(Generic[S]):
    """An object with async methods, or a part of one, on the loop of a `LoopThread`."""

    def __init__(self, part: S, run: RunOnLoop) -> None:
        self.part = part
        """The object underneath; its coroutines run in the loop of the thread and nowhere else."""
        self._run = run

    def _holder(self, name: str) -> Any:
        return self.part


class Blocking(Generic[S, P, T]):
    """A method of an async class, with the same parameters, that waits for its result."""

    def __init__(self, method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, waiter: BlockingPart[Any] | None, owner: type) -> Callable[P, T]:
        return cast("Callable[P, T]", self) if waiter is None else partial(self._wait, waiter)

    def _wait(self, waiter: BlockingPart[Any], *arguments: P.args, **options: P.kwargs) -> T:
        return waiter._run(self._call(waiter, *arguments, **options))

    async def _call(self, waiter: BlockingPart[Any], *arguments: P.args, **options: P.kwargs) -> T:
        # On the loop from the first step: what a part is made of belongs there. A part's module has its name.
        holder = waiter._holder(self.method.__module__.rpartition(".")[2])
        return cast("T", await getattr(holder, self.method.__name__)(*arguments, **options))


def wait_for_each(events: AsyncGenerator[T], run: RunOnLoop) -> Iterator[T]:
    """Yield each event as it comes; closing the iterator ends the work."""

    taking: asyncio.Task[Any] | None = None

    async def take_next() -> T | None:
        nonlocal taking
        taking = asyncio.current_task()
        return await anext(events, None)

    async def end() -> None:
        # After an interrupt the last one may still run, and a generator that runs cannot be closed.
        if taking is not None:
            if not taking.cancelling():  # a second time would cut off what tidies up
                taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)
        await events.aclose()

    try:
        while (event := run(take_next())) is not None:
            yield event
    finally:
        run(end())
