"""A workspace: `ask` is `stream` collected, and every audit record has its actor and request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragstone import Answer, AuditEntry, Item, Question, SearchQuery, Settings, Workspace, acting_as, open_engine
from ragstone.core.answers import AnswerReady
from ragstone.core.errors import InputError
from ragstone.testing.fakes import FakeEmbedder, FakeLLM

ITEMS = [
    Item("notes", "1", "notes/1", "Maria Lind runs Harbour Line today."),
    Item("notes", "2", "notes/2", "Harbour Line was founded in 1974 by two fishermen."),
]
WHO = "Who runs Harbour Line?"


async def collected(workspace: Workspace, question: Question) -> Answer:
    last = [event async for event in workspace.stream(question)][-1]
    assert isinstance(last, AnswerReady)
    return last.answer


def on_record(entries: Sequence[AuditEntry]) -> list[tuple[Any, ...]]:
    """What entries say besides when and for whom, oldest first."""
    facts = [(one.action, one.outcome, one.kb, one.count, one.document_ids) for one in entries]
    return [fact for fact in facts[::-1] if fact[0] == "ask"]


@pytest.mark.parametrize(
    ("questions", "settings", "replies"),
    [
        ([Question(WHO)], {}, []),
        ([Question(WHO), Question(WHO)], {"cache": {"answers": True}}, []),
        ([Question(WHO)], {"answer": {"confident": 0.9}}, [{"confidence": 0.99, "answer": "Maria Lind."}]),
        ([Question(WHO, conversation="c"), Question("When was it founded?", conversation="c")], {}, []),
        ([Question("When was Harbour Line founded and who runs it?")], {}, []),
        ([Question("Which colour has a zebra?", k=1)], {}, []),
    ],
    ids=["plain", "cached", "recalled", "conversation", "compound", "without evidence"],
)
async def test_ask_is_stream_collected(
    data_dir: Path,
    fake_model: FakeEmbedder,
    monkeypatch: pytest.MonkeyPatch,
    questions: list[Question],
    settings: dict[str, Any],
    replies: list[Any],
) -> None:
    given, recorded, searches = [], [], []
    if replies:
        llm = FakeLLM([json.dumps(reply) for reply in replies] * 2)
        monkeypatch.setattr("ragstone.engine.components.build_llm", lambda _: llm)
    for way in (Workspace.ask, collected):
        async with open_engine(Settings(data_dir=data_dir / way.__name__, **settings)) as engine:
            workspace = engine.workspace("acme")
            await workspace.documents.ingest_items(ITEMS)
            given.append([await way(workspace, question) for question in questions])
            recorded.append(on_record(await workspace.audit.list()))
            turns = await workspace.conversations.turns("c")
            searches.append(
                ([one.query for one in await workspace.feedback.searches()], [turn.answer for turn in turns])
            )
    assert given[0] == given[1]
    assert recorded[0] == recorded[1]
    assert len(recorded[0]) == len(questions)
    assert searches[0] == searches[1]


async def test_a_stream_and_an_answer_share_their_cache(data_dir: Path, fake_model: FakeEmbedder) -> None:
    async with open_engine(Settings(data_dir=data_dir, cache={"answers": True})) as engine:
        acme = engine.workspace("acme")
        await acme.documents.ingest_items(ITEMS)
        first = [event async for event in acme.stream(WHO)]
        assert await acme.ask(WHO) == first[-1].answer  # type: ignore[union-attr]
        assert [event async for event in acme.stream(WHO)] == first
        assert [one.query for one in await acme.feedback.searches()] == [WHO], "only the first one searched"


async def test_every_record_has_the_actor_and_the_request(data_dir: Path, fake_model: FakeEmbedder) -> None:
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        acme = engine.workspace("acme", actor="key:7f3a", request_id="r-1")
        await acme.documents.ingest_items(ITEMS)
        document = (await acme.documents.list())[0].id
        await acme.search("harbour")
        await acme.ask(WHO)
        assert [event async for event in acme.stream(WHO)]
        await acme.documents.text(document)
        await acme.knowledge_bases.rename("default", "lines")
        await acme.documents.delete(document)
        made = await acme.audit.list()
        assert {one.action for one in made} == {
            *("tenant.create", "search", "ask", "document.read", "kb.rename", "document.upload", "document.delete")
        }
        assert {(one.actor, one.request_id) for one in made} == {("key:7f3a", "r-1")}
        with acting_as("ada"):
            await engine.workspace("acme", request_id="r-2").search(SearchQuery("harbour", kb="lines"))
            await engine.workspace("acme", actor="bob").search(SearchQuery("harbour", kb="lines"))
        latest = (await acme.audit.list(action="search", limit=2))[::-1]
        assert [(one.actor, one.request_id) for one in latest] == [("ada", "r-2"), ("bob", "")]


async def test_a_workspace_does_not_erase_tenants(data_dir: Path, fake_model: FakeEmbedder) -> None:
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await engine.workspace("acme").documents.ingest_items(ITEMS)
        with pytest.raises(InputError, match="kind is 'tenant'; it must be one of: document, source, kb"):
            await engine.workspace("globex").erase("tenant", "acme")  # type: ignore[arg-type]
        assert [tenant.name for tenant in await engine.tenants.all()] == ["acme"]


async def test_the_operator_examines_the_stores(data_dir: Path, fake_model: FakeEmbedder) -> None:
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await engine.workspace("acme").documents.ingest_items(ITEMS)
        assert {finding.state for finding in await engine.health()} == {"ok"}
