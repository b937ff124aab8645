"""What is remembered of documents goes with them whichever way they go, and is in nobody's way while it is kept."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from email.message import EmailMessage
from pathlib import Path

import pytest

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.answers import AnswerReady
from ragstone.core.clock import now
from ragstone.core.errors import StoreCorrupt
from ragstone.core.search import Question, SearchQuery, WebResult
from ragstone.engine import components, conversations
from ragstone.stores.activity import removal
from ragstone.stores.activity.article_runs import ArticleRunRepository
from ragstone.stores.activity.conversations import ConversationRepository
from ragstone.stores.activity.web_results import WebResultRepository
from ragstone.stores.ledger.sqlite import tenant_file as sqlite_log
from ragstone.testing.fakes import FakeEmbedder, FakeLLM
from ragstone.testing.workspaces import workspace_of

SAID = "six in the morning"
FIRST, SECOND = "When does the harbour open?", "What does it cost?"
HARBOUR = f"The harbour opens at {SAID}. A berth in the harbour costs nine crowns."
LATER = "The harbour opens at eight. A berth in the harbour costs ten crowns."
FERRY = "The ferry leaves at noon. A ticket for the ferry costs six crowns."
TABLES = ("votes", "golden_queries", "turn_documents")


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


def _file(data_dir: Path, name: str) -> Path:
    [found] = data_dir.glob(f"tenants/*/{name}.db")
    return found


def _logged(data_dir: Path) -> set[str]:
    """The documents that the log says were found."""
    with closing(sqlite3.connect(_file(data_dir, "retrieval_log"))) as db:
        return {row[0] for row in db.execute("SELECT document_id FROM retrieval_log_hits")}


def _told(data_dir: Path) -> set[str]:
    """The documents that turns, votes, golden queries and the log tell of."""
    with closing(sqlite3.connect(_file(data_dir, "ledger"))) as db:
        told = {row[0] for table in TABLES for row in db.execute(f"SELECT document_id FROM {table}")}
    return told | _logged(data_dir)


def _answers(data_dir: Path) -> str:
    with closing(sqlite3.connect(_file(data_dir, "ledger"))) as db:
        return "\n".join(row[0] for row in db.execute("SELECT answer FROM turns"))


def _age(data_dir: Path, document_id: str) -> None:
    with closing(sqlite3.connect(_file(data_dir, "ledger"))) as rows, rows:
        rows.execute("UPDATE documents SET updated_at = '2020' WHERE id = ?", (document_id,))


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Another process writes, and goes on with that."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


async def _id(engine: Engine, name: str = "harbour") -> str:
    return next(one.id for one in await workspace_of(engine).documents.list() if Path(one.external_id).stem == name)


async def _remembered(engine: Engine, data_dir: Path) -> str:
    """Have the harbour asked for, answered, voted on and in a golden query; its id."""
    harbour = await _id(engine)
    answer = await workspace_of(engine).ask(Question(FIRST, conversation="talk"))
    assert SAID in answer.answer
    hit = next(one for one in (await workspace_of(engine).search("harbour")).hits if one.document_id == harbour)
    await workspace_of(engine).feedback.vote("harbour", [hit.chunk_id])
    await workspace_of(engine).feedback.add_golden("harbour hours", [harbour])
    await engine._components.search_log.flush()
    assert harbour in _told(data_dir)
    assert SAID in _answers(data_dir)
    return harbour


async def _work(engine: Engine) -> None:
    await asyncio.wait_for(engine.worker().run(until_idle=True), 240)


async def _sync(engine: Engine) -> None:
    await workspace_of(engine).sources.sync("docs")
    await _work(engine)


@pytest.mark.parametrize("way", ["ingest", "sync", "source", "retention"])
async def test_nothing_stays_of_a_document_that_nobody_deleted_by_hand(
    engine: Engine, data_dir: Path, docs: Path, way: str
) -> None:
    if way in ("sync", "source"):
        await workspace_of(engine).sources.add("files", "docs", {"path": str(docs)})
        await _sync(engine)
    else:
        await workspace_of(engine).documents.ingest(docs)
    harbour = await _remembered(engine, data_dir)
    ferry = await _id(engine, "ferry")
    (docs / "harbour.txt").unlink()
    if way == "ingest":
        assert (await workspace_of(engine).documents.ingest(docs)).removed == 1
    elif way == "sync":
        await _sync(engine)
    elif way == "source":
        assert await workspace_of(engine).sources.remove("docs") == 2
    else:
        _age(data_dir, harbour)
        await engine.tenants.set_retention("default", 30)
        await engine._components.maintenance.maintain("default")
    assert await engine._components.ledger.of("default").status(harbour) is None
    assert _told(data_dir) == (set() if way == "source" else {ferry})
    assert SAID not in _answers(data_dir)
    (turn,) = await workspace_of(engine).conversations.turns("talk")
    assert turn.question == FIRST


async def test_what_came_in_with_a_document_is_forgotten_with_it(engine: Engine, data_dir: Path, docs: Path) -> None:
    letter = EmailMessage()
    letter["Subject"], letter["From"], letter["To"] = "Hours", "a@example.org", "b@example.org"
    letter.set_content("See what is attached.")
    letter.add_attachment(HARBOUR, filename="harbour.txt")
    (docs / "letter.eml").write_bytes(letter.as_bytes())
    await workspace_of(engine).documents.ingest(docs / "letter.eml")
    letter_id = await _id(engine, "letter")
    assert SAID in (await workspace_of(engine).ask(Question(FIRST, k=1, conversation="talk"))).answer
    (turn,) = await workspace_of(engine).conversations.turns("talk")
    assert letter_id not in turn.document_ids
    assert await workspace_of(engine).documents.delete(letter_id)
    assert await workspace_of(engine).documents.list() == []
    assert SAID not in _answers(data_dir)


@pytest.mark.parametrize("way", ["replaced", "anew", "withdrawn"])
async def test_an_answer_goes_when_its_document_is_replaced(engine: Engine, data_dir: Path, way: str) -> None:
    items = [Item("test", "harbour", "harbour", HARBOUR), Item("test", "ferry", "ferry", FERRY)]
    await workspace_of(engine).documents.ingest_items(items)
    harbour = await _remembered(engine, data_dir)
    told = _told(data_dir)
    if way == "withdrawn":
        async with engine._components.ledger.transaction("default") as tx:
            assert await tx.withdraw(harbour)
    else:
        if way == "anew":  # under the same id and number of a version
            await workspace_of(engine).documents.delete(harbour)
        report = await workspace_of(engine).documents.ingest_items([Item("test", "harbour", "harbour", LATER)])
        assert (report.added, report.updated) == ((1, 0) if way == "anew" else (0, 1))
        assert await _id(engine) == harbour
    (turn,) = await workspace_of(engine).conversations.turns("talk")
    assert (turn.question, turn.answer) == (FIRST, "")
    assert (harbour in turn.document_ids) == (way != "anew")
    assert SAID not in _answers(data_dir)
    assert _told(data_dir) == (told - {harbour} if way == "anew" else told)


async def test_an_answer_stays_while_its_documents_are_as_they_were(engine: Engine, data_dir: Path) -> None:
    harbour, ferry = (Item("test", "harbour", "harbour", HARBOUR), Item("test", "ferry", "ferry", FERRY))
    await workspace_of(engine).documents.ingest_items([harbour])
    await _remembered(engine, data_dir)
    await workspace_of(engine).documents.ingest_items([harbour, ferry])
    await workspace_of(engine).documents.ingest_items([Item("test", "ferry", "ferry", f"{FERRY} It is blue.")])
    await engine._components.maintenance.maintain("default")
    (turn,) = await workspace_of(engine).conversations.turns("talk")
    assert SAID in turn.answer
    assert len(await workspace_of(engine).feedback.votes()) == len(await workspace_of(engine).feedback.golden()) == 1


async def test_an_llm_is_not_told_what_a_document_said_before_it_was_replaced(
    data_dir: Path, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = FakeLLM([f"The harbour opens at {SAID}. [1]", "A berth in the harbour costs ten crowns. [1]"])
    monkeypatch.setattr("ragstone.engine.components.build_llm", lambda _: llm)
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await workspace_of(engine).documents.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
        assert SAID in (await workspace_of(engine).ask(Question(FIRST, conversation="talk"))).answer
        await workspace_of(engine).documents.ingest_items([Item("test", "harbour", "harbour", LATER)])
        await workspace_of(engine).ask(Question(SECOND, conversation="talk"))
    asked = llm.requests[-1][-1].content
    assert f"Earlier question: {FIRST}" in asked
    assert SAID not in asked


async def test_an_answer_is_not_kept_when_its_document_was_replaced_meanwhile(
    data_dir: Path, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(FakeLLM):
        async def complete(self, *args: object, **options: object) -> object:  # type: ignore[override]
            await workspace_of(engine).documents.ingest_items([Item("test", "harbour", "harbour", LATER)])
            return await super().complete(*args, **options)  # type: ignore[arg-type]

    llm = Slow([f"The harbour opens at {SAID}. [1]"])
    monkeypatch.setattr("ragstone.engine.components.build_llm", lambda _: llm)
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await workspace_of(engine).documents.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
        assert SAID in (await workspace_of(engine).ask(Question(FIRST, conversation="talk"))).answer
        (turn,) = await workspace_of(engine).conversations.turns("talk")
        assert (turn.question, turn.answer) == (FIRST, "")


@pytest.mark.parametrize("way", ["document", "kb"])
async def test_what_the_log_could_not_forget_is_forgotten_later(
    engine: Engine, data_dir: Path, way: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await workspace_of(engine).documents.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
    await workspace_of(engine).documents.ingest_items([Item("test", "ferry", "ferry", FERRY)], kb="second")
    await workspace_of(engine).search(SearchQuery("ferry", kb="second"))
    harbour = await _remembered(engine, data_dir)
    [ferry] = _logged(data_dir) - {harbour}
    monkeypatch.setattr(sqlite_log, "BUSY_SECONDS", 0)
    with _held(_file(data_dir, "retrieval_log")):
        assert (
            await workspace_of(engine).documents.delete(harbour)
            if way == "document"
            else await workspace_of(engine).knowledge_bases.delete("default")
        ) == 1
    assert "cannot remove deleted documents from the retrieval log" in caplog.text
    assert SAID not in _answers(data_dir)
    assert harbour in _logged(data_dir)
    await engine._components.maintenance.maintain("default")
    assert _logged(data_dir) == {ferry}
    asked = [one.query for one in await workspace_of(engine).feedback.searches()]
    assert asked == (["harbour", FIRST] if way == "document" else [])


async def test_a_search_on_its_way_to_the_log_tells_nothing_of_what_is_deleted_before(
    engine: Engine, data_dir: Path
) -> None:
    await workspace_of(engine).documents.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
    await workspace_of(engine).documents.ingest_items([Item("test", "ferry", "ferry", FERRY)], kb="second")
    await workspace_of(engine).search("harbour")
    await workspace_of(engine).search(SearchQuery("ferry", kb="second"))
    await workspace_of(engine).documents.delete(await _id(engine))
    await workspace_of(engine).knowledge_bases.delete("second")
    [left] = await workspace_of(engine).feedback.searches()
    assert (left.query, left.num_results, left.shown) == ("harbour", 1, ())
    assert await workspace_of(engine).feedback.searches(kb="second") == []


async def test_what_was_asked_of_a_kb_goes_on_under_its_new_name(engine: Engine, data_dir: Path) -> None:
    await workspace_of(engine).documents.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
    await _remembered(engine, data_dir)
    kb = await workspace_of(engine).knowledge_bases.get()
    async with engine._components.ledger.transaction("default") as tx:
        await tx.rename_kb(kb, "port")
    (turn,) = await workspace_of(engine).conversations.turns("talk", kb="port")
    assert SAID in turn.answer
    assert len(await workspace_of(engine).feedback.golden(kb="port")) == 1
    assert [one.kb for one in await workspace_of(engine).feedback.searches(kb="port")] == ["port", "port"]
    assert await workspace_of(engine).feedback.searches() == []


async def test_what_was_asked_goes_with_its_time_also_if_nothing_is_asked_any_more(
    engine: Engine, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workspace_of(engine).documents.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
    await _remembered(engine, data_dir)
    ledger = engine._components.ledger
    await WebResultRepository(ledger, "default", 24).put("fixture", "harbour", 1, [WebResult("Port", "Tides", "u")])
    await ArticleRunRepository(ledger, "default").add("default", "full", "The harbour", now() - timedelta(days=1))
    days = engine.settings.activity.days

    def counted() -> dict[str, int]:
        with closing(sqlite3.connect(_file(data_dir, "ledger"))) as rows:
            rows.execute("ATTACH ? AS log", (str(_file(data_dir, "retrieval_log")),))
            tables = ("turns", "web_results", "article_runs", "log.retrieval_log", "golden_queries")
            return {name: rows.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}

    async def maintain_after(waited: int) -> dict[str, int]:
        later = now() + timedelta(days=waited)
        for module in (components, removal):
            monkeypatch.setattr(module, "now", lambda: later)
        engine._components.__dict__.pop("maintenance", None)
        await engine._components.maintenance.maintain("default")
        return counted()

    kept = {"turns": 1, "web_results": 1, "article_runs": 1, "log.retrieval_log": 2, "golden_queries": 1}
    assert counted() == kept
    assert await maintain_after(days - 1) == {**kept, "web_results": 0}
    assert await maintain_after(days + 1) == {**dict.fromkeys(kept, 0), "golden_queries": 1}


async def test_a_search_that_failed_for_want_of_a_kb_stays_on_record(engine: Engine) -> None:
    await workspace_of(engine).documents.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
    with pytest.raises(Exception, match="nowhere"):
        await workspace_of(engine).search(SearchQuery("harbour", kb="nowhere"))
    await engine._components.search_log.flush()
    await engine._components.maintenance.maintain("default")
    assert [one.query for one in await workspace_of(engine).feedback.searches(kb="nowhere")] == ["harbour"]


@pytest.mark.req("R-DOM-37")
async def test_turns_are_read_while_somebody_writes(
    engine: Engine, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workspace_of(engine).documents.ingest_items(
        [Item("test", "harbour", "harbour", HARBOUR), Item("test", "ferry", "ferry", FERRY)]
    )
    await workspace_of(engine).ask(Question(FIRST, conversation="talk"))
    monkeypatch.setattr(conversations, "WRITE_SECONDS", 0.01)
    with _held(_file(data_dir, "ledger")):
        answer = await workspace_of(engine).ask(Question(SECOND, conversation="talk"))
    assert "nine crowns" in answer.answer
    assert answer.degraded == ("conversation: this turn is not remembered: the ledger is busy",)


@pytest.mark.parametrize("way", ["ask", "stream", "search"])
async def test_a_question_is_answered_also_where_its_conversation_cannot_be_read(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    async def broken(*_: object) -> None:
        raise StoreCorrupt("the turns cannot be read")

    await workspace_of(engine).documents.ingest_items([Item("test", "harbour", "harbour", HARBOUR)])
    await workspace_of(engine).ask(Question(FIRST, conversation="talk"))
    for name in ("turns", "add"):
        monkeypatch.setattr(ConversationRepository, name, broken)
    degraded: tuple[str, ...] = ()
    if way == "ask":
        answer = await workspace_of(engine).ask(Question(FIRST, conversation="talk"))
        assert SAID in answer.answer
        degraded = answer.degraded
    elif way == "search":
        found = await workspace_of(engine).search(SearchQuery(FIRST, conversation="talk"))
        assert found.hits
        degraded = found.degraded
    else:
        async for event in workspace_of(engine).stream(Question(FIRST, conversation="talk")):
            if isinstance(event, AnswerReady):
                degraded = event.answer.degraded
    assert degraded == (
        "conversation: what was said before is not known: the turns cannot be read",
        "conversation: this turn is not remembered: the turns cannot be read",
    )
