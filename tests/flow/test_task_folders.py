"""What a task writes while it runs holds a tenant's documents in plain text: it goes, also when a worker is killed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.jobs import Job
from ragstone.engine import tasks
from ragstone.engine.workspace import Workspace
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

postgres_databases = postgres_server.postgres_databases
SECRET = "The tide gate opens at nine."


class Export:
    """Stands in for an export: it writes what it should, and does not end until it is let go or cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.let_go = asyncio.Event()

    async def __call__(self, scope: Any, job: Job, folder: Path, tell: Any) -> tuple[str, bytes]:
        (folder / "archive.zip").write_text(SECRET)
        self.begun.set()
        await self.let_go.wait()
        return "exported", (folder / "archive.zip").read_bytes()


@pytest.fixture(params=["sqlite", "postgres"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    settings = Settings(data_dir=tmp_path / "data")
    if request.param == "postgres":
        ledger = {"kind": "postgres", "dsn": server(18).database(tmp_path)}
        store: Any = {"ledger": ledger, "vectors": {"kind": "pgvector"}, "lexical": {"kind": "postgres"}}
        settings = Settings(data_dir=tmp_path / "data", store=store)
    async with open_engine(settings) as opened:
        await workspace_of(opened).documents.ingest_items([Item("letters", "1", "letters/1", SECRET)])
        yield opened


@pytest.fixture
def export(monkeypatch: pytest.MonkeyPatch) -> Export:
    standing_in = Export()
    monkeypatch.setitem(tasks.RUNS, "export", standing_in)
    return standing_in


def left(engine: Engine) -> list[str]:
    """Return what there is where tasks write."""
    place = engine.settings.data_dir / "tasks"
    return sorted(path.name for path in place.rglob("*"))


async def stop(worker: asyncio.Task[None]) -> None:
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def begin(engine: Engine, export: Export) -> tuple[Job, asyncio.Task[None]]:
    """Queue an export, and return it with a worker that has begun it."""
    job = await workspace_of(engine).tasks.export()
    worker = asyncio.create_task(engine.worker().run(until_idle=True))
    async with asyncio.timeout(60):
        await export.begun.wait()
    return job, worker


async def kill_within(engine: Engine, export: Export, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Queue an export, and stop its worker without letting it remove anything."""
    job, worker = await begin(engine, export)
    with monkeypatch.context() as killed:
        killed.setattr(shutil, "rmtree", lambda *_, **__: None)
        await stop(worker)
    assert "archive.zip" in left(engine)
    return job


async def keep_house(engine: Engine) -> None:
    """Do what a worker does between jobs, for the first time in a process."""
    components = engine._components
    components.__dict__.pop("maintenance", None)
    await components.keep_house()


async def cancel(workspace: Workspace, job: Job) -> None:
    await workspace.jobs.cancel(job.id)


async def put_aside(workspace: Workspace, job: Job) -> None:
    """The job waits for a worker that may be on another machine."""


async def forget(workspace: Workspace, job: Job) -> None:
    await workspace._scope.components.stores.queue.of("default").forget_tasks()


async def claim_elsewhere(workspace: Workspace, job: Job) -> None:
    queue = workspace._scope.components.stores.queue.of("default")
    (claimed,) = await queue.claim("other:1:a", "task", lease_seconds=60, attempts=3, most=1, most_bytes=1)
    assert claimed.id == job.id


async def delete_elsewhere(workspace: Workspace, job: Job) -> None:
    """Another machine, which has a folder of its own, deletes the tenant."""
    here = workspace._scope.components.settings.data_dir
    aside = here.with_name("aside")
    shutil.copytree(here / "tasks", aside)
    await workspace._scope.components.stores.tenants.delete("default")
    shutil.copytree(aside, here / "tasks", dirs_exist_ok=True)


@pytest.mark.parametrize("fate", [cancel, put_aside, forget, claim_elsewhere, delete_elsewhere])
async def test_house_keeping_removes_what_a_killed_task_left(
    engine: Engine, export: Export, monkeypatch: pytest.MonkeyPatch, fate: Callable[[Workspace, Job], Awaitable[None]]
) -> None:
    job = await kill_within(engine, export, monkeypatch)
    await fate(workspace_of(engine), job)
    assert "archive.zip" in left(engine)
    await keep_house(engine)
    assert left(engine) == []


async def test_house_keeping_leaves_a_task_that_runs_its_folder(engine: Engine, export: Export) -> None:
    job, worker = await begin(engine, export)
    await keep_house(engine)
    assert "archive.zip" in left(engine)
    export.let_go.set()
    await worker
    assert (await workspace_of(engine).tasks.result(job.id)).content == SECRET.encode()
    assert left(engine) == []


async def test_house_keeping_removes_folders_of_earlier_versions_unless_their_job_runs(
    engine: Engine, export: Export
) -> None:
    job, worker = await begin(engine, export)
    for name in (job.id, "0" * 32):
        (engine.settings.data_dir / "tasks" / name).mkdir(parents=True, exist_ok=True)
        (engine.settings.data_dir / "tasks" / name / "archive.zip").write_text(SECRET)
    await keep_house(engine)
    assert ("0" * 32 in left(engine), job.id in left(engine)) == (False, True)
    await stop(worker)
    await keep_house(engine)
    assert left(engine) == []


async def test_a_receipt_of_a_tenant_counts_what_a_killed_task_left(
    engine: Engine, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kill_within(engine, export, monkeypatch)
    tenant_id = await engine._components.access.identity("default")
    before = (await engine._components.ledger.remains(tenant_id))["files"]
    (engine.settings.data_dir / "tasks" / tenant_id / "another").mkdir()
    (engine.settings.data_dir / "tasks" / tenant_id / "another" / "archive.zip").write_text(SECRET)
    assert (await engine._components.ledger.remains(tenant_id))["files"] == before + 1
    receipt = await engine.erase_tenant("default")
    assert (receipt.remaining["files"], left(engine)) == ({"files": 0}, [])


async def test_an_erasure_removes_what_any_task_has_written(
    engine: Engine, export: Export, caplog: pytest.LogCaptureFixture
) -> None:
    _, worker = await begin(engine, export)
    (document,) = await workspace_of(engine).documents.list()
    (receipt,) = await workspace_of(engine).erase("document", document.id)
    assert (receipt.target.name, left(engine)) == (document.id, [])
    export.let_go.set()
    await worker
    assert left(engine) == []
    assert [message for message in caplog.messages if "was forgotten while it ran" in message] != []
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_the_next_attempt_removes_what_the_last_one_left(
    engine: Engine, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await kill_within(engine, export, monkeypatch)
    export.let_go.set()
    await engine.worker().run(until_idle=True)
    assert (await workspace_of(engine).tasks.result(job.id)).content == SECRET.encode()
    assert left(engine) == []
