"""Claim jobs and work on them until each one completes, or fails with a reason."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress

from ragstone.core.audit import working_for
from ragstone.core.errors import LeaseLost, ModelUnavailable, NotFoundError, RagstoneError, TenantGone
from ragstone.core.ids import opaque_id
from ragstone.core.jobs import ACTIVE, Job, JobProgress, TaskResult
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import Queue
from ragstone.ingest.jobs.leases import ClaimedJobs, DeadWorker, TenantScheduler, WorkerRegistry, WorkerSlot
from ragstone.ingest.jobs.sync import SyncReport, load_items
from ragstone.ingest.pipeline import IngestPipeline
from ragstone.ingest.work import WorkItem
from ragstone.settings.tree import JobSettings

logger = logging.getLogger(__name__)
MOST_JOBS = 128
"""As many small documents as fill a wave of the model."""
MOST_EXPRESS = 8
MOST_SYNCS = 8
"""Sources that are read at once, each of another tenant: they mostly wait for a remote service."""
MOST_BYTES = 32 * 1024 * 1024
SWEEP_SECONDS = 30.0
"""Seconds between two looks at tenants that signalled no work."""
MAINTENANCE_SECONDS = 0.5
WATCH_SECONDS = 0.2

RunSync = Callable[[str, Job], Awaitable[SyncReport]]
"""Reads the source of a sync job and reports what it found."""
RunRefresh = Callable[[str, Job, Callable[[JobProgress], None]], Awaitable[str]]
"""Refreshes the embeddings of a kb, reports its progress, and returns a summary."""
RunTask = Callable[[str, Job, Callable[[JobProgress], None]], Awaitable[tuple[str, TaskResult]]]
"""Does a task, reports its progress, and returns a summary and the file that it made."""
OnEnd = Callable[[str, Job], None]
"""Takes the tenant and a job that has ended."""
EXTRA_SLOTS = (
    # A source may be slow: neither documents nor the sources of other tenants wait for it.
    *(WorkerSlot("sync", "all"),) * MOST_SYNCS,
    # Uploads do not wait until a batch has ended. Last attempts are made in this slot only, so that of all documents
    # only the one that keeps killing workers fails.
    WorkerSlot("document", "express"),
    # Jobs of a dead worker are taken up within two leases, however busy the other workers are.
    *(WorkerSlot("document", "lost"),) * 4,
)
"""Slots of every worker besides its batches."""
MaintainTenant = Callable[[str], Awaitable[None]]
"""Does what is due for a tenant besides jobs: schedules, webhooks, cleaning up."""


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
        run_task: RunTask | None = None,
    ) -> None:
        self._queue = queue
        self._ledger = ledger
        self._pipeline = pipeline
        self._settings = settings
        self._run_sync = run_sync
        self._run_refresh = run_refresh
        self._run_task = run_task
        self._maintain = maintain
        self._on_end = on_end
        self._housekeeping = housekeeping
        self._registry = registry
        self.name = f"{platform.node()}:{os.getpid()}:{opaque_id()[:6]}"
        self._scheduler = TenantScheduler(queue, min(SWEEP_SECONDS, settings.lease_seconds), settings.attempts, only)
        self._busy = 0
        self._syncing: set[str] = set()
        self._ended = False
        self._missing: ModelUnavailable | None = None
        """Tells of a model that jobs wait for, to who waits for the end."""
        self._maintained: dict[str, tuple[int, float]] = {}

    async def run(self, *, until_idle: bool = False) -> None:
        """Work until cancelled or, if asked to, until every job has ended."""
        with self._registry.register(self.name) if self._registry else nullcontext():
            await self._run(until_idle=until_idle)

    async def _run(self, *, until_idle: bool) -> None:
        self._ended, self._missing = False, None
        background = [asyncio.create_task(self._run_maintenance()), asyncio.create_task(self._watch_registry())]
        batches = (WorkerSlot("document", "batch"),) * self._settings.workers
        # One at a time: no caller waits for it, and it takes the model from jobs that callers wait for.
        refresh = (WorkerSlot("reembed", "all"),) if self._run_refresh else ()
        tasks = (WorkerSlot("task", "all"),) if self._run_task else ()
        wanted = (*EXTRA_SLOTS, *refresh, *tasks, *batches)
        slots = [asyncio.create_task(self._run_slot(slot, until_idle)) for slot in wanted]
        try:
            await asyncio.gather(*slots)
            if self._missing:
                raise self._missing
        finally:
            for task in (*background, *slots):
                if not task.cancelling():  # a second cancel would interrupt the release that the first began
                    task.cancel()
            await asyncio.gather(*background, *slots, return_exceptions=True)

    async def _run_slot(self, slot: WorkerSlot, until_idle: bool) -> None:
        while not self._ended:
            if await self._take_turn(slot, tolerant=not until_idle):
                continue
            if until_idle and not self._busy and await self._is_idle():
                # All slots stop together: one alone would wait for jobs that only another slot takes.
                self._ended = True
            await self._scheduler.rest()

    async def _take_turn(self, slot: WorkerSlot, *, tolerant: bool = True) -> bool:
        """Work for one tenant; return False if no tenant had work."""
        for tenant in await self._scheduler.next_tenants(slot):
            if slot.kind == "sync" and tenant in self._syncing:
                continue
            try:
                if await self._claim_and_work(tenant, slot):
                    return True
            except ModelUnavailable as error:
                # It may be the model of this tenant or kb alone: neither others nor their maintenance wait for it.
                logger.warning("jobs of a tenant wait for a model that is not here: %s", error)
                self._missing = None if tolerant else error
            except TenantGone as error:
                logger.info("dropping the jobs of a deleted tenant: %s", error)
            except RagstoneError as error:
                if not tolerant:
                    raise  # the caller waits for the end
                # A broken file or a full disk must not stop other tenants; claimed jobs come back with their lease.
                logger.warning("cannot work on jobs of a tenant: %s", error)
                self._scheduler.postpone(tenant, slot)
        return False

    async def _claim_and_work(self, tenant: str, slot: WorkerSlot) -> bool:
        with self._limit_syncs(tenant, slot):
            if not await self._scheduler.has_work(tenant, slot):
                return False
            jobs = await self._claim(tenant, slot)
            if not jobs:
                return False
            self._scheduler.note_turn(tenant)
            self._busy += 1
            try:
                with working_for(tenant):
                    await self._work(tenant, jobs)
                await self._report_ended(tenant, jobs)
            finally:
                self._busy -= 1
                self._maintained.pop(tenant, None)  # there may be notices to send
        return True

    @contextmanager
    def _limit_syncs(self, tenant: str, slot: WorkerSlot) -> Iterator[None]:
        """Keep a tenant with many slow sources from taking all sync slots."""
        if slot.kind == "sync":
            self._syncing.add(tenant)
        try:
            yield
        finally:
            if slot.kind == "sync":
                self._syncing.discard(tenant)

    async def _claim(self, tenant: str, slot: WorkerSlot) -> list[Job]:
        """Claim jobs; if the worker is stopped before it has them, they are handed back."""
        claiming = asyncio.ensure_future(
            self._queue.of(tenant).claim(
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
                await asyncio.shield(_hand_back(self._hold(tenant, claiming.result())))
            raise

    def _hold(self, tenant: str, jobs: Sequence[Job]) -> ClaimedJobs:
        return ClaimedJobs(self._queue, self._ledger, tenant, jobs, self._settings)

    async def _report_ended(self, tenant: str, jobs: Sequence[Job]) -> None:
        if self._on_end is None:
            return
        for job in jobs:
            now = await self._queue.of(tenant).job(job.id)
            if now is not None and now.state not in ACTIVE:
                self._on_end(tenant, now)

    async def _is_idle(self) -> bool:
        """Return whether nothing is left to do but what waits for a model that was found missing."""
        for tenant in await self._scheduler.tenants():
            with suppress(TenantGone):
                queue = self._queue.of(tenant)
                counts = await queue.counts()
                waiting = counts.get("pending", 0)
                if counts.get("running") or (waiting and not self._missing):
                    return False
                left = await queue.jobs(("pending",), limit=waiting) if waiting else []
                if any(job.error_code != ModelUnavailable.code for job in left):
                    return False
        return True

    async def _work(self, tenant: str, jobs: Sequence[Job]) -> None:
        claimed = self._hold(tenant, jobs)
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
            # The work was cancelled because all its jobs were cancelled or taken over: the slot goes on.
        except Exception as error:
            logger.exception("unexpected error in %d jobs", len(jobs))
            await claimed.give_up(_Defect(f"a defect: {type(error).__name__}: {error!s:.200}"))
        finally:
            beating.cancel()
            if claimed.are_put_back:
                self._scheduler.look_again(tenant)
            await asyncio.gather(beating, return_exceptions=True)

    async def _run_jobs(self, tenant: str, jobs: Sequence[Job], claimed: ClaimedJobs) -> None:
        if jobs[0].kind == "document":
            await self._ingest_documents(tenant, jobs, claimed)
            return
        job, result = jobs[0], None
        if job.kind == "reembed":
            assert self._run_refresh is not None
            message = await self._run_refresh(tenant, job, _progress_of(job, claimed))
            done = JobProgress(percent=100, remarks=(message,))
        elif job.kind == "task":
            assert self._run_task is not None
            message, result = await self._run_task(tenant, job, _progress_of(job, claimed))
            done = JobProgress(percent=100, remarks=(message,))
        else:
            report = await self._run_sync(tenant, job)
            message, done = str(report), JobProgress(percent=100, found=report.counts)
        try:
            with claimed.batches[job.ticket].ending():
                await self._queue.of(tenant).complete(job.ticket, message, done, result)
        except LeaseLost:
            await self._drop_file(tenant, job, result.name if result else "")
            raise
        claimed.drop(job.ticket)
        await self._drop_file(tenant, job, str(job.facts.get("original") or ""))  # an archive that was imported
        await self._queue.signal_work(tenant)  # there may be documents now, or a job that waited for this one

    async def _drop_file(self, tenant: str, job: Job, name: str) -> None:
        if name:
            await self._ledger.of(tenant).drop_originals([(job.document_id, name)])

    async def _ingest_documents(self, tenant: str, jobs: Sequence[Job], claimed: ClaimedJobs) -> None:
        work_items = []
        for job, item in zip(jobs, await load_items(self._ledger, tenant, jobs), strict=True):
            if item is None:
                gone = f"the original of document {job.document_id} is gone"
                await claimed.fail(job.ticket, NotFoundError.code, gone)
                continue
            work_items.append(WorkItem(item, claimed.batches[job.ticket], document_id=job.document_id))
        await self._pipeline.run(tenant, jobs[0].kb, work_items, settle=claimed.settle)
        await self._tidy(tenant, [job for job in jobs if claimed.batches[job.ticket].is_good])

    async def _tidy(self, tenant: str, jobs: Sequence[Job]) -> None:
        """Delete originals of earlier versions, and those of these jobs unless they are to be kept."""
        if spent := await self._queue.of(tenant).spent_originals(jobs):
            await self._ledger.of(tenant).drop_originals(spent)

    async def _run_maintenance(self) -> None:
        while True:
            try:
                if self._housekeeping:
                    await self._housekeeping()
                for tenant, signal in (await self._scheduler.tenants()).items():
                    heard, when = self._maintained.get(tenant, (-1, 0.0))
                    if heard != signal or time.monotonic() - when >= SWEEP_SECONDS:
                        self._maintained[tenant] = signal, time.monotonic()
                        await self._maintain_tenant(tenant)
            except RagstoneError as error:
                logger.warning("cannot run maintenance, trying again later: %s", error)
            await asyncio.sleep(MAINTENANCE_SECONDS)

    async def _watch_registry(self) -> None:
        """Reclaim the jobs of workers that died on this machine, before their leases end."""
        while self._registry:
            try:
                # In the event loop: a few system calls, and no lock is left behind when this is cancelled.
                found = self._registry.find_dead()
                try:
                    for dead in found:
                        await self._reclaim(dead)
                finally:
                    for dead in found:
                        dead.release()
            except (RagstoneError, OSError) as error:
                logger.warning("cannot reclaim jobs of dead workers: %s", error)
                await asyncio.sleep(SWEEP_SECONDS)
            await asyncio.sleep(WATCH_SECONDS)

    async def _reclaim(self, dead: DeadWorker) -> None:
        for tenant in await self._queue.work_signals():
            if await self._queue.of(tenant).take_back(dead.worker, self._settings.attempts):
                await self._queue.signal_work(tenant)
        dead.unregister()

    async def _maintain_tenant(self, tenant: str) -> None:
        try:
            with working_for(tenant):
                await self._maintain(tenant)
        except TenantGone as error:
            logger.info("skipping maintenance of a deleted tenant: %s", error)
        except RagstoneError as error:
            logger.warning("cannot maintain a tenant, trying again later: %s", error)
        except Exception:
            # A defect in one tenant must not stop the schedules of others.
            logger.exception("unexpected error in the maintenance of a tenant")


def _progress_of(job: Job, claimed: ClaimedJobs) -> Callable[[JobProgress], None]:
    batch = claimed.batches[job.ticket]

    def note_progress(progress: JobProgress) -> None:
        batch.progress = progress

    return note_progress


def _is_stopped() -> bool:
    """Return whether this task itself was cancelled, and not only what it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _hand_back(claimed: ClaimedJobs) -> None:
    """Hand back unfinished jobs. If that fails, they come back when their leases end."""
    try:
        with suppress(TenantGone):
            await claimed.release()
    except RagstoneError as error:
        logger.warning("cannot hand back jobs, they come back when their leases end: %s", error)


class _Defect(RagstoneError):
    code = "internal"
    retryable = True
