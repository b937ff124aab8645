"""The article pipeline when models and searches misbehave: it goes on, and every call is counted."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.doubles.newsroom import agent_of, ask_tool, newsroom, once
from tests.doubles.openai import Reply, Request, json_reply, stream_reply
from tests.flow.test_article import TRUE, open_workspace, state_of

from ragstone import Workspace
from ragstone.agents.article.run import resume_article, write_article
from ragstone.core.errors import RemoteError, SearchFailed, SettingsError
from ragstone.testing.fakes import FakeEmbedder

PARTS = {"writer": TRUE, "editor": TRUE, "style_enforce": TRUE}


@pytest.fixture(autouse=True)
def _fake(fake_model: FakeEmbedder) -> None:
    pass


async def test_replies_that_are_streamed_limited_or_broken_are_asked_for_again(tmp_path: Path) -> None:
    heard: list[str] = []

    def write(request: Request) -> Reply:
        assert request.body["stream"] is True
        return stream_reply(*(word + " " for word in TRUE.split(" ")))

    with newsroom(dict.fromkeys(("writer", "editor", "style_enforce", "research", "critic"), write)) as double:
        double.script.extend(
            [
                json_reply({}, 429, retry_after="0"),
                Reply(b"data: not json\n\n", headers={"content-type": "text/event-stream"}),
                stream_reply("It breaks ", "off", finish_reason=None, done=False),
            ]
        )
        engine, workspace = await open_workspace(tmp_path, double, llm={"retries": 4, "timeout": 30.0})
        async with engine:
            run = await write_article(workspace, "The tide gate", graph="writer", on_text=heard.append)
    assert run.article is not None
    assert run.article.markdown == " ".join(TRUE.split(" ")).strip() + "\n"
    assert "".join(heard).count("two keys.") == 3
    assert [step.node for step in run.article.steps] == ["research", "writer", "editor"]


async def test_a_model_that_hangs_is_asked_again_and_ends_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    replies = [Reply(hang=True), Reply(hang=True), Reply(hang=True), TRUE]

    with newsroom(PARTS | {"writer": lambda _: replies.pop(0)}) as double:
        engine, workspace = await open_workspace(tmp_path, double, llm={"retries": 1, "timeout": 2.0})
        async with engine:
            with pytest.raises(RemoteError, match="did not answer within 2 s"):
                await write_article(workspace, "The tide gate", graph="writer")
            (run,) = await workspace.articles.list()
            assert len(replies) == 2
            assert (await resume_article(workspace, run.id)).status == "completed"
    assert [agent_of(request) for request in double.requests].count("research") == 1


async def test_a_streamed_reply_may_ask_for_tools(tmp_path: Path) -> None:
    pieces = ['{"query": ', '"keeper of the gate"}']
    deltas: list[dict[str, Any]] = [
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "search_knowledge"}}]},
        *({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces),
    ]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    events = [
        {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        for choice in choices
    ]
    asks = Reply(
        "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + b"data: [DONE]\n\n",
        headers={"content-type": "text/event-stream"},
    )

    def write(request: Request) -> Reply:
        return stream_reply(TRUE) if request.body["messages"][-1]["role"] == "tool" else asks

    with newsroom(
        {"writer": write, "research": lambda _: stream_reply("."), "editor": lambda _: stream_reply(TRUE)}
    ) as double:
        engine, workspace = await open_workspace(tmp_path, double)
        async with engine:
            run = await write_article(workspace, "The tide gate", graph="writer", on_text=lambda _: None)
    assert run.article is not None
    assert [(query.tool, query.query) for query in run.article.queries][-1] == (
        "search_knowledge",
        "keeper of the gate",
    )


@pytest.mark.req("R-ART-07", "R-REL-15", "R-REL-16", "R-REL-19")
async def test_the_sixth_call_is_refused_and_no_query_is_made_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    real = Workspace.search

    async def counted(self: Workspace, query: Any) -> Any:
        made.append(query.text)
        return await real(self, query)

    monkeypatch.setattr(Workspace, "search", counted)
    queries = [
        {"query": f"tide gate {place}"} for place in ("keeper", "keeper", "nine", "keys", "1911", "weight", "water")
    ]
    parts = {
        "writer": once(ask_tool("search_knowledge", *queries, "not json"), TRUE),
        "editor": once(ask_tool("search_knowledge", {"query": "TIDE gate  keeper"}), TRUE),
    }
    with newsroom(parts) as double:
        engine, workspace = await open_workspace(tmp_path, double)
        async with engine:
            run = await write_article(workspace, "The tide gate", graph="writer")
            told = [
                json.loads(turn["content"])
                for turn in (await state_of(workspace, run.id))["messages"]
                if turn["role"] == "tool"
            ]
    assert made == ["tide gate keeper", "tide gate nine", "tide gate keys", "tide gate 1911"]
    assert run.article is not None
    written = [query for query in run.article.queries if query.node == "writer"]
    assert [query.reused for query in written] == [False, True, False, False, False, False, False, False]
    assert ["used up" in query.error for query in written[:7]] == [False] * 5 + [True] * 2
    assert [query.reused for query in run.article.queries if query.node == "editor"] == [True]
    assert told[0] == told[1] == told[-1]
    assert told[0][0].keys() >= {"chunk_text", "source", "relevance_score", "parent_doc_id"}


@pytest.mark.req("R-ART-17")
@pytest.mark.parametrize("fault", ["fails", "hangs"])
async def test_a_retrieval_that_fails_or_hangs_fails_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        if fault == "fails":
            raise SearchFailed("no arm answers")
        await asyncio.sleep(60)

    team = (Path(__file__).parents[2] / "src/ragstone/agents/article/agents.yaml").read_text()
    (tmp_path / "agents.yaml").write_text(team.replace("    temperature: ", "    seconds: 0.2\n    temperature: "))
    parts = PARTS | {"writer": once(ask_tool("search_knowledge", {"query": "gate"}), TRUE)}
    with newsroom(parts) as double:
        engine, workspace = await open_workspace(tmp_path, double, agents={"file": tmp_path / "agents.yaml"})
        async with engine:
            for name in ("search", "research", "verify"):
                monkeypatch.setattr(Workspace, name, broken)
            run = await write_article(workspace, "The tide gate")
    assert run.article is not None
    assert (run.status, run.article.cited, run.article.status) == ("completed", 0, "rejected")
    assert {claim.treatment for claim in run.article.claims} == {"removed"}
    assert all(query.error for query in run.article.queries)
    assert any("knowledge_base" in note for note in run.article.degraded)


@pytest.mark.req("R-ART-18")
async def test_each_agent_is_asked_at_the_address_of_its_provider(tmp_path: Path) -> None:
    false = TRUE + "\nThe tide gate was built in 1950.\n"
    with newsroom({"writer": false, "editor": TRUE, "style_enforce": false}) as own, newsroom({}) as groq:
        providers = {"groq": {"base_url": groq.url, "retries": 0}}
        engine, workspace = await open_workspace(tmp_path, own, agents={"providers": providers})
        async with engine:
            await write_article(workspace, "The tide gate")
    assert {agent_of(request) for request in groq.requests} == {"fact_verify"}
    assert {request.body["model"] for request in groq.requests} == {"llama-3.3-70b-versatile"}
    assert {request.body["model"] for request in own.requests} == {"m"}
    assert "fact_verify" not in {agent_of(request) for request in own.requests}


async def test_without_a_model_nothing_is_written(tmp_path: Path) -> None:
    with newsroom({}) as double:
        engine, workspace = await open_workspace(tmp_path, double, llm={"model": None})
        async with engine:
            with pytest.raises(SettingsError, match="needs a language model"):
                await write_article(workspace, "The tide gate")
            assert list(await workspace.articles.list()) == []


async def test_a_verifier_and_a_panel_that_cannot_be_reached_do_not_end_a_run(tmp_path: Path) -> None:
    false = TRUE + "\nThe tide gate was built in 1950.\n"
    broken = json_reply({}, 500)
    parts = {"writer": false, "editor": TRUE, "style_enforce": false, "fact_verify": broken, "reader": broken}
    with newsroom(parts) as double:
        engine, workspace = await open_workspace(tmp_path, double, llm={"retries": 0})
        async with engine:
            run = await write_article(workspace, "The tide gate")
    assert run.article is not None
    assert (run.article.rounds, run.article.status) == (1, "accepted")
    assert [vote.vote for vote in run.article.votes if vote.member == "reader"] == ["abstain"]
    assert any(note.startswith("fact_verify: m: ") for note in run.article.degraded)


@pytest.mark.req("R-TOL-35")
async def test_passages_that_an_article_cites_are_kept_as_useful(tmp_path: Path) -> None:
    parts = PARTS | {"writer": once(ask_tool("search_knowledge", {"query": "keeper of the gate"}), TRUE)}
    with newsroom(parts) as double:
        engine, workspace = await open_workspace(tmp_path, double)
        async with engine:
            run = await write_article(workspace, "The tide gate")
            votes = await workspace.feedback.votes()
            costs = (await workspace.usage()).cost
    assert run.article is not None
    assert {(vote.query, vote.vote, vote.voter) for vote in votes} >= {("The tide gate", "used", "article")}
    assert {vote.chunk_id for vote in votes} == {citation.chunk_id for citation in run.article.citations}
    spent = sum(step.usd for step in run.article.steps)
    assert spent == pytest.approx(sum((100 * 1.0 + 20 * 2.0) / 1e6 for step in run.article.steps if step.tokens_read))
    assert costs >= spent


@pytest.mark.req("R-ART-11")
async def test_a_claim_that_only_the_web_knows_is_cited_from_there(tmp_path: Path) -> None:
    page = {"title": "Bells", "url": "https://bells.example/", "snippet": "The bell of the mill weighs three tonnes."}
    (tmp_path / "web.json").write_text(json.dumps({"*": [page]}))
    draft = TRUE + "\nThe bell of the mill weighs three tonnes.\n"
    with newsroom({"writer": draft, "editor": draft, "style_enforce": draft}) as double:
        web = {"kind": "fixture", "path": tmp_path / "web.json"}
        engine, workspace = await open_workspace(tmp_path, double, web=web)
        async with engine:
            run = await write_article(workspace, "The tide gate")
    assert run.article is not None
    claims = {claim.text: claim for claim in run.article.claims}
    known = claims["The bell of the mill weighs three tonnes."]
    assert (known.outcome, known.checked_by, known.treatment) == ("confirmed", ("knowledge_base", "web"), "kept")
    (cited,) = [citation for citation in run.article.citations if citation.n == known.citation]
    assert (cited.uri, cited.quote) == ("https://bells.example/", "The bell of the mill weighs three tonnes.")
    assert cited.site
