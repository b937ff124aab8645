"""How workers end jobs when things go wrong around them."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.ingest.kit import Kit
from tests.unit.ingest.test_worker_registry import died

from ragstone.core.errors import ModelUnavailable, RemoteError, StoreCorrupt, StoreFull
from ragstone.core.ids import document_id
from ragstone.core.jobs import Job, NewJob, Priority
from ragstone.core.model_types import Embeddings
from ragstone.core.types import Item, Role
from ragstone.ingest.embed import LONG_CHUNKS, SLICE_CHUNKS, WAVE_CHUNKS
from ragstone.ingest.jobs.leases import TenantScheduler, WorkerRegistry, WorkerSlot
from ragstone.ingest.jobs.sync import SyncReport, new_jobs
from ragstone.ingest.jobs.worker import MOST_EXPRESS, MOST_JOBS, Worker
from ragstone.ingest.store import Outcomes
from ragstone.ingest.work import JobBatch, WorkItem
from ragstone.settings.tree import JobSettings
from ragstone.stores.ledger.queue import SqlQueue, SqlTenantQueue
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.testing.fakes import FakeEmbedder

T = "t"
SETTINGS = JobSettings(retry_seconds=0, lease_seconds=30)


async def queue_texts(kit: Kit, *texts: str, priority: Priority = Priority.UPLOAD, first: int = 0) -> None:
    for number, text in enumerate(texts, start=first):
        item = Item("test", str(number), f"{number}.txt", text)
        identity = document_id(T, "default", "test", str(number))
        (job,) = await new_jobs(kit.ledger, T, [WorkItem(item, JobBatch(), document_id=identity)], priority)
        async with kit.ledger.transaction(T) as tx:
            await tx.enqueue(await tx.open_kb("default"), job)


def worker(
    kit: Kit, embedder: FakeEmbedder, settings: JobSettings = SETTINGS, registry: WorkerRegistry | None = None
) -> Worker:
    async def no_sync(tenant: str, job: Job) -> SyncReport:
        raise AssertionError(job)

    async def no_maintenance(tenant: str) -> None:
        pass

    queue = SqlQueue(kit.ledger)
    return Worker(queue, kit.ledger, kit.pipeline(embedder), settings, no_sync, no_maintenance, registry=registry)


async def jobs(kit: Kit) -> list[tuple[str, str, int]]:
    found = await SqlQueue(kit.ledger).of(T).jobs()
    return sorted((job.uri, job.state, job.attempts) for job in found)


async def test_a_failure_that_may_pass_is_tried_again(kit: Kit) -> None:
    await queue_texts(kit, "The ferry.")
    await worker(kit, FakeEmbedder(errors=[StoreFull("no space"), RemoteError("down")])).run(until_idle=True)
    assert await jobs(kit) == [("0.txt", "completed", 3)]


async def test_the_last_attempt_of_a_batch_is_made_as_soon_as_it_is_due(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstone.ingest.jobs.worker.SWEEP_SECONDS", 3600.0)
    await queue_texts(kit, "The ferry.", priority=Priority.BATCH)
    slow_leases = JobSettings(retry_seconds=0, lease_seconds=3600)
    embedder = FakeEmbedder(errors=[StoreFull("no space"), RemoteError("down")])
    await asyncio.wait_for(worker(kit, embedder, slow_leases).run(until_idle=True), 60)
    assert await jobs(kit) == [("0.txt", "completed", 3)]


async def test_work_that_comes_in_as_a_worker_ends_does_not_keep_half_of_it(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue_texts(kit, "The ferry.")
    ends = worker(kit, FakeEmbedder())
    is_idle = ends._is_idle

    async def too_early() -> bool:
        """What a schedule queues right after somebody saw that nothing was left."""
        seen = await is_idle()
        if seen:
            late = NewJob("sync", "mail", "mail", "source:mail", Priority.SYNC)
            async with kit.ledger.transaction(T) as tx:
                await tx.enqueue(await tx.open_kb("default"), late)
        return seen

    monkeypatch.setattr(ends, "_is_idle", too_early)
    await asyncio.wait_for(ends.run(until_idle=True), 240)
    assert await jobs(kit) == [("0.txt", "completed", 1), ("source:mail", "pending", 0)]


async def test_a_failure_that_stays_fails_with_its_reason(kit: Kit) -> None:
    await queue_texts(kit, "The ferry.")
    await worker(kit, FakeEmbedder(errors=[RemoteError("down")] * 3)).run(until_idle=True)
    (job,) = await SqlQueue(kit.ledger).of(T).jobs()
    assert (job.state, job.error_code, job.error, job.attempts) == ("failed", "remote_failed", "down", 3)


async def test_without_its_model_a_worker_stops_and_the_jobs_wait(kit: Kit) -> None:
    """FAULTS 14: ingest pauses with a clear error."""
    await queue_texts(kit, "The ferry.", "The bridge.")
    missing = ModelUnavailable("no weights", hint="install them")
    with pytest.raises(ModelUnavailable, match="no weights"):
        await worker(kit, FakeEmbedder(errors=[missing])).run(until_idle=True)
    assert await jobs(kit) == [("0.txt", "pending", 0), ("1.txt", "pending", 0)]


class Waits(FakeEmbedder):
    """Says when it is asked, and never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_worker_that_is_stopped_hands_its_jobs_back(kit: Kit) -> None:
    await queue_texts(kit, "The ferry.")
    waits = Waits()
    running = asyncio.create_task(worker(kit, waits).run())
    await waits.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await jobs(kit) == [("0.txt", "pending", 0)]


async def test_a_defect_costs_its_own_document_only(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    await queue_texts(kit, "The ferry.", "A trap.")

    def spring(texts: list[str], language: str) -> list[str]:
        if any("trap" in text for text in texts):
            raise RuntimeError("sprung")
        return texts

    monkeypatch.setattr("ragstone.ingest.prepare.analyze_chunks", spring)
    await worker(kit, FakeEmbedder()).run(until_idle=True)
    found = {job.uri: (job.state, job.error) for job in await SqlQueue(kit.ledger).of(T).jobs()}
    assert found == {"0.txt": ("completed", ""), "1.txt": ("failed", "1.txt met a defect: RuntimeError: sprung")}


async def test_a_stale_worker_cannot_store_what_another_one_took_over(kit: Kit) -> None:
    """FAULTS 4: the fencing token."""
    await queue_texts(kit, "The ferry.")
    queue = SqlQueue(kit.ledger)

    class TakenOver(FakeEmbedder):
        async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
            # While this worker embeds, its lease has run out and another has the job.
            running = await queue.of(T).jobs(("running",))
            await queue.of(T).heartbeat({running[0].ticket: running[0].progress}, -1)
            await queue.of(T).claim("other", lease_seconds=60, attempts=9, most=1, most_bytes=1)
            return await super().embed(texts, role)

    running = asyncio.create_task(worker(kit, TakenOver()).run())
    try:
        while (await jobs(kit))[0][2] < 2:  # noqa: ASYNC110  (the ledger has no event to wait for)
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert await kit.names() == []
    (job,) = await queue.of(T).jobs()
    assert (job.state, job.worker, job.attempts) == ("running", "other", 2)


async def test_tenants_take_turns(kit: Kit) -> None:
    """A tenant with one document does not wait behind another one's batch."""
    for tenant, count in (("large", 3 * MOST_JOBS), ("small", 1)):
        for number in range(count):
            item = Item("test", str(number), f"{tenant}/{number}", f"Document {number}.")
            identity = document_id(tenant, "default", "test", str(number))
            (job,) = await new_jobs(
                kit.ledger, tenant, [WorkItem(item, JobBatch(), document_id=identity)], Priority.BATCH
            )
            async with kit.ledger.transaction(tenant) as tx:
                await tx.enqueue(await tx.open_kb("default"), job)
    model = FakeEmbedder()
    await worker(kit, model).run(until_idle=True)
    # One claim of the large batch may go first, never two.
    assert 1 in [len(texts) for texts, _ in model.calls][: MOST_JOBS // WAVE_CHUNKS + 2]


async def test_a_tenant_with_a_broken_file_does_not_stop_the_others(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    await queue_texts(kit, "The ferry.")
    model = FakeEmbedder()
    working = worker(kit, model)
    claim = SqlTenantQueue.claim
    refused: list[SqlTenantQueue] = []

    async def broken_first(self: SqlTenantQueue, *arguments: Any, **options: Any) -> list[Job]:
        if not refused:
            refused.append(self)
            raise StoreCorrupt("not a database")
        return await claim(self, *arguments, **options)

    monkeypatch.setattr(SqlTenantQueue, "claim", broken_first)
    working._scheduler._sweep_seconds = 0.0
    running = asyncio.create_task(working.run())
    while await jobs(kit) != [("0.txt", "completed", 1)]:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_who_waits_for_an_end_hears_of_a_broken_store(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    await queue_texts(kit, "The ferry.")
    working = worker(kit, FakeEmbedder())

    async def broken(*_: Any, **__: Any) -> list[Job]:
        raise StoreFull("no space left")

    monkeypatch.setattr(SqlTenantQueue, "claim", broken)
    with pytest.raises(StoreFull):
        await asyncio.wait_for(working.run(until_idle=True), 240)


async def test_maintenance_survives_a_defect(kit: Kit) -> None:
    await queue_texts(kit, "The ferry.")
    calls = 0

    async def maintain(tenant: str) -> None:
        nonlocal calls
        calls += 1
        raise AssertionError("a defect")

    working = worker(kit, FakeEmbedder())
    working._maintain = maintain
    running = asyncio.create_task(working.run())
    while calls < 2:
        working._maintained.clear()
        await asyncio.sleep(0.05)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert calls >= 2


async def test_work_on_a_cancelled_job_ends(kit: Kit) -> None:
    await queue_texts(kit, "The ferry.")
    waits = Waits()
    running = asyncio.create_task(worker(kit, waits, JobSettings(lease_seconds=3)).run(until_idle=True))
    await waits.asked.wait()
    queue = SqlQueue(kit.ledger)
    (job,) = await queue.of(T).jobs()
    assert await queue.of(T).cancel(job.id)
    await asyncio.wait_for(running, 240)
    assert await jobs(kit) == [("0.txt", "cancelled", 1)]


class HaltsAt(FakeEmbedder):
    """Never answers for a text with this word."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word
        self.halted = asyncio.Event()

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        if any(self.word in text for text in texts):
            self.halted.set()
            await asyncio.Event().wait()
        return await super().embed(texts, role)


@pytest.mark.req("R-ING-34")
async def test_uploads_do_not_wait_for_a_batch_and_are_embedded_a_few_at_a_time(kit: Kit) -> None:
    await queue_texts(kit, "A batch.", priority=Priority.BATCH)
    model = HaltsAt("batch")
    running = asyncio.create_task(worker(kit, model).run())
    await model.halted.wait()
    uploads = [f"The ferry {number}." for number in range(2 * MOST_EXPRESS)]
    await queue_texts(kit, *uploads, first=1)
    await SqlQueue(kit.ledger).signal_work(T)
    while len(await SqlQueue(kit.ledger).of(T).jobs(("completed",))) < len(uploads):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert sum(len(texts) for texts, _ in model.calls) == len(uploads)
    assert max(len(texts) for texts, _ in model.calls) <= MOST_EXPRESS


async def test_what_a_dead_worker_held_does_not_wait_for_a_batch(kit: Kit) -> None:
    await queue_texts(kit, "The ferry.", priority=Priority.BATCH)
    queue = SqlQueue(kit.ledger)
    await queue.of(T).claim("dead", lease_seconds=60, attempts=3, most=1, most_bytes=1)
    await queue_texts(kit, "A batch.", priority=Priority.BATCH, first=1)
    model = HaltsAt("batch")
    running = asyncio.create_task(worker(kit, model, JobSettings(lease_seconds=3)).run())
    await model.halted.wait()
    (held,) = [job for job in await queue.of(T).jobs() if job.worker == "dead"]
    await queue.of(T).heartbeat({held.ticket: held.progress}, -1)
    while ("0.txt", "completed", 2) not in await jobs(kit):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_of_a_wave_only_the_document_whose_ticket_is_void_is_left_out(kit: Kit) -> None:
    await queue_texts(kit, "The ferry.", "The bridge.", "The pier.")
    queue = SqlQueue(kit.ledger)

    class Cancels(FakeEmbedder):
        async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
            (bridge,) = [job for job in await queue.of(T).jobs() if job.uri == "1.txt"]
            assert await queue.of(T).cancel(bridge.id)
            return await super().embed(texts, role)

    model = Cancels()
    await worker(kit, model).run(until_idle=True)
    assert len(model.calls) == 1
    assert await kit.names() == ["0", "2"]
    assert await jobs(kit) == [("0.txt", "completed", 1), ("1.txt", "cancelled", 1), ("2.txt", "completed", 1)]


async def test_a_signal_that_comes_during_a_look_is_not_missed(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    await queue_texts(kit, "The ferry.")
    queue = SqlQueue(kit.ledger)
    batch, express = WorkerSlot("document", "batch"), WorkerSlot("document", "express")
    scheduler = TenantScheduler(queue, sweep_seconds=1000, attempts=3)
    await scheduler.next_tenants(batch)
    look = SqlTenantQueue.next_due

    async def rung(*arguments: Any) -> float | None:
        found = await look(*arguments)
        await queue.signal_work(T)
        scheduler._signals = (float("-inf"), {})  # another slot asks again
        await scheduler.next_tenants(express)
        return None if found == 0 else found

    monkeypatch.setattr(SqlTenantQueue, "next_due", rung)
    assert not await scheduler.has_work(T, batch)
    assert await scheduler.next_tenants(batch) == [T]


async def test_documents_do_not_wait_for_a_slow_source(kit: Kit) -> None:
    await queue_texts(kit, "The ferry.")
    async with kit.ledger.transaction(T) as tx:
        await tx.enqueue(await tx.open_kb("default"), NewJob("sync", "slow", "slow", "source:slow", Priority.UPLOAD))
    working = worker(kit, FakeEmbedder())
    fetching = asyncio.Event()

    async def slow(tenant: str, job: Job) -> SyncReport:
        fetching.set()
        await asyncio.Event().wait()
        raise AssertionError

    working._run_sync = slow
    running = asyncio.create_task(working.run())
    await fetching.wait()
    while ("0.txt", "completed", 1) not in await jobs(kit):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.req("R-ING-19")
async def test_progress_is_seen_while_a_document_is_embedded(kit: Kit) -> None:
    text = " ".join(f"Sentence number {number} is here." for number in range(LONG_CHUNKS + 64))
    await queue_texts(kit, text)

    class Halts(FakeEmbedder):
        async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
            if f"Sentence number {2 * SLICE_CHUNKS} is here." in texts:
                await asyncio.Event().wait()
            return await super().embed(texts, role)

    running = asyncio.create_task(worker(kit, Halts(), JobSettings(lease_seconds=3)).run())
    queue = SqlQueue(kit.ledger)
    while (seen := (await queue.of(T).jobs())[0].progress).chunks < 2 * SLICE_CHUNKS:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (seen.stage, seen.chunks, seen.chunks_total) == ("embed", 2 * SLICE_CHUNKS, LONG_CHUNKS + 64)
    assert seen.percent == 20 + round(70 * 2 * SLICE_CHUNKS / (LONG_CHUNKS + 64))
    assert seen.eta_seconds is not None


async def test_what_a_dead_worker_held_does_not_wait_for_its_lease(kit: Kit, tmp_path: Path) -> None:
    await queue_texts(kit, "The ferry.")
    hours = JobSettings(lease_seconds=3600)
    died(tmp_path / "workers", "dead")
    await SqlQueue(kit.ledger).of(T).claim("dead", lease_seconds=3600, attempts=3, most=1, most_bytes=1000)
    async with asyncio.timeout(240):
        await worker(kit, FakeEmbedder(), hours, WorkerRegistry(tmp_path / "workers")).run(until_idle=True)
    assert await jobs(kit) == [("0.txt", "completed", 2)]
    assert list((tmp_path / "workers").iterdir()) == []


async def test_what_a_living_worker_holds_stays_with_it(kit: Kit, tmp_path: Path) -> None:
    await queue_texts(kit, "The ferry.")
    registry = WorkerRegistry(tmp_path / "workers")
    with registry.register("alive"):
        await SqlQueue(kit.ledger).of(T).claim("alive", lease_seconds=3600, attempts=3, most=1, most_bytes=1000)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await worker(kit, FakeEmbedder(), JobSettings(lease_seconds=3600), registry).run(until_idle=True)
    assert await jobs(kit) == [("0.txt", "running", 1)]


async def queue_archive(kit: Kit, *members: str) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in members:
            archive.writestr(f"{name}.txt", f"The {name} is here.")
    item = Item("test", "all", "all.zip", file.getvalue())
    identity = document_id(T, "default", "test", "all")
    (job,) = await new_jobs(kit.ledger, T, [WorkItem(item, JobBatch(), document_id=identity)], Priority.UPLOAD)
    async with kit.ledger.transaction(T) as tx:
        await tx.enqueue(await tx.open_kb("default"), job)


@pytest.mark.parametrize("members", [("ferry", "pier"), ("ferry",)], ids=["with a new one", "all of them unchanged"])
async def test_what_a_newer_archive_lacks_is_gone_once_its_job_has_completed(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, members: Sequence[str]
) -> None:
    await queue_archive(kit, "ferry", "bridge")
    await worker(kit, FakeEmbedder()).run(until_idle=True)
    await queue_archive(kit, *members)
    seen: list[list[str]] = []

    async def look(self: SqliteLedger, tenant: str) -> None:
        """Look at what a process that dies right after a commit leaves behind."""
        if ("all.zip", "running", 1) not in await jobs(kit):
            seen.append(await kit.names())

    monkeypatch.setattr(SqliteLedger, "_try_catch_up", look)
    await worker(kit, FakeEmbedder()).run(until_idle=True)
    assert seen[0] == [f"all!/{name}.txt" for name in members]
    assert await kit.names() == seen[0]


async def test_the_completion_of_a_job_is_not_taken_for_its_loss(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    await queue_archive(kit, "ferry", "bridge")
    beats: list[asyncio.Event] = []
    cancelled: list[str] = []
    heartbeat = SqlTenantQueue.heartbeat
    monkeypatch.setattr("ragstone.ingest.jobs.leases.BEAT_SECONDS", 0.001)

    async def beat(self: SqlTenantQueue, *arguments: Any) -> Any:
        try:
            return await heartbeat(self, *arguments)
        finally:
            for waiting in beats:
                waiting.set()

    async def catch_up(self: SqliteLedger, tenant: str) -> None:
        """Take so long that leases are renewed before the storing of the last wave is through."""
        if ("all.zip", "completed", 1) in await jobs(kit):
            try:
                for _ in range(3):
                    beats.append(asyncio.Event())
                    await beats[-1].wait()
            except asyncio.CancelledError:
                cancelled.append(tenant)
                raise

    monkeypatch.setattr(SqlTenantQueue, "heartbeat", beat)
    monkeypatch.setattr(SqliteLedger, "_try_catch_up", catch_up)
    await worker(kit, FakeEmbedder()).run(until_idle=True)
    assert (len(beats), cancelled) == (3, [])


async def test_a_job_ends_whose_archive_was_read_to_its_end_while_its_last_member_was_stored(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue_archive(kit, "ferry")
    batches: list[JobBatch] = []
    close = Outcomes.close_batch

    async def later(self: Outcomes, batch: JobBatch) -> None:
        batches.append(batch)

    async def catch_up(self: SqliteLedger, tenant: str) -> None:
        for batch in batches:
            await close(None, batch)  # type: ignore[arg-type]
        batches.clear()

    monkeypatch.setattr(Outcomes, "close_batch", later)
    monkeypatch.setattr(SqliteLedger, "_try_catch_up", catch_up)
    await worker(kit, FakeEmbedder()).run(until_idle=True)
    assert await jobs(kit) == [("all.zip", "completed", 1)]
