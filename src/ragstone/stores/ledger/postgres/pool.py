"""The ledger's connection pool: threads with a connection each, lent to one user at a time.

What is asked of a thread is done in order. So a caller may be cancelled at any time: what it has begun is ended before
the thread is lent again. A write is done to its end; a read is cancelled on the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, TypeVar

import psycopg

from ragstone.stores.ledger.postgres.errors import LOCK_SECONDS, describe_database, translate_errors
from ragstone.stores.ledger.postgres.session import Session

T = TypeVar("T")
U = TypeVar("U")
CANCEL_SECONDS = 0.05
"""Seconds before each try to cancel a read: most end sooner, and one between two statements has none to cancel."""


class ConnectionThread:
    """One thread and its connection, opened when it is first needed and again when it was lost."""

    def __init__(self, dsn: str, prepare: Callable[[], None]) -> None:
        self._dsn = dsn
        self._place = describe_database(dsn)
        self._prepare = prepare
        self._thread: ThreadPoolExecutor | None = None
        self._session: Session | None = None
        self._last: asyncio.Future[Any] | None = None

    def run(self, work: Callable[[ConnectionThread], T]) -> asyncio.Future[T]:
        """Do something on its thread after what was asked before; it is done even if nobody waits for it any more."""

        def run_work() -> T:
            with translate_errors(self._place):
                return work(self)

        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="ragstone-postgres")
        future = asyncio.get_running_loop().run_in_executor(self._thread, run_work)
        self._last = future
        return asyncio.shield(future)

    def begin(self, how: Callable[[Session], T]) -> tuple[Session, T]:
        """Begin a transaction, on its thread. A connection that was lost meanwhile is replaced."""
        if self._session and not self._session.is_lost:
            try:
                return self._session, how(self._session)
            except psycopg.OperationalError:
                if not self._session.is_lost:
                    raise
        self._prepare()
        self._session = Session(self._dsn)
        return self._session, how(self._session)

    def transact(self, how: Callable[[Session], T], work: Callable[[Session, T], U]) -> U:
        """Do all of a transaction, on its thread."""
        session, begun = self.begin(how)
        try:
            result = work(session, begun)
            session.commit()
        except BaseException:
            session.rollback()
            raise
        return result

    def transact_patiently(self, how: Callable[[Session], T], work: Callable[[Session, T], U]) -> U:
        """Do a transaction that may make or drop tables, waiting a second at a time lest others wait behind it."""
        end = monotonic() + LOCK_SECONDS
        while True:
            try:
                return self.transact(how, work)
            except psycopg.errors.LockNotAvailable:
                if monotonic() > end:
                    raise

    def outside(self, tenant: str, work: Callable[[Session, str], U]) -> U:
        """Run statements that cannot be part of a transaction, on its thread."""
        session, _ = self.begin(Session.read_control)
        session.rollback()  # the connection is there: that was all
        with session.outside(tenant) as tenant_id:
            return work(session, tenant_id)

    def abandon(self) -> None:
        """End what was asked of it soon, on the server as well, since nobody waits for it any more."""
        if self._last and not self._last.done():
            self._last = asyncio.create_task(self._cancel(self._last))

    async def _cancel(self, running: asyncio.Future[Any]) -> None:
        # Each try is over before the thread is lent again, or it might end what the next caller asks.
        while not (await asyncio.wait({running}, timeout=CANCEL_SECONDS))[0]:
            if session := self._session:
                await asyncio.to_thread(session.cancel)

    def when_done(self, then: Callable[[], None]) -> None:
        """Call back once everything that was asked for is done, at once if it is."""
        if self._last is None or self._last.done():
            then()
        else:
            self._last.add_done_callback(lambda _: then())

    def close(self) -> None:
        """Finish what runs, then close the connection."""
        if self._thread:
            self._thread.shutdown()
            self._thread = None
        if self._session:
            self._session.close()
            self._session = None


class ConnectionPool:
    """A number of connections; a caller that finds none free waits for one, first come first served."""

    def __init__(self, dsn: str, count: int, prepare: Callable[[], None]) -> None:
        self._all = [ConnectionThread(dsn, prepare) for _ in range(count)]
        self._idle = list(self._all)
        self._free = asyncio.Semaphore(count)

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[ConnectionThread]:
        """Yield a connection that no other caller has; it is lent again when what was asked of it is done."""
        await self._free.acquire()
        thread = self._idle.pop()  # the one that was used last: its connection is open
        try:
            yield thread
        finally:
            thread.when_done(lambda: self._give_back(thread))

    def _give_back(self, thread: ConnectionThread) -> None:
        self._idle.append(thread)
        self._free.release()

    async def close(self) -> None:
        for thread in self._all:
            await asyncio.to_thread(thread.close)
