"""Takes jobs and ends them: every one completes, or fails with a reason."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress

from ragstone.core.errors import (
    LeaseLost,
    ModelUnavailable,
    NotFoundError,
    RagstoneError,
    TenantGone,
)
from ragstone.core.ids import opaque_id
from ragstone.core.jobs import ACTIVE, Job, JobProgress, Queue
from ragstone.core.ledger import Ledger
from ragstone.ingest.jobs.fairness import TenantScheduler, WorkerSlot
from ragstone.ingest.jobs.leases import ClaimedJobs, DeadWorker, WorkerRegistry
from ragstone.ingest.jobs.sync import SyncReport, load_items
from ragstone.ingest.pipeline import IngestPipeline
from ragstone.ingest.work import JobBatch, WorkItem
from ragstone.settings.tree import JobSettings

logger = logging.getLogger(__name__)
MOST_JOBS = 128
"""As many small documents as fill a wave of the model."""
MOST_EXPRESS = 8
MOST_SYNCS = 8
"""Sources that are read at once, each of another tenant: they mostly wait for somebody's answer."""
MOST_BYTES = 32 * 1024 * 1024
SWEEP_SECONDS = 30.0
"""How often every tenant is looked at whose bell has not rung."""
MAINTENANCE_SECONDS = 0.5
WATCH_SECONDS = 0.2

RunSync = Callable[[str, Job], Awaitable[SyncReport]]
"""Looks at the source of a sync job and says what it found."""
RunRefresh = Callable[[str, Job, Callable[[JobProgress], None]], Awaitable[str]]
"""Refreshes the embeddings of a kb, tells how far it is, and says in the end what it found."""
OnEnd = Callable[[str, Job], None]
"""Is told the tenant and the job when one has ended."""
BESIDE = (
    # A source may take its time: nobody's documents wait behind it, nor do the sources of other tenants.
    *(WorkerSlot("sync", "all"),) * MOST_SYNCS,
    # Nor does an upload wait until a batch has ended. A last attempt is made by these hands only: then nothing that
    # has killed as many workers is in the same process, and only the guilty one fails.
    WorkerSlot("document", "express"),
    # What a dead worker held is taken up within two leases, however busy those are who are left.
    *(WorkerSlot("document", "lost"),) * 4,
)
"""What every worker does besides its batches."""
MaintainTenant = Callable[[str], Awaitable[None]]
"""What is due for a tenant besides jobs: schedules, webhooks, leftovers."""


class Worker:
    """Works on the jobs of all tenants, several at once."""

    def __init__(
        self,
        queue: Queue,
        ledger: Ledger,
        pipeline: IngestPipeline,
        settings: JobSettings,
        run_sync: RunSync,
        maintain: MaintainTenant,
        only: str | None = None,
        on_end: OnEnd | None = None,
        housekeeping: Callable[[], Awaitable[None]] | None = None,
        registry: WorkerRegistry | None = None,
        run_refresh: RunRefresh | None = None,
    ) -> None:
        self._queue = queue
        self._ledger = ledger
        self._pipeline = pipeline
        self._settings = settings
        self._run_sync = run_sync
        self._run_refresh = run_refresh
        self._maintain = maintain
        self._on_end = on_end
        self._housekeeping = housekeeping
        self._registry = registry
        self.name = f"{platform.node()}:{os.getpid()}:{opaque_id()[:6]}"
        self._scheduler = TenantScheduler(
            queue, min(SWEEP_SECONDS, settings.lease_seconds), settings.attempts, only
        )
        self._busy = 0
        self._syncing: set[str] = set()
        self._ended = False
        self._maintained: dict[str, tuple[int, float]] = {}

    async def run(self, *, until_idle: bool = False) -> None:
        """Work until cancelled or, if asked to, until every job has ended."""
        with self._registry.register(self.name) if self._registry else nullcontext():
            await self._run(until_idle=until_idle)

    async def _run(self, *, until_idle: bool) -> None:
        self._ended = False
        beside = [asyncio.create_task(self._run_maintenance()), asyncio.create_task(self._watch_registry())]
        batches = (WorkerSlot("document", "batch"),) * self._settings.workers
        # One at a time: nobody waits for it, and what it embeds takes the model from those who do.
        refresh = (WorkerSlot("reembed", "all"),) if self._run_refresh else ()
        wanted = (*BESIDE, *refresh, *batches)
        slots = [asyncio.create_task(self._run_slot(slot, until_idle)) for slot in wanted]
        try:
            await asyncio.gather(*slots)
        finally:
            for task in (*beside, *slots):
                if not task.cancelling():  # a second time would end the handing back that the first began
                    task.cancel()
            await asyncio.gather(*beside, *slots, return_exceptions=True)

    async def _run_slot(self, slot: WorkerSlot, until_idle: bool) -> None:
        while not self._ended:
            if await self._take_turn(slot, tolerant=not until_idle):
                continue
            if until_idle and not self._busy and await self._nothing_left():
                # For all at once: those left alone would wait for what only another pair of hands takes up.
                self._ended = True
            await self._scheduler.rest()

    async def _take_turn(self, slot: WorkerSlot, *, tolerant: bool = True) -> bool:
        """Give one tenant a turn; False when there was nothing to do for anyone."""
        for tenant in await self._scheduler.next_tenants(slot):
            if slot.kind == "sync" and tenant in self._syncing:
                continue
            try:
                if await self._claim_and_work(tenant, slot):
                    return True
            except ModelUnavailable:
                raise
            except TenantGone as error:
                logger.info("jobs ended with their tenant: %s", error)
            except RagstoneError as error:
                if not tolerant:
                    raise  # somebody waits for an end
                # One tenant's file, or a full disk, must not stop the others; the lease brings back what was held.
                logger.warning("a turn was lost: %s", error)
                self._scheduler.postpone(tenant, slot)
        return False

    async def _claim_and_work(self, tenant: str, slot: WorkerSlot) -> bool:
        with self._one_sync_at_a_time(tenant, slot):
            if not await self._scheduler.has_work(tenant, slot):
                return False
            jobs = await self._claim(tenant, slot)
            if not jobs:
                return False
            self._scheduler.note_turn(tenant)
            self._busy += 1
            try:
                await self._work(tenant, jobs)
                await self._report_ended(tenant, jobs)
            finally:
                self._busy -= 1
                self._maintained.pop(tenant, None)  # something has ended: there may be news to tell
        return True

    @contextmanager
    def _one_sync_at_a_time(self, tenant: str, slot: WorkerSlot) -> Iterator[None]:
        """Of one tenant: however many slow sources it has, the others' turns come."""
        if slot.kind == "sync":
            self._syncing.add(tenant)
        try:
            yield
        finally:
            if slot.kind == "sync":
                self._syncing.discard(tenant)

    async def _claim(self, tenant: str, slot: WorkerSlot) -> list[Job]:
        """What is to be done; whoever is stopped meanwhile hands back what it was given all the same."""
        claiming = asyncio.ensure_future(
            self._queue.claim(
                tenant,
                self.name,
                slot.kind,
                lease_seconds=self._settings.lease_seconds,
                attempts=self._settings.attempts,
                most=min(MOST_JOBS, MOST_EXPRESS) if slot.lane == "express" else MOST_JOBS,
                most_bytes=MOST_BYTES,
                lane=slot.lane,
            )
        )
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            await asyncio.wait([claiming])
            if not claiming.exception():
                await asyncio.shield(
                    _hand_back(ClaimedJobs(self._queue, tenant, claiming.result(), self._settings))
                )
            raise

    async def _report_ended(self, tenant: str, jobs: Sequence[Job]) -> None:
        if self._on_end is None:
            return
        for job in jobs:
            now = await self._queue.job(tenant, job.id)
            if now is not None and now.state not in ACTIVE:
                self._on_end(tenant, now)

    async def _nothing_left(self) -> bool:
        for tenant in await self._scheduler.tenants():
            with suppress(TenantGone):
                counts = await self._queue.counts(tenant)
                if counts.get("pending") or counts.get("running"):
                    return False
        return True

    async def _work(self, tenant: str, jobs: Sequence[Job]) -> None:
        claimed = ClaimedJobs(self._queue, tenant, jobs, self._settings)
        doing = asyncio.create_task(self._run_jobs(tenant, jobs, claimed))
        beating = asyncio.create_task(claimed.renew_leases(doing))
        try:
            await doing
        except LeaseLost as lost:
            logger.warning("%s", lost)
        except RagstoneError as error:
            await claimed.give_up(error)
            if isinstance(error, ModelUnavailable):
                raise
        except asyncio.CancelledError:
            if not claimed.is_void:
                await asyncio.shield(_hand_back(claimed))
            if not claimed.is_void or _is_stopped():
                raise
            # All of it was cancelled or taken over, and that ended the work: there is more to do.
        except Exception as error:
            logger.exception("a defect ended %d jobs", len(jobs))
            await claimed.give_up(_Defect(f"a defect: {type(error).__name__}: {error!s:.200}"))
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _run_jobs(self, tenant: str, jobs: Sequence[Job], claimed: ClaimedJobs) -> None:
        if jobs[0].kind == "document":
            await self._documents(tenant, jobs, claimed)
            return
        job = jobs[0]
        if job.kind == "reembed":
            message = await self._refresh(tenant, job, claimed)
            done = JobProgress(percent=100, remarks=(message,))
        else:
            report = await self._run_sync(tenant, job)
            message, done = str(report), JobProgress(percent=100, found=report.counts)
        await self._queue.complete(tenant, job.ticket, message, done)
        claimed.drop(job.ticket)
        await self._queue.ring(tenant)  # there may be documents now, and whoever waited for this to end

    async def _refresh(self, tenant: str, job: Job, claimed: ClaimedJobs) -> str:
        assert self._run_refresh is not None
        batch = claimed.batches[job.ticket]

        def tell(progress: JobProgress) -> None:
            batch.progress = progress

        return await self._run_refresh(tenant, job, tell)

    async def _documents(self, tenant: str, jobs: Sequence[Job], claimed: ClaimedJobs) -> None:
        work_items = []
        for job, item in zip(jobs, await load_items(self._ledger, tenant, jobs), strict=True):
            if item is None:
                gone = f"the original of document {job.document_id} is gone"
                await claimed.fail(job.ticket, NotFoundError.code, gone)
                continue
            work_items.append(WorkItem(item, claimed.batches[job.ticket], document_id=job.document_id))
        await self._pipeline.run(tenant, jobs[0].kb, work_items, settle=claimed.settle)
        for job in jobs:
            batch = claimed.batches[job.ticket]
            if batch.members:
                await self._drop_members(tenant, job, batch)
        await self._tidy(tenant, [job for job in jobs if claimed.batches[job.ticket].is_good])

    async def _drop_members(self, tenant: str, job: Job, batch: JobBatch) -> None:
        """What an archive no longer has goes, unless a newer job is about it."""
        for child in await self._ledger.children(tenant, job.document_id):
            if child not in batch.members:
                async with self._ledger.transaction(tenant) as tx:
                    if await tx.is_newest(job.id, job.document_id):
                        await tx.delete(child)

    async def _tidy(self, tenant: str, jobs: Sequence[Job]) -> None:
        """Originals that nobody needs any more go: those of earlier versions, and these unless they are to be kept."""
        if spent := await self._queue.spent_originals(tenant, jobs):
            await self._ledger.drop_originals(tenant, spent)

    async def _run_maintenance(self) -> None:
        while True:
            try:
                if self._housekeeping:
                    await self._housekeeping()
                for tenant, bell in (await self._scheduler.tenants()).items():
                    heard, when = self._maintained.get(tenant, (-1, 0.0))
                    if heard != bell or time.monotonic() - when >= SWEEP_SECONDS:
                        self._maintained[tenant] = bell, time.monotonic()
                        await self._maintain_tenant(tenant)
            except RagstoneError as error:
                logger.warning("chores were put off: %s", error)
            await asyncio.sleep(MAINTENANCE_SECONDS)

    async def _watch_registry(self) -> None:
        """What a worker of this machine held when it died need not wait for the end of its lease."""
        while self._registry:
            try:
                # On the loop's own thread: a few system calls, and nothing stays locked when this is cancelled.
                found = self._registry.find_dead()
                try:
                    for dead in found:
                        await self._reclaim(dead)
                finally:
                    for dead in found:
                        dead.release()
            except (RagstoneError, OSError) as error:
                logger.warning("dead workers are seen to when their leases end: %s", error)
                await asyncio.sleep(SWEEP_SECONDS)
            await asyncio.sleep(WATCH_SECONDS)

    async def _reclaim(self, dead: DeadWorker) -> None:
        for tenant in await self._queue.bells():
            if await self._queue.take_back(tenant, dead.worker, self._settings.attempts):
                await self._queue.ring(tenant)
        dead.unregister()

    async def _maintain_tenant(self, tenant: str) -> None:
        try:
            await self._maintain(tenant)
        except TenantGone as error:
            logger.info("nothing more is to be done for a tenant: %s", error)
        except RagstoneError as error:
            logger.warning("chores of a tenant were put off: %s", error)
        except Exception:
            # Other tenants' schedules must not end with one tenant's defect.
            logger.exception("a defect ended the chores of a tenant")


def _is_stopped() -> bool:
    """Whether this task itself is to end, and not only what it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _hand_back(claimed: ClaimedJobs) -> None:
    """Hand back what is not done. If that fails the leases tell: a worker that is told to stop stops."""
    try:
        with suppress(TenantGone):
            await claimed.release()
    except RagstoneError as error:
        logger.warning("jobs were not handed back, and will be taken up when their leases end: %s", error)


class _Defect(RagstoneError):
    code = "internal"
    retryable = True
