"""Research and tools over the sample corpus, with real parsers and the default model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.doubles.openai import OpenAIDouble, chat_reply

from ragstone import Ragstone
from ragstone.agents.agent import Agent
from ragstone.agents.chat import OpenAIChat, Reply, ToolCall
from ragstone.agents.results import citations
from ragstone.agents.toolbox import Toolbox
from ragstone.core.errors import InputError
from ragstone.samples import corpus_path
from ragstone.serve.cli.main import main
from ragstone.settings.tree import LLMSettings


@pytest.mark.req("R-TOL-07")
@pytest.mark.parametrize(("depth", "count"), [("quick", 5), ("medium", 15), ("deep", 30)])
def test_each_depth_keeps_as_many_as_it_says(stone: Ragstone, depth: str, count: int) -> None:
    found = stone.research("ferries and their crews", depth=depth)
    assert len(found.findings) == count
    assert len({finding.hit.chunk_id for finding in found.findings}) == count
    assert [f.relevance for f in found.findings] == sorted((f.relevance for f in found.findings), reverse=True)


def test_other_depths_and_iterations_are_refused(stone: Ragstone) -> None:
    with pytest.raises(InputError, match="depth is 'huge'; it must be one of: quick, medium, deep"):
        stone.research("ferries", depth="huge")
    with pytest.raises(InputError, match="iterations is 6; it must be from 1 to 5"):
        stone.research("ferries", iterations=6)
    with pytest.raises(InputError, match="the topic is empty"):
        stone.research(" \x00 ")


@pytest.mark.req("R-TOL-14")
def test_research_finds_sides_that_the_topic_does_not_name(stone: Ragstone) -> None:
    found = stone.research("dogs on board", depth="quick", iterations=3)
    assert found.stopped == "sufficient"
    assert found.findings[0].hit.section == "Dogs"
    assert {"corpus/guides/animals-on-board.html", "corpus/guides/accessibility.md"} <= {
        finding.hit.uri for finding in found.findings
    }


@pytest.mark.parametrize("topic", ["kubernetes pod eviction", "the Ming dynasty", "sourdough bread"])
def test_a_topic_that_the_corpus_does_not_know_has_no_findings(stone: Ragstone, topic: str) -> None:
    found = stone.research(topic, depth="quick", iterations=2)
    assert (found.findings, found.stopped) == ((), "nothing_new")


def test_confidence_tells_what_the_corpus_knows_from_what_it_does_not(stone: Ragstone) -> None:
    known = [stone.confidence(stone.search(query)) for query in ("Which ferry is a battery hybrid?", "dogs")]
    unknown = [stone.confidence(stone.search(query)) for query in ("who won the 1998 world cup", "volcanoes on Io")]
    assert min(known) > 0.4 > max(unknown)


@pytest.mark.req("R-ANS-10")
def test_a_source_is_named_by_path_and_section(stone: Ragstone) -> None:
    found = json.loads(
        Toolbox(stone, ["searchDocs"]).call_blocking("searchDocs", {"query": "dogs on a lead", "limit": 2})
    )
    best = found["results"][0]
    assert citations(stone.search("dogs on a lead", k=2).hits)[0] == f"{best['source']} > {best['section']}"
    assert citations(stone.search("dogs on a lead", k=2).hits)[0] == "corpus/guides/animals-on-board.html > Dogs"


async def test_search_verify_research_by_a_plain_agent(stone: Ragstone) -> None:
    box = Toolbox(stone, ["search_knowledge", "verify_claim", "research_topic"])

    class Scripted(OpenAIChat):
        steps = iter(
            [
                ToolCall("1", "search_knowledge", {"query": "price for a dog", "top_k": 1}),
                ToolCall("2", "verify_claim", {"claim": "A dog travels for 1.50 crowns."}),
                ToolCall("3", "research_topic", {"topic": "dogs on board", "depth": "quick"}),
            ]
        )

        async def reply(self, turns, tools=(), *, temperature=0.7) -> Reply:  # type: ignore[no-untyped-def]
            step = next(self.steps, None)
            return Reply("", (step,)) if step else await super().reply(turns, tools, temperature=temperature)

    with OpenAIDouble(lambda _: chat_reply("A dog pays 1.50 crowns.")) as double:
        model = Scripted(LLMSettings(model="m", base_url=double.url, retries=0))
        answer = await Agent(model).call_llm_with_tools("What does a dog cost?", box)
        sent = double.requests[0].body["messages"]
        await model.close()
    assert answer["response"].text == "A dog pays 1.50 crowns."
    searched, verified, researched = (one["result"] for one in answer["tool_results"])
    assert "A dog travels for 1.50 crowns" in searched[0]["text"]
    assert verified["status"] in ("VERIFIED", "LIKELY")
    assert sum(len(found) for found in researched.values()) == 5
    assert [turn["role"] for turn in sent] == ["system", "user"] + ["assistant", "tool"] * 3


def test_research_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data-dir", str(tmp_path / "data")]
    assert main(["ingest", str(corpus_path() / "guides"), "--quiet", *data]) == 0
    capsys.readouterr()
    assert main(["research", "dogs on board", "--depth", "quick", "--json", *data]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == [
        "topic",
        "sources",
        "findings",
        "searches",
        "queries",
        "rounds",
        "uncovered",
        "stopped",
        "degraded",
        "took_ms",
    ]
    assert (found["topic"], len(found["findings"])) == ("dogs on board", 5)
    guides = corpus_path() / "guides"
    assert list(found["sources"]) == [
        str(guides / name) for name in ("animals-on-board.html", "accessibility.md", "about-the-line.md")
    ]
    assert found["searches"] == len(found["queries"])
    assert main(["research", "dogs on board", "--depth", "quick", *data]) == 0
    drawn = capsys.readouterr().out
    assert "Animals on board · Dogs" in drawn
    assert drawn.rstrip().endswith(f"5 passages by {found['searches']} searches")
    assert main(["research", "kubernetes pod eviction", *data]) == 4
    assert "Nothing about this topic was found." in capsys.readouterr().out
    assert main(["research", "dogs", "--depth", "huge", "--json", *data]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "usage"
