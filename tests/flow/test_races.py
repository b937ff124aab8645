"""Runs, uploads, workers and deletions that meet: nothing is lost, nothing stays behind, nobody waits for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from tests.flow.gated import GatedEmbedder

from ragstone import Engine, Settings, open_engine
from ragstone.core.errors import NotFoundError, StoreFull
from ragstone.core.tenants import Quotas
from ragstone.ingest.diff import SourceDiff
from ragstone.ingest.embed import LONG_CHUNKS
from ragstone.ingest.jobs import leases as held
from ragstone.ingest.sources.files.source import FilesSource
from ragstone.stores.blobs import Blobs
from ragstone.stores.ledger.queue import SqlTenantQueue
from ragstone.stores.ledger.repository import in_transaction
from ragstone.stores.ledger.transaction import SqlTransaction
from ragstone.testing.workspaces import workspace_of


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> GatedEmbedder:
    fake = GatedEmbedder()
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: fake)
    return fake


@pytest.fixture
async def engine(model: GatedEmbedder, tmp_path: Path) -> AsyncIterator[Engine]:
    chunking: Any = {"strategy": "sentence", "size": 8, "overlap": 0}
    async with open_engine(Settings(data_dir=tmp_path / "data", chunking=chunking)) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One file to take in."""
    made = tmp_path / "docs"
    made.mkdir()
    (made / "a.txt").write_text("The ferry leaves at nine.")
    return made


async def names(engine: Engine) -> list[str]:
    return sorted(Path(one.external_id).name for one in await workspace_of(engine).documents.list(limit=1000))


async def live_text(engine: Engine) -> list[str]:
    return [
        await workspace_of(engine).documents.text(one.id)
        for one in await workspace_of(engine).documents.list(limit=1000)
    ]


async def worked(engine: Engine) -> None:
    await asyncio.wait_for(engine.worker().run(until_idle=True), 240)


async def test_a_run_that_saw_the_old_names_removes_nothing_that_another_has_moved(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workspace_of(engine).documents.ingest(folder)
    (folder / "a.txt").rename(folder / "b.txt")
    changed, first, go = SourceDiff.compare, asyncio.Event(), asyncio.Event()

    async def slow(self: SourceDiff, tasks: Any) -> Any:
        if not first.is_set():
            first.set()
            await go.wait()
        return await changed(self, tasks)

    monkeypatch.setattr(SourceDiff, "compare", slow)
    late = asyncio.create_task(workspace_of(engine).documents.ingest(folder))
    await first.wait()
    assert (await workspace_of(engine).documents.ingest(folder)).moved == 1
    go.set()
    assert (await late).removed == 0
    assert await names(engine) == ["b.txt"]


async def test_a_move_to_a_place_that_another_run_has_taken_fails_nobody(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workspace_of(engine).documents.ingest(folder)
    (folder / "a.txt").rename(folder / "b.txt")
    (folder / "new.txt").write_text("Something new.")
    moved = SourceDiff._match_move

    async def beaten(self: SourceDiff, task: Any) -> Any:
        if self._lost and task.item.external_id.endswith("b.txt"):
            await workspace_of(engine).documents.ingest(folder / "b.txt")
        return await moved(self, task)

    monkeypatch.setattr(SourceDiff, "_match_move", beaten)
    report = await workspace_of(engine).documents.ingest(folder)
    assert report.failed == ()
    assert await names(engine) == ["b.txt", "new.txt"]


async def test_what_goes_live_while_its_source_is_removed_is_kept_if_it_was_to_be(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workspace_of(engine).sources.add("files", "notes", {"path": str(folder)})
    await workspace_of(engine).sources.sync("notes")
    activate, removing = SqlTransaction.activate_all, list[asyncio.Task[int]]()

    async def meanwhile(self: SqlTransaction, kb: Any, versions: Any) -> None:
        removing.append(asyncio.create_task(workspace_of(engine).sources.remove("notes", keep_documents=True)))
        await asyncio.sleep(0.2)
        await activate(self, kb, versions)

    monkeypatch.setattr(SqlTransaction, "activate_all", meanwhile)
    await worked(engine)
    await asyncio.gather(*removing)
    assert await names(engine) == ["a.txt"]


@pytest.mark.req("R-ING-16")
async def test_the_last_upload_wins_also_if_it_equals_what_is_live(engine: Engine) -> None:
    for text in ("Ten crowns.", "Twenty crowns.", "Ten crowns."):
        await workspace_of(engine).documents.upload(text.encode(), "a.txt", external_id="a")
        if not await live_text(engine):
            await worked(engine)
    await worked(engine)
    assert await live_text(engine) == ["Ten crowns."]


@pytest.mark.parametrize("last", ["Thirty crowns.", "Ten crowns."])
async def test_what_was_queued_does_not_take_the_place_of_what_was_ingested_since(
    engine: Engine, tmp_path: Path, last: str
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("Ten crowns.")
    await workspace_of(engine).documents.ingest(file)
    file.write_text("Twenty crowns.")
    (queued,), _ = await workspace_of(engine).documents.queue(file)
    file.write_text(last)
    await workspace_of(engine).documents.ingest(file)
    await worked(engine)
    assert await live_text(engine) == [last]
    assert queued.job is not None
    assert (await workspace_of(engine).jobs.get(queued.job.id)).error_code == "superseded"


async def test_a_job_that_was_cancelled_half_way_can_be_tried_again(
    engine: Engine, model: GatedEmbedder, tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Message-ID"] = "a@b.example", "c@d.example", "<1@b.example>"
    mail.set_content("\n".join(f"Line {number} tells of the quay." for number in range(LONG_CHUNKS)))
    mail.add_attachment(b"The zeppelin lands here.", "text", "plain", filename="att.txt")
    (folder / "m.eml").write_bytes(bytes(mail))
    (folder / "z.txt").write_text("Another file of the batch.")
    model.word = "zeppelin"
    queued, _ = await workspace_of(engine).documents.queue(folder)
    (job,) = [one.job for one in queued if one.job and one.uri.endswith("m.eml")]
    working = asyncio.create_task(worked(engine))
    await model.reached.wait()
    while "m.eml" not in await names(engine):  # noqa: ASYNC110  (the ledger has no event to wait for)
        await asyncio.sleep(0.01)
    assert await workspace_of(engine).jobs.cancel(job.id)
    model.open.set()
    await working
    assert await workspace_of(engine).jobs.retry(job.id)
    await worked(engine)
    assert (await workspace_of(engine).jobs.get(job.id)).state == "completed"
    assert await names(engine) == ["m.eml", "m.eml#1:att.txt", "z.txt"]


async def test_nothing_is_left_of_an_upload_for_a_tenant_that_is_deleted_meanwhile(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.tenants.create("acme")
    reached, go, put = threading.Event(), threading.Event(), Blobs.put

    def slow(self: Blobs, document_id: str, content: bytes) -> str:
        reached.set()
        assert go.wait(240)
        return put(self, document_id, content)

    monkeypatch.setattr(Blobs, "put", slow)
    upload = asyncio.create_task(engine.workspace("acme").documents.upload(b"A canary.", "a.txt"))
    await asyncio.to_thread(reached.wait, 60)
    await engine.erase_tenant("acme")
    go.set()
    with pytest.raises(NotFoundError):
        await upload
    assert [
        path for path in (tmp_path / "data").rglob("*") if path.is_file() and b"A canary" in path.read_bytes()
    ] == []


async def test_engines_of_one_process_may_make_their_databases_at_once(model: GatedEmbedder, tmp_path: Path) -> None:
    async def fresh(number: int) -> int:
        async with open_engine(Settings(data_dir=tmp_path / str(number))) as engine:
            await workspace_of(engine).documents.upload(b"The ferry.", "a.txt")
            return len(await workspace_of(engine).jobs.list())

    assert await asyncio.gather(*(fresh(number) for number in range(4))) == [1, 1, 1, 1]


@pytest.mark.parametrize("trouble", ["renamed", "full"])
async def test_a_worker_that_cannot_hand_back_its_jobs_stops_all_the_same(
    engine: Engine, model: GatedEmbedder, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    model.word = "ferry"
    await engine.workspace("acme").documents.upload(b"The ferry.", "a.txt")
    working = asyncio.create_task(engine.worker().run())
    await model.reached.wait()
    if trouble == "renamed":
        await engine.tenants.rename("acme", "zenith")
    else:
        monkeypatch.setattr(SqlTenantQueue, "put_back", in_transaction(_full))
    working.cancel()
    done, _ = await asyncio.wait([working], timeout=240)
    assert done


def _full(*_: Any, **__: Any) -> None:
    raise StoreFull("the disk is full")


async def test_a_worker_stops_also_while_what_it_holds_is_cancelled(
    engine: Engine, model: GatedEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "BEAT_SECONDS", 0.05)
    model.word = "ferry"
    taken = await workspace_of(engine).documents.upload(b"The ferry.", "a.txt")
    working = asyncio.create_task(engine.worker().run())
    await model.reached.wait()
    assert taken.job is not None
    await workspace_of(engine).jobs.cancel(taken.job.id)
    await model.left.wait()  # the heartbeat has told
    working.cancel()
    done, _ = await asyncio.wait([working], timeout=240)
    assert done


@pytest.mark.req("R-ING-18")
async def test_a_worker_that_is_stopped_while_it_claims_hands_back_what_it_gets(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = await workspace_of(engine).documents.upload(b"The ferry.", "a.txt")
    reached, go = threading.Event(), threading.Event()
    claim: Any = SqlTenantQueue.claim

    def slow(*args: Any, **options: Any) -> Any:
        found = claim.__wrapped__(*args, **options)
        if found:
            reached.set()
            assert go.wait(240)
        return found

    monkeypatch.setattr(SqlTenantQueue, "claim", in_transaction(slow))
    working = asyncio.create_task(engine.worker().run())
    await asyncio.to_thread(reached.wait, 60)
    working.cancel()
    await asyncio.sleep(0.05)
    go.set()
    await asyncio.gather(working, return_exceptions=True)
    assert taken.job is not None
    job = await workspace_of(engine).jobs.get(taken.job.id)
    assert (job.state, job.attempts) == ("pending", 0)


async def test_an_upload_that_is_cancelled_while_room_is_made_for_it_leaves_the_room(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.tenants.create("default", Quotas(documents=1))
    book = engine.tenants
    reserve, reached, go = type(book).reserve, asyncio.Event(), asyncio.Event()

    async def slow(self: Any, *args: Any, **options: Any) -> Any:
        made = await reserve(self, *args, **options)
        reached.set()
        await go.wait()
        return made

    monkeypatch.setattr(type(book), "reserve", slow)
    upload = asyncio.create_task(workspace_of(engine).documents.upload(b"The ferry.", "a.txt"))
    await reached.wait()
    upload.cancel()
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(upload, return_exceptions=True)
    assert (await engine.tenants.usage("default")).reserved == {}


async def test_one_tenants_slow_source_does_not_hold_up_anothers(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tenant in ("slow", "quick"):
        folder = tmp_path / tenant
        folder.mkdir()
        (folder / "a.txt").write_text("The ferry leaves at nine.")
        await engine.workspace(tenant).sources.add("files", "notes", {"path": str(folder)})
        await engine.workspace(tenant).sources.add("files", "more", {"path": str(folder)})
    fetch, stuck = FilesSource.fetch, asyncio.Event()

    async def slow(self: FilesSource, cursor: Any) -> AsyncIterator[Any]:
        if self._root.name == "slow":
            await stuck.wait()
        async for page in fetch(self, cursor):
            yield page

    monkeypatch.setattr(FilesSource, "fetch", slow)
    for name in ("notes", "more"):
        await engine.workspace("slow").sources.sync(name)
    job = await engine.workspace("quick").sources.sync("notes")
    working = asyncio.create_task(engine.worker().run())
    while (await engine.workspace("quick").jobs.get(job.id)).state != "completed":  # noqa: ASYNC110  (as above)
        await asyncio.sleep(0.05)
    stuck.set()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


async def test_a_sync_that_is_asked_for_while_one_runs_sees_what_that_one_has_passed(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workspace_of(engine).sources.add("files", "notes", {"path": str(folder)})
    fetch, passed, go = FilesSource.fetch, asyncio.Event(), asyncio.Event()

    async def slow(self: FilesSource, cursor: Any) -> AsyncIterator[Any]:
        async for page in fetch(self, cursor):
            yield page
        passed.set()
        await go.wait()

    monkeypatch.setattr(FilesSource, "fetch", slow)
    first = await workspace_of(engine).sources.sync("notes")
    working = asyncio.create_task(worked(engine))
    await passed.wait()
    (folder / "b.txt").write_text("The ferry leaves at ten.")
    asked = [(await workspace_of(engine).sources.sync("notes")).id for _ in range(3)]
    go.set()
    await working
    assert await names(engine) == ["a.txt", "b.txt"]
    assert [job.id for job in await workspace_of(engine).jobs.list() if job.kind == "sync"] == [asked[0], first.id]
    assert len(set(asked)) == 1


async def test_the_jobs_of_a_tenant_that_is_deleted_end_quietly_with_it(
    engine: Engine, model: GatedEmbedder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "BEAT_SECONDS", 0.05)
    model.word = "ferry"
    await engine.workspace("acme").documents.upload(b"The ferry.", "a.txt")
    await engine.workspace("zenith").documents.upload(b"The harbour.", "b.txt")
    working = asyncio.create_task(worked(engine))
    await model.reached.wait()
    await engine.erase_tenant("acme")
    await model.left.wait()  # the heartbeat has told
    await working
    assert [job.state for job in await engine.workspace("zenith").jobs.list()] == ["completed"]
    assert [record.getMessage() for record in caplog.records if record.levelname != "INFO"] == []


async def test_a_document_that_is_deleted_while_others_are_queued_holds_up_none_of_them(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "b.txt").write_text("The ferry leaves at ten.")
    enqueue = SqlTransaction.enqueue

    async def deleted(self: SqlTransaction, kb: Any, job: Any) -> Any:
        queued = await enqueue(self, kb, job)
        if job.uri.endswith("a.txt"):
            await self.delete(job.document_id)
        return queued

    monkeypatch.setattr(SqlTransaction, "enqueue", deleted)
    queued, failed = await workspace_of(engine).documents.queue(folder)
    assert ([Path(one.uri).name for one in queued], failed) == (["b.txt"], [])
