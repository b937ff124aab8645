"""The article pipeline end to end, with a scripted OpenAI-compatible service and real retrieval and checks."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.doubles.newsroom import agent_of, ask_tool, newsroom, once
from tests.doubles.openai import OpenAIDouble, Reply, Request, json_reply

from ragstone import Workspace
from ragstone.agents.article.run import resume_article, write_article
from ragstone.agents.article.state import ArticleState
from ragstone.agents.article.team import load_team
from ragstone.agents.article.verification import verify_article
from ragstone.core.answers import Verdict
from ragstone.core.errors import LeaseLost, NotFoundError, RemoteError, StoreBusy
from ragstone.engine.engine import Engine, open_engine
from ragstone.settings.load import load_settings
from ragstone.testing.fakes import FakeEmbedder

FACTS = {
    "gate.md": "# Tide gate\n\nThe tide gate opens at nine. The keeper of the tide gate has two keys. "
    "The tide gate was built in 1911. The tide gate weighs ninety tonnes. The tide gate closes at low water.\n",
    "ferry.md": "# Ferry\n\nThe ferry crosses the harbour in twelve minutes. The ferry carries forty cars. "
    "The ferry is named Aurora.\n",
}
TRUE = "# The tide gate\n\nThe tide gate opens at nine. The keeper of the tide gate has two keys.\n"
FALSE = TRUE + "\nThe tide gate was built in 1950. Its bricks sing at night.\n"


async def open_workspace(tmp_path: Path, double: OpenAIDouble, **more: Any) -> tuple[Engine, Workspace]:
    llm = {"model": "m", "base_url": double.url, "retries": 1, "timeout": 5.0, "price_in": 1.0, "price_out": 2.0}
    settings = load_settings(overrides={"data_dir": tmp_path / "data", "llm": llm | more.pop("llm", {}), **more})
    engine = open_engine(settings)
    workspace = engine.workspace(settings.tenant)
    for name, content in FACTS.items():
        (tmp_path / name).write_text(content)
        await workspace.documents.ingest(tmp_path / name)
    return engine, workspace


async def state_of(workspace: Workspace, run_id: str) -> ArticleState:
    """The state of a run as its last checkpoint has it."""
    state: ArticleState = (await workspace.articles.checkpoint(run_id))["checkpoint"]["channel_values"]
    return state


@pytest.fixture(autouse=True)
def _fake(fake_model: FakeEmbedder) -> None:
    pass


@pytest.mark.req("R-ART-01", "R-ART-02", "R-ART-03", "R-ART-05", "R-TOL-33")
async def test_every_node_runs_in_order_and_tools_go_back_to_whoever_asked(tmp_path: Path) -> None:
    parts = {
        "research": once(ask_tool("research_topic", {"topic": "tide gate"}), "The gate opens at nine."),
        "writer": once(ask_tool("search_knowledge", {"query": "keeper of the tide gate"}), TRUE),
        "editor": TRUE,
        "style_enforce": TRUE,
        "critic": once(ask_tool("verify_claim", {"claim": "The tide gate opens at nine."}), "Short, but right."),
    }
    seen: list[str] = []
    with newsroom(parts) as double:
        engine, workspace = await open_workspace(tmp_path, double)
        async with engine:
            run = await write_article(
                workspace,
                "The tide gate",
                on_node=lambda node, event: seen.append(node) if event == "started" else None,
            )
            state = await state_of(workspace, run.id)
    assert seen == [
        *("research", "tools", "research", "writer", "tools", "writer", "voice_validate", "editor"),
        *("style_enforce", "critic", "tools", "critic", "fact_verify", "quality_gate"),
    ]
    assert [(query["node"], query["tool"]) for query in state["knowledge_queries"]] == [
        ("research", "research_topic"),
        ("writer", "search_knowledge"),
        ("critic", "verify_claim"),
    ]
    assert {context["node"] for context in state["retrieved_contexts"]} == {"research"}  # the writer's was known
    assert [claim["by"] for claim in state["verified_claims"]] == ["critic", "fact_verify", "fact_verify"]
    assert state["verified_claims"][0]["status"] in ("VERIFIED", "LIKELY")
    assert run.article is not None
    assert (run.status, run.article.status, run.article.rounds) == ("completed", "accepted", 0)


@pytest.mark.req("R-ART-10")
async def test_an_article_that_somebody_else_wrote_is_verified(tmp_path: Path) -> None:
    with newsroom({}) as double:
        engine, workspace = await open_workspace(tmp_path, double)
        async with engine:
            checked = await verify_article(workspace, FALSE)
    assert list(checked) == ["claims", "results"]
    assert [FALSE[claim["start"] : claim["end"]] for claim in checked["claims"]] == [
        *("The tide gate opens at nine.", "The keeper of the tide gate has two keys."),
        *("The tide gate was built in 1950.", "Its bricks sing at night."),
    ]
    outcomes = [result["outcome"] for result in checked["results"]]
    assert outcomes == ["confirmed", "confirmed", "refuted", "open"]
    assert checked["results"][2]["evidence"][0]["text"] == "The tide gate was built in 1911."
    assert not double.requests, "no model is asked"


async def test_a_sentence_that_could_not_be_checked_is_checked_in_the_next_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify, asked = Workspace.verify, list[str]()

    async def fail_first(self: Workspace, claim: str, **options: Any) -> Verdict:
        asked.append(claim)
        if len(asked) == 1:
            raise StoreBusy("the ledger is busy")
        return await verify(self, claim, **options)

    monkeypatch.setattr(Workspace, "verify", fail_first)
    with newsroom({"writer": TRUE, "editor": TRUE, "style_enforce": TRUE}) as double:
        engine, workspace = await open_workspace(tmp_path, double)
        async with engine:
            article = (await write_article(workspace, "The tide gate")).article
    first, second = "The tide gate opens at nine.", "The keeper of the tide gate has two keys."
    assert asked == [first, second, first]
    assert article is not None
    outcomes = {claim.text: (claim.outcome, claim.treatment) for claim in article.claims}
    assert (outcomes[first], outcomes[second]) == (("confirmed", "kept"), ("confirmed", "kept"))


@pytest.mark.req("R-ART-14")
async def test_what_does_not_hold_goes_back_with_the_evidence_and_is_said_by_nobody(tmp_path: Path) -> None:
    asked: list[str] = []

    def edit(request: Request) -> str:
        asked.append(str(request.body["messages"][-1]["content"]))
        return FALSE

    with newsroom({"writer": FALSE, "editor": edit, "style_enforce": FALSE, "fact_verify": "Say 1911."}) as double:
        engine, workspace = await open_workspace(tmp_path, double)
        async with engine:
            run = await write_article(workspace, "The tide gate")
            article = run.article
            assert article is not None
            texts = {one.document_id: await workspace.documents.text(one.document_id) for one in article.citations}
    assert (article.rounds, len(asked)) == (load_team().limits.rounds, 1 + load_team().limits.rounds)
    for prompt in asked[1:]:
        assert "- The tide gate was built in 1950." in prompt
        assert "The source says: The tide gate was built in 1911." in prompt
        assert "Say 1911." in prompt
    body = article.markdown.partition("## Sources")[0]
    assert "1950" not in body
    assert "sing" not in body
    assert "The tide gate opens at nine. [" in body
    claims = {claim.text: (claim.outcome, claim.treatment) for claim in article.claims}
    assert claims["The tide gate was built in 1950."] == ("refuted", "corrected")
    assert claims["Its bricks sing at night."] == ("open", "removed")
    assert "The tide gate was built in 1911. [" in body
    assert all(texts[one.document_id][one.start : one.end] == one.quote for one in article.citations)
    for claim in article.claims:
        assert claim.end == 0 or FALSE[claim.start : claim.end] == claim.text
        assert (claim.citation is None) == (claim.treatment == "removed")
    assert article.cited >= 5


async def test_a_run_whose_model_fails_keeps_what_it_has_and_goes_on_later(tmp_path: Path) -> None:
    broken = True

    def critic(_: Request) -> Reply | str:
        return json_reply({}, 500) if broken else "Fine."

    counts: list[str] = []
    with newsroom({"writer": TRUE, "editor": TRUE, "style_enforce": TRUE, "critic": critic}) as double:
        engine, workspace = await open_workspace(tmp_path, double, llm={"retries": 0})
        async with engine:
            with pytest.raises(RemoteError, match="failed"):
                await write_article(workspace, "The tide gate")
            (kept,) = await workspace.articles.list()
            assert (kept.status, "(500)" in kept.error) == ("failed", True)
            broken = False
            begun = len(double.requests)
            run = await resume_article(workspace, kept.id)
            counts = [agent_of(request) for request in double.requests[begun:]]
            assert (await workspace.articles.get(kept.id)).article == run.article
            assert await resume_article(workspace, kept.id) == await workspace.articles.get(kept.id)
    assert [agent for agent in counts if agent != "engine"] == ["critic", "reader"]


async def test_a_run_that_another_process_has_taken_up_is_not_written_by_two(tmp_path: Path) -> None:
    with newsroom({"writer": TRUE}) as double:
        engine, workspace = await open_workspace(tmp_path, double)
        async with engine:
            run = await workspace.articles.start("The tide gate")
            first, second = await workspace.articles.take(run.id), await workspace.articles.take(run.id)
            await workspace.articles.save(run.id, second, {"n": 2})
            with pytest.raises(LeaseLost, match="another process goes on with it"):
                await workspace.articles.save(run.id, first, {"n": 1})
            assert await workspace.articles.checkpoint(run.id) == {"n": 2}


async def test_of_two_who_resume_a_run_only_the_last_one_writes_it(tmp_path: Path) -> None:
    first, gate = threading.Event(), threading.Event()

    def write(_: Request) -> str:
        if not first.is_set():
            first.set()
            gate.wait(60)
            return "# Late\n\nThe tide gate opens at ten.\n"
        return TRUE

    with newsroom({"writer": write, "editor": lambda request: str(request.body["messages"][-1]["content"])}) as double:
        engine, workspace = await open_workspace(tmp_path, double, llm={"timeout": 60.0})
        async with engine, open_engine(engine.settings) as second:
            run = await workspace.articles.start("The tide gate", graph="writer")
            slow = asyncio.create_task(resume_article(workspace, run.id))
            await asyncio.to_thread(first.wait, 60)
            done = await resume_article(second.workspace("default"), run.id)
            gate.set()
            with pytest.raises(LeaseLost, match="another process goes on with it"):
                await slow
            kept = await workspace.articles.get(run.id)
    assert done.article is not None
    assert (kept.status, kept.error, kept.article) == ("completed", "", done.article)


async def test_runs_of_another_tenant_do_not_exist(tmp_path: Path) -> None:
    with newsroom({}) as double:
        engine, workspace = await open_workspace(tmp_path, double)
        async with engine:
            run = await workspace.articles.start("The tide gate")
            other = engine.workspace("other")
            (tmp_path / "own.md").write_text("The mill is red.")
            await other.documents.ingest(tmp_path / "own.md")
            for identity in (run.id, "0" * 32, "no such"):
                with pytest.raises(NotFoundError, match="there is no run"):
                    await resume_article(other, identity)
            assert list(await other.articles.list()) == []
            await workspace.erase("kb", "default")
            assert list(await workspace.articles.list()) == []


@pytest.mark.req("R-ART-06")
async def test_the_reduced_graph_researches_writes_and_edits(tmp_path: Path) -> None:
    seen: list[str] = []
    parts = {"writer": once(ask_tool("search_knowledge", {"query": "ferry"}), TRUE), "editor": "# Edited\n\nWell."}
    with newsroom(parts) as double:
        engine, workspace = await open_workspace(tmp_path, double)
        async with engine:
            run = await write_article(
                workspace,
                "The tide gate",
                graph="writer",
                on_node=lambda node, event: seen.append(node) if event == "started" else None,
            )
    assert seen == ["research", "writer", "tools", "writer", "editor"]
    assert run.article is not None
    assert (run.article.status, run.article.markdown) == ("unverified", "# Edited\n\nWell.\n")
