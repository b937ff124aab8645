"""What may hold a copy of what is erased goes with it, also what is made meanwhile, and nothing else does."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ragstone import Engine, Settings, open_engine
from ragstone.core.jobs import Job
from ragstone.engine import tasks
from ragstone.engine.access import TenantScope
from ragstone.engine.erasure import Eraser
from ragstone.engine.workspace import Workspace
from ragstone.stores.control.replies import SqlReplyBook
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.ledger.transaction import SqlTransaction
from ragstone.testing.fakes import FakeEmbedder

REQUEST = "1" * 64


@pytest.fixture
async def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    async with open_engine(Settings(data_dir=tmp_path, tenant="acme", kb="a")) as opened:
        for kb in ("a", "b"):
            await opened.workspace("acme").documents.upload(f"The secret of {kb}.".encode(), f"{kb}.md", kb=kb)
        await opened.worker().run(until_idle=True)
        yield opened


async def document_in(acme: Workspace, kb: str) -> str:
    (found,) = await acme.documents.list(kb=kb)
    return found.id


def an_archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("broken", "PK")
    return file.getvalue()


async def make_copies(engine: Engine) -> dict[str, str]:
    """Make articles, exports, imports and replies; return the ids of the tasks by what they are."""
    acme = engine.workspace("acme")
    for kb in ("a", "b"):
        await acme.articles.start("The secret", kb=kb)
    made = {
        "export of a": await acme.tasks.export(kbs=["a"]),
        "export of b": await acme.tasks.export(kbs=["b"]),
        "export of both": await acme.tasks.export(),
    }
    await engine.worker().run(until_idle=True)
    made["import"] = await acme.tasks.import_archive(an_archive())
    await engine.replies.begin(REQUEST, await tenant_id(engine), "f", "done")
    await engine.replies.finish(REQUEST, "done", b"The secret")
    return {name: job.id for name, job in made.items()}


async def copies_left(engine: Engine, made: dict[str, str]) -> list[str]:
    acme = engine.workspace("acme")
    there = {job.id for job in await acme.jobs.list()}
    articles = [f"article on {kb}" for kb in ("a", "b") if await acme.articles.list(kb=kb)]
    reply = await engine.replies.begin(REQUEST, await tenant_id(engine), "f", "again")
    return [*articles, *(name for name, job in made.items() if job in there), *(["reply"] if reply.sealed else [])]


async def tenant_id(engine: Engine) -> str:
    (found,) = await engine.tenants.all()
    return found.id


EVERYTHING = ["article on a", "article on b", "export of a", "export of b", "export of both", "import", "reply"]


async def test_what_does_not_exist_or_is_not_seen_takes_nothing_with_it(engine: Engine) -> None:
    acme, made = engine.workspace("acme"), await make_copies(engine)
    assert await acme.erase("document", "0" * 32) == []
    assert await engine.workspace("acme", kbs=["b"]).erase("document", await document_in(acme, "a")) == []
    assert await acme.erase("kb", "none") == []
    assert await copies_left(engine, made) == EVERYTHING


@pytest.mark.parametrize("kbs", [(), ("a",)], ids=["any caller", "a caller limited to it"])
@pytest.mark.parametrize("kind", ["document", "kb"])
async def test_copies_that_may_hold_it_go_and_those_of_other_kbs_stay(
    engine: Engine, kind: str, kbs: tuple[str, ...]
) -> None:
    acme, made = engine.workspace("acme"), await make_copies(engine)
    target = await document_in(acme, "a") if kind == "document" else "a"
    (receipt,) = await engine.workspace("acme", kbs=kbs).erase(kind, target)  # type: ignore[arg-type]
    assert receipt.complete, receipt
    assert receipt.removed["files"]["originals"] == 4, receipt
    left = await copies_left(engine, made)
    assert left == ["article on b", "export of b"]


async def test_an_export_that_runs_meanwhile_keeps_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    acme = engine.workspace("acme")
    document = await document_in(acme, "a")
    reading, erased = asyncio.Event(), asyncio.Event()
    run, count = tasks.RUNS["export"], Eraser._count_files

    async def slow(scope: TenantScope, job: Job, folder: Path, tell: tasks.Tell) -> tuple[str, bytes]:
        done = await run(scope, job, folder, tell)
        reading.set()
        await erased.wait()
        return done

    async def count_late(*arguments: Any) -> int:
        """Count when an export that was queued after all else has read the document."""
        if not made:
            made.append(await acme.tasks.export())
            working.append(asyncio.create_task(engine.worker().run(until_idle=True)))
            await reading.wait()
        return await count(*arguments)

    made: list[Job] = []
    working: list[asyncio.Task[None]] = []
    monkeypatch.setitem(tasks.RUNS, "export", slow)
    monkeypatch.setattr(Eraser, "_count_files", count_late)
    (receipt,) = await acme.erase("document", document)
    erased.set()
    await asyncio.gather(*working)
    assert receipt.complete, receipt
    (queued,) = made
    assert queued.id not in [job.id for job in await acme.jobs.list()]
    folder = engine.settings.data_dir
    kept = [file for file in folder.rglob("*") if file.is_file() and queued.document_id in str(file)]
    assert kept == []


async def test_who_dies_right_after_the_erasure_leaves_no_copy(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    acme, made = engine.workspace("acme"), await make_copies(engine)
    document = await document_in(acme, "a")

    class Killed(BaseException):
        pass

    async def die(self: SqliteLedger, tenant: str) -> None:
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(SqliteLedger, "_try_catch_up", die)
        with pytest.raises(Killed):
            await acme.erase("document", document)
    assert await acme.documents.list(kb="a") == []
    assert await copies_left(engine, made) == ["article on b", "export of b"]


async def test_a_reply_under_way_is_not_kept(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    acme, erase = engine.workspace("acme"), SqlTransaction.erase
    document, tenant = await document_in(acme, "a"), await tenant_id(engine)

    async def erase_late(*arguments: object) -> object:
        """Erase when a request that came after all else has read the document."""
        assert (await SqlReplyBook(engine._components.ledger).begin(REQUEST, tenant, "f", "asker")).state == "begun"
        return await erase(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(SqlTransaction, "erase", erase_late)
    (receipt,) = await acme.erase("document", document)
    await engine.replies.finish(REQUEST, "asker", b"The secret")
    assert receipt.complete
    assert (await engine.replies.begin(REQUEST, tenant, "f", "again")).sealed is None


@pytest.mark.parametrize("how", ["remove", "remove with documents", "erase"])
async def test_a_source_with_the_name_of_a_task_takes_no_task_with_it(engine: Engine, tmp_path: Path, how: str) -> None:
    acme = engine.workspace("acme")
    await acme.archive.export(tmp_path / "b.zip", kbs=["b"])
    await acme.tasks.import_archive((tmp_path / "b.zip").read_bytes())
    await engine.worker().run(until_idle=True)
    if how != "erase":  # which takes along what has not ended
        await acme.tasks.import_archive((tmp_path / "b.zip").read_bytes())
    made = {job.id: job for job in await acme.jobs.list() if job.kind == "task"}
    await acme.sources.add("files", "import", {"path": str(tmp_path)})
    if how == "erase":
        (receipt,) = await acme.erase("source", "import")
        assert receipt.complete, receipt
    else:
        await acme.sources.remove("import", keep_documents=how == "remove")
    assert {job.id: job for job in await acme.jobs.list() if job.kind == "task"} == made
    await engine.worker().run(until_idle=True)
    assert [(await acme.tasks.result(job_id)).filename for job_id in made] == ["import.json"] * len(made)
    assert {notice.job_id for notice in await acme.jobs.notices()} >= set(made)
