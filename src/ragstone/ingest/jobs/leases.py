"""Register workers and find dead ones, share their slots between tenants, and renew and end leases of jobs."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from ragstone.core.errors import EmptyDocument, LeaseLost, ModelUnavailable, RagstoneError, TenantGone, TenantSuspended
from ragstone.core.jobs import Job, JobKind, JobProgress, Lane, Ticket
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import Queue
from ragstone.core.types import Failure, failure_of
from ragstone.ingest.store import complete_jobs, delete_dropped, find_dropped
from ragstone.ingest.work import JobBatch
from ragstone.settings.tree import JobSettings

logger = logging.getLogger(__name__)
LONGEST_NAME = 500
BEAT_SECONDS = 2.0
"""Most seconds between two updates of the visible progress."""
POLL_SECONDS = 0.2
MODEL_SECONDS = 30.0
"""Seconds until jobs are tried again whose model was not here: other jobs of their tenant go first meanwhile."""
FRESH_SECONDS = POLL_SECONDS / 2
"""Seconds that all slots share one reading of the work signals."""


@dataclass(frozen=True, slots=True)
class DeadWorker:
    """A worker that died, locked so that only one process reclaims its jobs."""

    worker: str
    place: Path
    handle: int

    def unregister(self) -> None:
        """Remove its entry after its jobs were reclaimed."""
        self.place.unlink(missing_ok=True)

    def release(self) -> None:
        """Unlock its entry; if it is still registered, another process may reclaim its jobs."""
        os.close(self.handle)


class WorkerRegistry:
    """The workers that share a data folder on one machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def register(self, worker: str) -> Iterator[None]:
        """Register a worker while the block runs."""
        place = self._folder / hashlib.sha256(worker.encode()).hexdigest()[:32]
        try:
            handle = _lock_entry(place, worker)
        except OSError as error:
            logger.warning("cannot register the worker, if it dies its jobs wait for their lease: %s", error)
            yield
            return
        try:
            yield
        finally:
            place.unlink(missing_ok=True)
            os.close(handle)

    def find_dead(self) -> list[DeadWorker]:
        """Return the workers that died and are not being reclaimed yet."""
        with suppress(FileNotFoundError):
            return [found for place in self._folder.iterdir() if (found := _find_dead(place))]
        return []


def _lock_entry(place: Path, worker: str) -> int:
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    while True:
        handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            os.write(handle, worker.encode())
        except OSError:
            os.close(handle)
            raise
        if _is_at(place, handle):
            return handle
        os.close(handle)  # another process took the file for a dead worker's before it was locked


def _find_dead(place: Path) -> DeadWorker | None:
    try:
        handle = os.open(place, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(place, handle):
            return DeadWorker(os.pread(handle, LONGEST_NAME, 0).decode("utf-8", "replace"), place, handle)
    except BlockingIOError:
        pass  # alive, or being reclaimed by another process
    os.close(handle)
    return None


def _is_at(place: Path, handle: int) -> bool:
    try:
        return os.path.samestat(place.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


class ClaimedJobs:
    """The jobs that a slot has claimed: renews their leases and ends them."""

    def __init__(self, queue: Queue, ledger: Ledger, tenant: str, jobs: Sequence[Job], settings: JobSettings) -> None:
        self._queue = queue.of(tenant)
        self._ledger = ledger
        self._tenant = tenant
        self._settings = settings
        self._jobs = {job.ticket: job for job in jobs}
        self._open = set(self._jobs)
        self._reported: dict[Ticket, JobProgress] = {}
        self._started = time.monotonic()
        self.is_void = False
        self.are_put_back = False
        """True once one of them is to be tried again, perhaps by another slot."""
        self.batches = {
            job.ticket: JobBatch(job.ticket, job.document_id, job.size, last_attempt=job.attempts >= settings.attempts)
            for job in jobs
        }

    async def renew_leases(self, doing: asyncio.Task[None]) -> None:
        """Renew the leases until cancelled; cancel `doing` once all jobs were cancelled or taken over."""
        while True:
            await asyncio.sleep(min(BEAT_SECONDS, self._settings.lease_seconds / 3))
            seen = {ticket: self.batches[ticket].progress for ticket in self._running()}
            if not seen:
                continue
            # Most jobs of a batch wait for the model most of the time: unchanged progress is not written again.
            news = {
                ticket: None if self._reported.get(ticket) is progress else self._with_eta(progress)
                for ticket, progress in seen.items()
            }
            try:
                void = await self._queue.heartbeat(news, self._settings.lease_seconds)
            except TenantGone:
                void = set(seen)
            except RagstoneError as error:
                # If the lease runs out, another worker takes over, and the tickets here become void.
                logger.warning("cannot renew leases: %s", error)
                continue
            self._reported = seen
            # A job that has completed here meanwhile was taken by nobody, and what follows its end is still to be done.
            lost = {ticket for ticket in void & self._running() if not self.batches[ticket].is_ending}
            self._open -= lost
            if lost and not self._running():
                self.is_void = True
                doing.cancel()

    def _running(self) -> set[Ticket]:
        return {ticket for ticket in self._open if not self.batches[ticket].has_ended}

    def _with_eta(self, progress: JobProgress) -> JobProgress:
        spent = time.monotonic() - self._started
        left = spent * (100 - progress.percent) / progress.percent if progress.percent else None
        return replace(progress, eta_seconds=None if left is None else round(left, 1))

    async def settle(self, batch: JobBatch) -> None:
        """End the job of a batch that `store` has not ended."""
        ticket = batch.ticket
        if ticket is None or ticket not in self._open:
            return
        if batch.is_good:
            done = batch.final_progress()
            if not batch.stored:
                done = replace(done, found={"skipped": len(batch.skipped)})
            await self._complete(ticket, done)
        elif batch.failures:
            if batch.stored:
                await self._delete_dropped(ticket)
            await self._retry_or_fail(ticket, (batch.passing or batch.failures)[0], batch.retryable)
        else:
            await self._fail_empty(ticket)
        self.drop(ticket)

    async def give_up(self, error: RagstoneError) -> None:
        """End the open jobs after an error that is not of one document: they are tried again, or fail with it."""
        for ticket in self._running():
            failure = failure_of(self._jobs[ticket].uri, error)
            if isinstance(error, ModelUnavailable | TenantSuspended):
                wait = MODEL_SECONDS if isinstance(error, ModelUnavailable) else 0.0
                await self._put_back(ticket, failure, wait=wait, counts=False)
            else:
                await self._retry_or_fail(ticket, failure, error.retryable)
            self.drop(ticket)

    async def release(self) -> None:
        """Hand back unfinished jobs, as if they had never been claimed."""
        for ticket in self._running():
            await self._put_back(ticket, Failure(self._jobs[ticket].uri, "", ""), counts=False)

    async def fail(self, ticket: Ticket, code: str, error: str) -> None:
        """End one job with a reason."""
        with suppress(LeaseLost), self.batches[ticket].ending():
            await self._queue.fail(ticket, code, error)
        self.batches[ticket].waiting = 0
        self.drop(ticket)

    def drop(self, ticket: Ticket) -> None:
        """Forget a job that has ended."""
        self._open.discard(ticket)

    async def _complete(self, ticket: Ticket, done: JobProgress) -> None:
        if dropped := await find_dropped(self._ledger, self._tenant, self.batches[ticket]):
            async with self._ledger.transaction(self._tenant) as tx:
                await complete_jobs(tx, {ticket: done}, {ticket: dropped})
            return
        with suppress(LeaseLost):
            await self._queue.complete(ticket, "; ".join(done.remarks[:3]), done)

    async def _fail_empty(self, ticket: Ticket) -> None:
        uri = self._jobs[ticket].uri
        error = f"{uri} holds no documents"
        if await self._delete_dropped(ticket):
            error += "; what it held before was removed"
        await self._retry_or_fail(ticket, Failure(uri, EmptyDocument.code, error), False)

    async def _delete_dropped(self, ticket: Ticket) -> bool:
        """Delete what an archive has no longer although its job does not complete; return False if it is nothing."""
        dropped = await find_dropped(self._ledger, self._tenant, self.batches[ticket])
        if dropped:
            async with self._ledger.transaction(self._tenant) as tx:
                await delete_dropped(tx, {ticket: dropped})
        return bool(dropped)

    async def _retry_or_fail(self, ticket: Ticket, failure: Failure, retryable: bool) -> None:
        job = self._jobs[ticket]
        if retryable and job.attempts < self._settings.attempts:
            wait = self._settings.retry_seconds * 2 ** (job.attempts - 1)
            await self._put_back(ticket, failure, wait=wait)
        else:
            with suppress(LeaseLost):
                await self._queue.fail(ticket, failure.code, failure.error, failure.hint, failure.remedy)

    async def _put_back(self, ticket: Ticket, why: Failure, *, wait: float = 0.0, counts: bool = True) -> None:
        self.are_put_back = True
        with suppress(LeaseLost):
            await self._queue.put_back(
                ticket,
                wait_seconds=wait,
                code=why.code,
                error=why.error,
                counts=counts,
                hint=why.hint,
                remedy=why.remedy,
            )


class WorkerSlot(NamedTuple):
    """The kind of jobs that one of a worker's loops takes."""

    kind: JobKind
    lane: Lane


class TenantScheduler:
    """Orders the tenants that may have work, so that none waits behind another's batch."""

    def __init__(self, queue: Queue, sweep_seconds: float, attempts: int, only: str | None = None) -> None:
        self._queue = queue
        self._attempts = attempts
        self._only = only
        self._sweep_seconds = sweep_seconds
        self._heard: dict[str, int] = {}
        self._signals: tuple[float, Mapping[str, int]] = (float("-inf"), {})
        self._due: dict[str, dict[WorkerSlot, float]] = {}
        self._order: list[str] = []
        self._swept = float("-inf")

    async def tenants(self) -> dict[str, int]:
        """Return all tenants that this worker works for, with their work signals."""
        signals = await self._queue.work_signals()
        return {name: signal for name, signal in signals.items() if self._only in (None, name)}

    async def next_tenants(self, slot: WorkerSlot) -> list[str]:
        """Return the tenants that may have work now, the one with the latest turn last."""
        if time.monotonic() - self._signals[0] >= FRESH_SECONDS:
            self._signals = time.monotonic(), await self.tenants()
        moment, signals = time.monotonic(), self._signals[1]
        # A crash between commit and signal loses the signal, so all tenants are looked at now and then.
        everyone = moment - self._swept >= self._sweep_seconds
        if everyone:
            self._swept = moment
        for tenant, signal in signals.items():
            if everyone or self._heard.get(tenant) != signal:
                self._heard[tenant] = signal
                self._due[tenant] = {}
        ready = [tenant for tenant in signals if self._due[tenant].get(slot, moment) <= moment]
        place = {tenant: index for index, tenant in enumerate(self._order)}
        return sorted(ready, key=lambda tenant: place.get(tenant, -1))

    def look_again(self, tenant: str) -> None:
        """Have every slot ask again when there is work of a tenant."""
        self._due[tenant] = {}

    def note_turn(self, tenant: str) -> None:
        """Move a tenant behind all others."""
        self._order = [*(other for other in self._order if other != tenant), tenant]

    async def has_work(self, tenant: str, slot: WorkerSlot) -> bool:
        """Return whether a job or a lease is due; if not, the tenant is skipped until the next one is."""
        due = self._due[tenant]  # a signal that arrives during the query replaces this dictionary
        wait = await self._queue.of(tenant).next_due(self._attempts, slot.kind, slot.lane)
        due[slot] = float("inf") if wait is None else time.monotonic() + wait
        return wait is not None and wait <= 0

    def postpone(self, tenant: str, slot: WorkerSlot) -> None:
        """Skip a tenant with errors for a while."""
        self._due[tenant][slot] = time.monotonic() + self._sweep_seconds

    async def rest(self) -> None:
        """Wait a moment before looking again."""
        await asyncio.sleep(POLL_SECONDS)
