"""Configured sources: what is new is queued, what is unchanged costs nothing, what is gone goes."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from PIL import Image
from tests.unit.ingest.sources.test_git import commit, git

from ragstone import Engine, Settings, open_engine
from ragstone.core.clock import now
from ragstone.core.errors import (
    InputError,
    LeaseLost,
    NotFoundError,
    RagstoneError,
    RemoteError,
    SettingsError,
    StoreBusy,
)
from ragstone.core.jobs import SourceRecord
from ragstone.core.types import Item, Parsed
from ragstone.ingest.extract import PartStore, plain_text
from ragstone.ingest.jobs.sync import Sync
from ragstone.ingest.prepare import Prepared, Preparer
from ragstone.ingest.stage_times import StageTimes
from ragstone.ingest.work import WorkItem
from ragstone.stores.health.check import check_encryption
from ragstone.stores.ledger.sources import SqlTenantSources
from ragstone.stores.vault import new_key
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    async with open_engine(Settings(data_dir=data_dir, jobs={"retry_seconds": 0})) as opened:
        yield opened


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("ferry", "bridge", "harbour"):
        (folder / f"{name}.md").write_text(f"# {name.title()}\n\nAll about the {name} and its winter service.")
    return folder


async def work(engine: Engine) -> None:
    await asyncio.wait_for(engine.worker().run(until_idle=True), 240)


async def sync(engine: Engine, name: str = "docs", *, afresh: bool = False) -> str:
    """What a sync says it found, after all that it queued was worked on."""
    job = await workspace_of(engine).sources.sync(name, afresh=afresh)
    await work(engine)
    notices = {notice.job_id: notice.message for notice in await workspace_of(engine).jobs.notices()}
    return notices[job.id]


async def live(engine: Engine) -> dict[str, str]:
    return {document.external_id: document.id for document in await workspace_of(engine).documents.list()}


@pytest.mark.req("R-ING-29", "R-ING-09")
async def test_only_what_changed_is_worked_on(engine: Engine, docs: Path, fake_model: FakeEmbedder) -> None:
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    assert await sync(engine) == "3 queued"
    before = await live(engine)
    assert sorted(before) == ["bridge.md", "ferry.md", "harbour.md"]
    fake_model.calls.clear()
    assert await sync(engine) == "3 unchanged"
    assert fake_model.calls == []
    (docs / "ferry.md").write_text("# Ferry\n\nThe ferry has a new captain.")
    assert await sync(engine) == "1 queued, 2 unchanged"
    assert [len(texts) for texts, _ in fake_model.calls] == [1]
    assert await live(engine) == before


@pytest.mark.req("R-ING-29")
async def test_what_is_deleted_at_the_source_is_found_no_more(engine: Engine, docs: Path) -> None:
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    await sync(engine)
    (docs / "bridge.md").unlink()
    assert await sync(engine) == "2 unchanged, 1 removed"
    assert sorted(await live(engine)) == ["ferry.md", "harbour.md"]
    assert all(hit.title != "Bridge" for hit in (await workspace_of(engine).search("bridge")).hits)


async def test_a_moved_file_keeps_its_id(engine: Engine, docs: Path, fake_model: FakeEmbedder) -> None:
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    await sync(engine)
    before = await live(engine)
    (docs / "old").mkdir()
    (docs / "ferry.md").rename(docs / "old" / "ferry.md")
    fake_model.calls.clear()
    assert await sync(engine) == "1 queued, 2 unchanged, 1 moved"
    after = await live(engine)
    assert after["old/ferry.md"] == before["ferry.md"]
    assert fake_model.calls == []
    (docs / "ferry.md").write_text("# Another ferry\n\nIt took the old place.")
    await sync(engine)
    third = await live(engine)
    assert third["old/ferry.md"] == before["ferry.md"]
    assert third["ferry.md"] != before["ferry.md"]


async def test_a_file_that_git_moved_keeps_its_id(engine: Engine, docs: Path, fake_model: FakeEmbedder) -> None:
    git(docs, "init", "--quiet")
    commit(docs)
    await workspace_of(engine).sources.add("git", "docs", {"path": str(docs)})
    await sync(engine)
    before = await live(engine)
    git(docs, "mv", "ferry.md", "crossing.md")
    (docs / "bridge.md").unlink()
    commit(docs)
    fake_model.calls.clear()
    assert await sync(engine) == "1 queued, 1 removed, 1 moved"
    assert await live(engine) == {"crossing.md": before["ferry.md"], "harbour.md": before["harbour.md"]}
    assert fake_model.calls == []


async def test_what_failed_is_not_tried_again_until_it_changes(engine: Engine, docs: Path) -> None:
    (docs / "cut.pdf").write_bytes(b"%PDF-1.7 cut")
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    assert await sync(engine) == "4 queued"
    assert await sync(engine) == "3 unchanged, 1 failed (docs/cut.pdf is a damaged PDF)"
    assert await sync(engine, afresh=True) == "1 queued, 3 unchanged"
    (docs / "cut.pdf").write_bytes(b"%PDF-1.7 cut elsewhere")
    assert await sync(engine) == "1 queued, 3 unchanged"


@pytest.mark.parametrize(("kind", "unchanged"), [("files", ", 2 unchanged"), ("git", "")])
async def test_what_failed_for_a_reason_that_passes_is_tried_again(
    data_dir: Path, docs: Path, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch, kind: str, unchanged: str
) -> None:
    git(docs, "init", "--quiet")
    commit(docs)
    async with open_engine(Settings(data_dir=data_dir, jobs={"attempts": 1})) as engine:
        await workspace_of(engine).sources.add(kind, "docs", {"path": str(docs)})
        with monkeypatch.context() as outage:
            _refuse(outage, "docs/ferry.md", RemoteError("the service is away"))
            assert await sync(engine) == "3 queued"
            assert await sync(engine) == f"1 queued{unchanged}"
            assert sorted(await live(engine)) == ["bridge.md", "harbour.md"]
        assert await sync(engine) == f"1 queued{unchanged}"
        assert sorted(await live(engine)) == ["bridge.md", "ferry.md", "harbour.md"]
        assert await sync(engine) == ("3 unchanged" if unchanged else "nothing new")


def _refuse(patch: pytest.MonkeyPatch, uri: str, error: RagstoneError) -> None:
    """Have every attempt to prepare one document fail."""
    prepare = Preparer.prepare

    async def refuse(self: Preparer, work: WorkItem, parts: PartStore, times: StageTimes) -> Prepared:
        if work.item.uri == uri:
            raise error
        return await prepare(self, work, parts, times)

    patch.setattr(Preparer, "prepare", refuse)


async def test_a_file_that_was_emptied_is_found_no_more(engine: Engine, docs: Path) -> None:
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    await sync(engine)
    before = await live(engine)
    (docs / "bridge.md").write_bytes(b"")
    assert await sync(engine) == "1 queued, 2 unchanged"
    assert sorted(await live(engine)) == ["ferry.md", "harbour.md"]
    assert all(hit.title != "Bridge" for hit in (await workspace_of(engine).search("bridge")).hits)
    status = await workspace_of(engine).documents.status(before["bridge.md"])
    said = "docs/bridge.md is empty; what it said before was removed"
    assert (status.status, status.processing_error, status.chunk_count) == ("failed", said, 0)
    assert await sync(engine) == f"2 unchanged, 1 failed ({said})"
    (docs / "bridge.md").write_text("# Bridge\n\nAll about the bridge and its winter service.")
    await sync(engine)
    assert await live(engine) == before


async def test_an_archive_that_was_cut_off_is_no_failure_any_more_once_it_is_whole(engine: Engine, docs: Path) -> None:
    archive = docs / "more.zip"
    archive.write_bytes(b"")
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    await sync(engine)
    assert (await workspace_of(engine).sources.get("docs")).source_failures.count == 1
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("ship.md", "# Ship\n\nAll about the ship.")
    assert await sync(engine) == "1 queued, 3 unchanged, 1 removed"
    assert (await workspace_of(engine).sources.get("docs")).source_failures.count == 0
    assert await sync(engine) == "4 unchanged"


async def test_pictures_that_nobody_named_are_counted_and_those_without_words_are_no_failures(
    engine: Engine, docs: Path
) -> None:
    icon = io.BytesIO()
    Image.new("RGB", (16, 16), "red").save(icon, "PNG")
    (docs / "logo.png").write_bytes(icon.getvalue())
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    said = "docs/logo.png skipped: pictures are read if they are named, by their path or by a glob such as *.png"
    assert await sync(engine) == f"3 queued, 1 skipped ({said})"
    await workspace_of(engine).sources.add("files", "icons", {"path": str(docs), "glob": "*.png"})
    assert await sync(engine, "icons") == "1 queued"
    (job,) = await workspace_of(engine).jobs.list(source="icons", states=("completed",), limit=1)
    assert (job.state, list(job.progress.remarks)) == ("completed", ["no text was found in it"])
    assert await sync(engine, "icons") == "1 unchanged"
    assert len(await live(engine)) == 3


async def test_a_picture_that_has_lost_its_words_keeps_them_and_is_not_read_again(
    engine: Engine, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def legible(item: Item, *_: object) -> Parsed:
        return plain_text("No entry.", item.uri, "")

    await workspace_of(engine).sources.add("files", "signs", {"path": str(docs), "glob": "*.png"})
    Image.new("RGB", (16, 16), "white").save(docs / "sign.png")
    with monkeypatch.context() as patched:
        patched.setattr("ragstone.ingest.prepare.extract", legible)
        await sync(engine, "signs")
    before = await live(engine)
    Image.new("RGB", (16, 16), "red").save(docs / "sign.png")
    assert await sync(engine, "signs") == "1 queued"
    assert await sync(engine, "signs") == "1 unchanged"
    assert list(before) == ["sign.png"]
    assert await live(engine) == before


async def test_what_is_on_its_way_is_not_queued_twice(engine: Engine, docs: Path, data_dir: Path) -> None:
    record = await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    for _ in range(2):
        job = await workspace_of(engine).sources.sync("docs")
        (claimed,) = await engine._components.stores.queue.of("default").claim(
            "test", "sync", lease_seconds=60, attempts=3, most=1, most_bytes=1
        )
        assert (claimed.id, claimed.source) == (job.id, record.name)
        await engine._components.maintenance.run_sync("default", claimed)
        await engine._components.stores.queue.of("default").complete(claimed.ticket, "")
    assert len(await workspace_of(engine).jobs.list(states=("pending",))) == 3
    assert await asyncio.to_thread(lambda: len(list((data_dir / "documents").rglob("*/*/*")))) == 3
    await work(engine)
    assert (
        await asyncio.to_thread(lambda: [path for path in (data_dir / "documents").rglob("*") if path.is_file()]) == []
    )


async def test_a_file_may_take_the_place_of_one_that_failed(engine: Engine, docs: Path) -> None:
    (docs / "cut.pdf").write_bytes(b"%PDF-1.7 cut")
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    await sync(engine)
    (docs / "cut.pdf").unlink()
    assert await sync(engine) == "3 unchanged, 1 removed"
    (docs / "ferry.md").rename(docs / "cut.pdf")
    (docs / "ferry.md").write_bytes(b"")
    (docs / "new.md").write_text("New words.")
    assert "2 unchanged" in await sync(engine)
    await sync(engine)
    assert "new.md" in await live(engine)
    assert (await workspace_of(engine).sources.get("docs")).last_error == ""


async def test_what_is_deleted_before_it_was_made_is_never_made(engine: Engine, docs: Path) -> None:
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    for _ in range(2):
        await workspace_of(engine).sources.sync("docs")
        (claimed,) = await engine._components.stores.queue.of("default").claim(
            "test", "sync", lease_seconds=60, attempts=3, most=1, most_bytes=1
        )
        await engine._components.maintenance.run_sync("default", claimed)
        await engine._components.stores.queue.of("default").complete(claimed.ticket, "")
        (docs / "ferry.md").unlink(missing_ok=True)
    await work(engine)
    assert sorted(await live(engine)) == ["bridge.md", "harbour.md"]


async def test_a_source_that_is_removed_while_it_is_read_queues_nothing_more(engine: Engine, docs: Path) -> None:
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    await workspace_of(engine).sources.sync("docs")
    (claimed,) = await engine._components.stores.queue.of("default").claim(
        "test", "sync", lease_seconds=60, attempts=3, most=1, most_bytes=1
    )
    record = await workspace_of(engine).sources.get("docs")
    await workspace_of(engine).sources.remove("docs")
    reading = Sync(
        engine._components.ledger,
        engine._components.preparer,
        "default",
        (await workspace_of(engine).knowledge_bases.list())[0],
        record,
        claimed.ticket,
    )
    with pytest.raises(LeaseLost):
        await reading.run(engine._components.build_source("files", "docs", record.config))
    await work(engine)
    assert await live(engine) == {}


async def test_a_sync_that_lost_its_job_says_nothing_of_its_source(engine: Engine, docs: Path) -> None:
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)}, schedule="daily")
    await workspace_of(engine).sources.sync("docs")
    queue, found = engine._components.stores.queue.of("default"), []
    for worker in ("stalled", "other"):
        found += await queue.claim(worker, "sync", lease_seconds=60, attempts=3, most=1, most_bytes=1)
        await queue.take_back("stalled", 3)
    stalled, other = found
    await engine._components.maintenance.run_sync("default", other)
    before = await workspace_of(engine).sources.get("docs")
    with pytest.raises(LeaseLost):
        await engine._components.maintenance.run_sync("default", stalled)
    assert await workspace_of(engine).sources.get("docs") == before
    assert (before.last_error, before.source_failures.count) == ("", 0)


async def test_what_failed_and_was_taken_back_at_the_source_is_not_tried_again(
    engine: Engine, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(item: Item, *_: object) -> Parsed:
        raise StoreBusy("no room for a parser")

    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    await sync(engine)
    ferry, text = (await live(engine))["ferry.md"], (docs / "ferry.md").read_text()
    (docs / "ferry.md").write_text("The ferry is sold.")
    with monkeypatch.context() as patched:
        patched.setattr("ragstone.ingest.prepare.extract", busy)
        assert await sync(engine) == "1 queued, 2 unchanged"
    (docs / "ferry.md").write_text(text)
    assert await sync(engine) == "3 unchanged"
    assert await workspace_of(engine).documents.text(ferry) == text


async def test_afresh_absorbs_what_waits(engine: Engine, docs: Path) -> None:
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    plain = await workspace_of(engine).sources.sync("docs")
    afresh = await workspace_of(engine).sources.sync("docs", afresh=True)
    again = await workspace_of(engine).sources.sync("docs")
    assert plain.id == afresh.id == again.id
    assert (await workspace_of(engine).jobs.get(plain.id)).facts == {"afresh": True}


async def test_a_folder_that_is_not_there_removes_nothing(engine: Engine, docs: Path) -> None:
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    await sync(engine)
    await asyncio.to_thread(docs.rename, docs.with_name("unmounted"))
    assert "does not exist" in await sync(engine)
    assert len(await live(engine)) == 3
    assert "does not exist" in (await workspace_of(engine).sources.get("docs")).last_error


@pytest.mark.req("R-ING-42")
async def test_all_sources_are_read_afresh_in_one_go(engine: Engine, docs: Path) -> None:
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    await workspace_of(engine).sources.add("files", "more", {"path": str(docs)}, kb="second")
    await workspace_of(engine).sources.add("files", "resting", {"path": str(docs)})
    await workspace_of(engine).sources.pause("resting")
    jobs = await workspace_of(engine).sources.sync_all()
    assert {(job.kb, job.source) for job in jobs} == {("default", "docs"), ("second", "more")}
    await work(engine)
    assert (
        (await workspace_of(engine).knowledge_bases.stats()).documents
        == (await workspace_of(engine).knowledge_bases.stats(kb="second")).documents
        == 3
    )


@pytest.mark.req("R-ING-39")
async def test_a_schedule_starts_a_source_when_its_time_has_come(
    engine: Engine, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)}, schedule="hourly")
    assert record.next_run_at is not None
    await work(engine)
    assert await workspace_of(engine).jobs.list() == []
    later = now() + timedelta(hours=2)
    monkeypatch.setattr("ragstone.ingest.jobs.maintenance.now", lambda: later)
    working = asyncio.create_task(engine.worker().run())
    try:
        await asyncio.wait_for(_ended(engine, 4), 240)
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    after = await workspace_of(engine).sources.get("docs")
    assert after.next_run_at is not None
    assert after.next_run_at > later
    assert after.last_run_at is not None
    assert len(await live(engine)) == 3


async def _ended(engine: Engine, count: int) -> None:
    while True:
        if len(await workspace_of(engine).jobs.list(states=("completed", "failed"))) >= count:
            return
        await asyncio.sleep(0.01)


async def test_a_paused_source_rests(engine: Engine, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)}, schedule="hourly")
    await workspace_of(engine).sources.pause("docs")
    later = now() + timedelta(hours=2)
    monkeypatch.setattr("ragstone.ingest.jobs.maintenance.now", lambda: later)
    await engine._components.maintenance.maintain("default")
    assert await workspace_of(engine).jobs.list() == []
    await workspace_of(engine).sources.resume("docs")
    await engine._components.maintenance.maintain("default")
    assert [job.kind for job in await workspace_of(engine).jobs.list()] == ["sync"]


async def test_of_two_workers_that_find_a_source_due_one_looks_at_it(
    engine: Engine, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)}, schedule="hourly")
    later = now() + timedelta(hours=2)
    monkeypatch.setattr("ragstone.ingest.jobs.maintenance.now", lambda: later)
    due, chores = SqlTenantSources.due, engine._components.maintenance.maintain

    async def late(self: SqlTenantSources, moment: datetime) -> list[SourceRecord]:
        monkeypatch.setattr(SqlTenantSources, "due", due)
        found = await due(self, moment)
        await chores("default")
        await work(engine)
        return found

    monkeypatch.setattr(SqlTenantSources, "due", late)
    await chores("default")
    assert [job.state for job in await workspace_of(engine).jobs.list() if job.kind == "sync"] == ["completed"]


async def test_a_secret_that_cannot_be_opened_fails_its_source_and_nothing_else(
    data_dir: Path, docs: Path, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(data_dir=data_dir, jobs={"retry_seconds": 0}, security={"key": new_key()})
    async with open_engine(settings) as engine:
        sources = workspace_of(engine).sources
        box = {"host": "mail.example", "user": "ada", "password": "canary"}
        await sources.add("imap", "mail", box, schedule="hourly")
        await sources.add("files", "docs", {"path": str(docs)}, schedule="hourly")
        broken = "UPDATE sources SET config = replace(config, 'sealed:v1:', 'sealed:v9:') WHERE name = 'mail'"
        await engine._components.ledger.write("default", lambda connection, _: connection.execute(broken))
        later = now() + timedelta(hours=2)
        monkeypatch.setattr("ragstone.ingest.jobs.maintenance.now", lambda: later)
        await engine._components.maintenance.maintain("default")
        await work(engine)
        assert sorted(await live(engine)) == ["bridge.md", "ferry.md", "harbour.md"]
        assert {one.name: one.state for one in await sources.list()} == {"docs": "ok", "mail": "failed"}
        (failed,) = (job for job in await workspace_of(engine).jobs.list() if job.state == "failed")
        assert (failed.source, failed.error_code) == ("mail", "store_corrupt")
        stores = engine._components.stores
        tenant = await stores.tenants.get("default")
        assert tenant is not None
        (finding,) = await check_encryption(stores, "sqlite", [tenant])
        assert (finding.state, "default/mail is damaged" in finding.detail) == ("fail", True)
        assert await sources.remove("mail") == 0


async def test_removing_a_source_removes_its_documents(engine: Engine, docs: Path) -> None:
    """FAULTS 36: delete by source removes all."""
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    await workspace_of(engine).documents.upload(b"An upload stays.", "stay.txt")
    await sync(engine)
    assert await workspace_of(engine).sources.remove("docs") == 3
    assert [document.uri for document in await workspace_of(engine).documents.list()] == ["stay.txt"]
    with pytest.raises(NotFoundError):
        await workspace_of(engine).sources.get("docs")


@pytest.mark.parametrize(
    ("kind", "name", "config", "schedule", "error", "message"),
    [
        ("files", "Docs!", {"path": "/x"}, "manual", InputError, "not a valid name"),
        ("files", "upload", {"path": "/x"}, "manual", InputError, "without a source"),
        ("filez", "docs", {}, "manual", SettingsError, "there is no kind of source 'filez'"),
        ("files", "docs", {"pth": "/x"}, "manual", SettingsError, "pth"),
        ("files", "docs", {"path": "/x"}, "sometimes", SettingsError, "sometimes"),
        ("database", "rows", {"database": "nope"}, "manual", SettingsError, "rows"),
    ],
)
async def test_a_source_that_cannot_work_is_refused_when_it_is_added(
    engine: Engine, kind: str, name: str, config: dict[str, str], schedule: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await workspace_of(engine).sources.add(kind, name, config, schedule=schedule)
    assert await workspace_of(engine).sources.list() == []


async def test_a_name_is_taken_once(engine: Engine, docs: Path) -> None:
    await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
    with pytest.raises(InputError, match="already has a source 'docs'"):
        await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})


async def test_what_was_left_out_as_a_near_duplicate_comes_in_once_the_other_is_gone_or_differs(
    data_dir: Path, tmp_path: Path, fake_model: FakeEmbedder
) -> None:
    folder = tmp_path / "ferries"
    folder.mkdir()
    text = " ".join(f"Ferry {n} leaves the harbour at hour {n} with {n * 3} dogs." for n in range(40))
    (folder / "a.txt").write_text(text)
    chosen = Settings(data_dir=data_dir, enrich={"near_duplicates": "skip"})
    async with open_engine(chosen) as engine:
        await workspace_of(engine).sources.add("files", "docs", {"path": str(folder)})
        await sync(engine)
        (folder / "b.txt").write_text(f"{text} The end.")
        await sync(engine)
        assert await sync(engine, afresh=True) == "2 unchanged"
        assert list(await live(engine)) == ["a.txt"]
        (folder / "a.txt").write_text("Now this is about bridges and those who keep them.")
        await sync(engine)
        assert await sync(engine) == "1 queued, 1 unchanged"
        assert sorted(await live(engine)) == ["a.txt", "b.txt"]
        (folder / "c.txt").write_text(f"{text} The very end.")
        await sync(engine)
        assert sorted(await live(engine)) == ["a.txt", "b.txt"]
        (folder / "b.txt").unlink()
        await sync(engine)
        assert sorted(await live(engine)) == ["a.txt", "c.txt"]
