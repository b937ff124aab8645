"""A data folder of before the tables goes on with its conversations, votes, golden queries, log and web results.

`tests/data/activity_files.zip` was written by the commit before: two tenants, a document and a kb that were deleted and
a document that was replaced while the activity files were not told.
"""

from __future__ import annotations

import asyncio
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server

from ragstone import Engine, Item, Settings, open_engine
from ragstone.stores.activity import old_files
from ragstone.testing.workspaces import workspace_of

postgres_databases = postgres_server.postgres_databases
DATA = Path(__file__).parent.parent / "data" / "activity_files.zip"
HARBOUR = "The harbour opens at six in the morning. A berth in the harbour costs nine crowns."
FERRY = "The ferry leaves at one. A ticket for the ferry costs six crowns."
OPENS, COSTS = "The harbour opens at six in the morning. [1]", "A berth in the harbour costs nine crowns. [1]"
LEAVES = "When does the ferry leave?"
pytestmark = pytest.mark.usefixtures("fake_model")


@pytest.fixture
def folder(data_dir: Path) -> Path:
    with zipfile.ZipFile(DATA) as packed:
        packed.extractall(data_dir)
    return data_dir


def _settings(folder: Path) -> Settings:
    return Settings(data_dir=folder, activity={"days": 3650})


def _files(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))


async def _check(engine: Engine) -> None:
    """See that all is there which was about something that is still there, and once."""
    activity, talks = workspace_of(engine).feedback, workspace_of(engine).conversations
    assert [(turn.question, turn.answer) for turn in await talks.turns("harbour")] == [
        ("When does the harbour open?", OPENS),
        ("What does a berth cost?", COSTS),
    ]
    talk = await talks.turns("talk")  # made from all three documents
    assert [(turn.question, turn.answer) for turn in talk] == [
        ("When does the harbour open?", ""),
        ("What does it cost?", ""),
    ]
    documents = {one.external_id: one.id for one in await workspace_of(engine).documents.list()}
    assert {turn.document_ids for turn in talk} == {tuple(sorted(documents.values()))}
    [replaced] = await talks.turns("ferries")
    assert (replaced.question, replaced.answer) == (LEAVES, "")
    assert {one.name for one in await talks.list()} == {"talk", "ferries", "harbour"}
    [vote] = await activity.votes()
    assert (vote.query, vote.vote, vote.voter, vote.document_id) == (
        *("harbour berth", "up", "ada"),
        documents["harbour"],
    )
    assert [(one.query, one.document_ids, one.origin) for one in await activity.golden()] == [
        ("what does a berth cost", (documents["harbour"],), "manual"),
        ("which rock is igneous", (documents["harbour"],), "manual"),
    ]
    searches = await activity.searches()
    assert [one.query for one in searches] == [
        *("harbour berth", "granite rock", "harbour berth", "What does a berth cost?"),
        *("When does the harbour open?", LEAVES, "What does it cost?", "When does the harbour open?"),
    ]
    assert [hit.document_id for hit in searches[0].shown] == [documents["harbour"]]
    assert (searches[0].num_results, searches[-1].conversation) == (2, "talk")
    assert {one.tenant_id for one in searches} == {await engine._components.access.identity("default")}
    [failed] = await activity.searches(kb="nowhere")
    assert (failed.success, failed.error_message) == (False, "there is no knowledge base 'nowhere' yet")
    assert await activity.searches(kb="old") == []


async def _web_results(engine: Engine, tenant: str) -> list[tuple[str, str]]:
    chosen = "SELECT query_text, search_provider FROM web_results WHERE tenant_id = ?"
    return await engine._components.ledger.read(
        tenant, lambda rows, tenant_id: rows.execute(chosen, (tenant_id,)).fetchall()
    )


async def test_a_data_folder_of_before_goes_on(folder: Path) -> None:
    async with open_engine(_settings(folder)) as engine:
        await _check(engine)
        assert await _web_results(engine, "default") == [("ferries", "fixture")]
        assert len(_files(folder, "activity/*.db")) == 1  # the other tenant's
        [theirs] = await engine.workspace("acme").conversations.turns("theirs")
        assert theirs.answer == "The ferry leaves at noon. [1]"
        assert await _web_results(engine, "acme") == [("ferries", "fixture")]
    assert [path.name for path in _files(folder, "*")] == ["control.db", "tenants"]


@pytest.mark.parametrize("point", ["_take_log", "_remove", "_take_web_results", "_drop_web_results"])
async def test_what_is_cut_short_starts_over_and_takes_nothing_twice(
    folder: Path, point: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def cut(*_: object) -> None:
        raise OSError("the lights went out")

    with monkeypatch.context() as patched:
        patched.setattr(old_files, point, cut)
        async with open_engine(_settings(folder)) as engine:
            assert len(await workspace_of(engine).conversations.turns("harbour")) == 2
    assert "cannot take over activity of an earlier version: " in caplog.text
    async with open_engine(_settings(folder)) as engine:
        await _check(engine)
        assert await _web_results(engine, "default") == [("ferries", "fixture")]


async def test_two_who_open_a_folder_at_once_take_it_over_once(folder: Path) -> None:
    async with open_engine(_settings(folder)) as first, open_engine(_settings(folder)) as second:
        await asyncio.gather(*(workspace_of(engine).conversations.turns("talk") for engine in (first, second)))
        await _check(first)
        await _check(second)


async def test_a_file_that_cannot_be_read_keeps_nobody_from_working(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for path in _files(folder, "activity/*.db"):
        path.write_bytes(b"This is no database. " * 500)
    async with open_engine(_settings(folder)) as engine:
        assert (await workspace_of(engine).search("harbour")).hits
        assert await workspace_of(engine).conversations.turns("harbour") == ()
        assert "cannot be read: file is not a database" in caplog.text
        receipt = await engine.erase_tenant("default")
        assert receipt.complete
    assert len(_files(folder, "activity/*")) == 1


async def test_a_file_of_the_first_version_is_taken_over(folder: Path) -> None:
    for path in _files(folder, "activity/*.db"):
        with closing(sqlite3.connect(path)) as old, old:
            for table in ("turns", "turn_documents"):
                old.execute(f"DROP TABLE {table}")
            for name in ("searches_by_tenant", "searches_by_conversation", "searches_by_success"):
                old.execute(f"DROP INDEX {name}")
            for name in ("total_results", "document_results_count", "retrieval_time_ms", *LATER):
                old.execute(f"ALTER TABLE searches DROP COLUMN {name}")
    async with open_engine(_settings(folder)) as engine:
        assert await workspace_of(engine).conversations.turns("harbour") == ()
        assert len(await workspace_of(engine).feedback.votes()) == 1
        newest, *_, oldest = await workspace_of(engine).feedback.searches()
        assert (newest.query, newest.success, newest.total_results) == ("harbour berth", True, 2)
        assert (oldest.sources_queried, oldest.sources_returned) == (("documents",), ("documents",))


LATER = (
    *("tenant_id", "conversation", "query_type", "sources_queried", "sources_returned"),
    *("database_results_count", "internet_results_count", "embedding_time_ms", "success", "error_message"),
)


def _on_postgres(folder: Path, place: Path) -> Settings:
    ledger = {"kind": "postgres", "dsn": server(18).database(place)}
    store = {"ledger": ledger, "vectors": {"kind": "pgvector"}, "lexical": {"kind": "postgres"}}
    return Settings(data_dir=folder, store=store, activity={"days": 3650})


async def test_files_of_a_machine_move_into_postgresql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(DATA) as packed:
        packed.extractall(tmp_path / "old")
    with closing(sqlite3.connect(tmp_path / "old" / "control.db")) as control:
        (known,) = control.execute("SELECT id FROM tenants WHERE name = 'default'").fetchone()
    settings = _on_postgres(tmp_path / "data", tmp_path)
    async with open_engine(settings) as engine:
        for text in (FERRY.replace("one", "noon"), FERRY):  # numbered as in the fixture
            items = [("harbour", HARBOUR), ("ferry", text)]
            await workspace_of(engine).documents.ingest_items(
                [Item("test", n, n, text, title=n.title()) for n, text in items]
            )
        tenant_id = await engine._components.access.identity("default")
    file = tmp_path / "data" / "activity" / f"{tenant_id}.db"
    file.parent.mkdir(parents=True)
    (tmp_path / "old" / "activity" / f"{known}.db").rename(file)
    with closing(sqlite3.connect(tmp_path / "old" / "web-results.db")) as web, web:
        web.execute("UPDATE internet_search_cache SET tenant_id = ? WHERE tenant_id = ?", (tenant_id, known))
    (tmp_path / "old" / "web-results.db").rename(tmp_path / "data" / "web-results.db")

    def cut(_: Path) -> None:
        raise OSError("the lights went out")

    with monkeypatch.context() as patched:
        patched.setattr(old_files, "_remove", cut)
        async with open_engine(settings) as engine:
            await _check(engine)
        assert file.exists()
    async with open_engine(settings) as engine:
        await _check(engine)
        assert await _web_results(engine, "default") == [("ferries", "fixture")]
    assert not file.parent.exists()
    with closing(sqlite3.connect(tmp_path / "data" / "web-results.db")) as web:
        assert web.execute("SELECT count(*) FROM internet_search_cache").fetchone() == (1,)  # of acme
