"""Several read the same file at once: what was read last is live, whoever stores last, and the others say so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server
from tests.flow.gated import GatedEmbedder

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.documents import IngestReport
from ragstone.ingest.diff import SourceDiff
from ragstone.ingest.sources.files import read as files
from ragstone.stores.vectors.derived.index import DerivedIndex
from ragstone.testing.workspaces import workspace_of

postgres_databases = postgres_server.postgres_databases
OVERTAKEN = ["overtaken"]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> GatedEmbedder:
    fake = GatedEmbedder("nine")
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: fake)
    return fake


@pytest.fixture(params=["sqlite", "memory", "postgres"])
async def engine(request: pytest.FixtureRequest, model: GatedEmbedder, tmp_path: Path) -> AsyncIterator[Engine]:
    stores: dict[str, Any] = {"vectors": request.param}
    if request.param == "postgres":
        stores = {"ledger": {"kind": "postgres", "dsn": server(18).database(tmp_path)}}
    settings = {"data_dir": tmp_path / "data", "store": stores}
    async with open_engine(Settings.model_validate(settings)) as opened:
        yield opened


only_sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs" / "a.txt"


def leaves(file: Path, hour: str) -> None:
    file.write_text(f"It leaves at {hour}.")


def empty(file: Path) -> None:
    file.write_text("")


def gone(file: Path) -> None:
    file.unlink()


async def held(engine: Engine, model: GatedEmbedder, *paths: Path) -> asyncio.Task[IngestReport]:
    """An ingest that has read what says nine, and has not stored it."""
    running = asyncio.create_task(workspace_of(engine).documents.ingest(*paths))
    await model.reached.wait()
    return running


async def ended(running: asyncio.Task[IngestReport], model: GatedEmbedder) -> list[str]:
    model.open.set()
    return [failure.code for failure in (await running).failed]


async def live_text(engine: Engine) -> list[str]:
    return sorted(
        [await workspace_of(engine).documents.text(one.id) for one in await workspace_of(engine).documents.list()]
    )


@pytest.mark.req("R-ING-16")
@pytest.mark.parametrize("earlier", ["", "eight"])
async def test_who_read_a_file_first_does_not_store_over_who_read_it_last(
    engine: Engine, model: GatedEmbedder, file: Path, earlier: str
) -> None:
    if earlier:
        leaves(file, earlier)
        await workspace_of(engine).documents.ingest(file)
    leaves(file, "nine")
    first = await held(engine, model, file)
    leaves(file, "ten")
    assert (await workspace_of(engine).documents.ingest(file)).failed == ()
    assert await ended(first, model) == OVERTAKEN
    assert await live_text(engine) == ["It leaves at ten."]
    found = await workspace_of(engine).search("leaves")
    assert [hit.text for hit in found.hits] == ["It leaves at ten."]
    assert (await workspace_of(engine).documents.ingest(file)).unchanged == 1


async def test_who_read_a_file_last_stores_over_who_read_it_first(
    engine: Engine, model: GatedEmbedder, file: Path
) -> None:
    leaves(file, "ten")
    (first,) = files.read_files([file])
    leaves(file, "nine")
    later = await held(engine, model, file)
    assert isinstance(first, Item)
    assert (await workspace_of(engine).documents.ingest_items([first])).added == 1
    assert await ended(later, model) == []
    assert await live_text(engine) == ["It leaves at nine."]


@pytest.mark.parametrize("engine", ["memory"], indirect=True)
async def test_what_was_staged_and_pushed_aside_by_an_earlier_reading_goes_live_all_the_same(
    engine: Engine, model: GatedEmbedder, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaves(file, "eight")
    await workspace_of(engine).documents.ingest(file)
    leaves(file, "ten")
    (first,) = files.read_files([file])
    leaves(file, "eleven")
    prepare, before = DerivedIndex.prepare, list[int]()

    async def meanwhile(self: DerivedIndex, *args: Any) -> None:
        await prepare(self, *args)
        if not before:
            before.append(1)
            assert isinstance(first, Item)
            await workspace_of(engine).documents.ingest_items([first])

    monkeypatch.setattr(DerivedIndex, "prepare", meanwhile)
    assert (await workspace_of(engine).documents.ingest(file)).failed == ()
    assert await live_text(engine) == ["It leaves at eleven."]


@only_sqlite
async def test_the_attachments_of_a_mail_that_was_read_first_do_not_come_back(
    engine: Engine, model: GatedEmbedder, file: Path
) -> None:
    def mail(text: str, name: str) -> bytes:
        made = EmailMessage()
        made["From"], made["To"], made["Message-ID"] = "a@b.example", "c@d.example", "<1@b.example>"
        made.set_content(text)
        made.add_attachment(f"The {name} lands here.".encode(), "text", "plain", filename=f"{name}.txt")
        return bytes(made)

    file = file.with_suffix(".eml")
    file.write_bytes(mail("It leaves at eight.", "balloon"))
    await workspace_of(engine).documents.ingest(file)
    file.write_bytes(mail("It leaves at nine.", "zeppelin"))
    first = await held(engine, model, file)
    file.write_bytes(mail("It leaves at ten.", "glider"))
    await workspace_of(engine).documents.ingest(file)
    assert set(await ended(first, model)) == {"overtaken"}
    names = sorted(Path(one.external_id).name for one in await workspace_of(engine).documents.list())
    assert names == ["a.eml", "a.eml#1:glider.txt"]


@only_sqlite
async def test_a_folder_that_was_listed_first_removes_nothing_that_was_read_since(
    engine: Engine, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaves(file, "eight")
    await workspace_of(engine).documents.ingest(file.parent)
    gone(file)
    end, go, reached = SourceDiff.remove_missing, asyncio.Event(), asyncio.Event()

    async def slow(self: SourceDiff) -> None:
        if not reached.is_set():
            reached.set()
            await go.wait()
        await end(self)

    monkeypatch.setattr(SourceDiff, "remove_missing", slow)
    first = asyncio.create_task(workspace_of(engine).documents.ingest(file.parent))
    await reached.wait()
    leaves(file, "ten")
    await workspace_of(engine).documents.ingest(file.parent)
    go.set()
    assert (await first).removed == 0
    assert await live_text(engine) == ["It leaves at ten."]


@pytest.fixture
def late_queue(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """The first who queues something has read it, and goes on when told to."""
    changed, reached, go = SourceDiff.compare, asyncio.Event(), asyncio.Event()

    async def slow(self: SourceDiff, tasks: Any) -> Any:
        if not reached.is_set():
            reached.set()
            await go.wait()
        return await changed(self, tasks)

    monkeypatch.setattr(SourceDiff, "compare", slow)
    return reached, go


@pytest.mark.parametrize("how", ["ingest", "queue"])
async def test_what_is_queued_late_and_was_read_first_does_not_go_live(
    engine: Engine, file: Path, how: str, late_queue: tuple[asyncio.Event, asyncio.Event]
) -> None:
    reached, go = late_queue
    leaves(file, "eight")
    first = asyncio.create_task(workspace_of(engine).documents.queue(file))
    await reached.wait()
    leaves(file, "ten")
    await (
        workspace_of(engine).documents.ingest(file) if how == "ingest" else workspace_of(engine).documents.queue(file)
    )
    go.set()
    await first
    await engine.worker().run(until_idle=True)
    assert await live_text(engine) == ["It leaves at ten."]
    states = [(job.state, job.error_code) for job in await workspace_of(engine).jobs.list()]
    assert states == [("cancelled", "superseded") if how == "ingest" else ("completed", "")]


async def test_what_is_queued_and_was_read_last_is_not_superseded_by_who_read_first(
    engine: Engine, file: Path, late_queue: tuple[asyncio.Event, asyncio.Event]
) -> None:
    reached, go = late_queue
    leaves(file, "eight")
    first = asyncio.create_task(workspace_of(engine).documents.ingest(file))
    await reached.wait()
    leaves(file, "ten")
    await workspace_of(engine).documents.queue(file)
    go.set()
    assert (await first).added == 1
    await engine.worker().run(until_idle=True)
    assert await live_text(engine) == ["It leaves at ten."]


@pytest.mark.parametrize("how", ["ingest", "queue"])
async def test_who_found_a_file_empty_first_does_not_remove_what_was_read_last(
    engine: Engine, file: Path, how: str, late_queue: tuple[asyncio.Event, asyncio.Event]
) -> None:
    reached, go = late_queue
    empty(file)
    reader = workspace_of(engine).documents.ingest if how == "ingest" else workspace_of(engine).documents.queue
    first = asyncio.create_task(reader(file))
    await reached.wait()
    leaves(file, "ten")
    await workspace_of(engine).documents.ingest(file)
    go.set()
    said = await first
    await engine.worker().run(until_idle=True)
    assert await live_text(engine) == ["It leaves at ten."]
    if isinstance(said, IngestReport):
        assert ([failure.code for failure in said.failed], said.removed) == (OVERTAKEN, 0)
    assert {job.error_code for job in await workspace_of(engine).jobs.list()} <= {"superseded"}


@only_sqlite
async def test_who_found_a_file_empty_first_leaves_what_was_read_last_in_the_queue(
    engine: Engine, file: Path, late_queue: tuple[asyncio.Event, asyncio.Event]
) -> None:
    reached, go = late_queue
    leaves(file, "eight")
    go.set()
    await workspace_of(engine).documents.ingest(file)
    go.clear()
    reached.clear()
    empty(file)
    first = asyncio.create_task(workspace_of(engine).documents.ingest(file))
    await reached.wait()
    leaves(file, "ten")
    await workspace_of(engine).documents.queue(file)
    go.set()
    assert [failure.code for failure in (await first).failed] == OVERTAKEN
    await engine.worker().run(until_idle=True)
    assert await live_text(engine) == ["It leaves at ten."]


@only_sqlite
async def test_items_hold_in_the_order_in_which_they_are_given_not_made(engine: Engine) -> None:
    ten, twelve = (Item("notes", "a", "notes/a", f"It leaves at {hour}.") for hour in ("ten", "twelve"))
    for item in (twelve, ten):
        assert (await workspace_of(engine).documents.ingest_items([item])).failed == ()
    assert await live_text(engine) == ["It leaves at ten."]
