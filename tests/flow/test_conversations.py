"""Questions of one conversation lean on each other, and what was said goes with what it was made from."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.answers import Answer, AnswerReady
from ragstone.core.clock import now
from ragstone.core.errors import InputError, StoreFull
from ragstone.core.search import Exchange, Question, SearchQuery
from ragstone.engine import conversations, search
from ragstone.language.follow_ups import FollowUp, resolve_follow_up
from ragstone.stores.activity import conversations as rows
from ragstone.stores.activity.conversations import ConversationRepository
from ragstone.testing.fakes import FakeEmbedder, FakeLLM
from ragstone.testing.workspaces import workspace_of

TEXTS = {
    "harbour": "The harbour opens at six in the morning. A berth in the harbour costs nine crowns.",
    "ferry": "The ferry leaves at noon. A ticket for the ferry costs six crowns.",
    "granite": "Granite is an igneous rock. Quarries of the north cut it with wire saws.",
}
FIRST, SECOND = "When does the harbour open?", "What does it cost?"


def _items() -> list[Item]:
    return [Item("test", name, name, text, title=name.title()) for name, text in TEXTS.items()]


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    async with open_engine(Settings(data_dir=data_dir)) as opened:
        await workspace_of(opened).documents.ingest_items(_items())
        yield opened


async def _streamed(engine: Engine, question: str, **options: str) -> Answer:
    [answer] = [
        event.answer
        async for event in workspace_of(engine).stream(Question(question, **options))
        if isinstance(event, AnswerReady)
    ]
    return answer


def _words(folder: Path) -> str:
    """All that the turns on the disk say."""
    said = []
    for file in folder.glob("tenants/*/ledger.db"):
        with closing(sqlite3.connect(file)) as connection:
            said += [text for row in connection.execute("SELECT question, answer FROM turns") for text in row]
    return "\n".join(said)


@pytest.mark.req("R-DOM-37")
@pytest.mark.parametrize("streaming", [False, True])
async def test_a_question_leans_on_the_one_before_it(engine: Engine, streaming: bool) -> None:
    asked = []
    for question in (FIRST, SECOND):
        if streaming:
            asked.append(await _streamed(engine, question, conversation="talk"))
        else:
            asked.append(await workspace_of(engine).ask(Question(question, conversation="talk")))
    assert [one.question for one in asked] == [FIRST, SECOND]
    assert "nine crowns" in asked[1].answer
    assert "six crowns" not in asked[1].answer
    turns = await workspace_of(engine).conversations.turns("talk")
    assert [(one.question, one.answer) for one in turns] == [(FIRST, asked[0].answer), (SECOND, asked[1].answer)]
    logged = await workspace_of(engine).feedback.searches(conversation="talk")
    assert [(one.query, one.conversation) for one in logged] == [(SECOND, "talk"), (FIRST, "talk")]
    assert {one.action for one in await workspace_of(engine).audit.list(limit=2)} == {"ask"}


@pytest.mark.req("R-DOM-37")
async def test_a_short_question_is_searched_for_together_with_the_one_before(engine: Engine) -> None:
    await workspace_of(engine).search(SearchQuery("granite quarries of the north", conversation="talk"))
    found = await workspace_of(engine).search(SearchQuery("wire saws", conversation="talk"))
    assert (found.query, found.rewritten_query) == ("wire saws", "granite quarries of the north wire saws")
    alone = await workspace_of(engine).search("wire saws")
    assert alone.rewritten_query == "wire saws"
    assert [one.question for one in await workspace_of(engine).conversations.turns("talk")] == [
        "granite quarries of the north",
        "wire saws",
    ]


@pytest.mark.req("R-DOM-37")
async def test_an_llm_is_told_what_was_said_before(
    data_dir: Path, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "The harbour opens at six in the morning."
    llm = FakeLLM([f"{said} [1]", "A berth in the harbour costs nine crowns. [1]", "NO ANSWER"])
    monkeypatch.setattr("ragstone.engine.components.build_llm", lambda _: llm)
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await workspace_of(engine).documents.ingest_items(_items())
        await workspace_of(engine).ask(Question(FIRST, conversation="talk"))
        await workspace_of(engine).ask(Question(SECOND, conversation="talk"))
        await workspace_of(engine).ask(SECOND)
    before, after, alone = (request[-1].content for request in llm.requests)
    assert f"Earlier question: {FIRST}\nEarlier answer: {said}" in after
    assert after.endswith("Question: What does the harbour cost?")
    assert "Earlier" not in before + alone


async def test_conversations_are_apart(engine: Engine) -> None:
    await engine.workspace("other").documents.ingest_items(_items())
    await workspace_of(engine).documents.ingest_items(_items(), kb="second")
    await workspace_of(engine).ask(Question(FIRST, conversation="talk"))
    assert await workspace_of(engine).conversations.turns("another") == ()
    assert await engine.workspace("other").conversations.turns("talk") == ()
    assert await workspace_of(engine).conversations.turns("talk", kb="second") == ()
    found = await engine.workspace("other").search(SearchQuery("What does it cost?", conversation="talk"))
    assert found.rewritten_query == "What does it cost?"


@pytest.mark.parametrize("way", ["delete", "erase", "source", "kb", "tenant"])
async def test_what_was_said_goes_with_what_it_was_made_from(engine: Engine, data_dir: Path, way: str) -> None:
    await workspace_of(engine).ask(Question(FIRST, conversation="talk"))
    (turn,) = await workspace_of(engine).conversations.turns("talk")
    assert "six in the morning" in turn.answer
    harbour = next(one.id for one in await workspace_of(engine).documents.list() if one.external_id == "harbour")
    assert harbour in turn.document_ids
    if way == "delete":
        await workspace_of(engine).documents.delete(harbour)
    elif way == "kb":
        await workspace_of(engine).knowledge_bases.delete("default")
    else:
        if way == "tenant":
            receipt = await engine.erase_tenant("default")
        elif way == "source":
            [receipt] = await workspace_of(engine).erase("source", "test")
        else:
            [receipt] = await workspace_of(engine).erase("document", harbour)
        assert receipt.complete
        assert receipt.removed["activity"]["rows"] > 0
    assert "six in the morning" not in _words(data_dir)
    # A question may well say what a document says: erased, it goes, too.
    assert (FIRST in _words(data_dir)) == (way == "delete")


async def test_documents_that_went_another_way_take_answers_along(engine: Engine, data_dir: Path) -> None:
    await workspace_of(engine).ask(Question(FIRST, conversation="talk"))
    for document in await workspace_of(engine).documents.list():
        async with engine._components.ledger.transaction("default") as tx:
            await tx.delete(document.id)
    (turn,) = await workspace_of(engine).conversations.turns("talk")
    assert (turn.question, turn.answer, turn.document_ids) == (FIRST, "", ())
    assert "six in the morning" not in _words(data_dir)


async def test_turns_are_bounded_and_do_not_stay_for_ever(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_OF_ONE", 2)
    monkeypatch.setattr(rows, "MOST_TURNS", 3)
    for n in range(3):
        await workspace_of(engine).search(SearchQuery(f"granite number {n}", conversation="one"))
    for n in range(2):
        await workspace_of(engine).search(SearchQuery(f"ferry number {n}", conversation="two"))
    assert [one.question for one in await workspace_of(engine).conversations.turns("one")] == ["granite number 2"]
    assert len(await workspace_of(engine).conversations.turns("two")) == 2
    days = engine.settings.activity.days
    monkeypatch.setattr(conversations, "now", lambda: now() + timedelta(days=days + 1))
    assert await workspace_of(engine).conversations.turns("two") == ()
    await workspace_of(engine).search(SearchQuery("the newest", conversation="three"))
    monkeypatch.undo()
    assert await workspace_of(engine).conversations.turns("two") == ()


async def test_a_conversation_can_be_forgotten(engine: Engine) -> None:
    await workspace_of(engine).search(SearchQuery("granite", conversation="talk"))
    assert await workspace_of(engine).conversations.forget("talk") == 1
    assert await workspace_of(engine).conversations.forget("talk") == 0
    assert await workspace_of(engine).conversations.turns("talk") == ()


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201, "\x00"])
async def test_names_that_a_conversation_cannot_have(engine: Engine, name: str) -> None:
    with pytest.raises(InputError, match="a conversation cannot be called"):
        await workspace_of(engine).search(SearchQuery("granite", conversation=name))
    with pytest.raises(InputError, match="a conversation cannot be called"):
        await workspace_of(engine).ask(Question("granite", conversation=name))


async def test_an_answer_is_given_also_where_it_cannot_be_remembered(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise StoreFull("disk is full")

    monkeypatch.setattr(ConversationRepository, "add", full)
    told = "conversation: this turn is not remembered: disk is full"
    answer = await workspace_of(engine).ask(Question(FIRST, conversation="talk"))
    assert (answer.status, answer.degraded[-1]) == ("answered", told)
    assert (await workspace_of(engine).search(SearchQuery("granite", conversation="talk"))).degraded[-1] == told


async def test_turns_are_kept_where_searches_are_not_logged(data_dir: Path, fake_model: FakeEmbedder) -> None:
    async with open_engine(Settings(data_dir=data_dir, activity={"searches": False})) as engine:
        await workspace_of(engine).documents.ingest_items(_items())
        await workspace_of(engine).ask(Question(FIRST, conversation="talk"))
        assert "nine crowns" in (await workspace_of(engine).ask(Question(SECOND, conversation="talk"))).answer
        assert await workspace_of(engine).feedback.searches() == []


async def test_a_cached_answer_is_not_given_to_another_conversation(data_dir: Path, fake_model: FakeEmbedder) -> None:
    settings = Settings(data_dir=data_dir, cache={"answers": True})
    question = "What does a ticket or berth of it cost?"
    async with open_engine(settings) as engine:
        await workspace_of(engine).documents.ingest_items(_items())
        told = {}
        for name, first in (("a", FIRST), ("b", "When does the ferry leave?")):
            await workspace_of(engine).ask(Question(first, conversation=name))
            told[name] = (await workspace_of(engine).ask(Question(question, conversation=name))).answer
    assert told["a"] != told["b"]


async def test_each_follow_up_is_answered_by_its_own_words(data_dir: Path) -> None:
    """With the model itself: a short question of its own is what the next one leans on, not the first of all."""
    text = (
        "# Ferry\n\nThe ferry leaves at nine. On Sundays it leaves at ten.\n\n"
        "# Fares\n\nA dog travels free. A bicycle costs 4 euros. A car costs 20 euros.\n"
    )
    asked = {
        "When does the ferry leave?": "The ferry leaves at nine.",
        "And on Sundays?": "On Sundays it leaves at ten.",
        "How much does a bicycle cost?": "A bicycle costs 4 euros.",
        "And a car?": "A car costs 20 euros.",
        "And dogs?": "A dog travels free.",
    }
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await workspace_of(engine).documents.ingest_items(
            [Item("test", "ferry", "ferry.md", text, media_type="text/markdown")]
        )
        told = {question: await workspace_of(engine).ask(Question(question, conversation="talk")) for question in asked}
    assert {question: answer.sentences[0].text for question, answer in told.items()} == asked


GUIDES = {
    "Cache": (
        "# Cache\n\nThe cache keeps values in memory. A value is stored with set().\n\n"
        "## Removing\n\nA single entry is deleted with delete(). The whole cache is emptied with clear().\n"
    ),
    "Blog": "# Blog\n\nAn entry of the blog is written by its owner. The owner deletes the entry in the admin.\n",
    "Museum": "# Museum\n\nAda Lind runs the museum. It is open on Sundays.\n",
}


@pytest.mark.parametrize("way", ["conversation", "earlier"])
async def test_a_follow_up_without_a_pronoun_stays_with_the_topic(data_dir: Path, way: str) -> None:
    """With the model itself, and with what was said before kept here or by the caller."""
    items = [
        Item("test", name, f"{name}.md", text, title=name, media_type="text/markdown") for name, text in GUIDES.items()
    ]
    asked = {
        "How do I store a value in the cache?": "Cache",
        "How do I delete one entry?": "Cache",
        "And how is the whole of it emptied?": "Cache",
        "Who runs the museum?": "Museum",
    }
    sources, earlier = {}, list[Exchange]()
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await workspace_of(engine).documents.ingest_items(items)
        for question in asked:
            options = {"conversation": "talk"} if way == "conversation" else {"earlier": tuple(earlier)}
            answer = await workspace_of(engine).ask(Question(question, **options))
            earlier.append(Exchange(question, answer.answer if answer.sentences else ""))
            sources[question] = answer.citations[0].title if answer.citations else answer.answer
    assert sources == asked


async def test_only_the_beginning_of_a_long_answer_is_read_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[int]()

    def resolve(question: str, earlier: Sequence[Exchange], most: int) -> FollowUp:
        read.extend(len(turn.answer) for turn in earlier)
        return resolve_follow_up(question, earlier, most)

    monkeypatch.setattr(search, "resolve_follow_up", resolve)
    said = "It opens at six. " * 1000
    answer = await workspace_of(engine).ask(Question(SECOND, earlier=[Exchange(FIRST, said)] * 2))
    assert "nine crowns" in answer.answer
    assert read == [conversations.MOST_CHARS] * 2
