"""What is remembered of documents goes with them whichever way they go, and is in nobody's way while it is kept."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from email.message import EmailMessage
from pathlib import Path

import pytest

from ragstone import Engine, Item, Settings, open_engine, pruning
from ragstone.core.answers import AnswerReady
from ragstone.stores import activity as activity_files
from ragstone.stores.activity import ActivityFiles
from ragstone.stores.renamed_activity import merge_kb
from ragstone.testing.fakes import FakeEmbedder, FakeLLM

SAID = "six in the morning"
FIRST, SECOND = "When does the harbour open?", "What does it cost?"
HARBOUR = f"The harbour opens at {SAID}. A berth in the harbour costs nine crowns."
LATER = "The harbour opens at eight. A berth in the harbour costs ten crowns."
FERRY = "The ferry leaves at noon. A ticket for the ferry costs six crowns."
TABLES = ("votes", "golden", "shown", "turn_documents")


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    async with open_engine(Settings(data_dir=data_dir, jobs={"retry_seconds": 0})) as opened:
        yield opened


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "harbour.txt").write_text(HARBOUR)
    (folder / "ferry.txt").write_text(FERRY)
    return folder


def _file(data_dir: Path) -> Path:
    [found] = (data_dir / "activity").glob("*.db")
    return found


def _bytes(data_dir: Path) -> bytes:
    return b"".join(path.read_bytes() for path in (data_dir / "activity").iterdir())


def _told(data_dir: Path) -> set[str]:
    """The documents that the file tells of."""
    with closing(sqlite3.connect(_file(data_dir))) as db:
        return {row[0] for table in TABLES for row in db.execute(f"SELECT document_id FROM {table}")}


def _age(data_dir: Path, document_id: str) -> None:
    [ledger] = data_dir.glob("tenants/*/ledger.db")
    with closing(sqlite3.connect(ledger)) as rows, rows:
        rows.execute("UPDATE documents SET updated_at = '2020' WHERE id = ?", (document_id,))


@contextmanager
def _held(data_dir: Path) -> Iterator[None]:
    """Another process writes, and goes on with that."""
    with closing(sqlite3.connect(_file(data_dir), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


async def _id(engine: Engine, name: str = "harbour") -> str:
    return next(one.id for one in await engine.documents() if Path(one.external_id).stem == name)


async def _remembered(engine: Engine, data_dir: Path, *, judged: bool = True) -> str:
    """Have the harbour asked for, answered, voted on and in a golden query; its id.

    Whoever looks at votes looks whether their documents are there: where that is not to help, there are none.
    """
    harbour = await _id(engine)
    answer = await engine.ask(FIRST, conversation="talk")
    assert SAID in answer.answer
    hit = next(one for one in (await engine.search("harbour")).hits if one.document_id == harbour)
    if judged:
        await engine.feedback("harbour", [hit.chunk_id])
        await engine.activity.add_golden("harbour hours", [harbour])
    await engine.activity.flush()
    assert harbour in _told(data_dir)
    assert SAID.encode() in _bytes(data_dir)
    return harbour


async def _work(engine: Engine) -> None:
    await asyncio.wait_for(engine.intake.worker().run(until_idle=True), 60)


async def _sync(engine: Engine) -> None:
    await engine.intake.sync("docs")
    await _work(engine)


@pytest.mark.parametrize("way", ["ingest", "sync", "source", "retention", "sweep"])
async def test_nothing_stays_of_a_document_that_nobody_deleted_by_hand(
    engine: Engine, data_dir: Path, docs: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "PIECE", 1)
    if way in ("sync", "source"):
        await engine.intake.add_source("files", "docs", {"path": str(docs)})
        await _sync(engine)
    else:
        await engine.ingest(docs)
    harbour = await _remembered(engine, data_dir, judged=way not in ("retention", "sweep"))
    ferry = await _id(engine, "ferry")
    (docs / "harbour.txt").unlink()
    if way == "ingest":
        assert (await engine.ingest(docs)).removed == 1
    elif way == "sync":
        await _sync(engine)
    elif way == "source":
        assert await engine.intake.remove_source("docs") == 2
    elif way == "retention":
        _age(data_dir, harbour)
        await engine.tenants.set_retention("default", 30)
        await engine.intake._upkeep.chores("default")
    else:
        async with engine._parts.ledger.transaction("default") as tx:
            await tx.delete(harbour)
        assert harbour in _told(data_dir)
        await engine.intake._upkeep.chores("default")
    assert await engine._parts.ledger.status("default", harbour) is None
    assert _told(data_dir) == (set() if way == "source" else {ferry})
    assert SAID.encode() not in _bytes(data_dir)
    (turn,) = await engine.activity.turns("talk")
    assert turn.question == FIRST


async def test_what_came_in_with_a_document_is_forgotten_with_it(
    engine: Engine, data_dir: Path, docs: Path
) -> None:
    letter = EmailMessage()
    letter["Subject"], letter["From"], letter["To"] = "Hours", "a@example.org", "b@example.org"
    letter.set_content("See what is attached.")
    letter.add_attachment(HARBOUR, filename="harbour.txt")
    (docs / "letter.eml").write_bytes(letter.as_bytes())
    await engine.ingest(docs / "letter.eml")
    letter_id = await _id(engine, "letter")
    assert SAID in (await engine.ask(FIRST, k=1, conversation="talk")).answer
    (turn,) = await engine.activity.turns("talk")
    assert letter_id not in turn.document_ids
    assert await engine.delete(letter_id)
    assert await engine.documents() == []
    assert SAID.encode() not in _bytes(data_dir)


@pytest.mark.parametrize("way", ["ingest", "anew", "read", "sweep"])
async def test_an_answer_goes_when_its_document_is_replaced(
    engine: Engine, data_dir: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [Item("test", "harbour", "harbour", HARBOUR), Item("test", "ferry", "ferry", FERRY)]
    await engine.ingest_items(items)
    harbour = await _remembered(engine, data_dir)
    await engine.ask("When does the ferry leave?", conversation="other")
    told = _told(data_dir)
    with monkeypatch.context() as apart:
        if way != "ingest":  # somebody else did it
            apart.setattr(ActivityFiles, "run", _nothing)
        if way == "anew":  # under the same id and number of a version
            await engine.delete(harbour)
            assert (await engine.ingest_items([Item("test", "harbour", "harbour", LATER)])).added == 1
        else:
            assert (await engine.ingest_items([Item("test", "harbour", "harbour", LATER)])).updated == 1
    assert await _id(engine) == harbour
    if way == "sweep":
        await engine.intake._upkeep.chores("default")
    elif way != "ingest":
        assert SAID.encode() in _bytes(data_dir)
        (turn,) = await engine.activity.turns("talk")
        assert (turn.question, turn.answer) == (FIRST, "")
        assert harbour in turn.document_ids
    assert SAID.encode() not in _bytes(data_dir)
    assert _told(data_dir) == told


async def _nothing(_files: ActivityFiles, _identity: str, _work: object, otherwise: object) -> object:
    return otherwise


async def test_an_answer_stays_while_its_documents_are_as_they_were(engine: Engine, data_dir: Path) -> None:
    harbour, ferry = (
        Item("test", "harbour", "harbour", HARBOUR),
        Item("test", "ferry", "ferry", FERRY),
    )
    await engine.ingest_items([harbour])
    await _remembered(engine, data_dir)
    await engine.ingest_items([harbour, ferry])
    await engine.ingest_items([Item("test", "ferry", "ferry", f"{FERRY} It is blue.")])
    await engine.intake._upkeep.chores("default")
    (turn,) = await engine.activity.turns("talk")
    assert SAID in turn.answer
    assert len(await engine.activity.votes()) == len(await engine.activity.golden()) == 1


async def test_an_llm_is_not_told_what_a_document_said_before_it_was_replaced(
    data_dir: Path, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = FakeLLM([f"The harbour opens at {SAID}. [1]", "A berth in the harbour costs ten crowns. [1]"])
    monkeypatch.setattr("ragstone.wiring.build_llm", lambda _: llm)
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await engine.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
        assert SAID in (await engine.ask(FIRST, conversation="talk")).answer
        monkeypatch.setattr(activity_files, "BUSY_SECONDS", 0)
        with _held(data_dir):  # it can be removed neither when it is replaced nor when it is read
            await engine.ingest_items([Item("test", "harbour", "harbour", LATER)])
            await engine.ask(SECOND, conversation="talk")
        assert SAID.encode() in _bytes(data_dir)
    asked = llm.requests[-1][-1].content
    assert f"Earlier question: {FIRST}" in asked
    assert SAID not in asked


async def test_an_answer_is_not_kept_when_its_document_was_replaced_meanwhile(
    data_dir: Path, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(FakeLLM):
        async def complete(self, *args: object, **options: object) -> object:  # type: ignore[override]
            await engine.ingest_items([Item("test", "harbour", "harbour", LATER)])
            return await super().complete(*args, **options)  # type: ignore[arg-type]

    llm = Slow([f"The harbour opens at {SAID}. [1]"])
    monkeypatch.setattr("ragstone.wiring.build_llm", lambda _: llm)
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await engine.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
        assert SAID in (await engine.ask(FIRST, conversation="talk")).answer
        assert SAID.encode() not in _bytes(data_dir)
        (turn,) = await engine.activity.turns("talk")
        assert (turn.question, turn.answer) == (FIRST, "")


@pytest.mark.parametrize("way", ["document", "kb"])
async def test_what_could_not_be_forgotten_is_forgotten_later(
    engine: Engine,
    data_dir: Path,
    way: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await engine.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
    await engine.ingest_items([Item("test", "ferry", "ferry", FERRY)], kb="second")
    await engine.ask("When does the ferry leave?", conversation="talk", kb="second")
    harbour = await _remembered(engine, data_dir, judged=False)
    monkeypatch.setattr(activity_files, "BUSY_SECONDS", 0)
    with _held(data_dir):
        assert (await engine.delete(harbour) if way == "document" else await engine.delete_kb("default")) == 1
        await engine.activity.prune("default")
        assert "still kept" in caplog.text
    assert SAID.encode() in _bytes(data_dir)
    await engine.intake._upkeep.chores("default")
    assert SAID.encode() not in _bytes(data_dir)
    assert (FIRST.encode() in _bytes(data_dir)) == (way == "document")
    (turn,) = await engine.activity.turns("talk", kb="second")
    assert "noon" in turn.answer


async def test_what_was_asked_of_a_kb_that_is_being_renamed_stays(engine: Engine, data_dir: Path) -> None:
    await engine.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
    await _remembered(engine, data_dir)
    kb = await engine._kb(None, None)
    async with engine._parts.ledger.transaction("default") as tx:
        await tx.rename_kb(kb, "port")
    await engine.activity.prune("default")
    identity = await engine._parts.gate.identity("default")
    await engine.activity._files.run(identity, lambda db: merge_kb(db, "default", "port"), None)
    (turn,) = await engine.activity.turns("talk", kb="port")
    assert SAID in turn.answer
    assert len(await engine.activity.golden(kb="port")) == 1


async def test_a_search_that_failed_for_want_of_a_kb_stays_on_record(engine: Engine) -> None:
    await engine.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
    with pytest.raises(Exception, match="nowhere"):
        await engine.search("harbour", kb="nowhere")
    await engine.activity.prune("default")
    assert [one.query for one in await engine.activity.searches(kb="nowhere")] == ["harbour"]


async def test_pruning_takes_no_lock_when_there_is_nothing_to_do(
    engine: Engine, data_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await engine.activity.prune("default")
    assert not (data_dir / "activity").exists()
    await engine.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
    await _remembered(engine, data_dir)
    monkeypatch.setattr(activity_files, "BUSY_SECONDS", 0)
    with _held(data_dir):
        await engine.activity.prune("default")
        await engine.activity.prune("nobody")
    assert caplog.text == ""


@pytest.mark.req("R-DOM-37")
async def test_turns_are_read_while_somebody_writes(
    engine: Engine, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.ingest_items(
        [Item("test", "harbour", "harbour", HARBOUR), Item("test", "ferry", "ferry", FERRY)]
    )
    await engine.ask(FIRST, conversation="talk")
    monkeypatch.setattr(activity_files, "BUSY_SECONDS", 0)
    with _held(data_dir):
        answer = await engine.ask(SECOND, conversation="talk")
    assert "nine crowns" in answer.answer
    [note] = answer.degraded
    assert note.startswith("conversation: this turn is not remembered: ")


@pytest.mark.parametrize("way", ["ask", "stream", "search"])
async def test_a_question_is_answered_also_where_its_conversation_cannot_be_read(
    engine: Engine, data_dir: Path, way: str
) -> None:
    await engine.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
    await engine.ask(FIRST, conversation="talk")
    await engine.activity.flush()
    _file(data_dir).write_bytes(b"This is no database. " * 500)
    degraded: tuple[str, ...] = ()
    if way == "ask":
        answer = await engine.ask(FIRST, conversation="talk")
        assert SAID in answer.answer
        degraded = answer.degraded
    elif way == "search":
        found = await engine.search(FIRST, conversation="talk")
        assert found.hits
        degraded = found.degraded
    else:
        async for event in engine.stream(FIRST, conversation="talk"):
            if isinstance(event, AnswerReady):
                degraded = event.answer.degraded
    unread, unkept = degraded
    assert unread.startswith("conversation: what was said before is not known: ")
    assert unkept.startswith("conversation: this turn is not remembered: ")
