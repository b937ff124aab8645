"""How a worker goes on when a model that some of its documents need is not here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.unit.ingest.kit import Kit, Unlimited
from tests.unit.ingest.test_worker import SETTINGS

from ragstone.core.errors import ModelUnavailable
from ragstone.core.ids import document_id
from ragstone.core.jobs import Job, Priority
from ragstone.core.model_types import Embeddings
from ragstone.core.protocols import Embedder
from ragstone.core.types import Item, Role
from ragstone.ingest.embed import ModelChoice
from ragstone.ingest.jobs.sync import SyncReport, new_jobs
from ragstone.ingest.jobs.worker import Worker
from ragstone.ingest.pipeline import IngestPipeline
from ragstone.ingest.work import JobBatch, WorkItem
from ragstone.settings.tree import LimitSettings
from ragstone.stores.ledger.queue import SqlQueue
from ragstone.testing.fakes import FakeEmbedder


class Missing(FakeEmbedder):
    """Has no weights."""

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        raise ModelUnavailable("no weights of special", hint="install them")


async def queue_text(kit: Kit, tenant: str) -> None:
    identity = document_id(tenant, "default", "test", "pier")
    work = WorkItem(Item("test", "pier", "pier.txt", "The pier is here."), JobBatch(), document_id=identity)
    (job,) = await new_jobs(kit.ledger, tenant, [work], Priority.UPLOAD)
    async with kit.ledger.transaction(tenant) as tx:
        await tx.enqueue(await tx.open_kb("default"), job)


async def job_of(kit: Kit, tenant: str) -> tuple[str, int, str]:
    (job,) = await SqlQueue(kit.ledger).of(tenant).jobs()
    return job.state, job.attempts, job.error


@pytest.fixture
async def worker(kit: Kit) -> Worker:
    """A worker whose own model is here, and that of the tenant `acme` is not; both tenants have a document to make."""

    class Own(FakeEmbedder):
        async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
            while not (await job_of(kit, "acme"))[2]:  # noqa: ASYNC110  (the ledger has no event to wait for)
                await asyncio.sleep(0.01)
            return await super().embed(texts, role)

    async def of_tenant(tenant: str) -> Embedder | None:
        return Missing(name="special") if tenant == "acme" else None

    async def no_sync(tenant: str, job: Job) -> SyncReport:
        raise AssertionError(job)

    async def no_maintenance(tenant: str) -> None:
        pass

    for tenant in ("acme", "beta"):
        await queue_text(kit, tenant)
    made, own = kit.pipeline(), Own()
    choice = ModelChoice(own.model.id, own, of_tenant=of_tenant)
    pipeline = IngestPipeline(kit.ledger, made._preparer, choice, made._verifier, LimitSettings(), Unlimited())
    return Worker(SqlQueue(kit.ledger), kit.ledger, pipeline, SETTINGS, no_sync, no_maintenance)


LACKING = ("pending", 0, "no weights of special")


async def test_a_model_that_only_one_tenant_lacks_holds_up_no_other_tenant(kit: Kit, worker: Worker) -> None:
    running = asyncio.create_task(worker.run())
    while not running.done() and (await job_of(kit, "beta"))[0] != "completed":  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    going_on = not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert going_on
    assert await job_of(kit, "acme") == LACKING


async def test_who_waits_for_an_end_hears_of_a_missing_model_once_the_rest_is_done(kit: Kit, worker: Worker) -> None:
    with pytest.raises(ModelUnavailable, match="no weights of special"):
        await asyncio.wait_for(worker.run(until_idle=True), 240)
    assert await job_of(kit, "beta") == ("completed", 1, "")
    assert await job_of(kit, "acme") == LACKING
