from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ragstone.answer.research import Researcher
from ragstone.answer.research.pipeline import ResearchTask, Search
from ragstone.core.answers import Research
from ragstone.core.errors import InputError, ModelError, RemoteError, StoreError
from ragstone.core.search import SearchResult
from ragstone.core.types import Hit
from ragstone.schemas.research import DocsResearchSchema, ResearchSchema, SourcedResearchSchema
from ragstone.testing.fakes import FakeEmbedder, FakeLLM, FakeReranker

MakeHit = Callable[..., Hit]
HOOKS = "Hooks react to events of the game server."


async def research(
    search: Search,
    *,
    topic: str = "hooks",
    k: int = 5,
    iterations: int = 1,
    embedder: FakeEmbedder | None = None,
    **parts: Any,
) -> Research:
    researcher = Researcher(parts.get("llm"), parts.get("reranker"), parts.get("seconds", 30.0))
    return await researcher.research(ResearchTask(topic, k, iterations, search, embedder))


@pytest.mark.req("R-TOL-08", "R-TOL-14")
async def test_variants_are_searched_and_each_passage_is_kept_once(make_hit: MakeHit, library: Any) -> None:
    same = make_hit(HOOKS, "a")
    copy = make_hit(HOOKS.upper() + "  ", "b")
    other = make_hit("Commands start hooks.", "c")
    search = library({"hooks": [same], "alpha": [copy], "beta": [other, same]})
    found = await research(search, llm=FakeLLM(["hooks alpha\nhooks beta"]))
    assert search.queries == ["hooks", "hooks alpha", "hooks beta"]
    assert [finding.hit.document_id for finding in found.findings] == ["a", "c"]
    assert found.findings[0].queries == ("hooks", "hooks alpha", "hooks beta")


@pytest.mark.req("R-TOL-08")
async def test_passages_are_reranked_against_the_topic_and_cut(make_hit: MakeHit, library: Any) -> None:
    hits = [make_hit(f"hooks {'server ' * n}", f"d{n}") for n in range(6)]
    reranker = FakeReranker()
    search = library({"hooks": hits, "alpha": [make_hit("hooks on the server side", "best")]})
    found = await research(search, topic="hooks server side", k=3, reranker=reranker, llm=FakeLLM(["alpha\nbeta"]))
    assert [query for query, _ in reranker.calls] == ["hooks server side"]
    assert len(found.findings) == 3
    assert (found.findings[0].hit.document_id, found.findings[0].relevance) == ("best", 1.0)


@pytest.mark.parametrize("reranker", [None, FakeReranker()])
async def test_several_documents_are_heard_when_several_are_about_the_topic(
    make_hit: MakeHit, library: Any, reranker: FakeReranker | None
) -> None:
    manual = [make_hit(f"hooks of part {number}", "manual", start=number) for number in range(9)]
    others = [make_hit(f"hooks in {name}", name) for name in ("notes", "questions")]
    aside = make_hit("the weather", "aside")
    search = library({"hooks": [*manual, *others, aside]})
    found = await research(search, topic="hooks", k=5, iterations=0, reranker=reranker)
    told = [finding.hit.document_id for finding in found.findings]
    assert sorted(told) == ["manual", "manual", "manual", "notes", "questions"]
    alone = await research(library({"hooks": manual}), topic="hooks", k=5, iterations=0, reranker=reranker)
    assert len(alone.findings) == 5  # nothing else is about it


async def test_a_reranker_that_fails_leaves_the_order_by_relevance(make_hit: MakeHit, library: Any) -> None:
    reranker = FakeReranker(errors=[ModelError("no weights")])
    found = await research(library({"hooks": [make_hit(HOOKS)]}), reranker=reranker)
    assert len(found.findings) == 1
    assert found.degraded == ("rerank: no weights",)


@pytest.mark.req("R-TOL-13")
async def test_sub_queries_run_side_by_side(make_hit: MakeHit) -> None:
    together = asyncio.Barrier(3)

    async def search(query: str) -> SearchResult:
        if query != "hooks":
            await together.wait()  # nobody passes before all three have come
        return SearchResult(query, query, "thorough", (make_hit(HOOKS),), (), (), 1.0)

    found = await research(search, llm=FakeLLM(["one\ntwo\nthree"]), seconds=5)
    assert (found.stopped, found.queries) == ("iterations", ("hooks", "one", "two", "three"))


@pytest.mark.req("R-TOL-14")
async def test_it_stops_as_soon_as_every_side_has_enough(make_hit: MakeHit, library: Any) -> None:
    search = library({"hooks": [make_hit(f"{HOOKS} {n}", f"d{n}") for n in range(3)]})
    llm = FakeLLM(["hooks alpha\nhooks beta"])
    found = await research(search, k=2, iterations=5, llm=llm)
    assert (found.stopped, found.uncovered, len(llm.requests)) == ("sufficient", (), 1)
    assert len(found.rounds) == 1


@pytest.mark.req("R-QRY-08", "R-TOL-14")
async def test_when_it_is_not_enough_it_asks_in_other_words(make_hit: MakeHit, library: Any) -> None:
    search = library({"hooks": [make_hit(HOOKS, "a")], "events": [make_hit("Events of hooks.", "b")]})
    llm = FakeLLM(["first\nsecond", "game events\nmore events"])
    found = await research(search, k=2, iterations=3, llm=llm)
    assert [one.queries for one in found.rounds] == [("first", "second"), ("game events", "more events")]
    assert [one.new for one in found.rounds] == [0, 1]
    assert "first\nsecond" in llm.requests[1][1].content
    assert (found.stopped, found.uncovered) == ("sufficient", ("first", "second"))


async def test_a_round_that_brings_nothing_new_is_the_last(make_hit: MakeHit, library: Any) -> None:
    llm = FakeLLM(["a1\na2", "b1\nb2", "c1\nc2"])
    found = await research(library({"hooks": [make_hit(HOOKS)]}), iterations=5, llm=llm)
    assert (found.stopped, len(found.rounds)) == ("nothing_new", 2)


async def test_without_a_model_facets_of_the_first_passages_are_asked(make_hit: MakeHit, library: Any) -> None:
    hit = make_hit(HOOKS, section="Modules > Triggers")
    search = library({"hooks": [hit], "triggers": [make_hit("Triggers of hooks.", "b")]})
    found = await research(search)
    assert found.queries[:2] == ("hooks", "hooks Triggers")
    assert {finding.hit.document_id for finding in found.findings} == {"doc", "b"}


async def test_a_model_that_fails_is_named_and_facets_take_its_place(make_hit: MakeHit, library: Any) -> None:
    search = library({"hooks": [make_hit(HOOKS, section="Triggers")]})
    found = await research(search, llm=FakeLLM([RemoteError("down")]))
    assert found.queries[1] == "hooks Triggers"
    assert found.degraded == ("llm: down",)


async def test_passages_about_something_else_are_no_findings(make_hit: MakeHit, library: Any) -> None:
    search = library({"hooks": [make_hit("Bread is baked from flour.")]})
    found = await research(search, embedder=FakeEmbedder())
    assert (found.findings, found.uncovered, found.stopped) == ((), ("hooks",), "nothing_new")


async def test_an_embedder_that_fails_leaves_it_to_words(make_hit: MakeHit, library: Any) -> None:
    embedder = FakeEmbedder(errors=[ModelError("broken")] * 3)
    found = await research(library({"hooks": [make_hit(HOOKS)]}), embedder=embedder)
    assert [finding.relevance for finding in found.findings] == [0.666667]
    assert found.degraded == ("relevance: broken",)


async def test_a_sub_query_that_fails_is_a_remark_and_the_topic_that_fails_an_error(make_hit: MakeHit) -> None:
    async def search(query: str) -> SearchResult:
        if query == "bad":
            raise StoreError("no disk")
        if query == "":
            raise InputError("the query is empty")
        return SearchResult(query, query, "thorough", (make_hit(HOOKS),), (), ("dense: off",), 1.0)

    found = await research(search, llm=FakeLLM(["bad\ngood"]))
    assert found.degraded == ("dense: off", "search: no disk")
    with pytest.raises(InputError, match="the query is empty"):
        await research(search, topic="")


async def test_what_was_found_when_time_is_over_is_the_result(make_hit: MakeHit) -> None:
    async def search(query: str) -> SearchResult:
        if query != "hooks":
            await asyncio.Event().wait()
        return SearchResult(query, query, "thorough", (make_hit(HOOKS, section="Triggers"),), (), (), 1.0)

    found = await research(search, seconds=0.05)
    assert (found.stopped, found.degraded) == ("out_of_time", ("research: out of time",))
    assert len(found.findings) == 1


@pytest.mark.req("R-TOL-06", "R-TOL-10")
async def test_the_two_shapes_that_agents_know(make_hit: MakeHit, library: Any) -> None:
    mail = make_hit(
        HOOKS, "m", section="A > B", metadata={"source": "gmail", "date": "2026-01-02", "url": "https://x.example"}
    )
    bare = make_hit("hooks", "f")
    found = await research(library({"hooks": [bare, mail]}), llm=FakeLLM(["x\ny"]))
    assert SourcedResearchSchema.of_research(found).as_json() == {
        "f.md": [{"text": "hooks", "date": None, "url": None, "relevance": 0.666667}],
        "gmail": [{"text": HOOKS, "date": "2026-01-02", "url": "https://x.example", "relevance": 0.666667}],
    }
    assert DocsResearchSchema.of_research(found).as_json() == {
        "topic": "hooks",
        "searchesPerformed": 3,
        "findings": [
            {"content": "hooks", "source": "f.md", "section": ""},
            {"content": HOOKS, "source": "m.md", "section": "A > B"},
        ],
    }
    assert ResearchSchema.of(found).as_json()["rounds"] == [{"queries": ["x", "y"], "found": 0, "new": 0}]


async def test_what_only_fills_up_the_number_is_marked_and_kept_from_agents(make_hit: MakeHit, library: Any) -> None:
    search = library({"hooks": [make_hit(HOOKS), make_hit("Bread is baked from flour.", "bread")]})
    found = await research(search)
    assert [(finding.hit.document_id, finding.about) for finding in found.findings] == [("doc", True), ("bread", False)]
    assert [one["content"] for one in DocsResearchSchema.of_research(found).as_json()["findings"]] == [HOOKS]


@pytest.mark.parametrize("parts", [{}, {"embedder": FakeEmbedder()}, {"reranker": FakeReranker()}])
async def test_each_run_of_a_passage_is_a_finding(make_hit: MakeHit, library: Any, parts: dict[str, Any]) -> None:
    text = f"{HOOKS} Bread is baked from flour. Commands start hooks."
    first = make_hit(HOOKS, chunk_id="a")
    second = make_hit("Commands start hooks.", start=text.index("Commands"), chunk_id="a")
    within = make_hit("start hooks.", start=text.index("start"), chunk_id="a")
    search = library({"hooks": [first, second], "alpha": [within]})
    found = await research(search, llm=FakeLLM(["alpha\nbeta"]), **parts)
    assert {finding.hit.text: finding.queries for finding in found.findings} == {
        first.text: ("hooks",),
        second.text: ("hooks", "alpha"),
    }


async def test_each_run_of_a_passage_has_its_own_closeness(make_hit: MakeHit, library: Any) -> None:
    runs = [make_hit(text, start=start, chunk_id="a") for start, text in ((0, HOOKS), (90, "Commands start hooks."))]
    together = await research(library({"hooks": runs}), iterations=0, embedder=FakeEmbedder())
    alone = [await research(library({"hooks": [run]}), iterations=0, embedder=FakeEmbedder()) for run in runs]
    relevance = {finding.hit.text: finding.relevance for finding in together.findings}
    assert relevance == {run.text: one.findings[0].relevance for run, one in zip(runs, alone, strict=True)}
