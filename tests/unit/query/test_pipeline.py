"""One search from the two arms to the hits, over stand-ins."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from tests.unit.query.doubles import KB, SPACE, Clock, Index, Judge, Shelf, ask, candidates, make_pipeline

from ragstone.core.errors import ModelError, ModelUnavailable, RagstoneError, RemoteError, StoreBusy, StoreError
from ragstone.core.search import add_note
from ragstone.core.types import Candidate, KnowledgeBase, Space
from ragstone.query import arms as arms_module
from ragstone.query import context as trace_module
from ragstone.query import rerank as rerank_module
from ragstone.query.arms import read_back
from ragstone.query.context import Arm, Fused, Recorder, SearchContext
from ragstone.settings.retrieval import Fusion, RerankingSettings, RetrievalSettings
from ragstone.testing.fakes import FakeEmbedder

NAMES = ["a#0", "b#0", "c#0", "d#0"]
SHELF = Shelf({name: f"text of {name}" for name in NAMES})


def texts_of(names: list[str]) -> dict[str, float]:
    return {f"text of {name}": 1 - rank / 10 for rank, name in enumerate(names)}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (arms_module, rerank_module, trace_module):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.mark.req("R-HYB-20")
async def test_a_hit_says_what_and_where_and_why() -> None:
    shelf = Shelf({"a#1": "some text"}, {"a": {"year": 2026}})
    search = make_pipeline(shelf, Index(candidates("a#1", start=0.75)), Index(candidates("a#1", start=4.5)))
    result = await search.search("default", KB, ask("words", mode="fast"))
    assert (result.query, result.rewritten_query, result.mode) == ("words", "words", "fast")
    assert result.degraded == ()
    (hit,) = result.hits
    assert (hit.chunk_id, hit.document_id, hit.title, hit.uri) == ("a#1", "a", "Title of a", "test:a")
    assert (hit.section, hit.page, hit.text, hit.start, hit.end) == ("Guide > Part", 2, "some text", 7, 16)
    assert hit.score == 1.0
    assert hit.scores == {"dense": 0.75, "dense_rank": 1, "lexical": 4.5, "lexical_rank": 1}
    assert hit.metadata == {"year": 2026, "of_chunk": True, "source": "files", "connector": "files", "chunk_index": 1}


@pytest.mark.req("R-HYB-01", "R-MOD-02")
async def test_the_arms_run_at_the_same_time() -> None:
    # Each arm waits for the other: one after the other would never end.
    barrier = asyncio.Barrier(2)
    search = make_pipeline(SHELF, Index(candidates("a#0"), barrier=barrier), Index(candidates("b#0"), barrier=barrier))
    async with asyncio.timeout(240):
        result = await search.search("default", KB, ask())
    assert {hit.chunk_id for hit in result.hits} == {"a#0", "b#0"}


@pytest.mark.req("R-HYB-15", "R-HYB-26", "R-TST-23")
@pytest.mark.parametrize(
    ("arms", "found"), [("dense", ["a#0", "b#0"]), ("lexical", ["b#0", "c#0"]), ("hybrid", ["b#0", "a#0", "c#0"])]
)
async def test_either_arm_or_both_can_be_asked(arms: Arm, found: list[str]) -> None:
    dense, lexical = Index(candidates("a#0", "b#0")), Index(candidates("b#0", "c#0"))
    result = await make_pipeline(SHELF, dense, lexical).search("default", KB, ask(arms=arms))
    assert [hit.chunk_id for hit in result.hits] == found
    assert bool(dense.asked) == (arms != "lexical")
    assert bool(lexical.asked) == (arms != "dense")


async def test_the_trace_names_every_stage_with_its_counts() -> None:
    dense, lexical = Index(candidates("a#0", "b#0", "gone#0")), Index(candidates("b#0", "c#0"))
    result = await make_pipeline(SHELF, dense, lexical).search("default", KB, ask(k=2))
    counts = {stage.stage: (stage.entered, stage.left, stage.skipped) for stage in result.trace}
    assert counts == {
        "embed_query": (1, 1, ""),
        "dense": (1, 3, ""),
        "lexical": (1, 2, ""),
        "fuse": (5, 4, ""),
        "read_back": (4, 2, ""),
        "relevance": (2, 2, ""),
        "pack": (2, 2, ""),
    }
    assert [stage.stage for stage in result.trace][-4:] == ["fuse", "read_back", "relevance", "pack"]
    assert all(stage.ms >= 0 for stage in result.trace)


@pytest.mark.parametrize("error", [ModelError("broken"), ModelUnavailable("no weights")])
async def test_without_a_model_words_still_answer(error: ModelError, caplog: pytest.LogCaptureFixture) -> None:
    embedder = FakeEmbedder(errors=[error])

    async def failing(space: Space) -> FakeEmbedder:
        return embedder

    dense = Index(candidates("a#0"))
    search = make_pipeline(SHELF, dense, Index(candidates("b#0")), embedder_for=failing)
    with caplog.at_level(logging.WARNING):
        result = await search.search("default", KB, ask())
    assert [hit.chunk_id for hit in result.hits] == ["b#0"]
    assert result.degraded == (f"dense: {error}",)
    assert dense.asked == []
    assert result.hits[0].score == 1.0


async def test_an_embedder_that_cannot_be_had_degrades() -> None:
    async def missing(space: Space) -> FakeEmbedder:
        raise ModelUnavailable(f"no {space.model}")

    search = make_pipeline(SHELF, Index(candidates("a#0")), Index(candidates("b#0")), embedder_for=missing)
    result = await search.search("default", KB, ask())
    assert [hit.chunk_id for hit in result.hits] == ["b#0"]
    assert result.degraded == (f"dense: no {SPACE.model}",)


@pytest.mark.req("R-REL-10")
async def test_vectors_of_another_model_are_never_compared() -> None:
    async def another(space: Space) -> FakeEmbedder:
        return FakeEmbedder(name="another")

    dense = Index(candidates("a#0"))
    search = make_pipeline(SHELF, dense, Index(candidates("b#0")), embedder_for=another)
    result = await search.search("default", KB, ask())
    assert dense.asked == []
    assert [hit.chunk_id for hit in result.hits] == ["b#0"]
    assert result.degraded == (f"dense: another@1 answered instead of {SPACE.model}",)


@pytest.mark.req("R-REL-01")
@pytest.mark.parametrize("error", [StoreError("down"), StoreBusy("held"), RemoteError("no answer")])
async def test_without_the_vector_store_words_still_answer(
    error: RagstoneError, caplog: pytest.LogCaptureFixture
) -> None:
    search = make_pipeline(SHELF, Index([], error=error), Index(candidates("b#0")))
    with caplog.at_level(logging.WARNING):
        result = await search.search("default", KB, ask())
    assert [hit.chunk_id for hit in result.hits] == ["b#0"]
    assert result.degraded == (f"dense: {error}",)
    assert "Vector store unavailable" in caplog.text


class Bridged(Index):
    async def search(self, *asked: Any, **options: Any) -> list[Candidate]:
        add_note("qdrant is away, the ledger answers")
        return await super().search(*asked, **options)


@pytest.mark.req("R-REL-01")
@pytest.mark.parametrize("arm", ["dense", "lexical"])
async def test_what_a_store_has_to_say_about_its_answer_is_told(arm: str) -> None:
    dense, lexical = (Bridged if arm == name else Index for name in ("dense", "lexical"))
    search = make_pipeline(SHELF, dense(candidates("a#0")), lexical(candidates("b#0")))
    result = await search.search("default", KB, ask())
    assert {hit.chunk_id for hit in result.hits} == {"a#0", "b#0"}
    assert result.degraded == (f"{arm}: qdrant is away, the ledger answers",)


async def test_a_failure_of_the_word_index_is_told() -> None:
    search = make_pipeline(SHELF, Index(candidates("a#0")), Index([], error=StoreError("down")))
    with pytest.raises(StoreError, match="down"):
        await search.search("default", KB, ask())


async def test_a_kb_without_vectors_is_searched_by_word() -> None:
    search = make_pipeline(SHELF, Index(candidates("a#0")), Index(candidates("b#0")))
    result = await search.search("default", KnowledgeBase(1, "default", None), ask())
    assert [hit.chunk_id for hit in result.hits] == ["b#0"]
    assert result.degraded == ()
    (skipped,) = [stage for stage in result.trace if stage.skipped]
    assert (skipped.stage, skipped.entered, skipped.skipped) == ("dense", 0, "nothing is embedded yet")


async def test_nothing_found_is_a_result() -> None:
    result = await make_pipeline(SHELF, Index([]), Index([])).search("default", KB, ask())
    assert result.hits == ()
    assert result.degraded == ()


async def test_what_reading_back_drops_is_made_up_for() -> None:
    live = [f"live{n}#0" for n in range(10)]
    stale = [f"stale{n}#0" for n in range(60)]
    dense, lexical = Index(candidates(*stale, *live, step=0.01)), Index([])
    search = make_pipeline(Shelf(dict.fromkeys(live, "x")), dense, lexical)
    result = await search.search("default", KB, ask(k=10, candidates=10))
    assert [hit.chunk_id for hit in result.hits] == live
    assert dense.asked == [10, 40, 160]


async def test_within_one_list_too() -> None:
    live = [f"live{n}#0" for n in range(5)]
    stale = [f"stale{n}#0" for n in range(5)]
    dense = Index(candidates(*stale, *live, step=0.01))
    search = make_pipeline(Shelf(dict.fromkeys(live, "x")), dense, Index([]))
    result = await search.search("default", KB, ask(k=3, candidates=100))
    assert [hit.chunk_id for hit in result.hits] == live[:3]
    assert dense.asked == [100]


async def test_no_more_is_read_back_than_is_wanted() -> None:
    names = ["live0#0", "stale0#0", "live1#0", "live2#0", "live3#0", "live4#0"]
    shelf = Shelf({name: "x" for name in names if name.startswith("live")})
    search = SearchContext("default", KB, ask(), Recorder("balanced", 60.0))
    found = await read_back(shelf, search, [Fused(name, 1.0, {}) for name in names], 3)  # type: ignore[arg-type]
    assert [item.chunk.id for item in found] == ["live0#0", "live1#0", "live2#0"]


async def test_a_failure_is_named_once_however_often_it_was_tried() -> None:
    stale = [f"stale{n}#0" for n in range(30)]
    search = make_pipeline(SHELF, Index([], error=StoreError("down")), Index(candidates(*stale, "a#0", step=0.01)))
    result = await search.search("default", KB, ask(k=5, candidates=5))
    assert [hit.chunk_id for hit in result.hits] == ["a#0"]
    assert result.degraded == ("dense: down",)


async def test_min_similarity_acts_on_cosine_before_fusion() -> None:
    dense = Index(candidates("a#0", "b#0", "c#0", start=0.6, step=0.1))
    settings = RetrievalSettings(min_similarity=0.45)
    result = await make_pipeline(SHELF, dense, Index([]), retrieval=settings).search("default", KB, ask())
    assert [hit.chunk_id for hit in result.hits] == ["a#0", "b#0"]


@pytest.mark.req("R-HYB-22")
@pytest.mark.parametrize("fusion", ["rrf", "weighted", "weighted_rrf", "zscore"])
async def test_min_score_is_on_a_scale_of_0_to_1(fusion: Fusion) -> None:
    dense, lexical = Index(candidates("a#0", "b#0")), Index(candidates("a#0", "c#0", start=20, step=5))
    search = make_pipeline(SHELF, dense, lexical, retrieval=RetrievalSettings(dense_weight=0.5))
    every = (await search.search("default", KB, ask("words", fusion=fusion))).hits
    assert every[0].chunk_id == "a#0"
    assert all(0 <= hit.score <= 1 for hit in every)
    assert every[0].score > 0.6
    some = (await search.search("default", KB, ask("words", fusion=fusion, min_score=0.6))).hits
    assert [hit.chunk_id for hit in some] == ["a#0"]


@pytest.mark.req("R-HYB-32")
async def test_equal_scores_go_by_id() -> None:
    search = make_pipeline(SHELF, Index(candidates("c#0")), Index(candidates("b#0")))
    for _ in range(3):
        result = await search.search("default", KB, ask())
        assert [hit.chunk_id for hit in result.hits] == ["b#0", "c#0"]


async def test_the_reranker_decides_the_order() -> None:
    judge = Judge({"text of a#0": 0.1, "text of b#0": 0.9, "text of c#0": 0.5, "text of d#0": 0.5})
    search = make_pipeline(SHELF, Index(candidates(*NAMES)), Index([]), reranker=judge)
    result = await search.search("default", KB, ask(k=3))
    assert [(hit.chunk_id, hit.score) for hit in result.hits] == [("b#0", 0.9), ("c#0", 0.5), ("d#0", 0.5)]
    assert result.hits[0].scores["rerank"] == 0.9
    assert result.hits[0].scores["fused"] == pytest.approx(61 / 62 / 2, abs=1e-6)
    assert judge.asked == [tuple(f"Part: text of {name}" for name in NAMES)]
    (stage,) = [stage for stage in result.trace if stage.stage == "rerank"]
    assert (stage.entered, stage.left) == (4, 4)


@pytest.mark.req("R-RRK-03")
async def test_what_scores_under_the_threshold_is_dropped() -> None:
    judge = Judge({"text of a#0": 0.29, "text of b#0": 0.3, "text of c#0": 0.0, "text of d#0": 0.9})
    settings = RerankingSettings(kind="cross_encoder", threshold=0.3)
    search = make_pipeline(SHELF, Index(candidates(*NAMES)), Index([]), reranker=judge, reranking=settings)
    result = await search.search("default", KB, ask())
    assert [hit.chunk_id for hit in result.hits] == ["d#0", "b#0"]


async def test_what_was_not_reranked_comes_after_what_was() -> None:
    judge = Judge({"text of a#0": 0.2, "text of b#0": 0.3})
    settings = RerankingSettings(kind="cross_encoder", candidates=2)
    search = make_pipeline(SHELF, Index(candidates(*NAMES)), Index([]), reranker=judge, reranking=settings)
    result = await search.search("default", KB, ask())
    assert [hit.chunk_id for hit in result.hits] == ["b#0", "a#0", "c#0", "d#0"]
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)
    assert result.hits[2].score == 0.2


async def test_a_reranker_that_fails_leaves_the_fused_order() -> None:
    judge = Judge({})
    judge.error = RemoteError("no answer")
    search = make_pipeline(SHELF, Index(candidates(*NAMES)), Index([]), reranker=judge)
    result = await search.search("default", KB, ask())
    assert [hit.chunk_id for hit in result.hits] == NAMES
    assert result.degraded == ("rerank: no answer",)


async def test_a_reranker_gets_nothing_to_do_when_nothing_was_found() -> None:
    judge = Judge({})
    result = await make_pipeline(SHELF, Index([]), Index([]), reranker=judge).search("default", KB, ask())
    assert (result.hits, result.degraded, judge.asked) == ((), (), [])


async def test_loading_the_reranker_does_not_count(clock: Clock) -> None:
    judge = Judge(texts_of(NAMES), clock, seconds=9.0)
    search = make_pipeline(SHELF, Index(candidates(*NAMES)), Index([]), reranker=judge)
    await search.search("default", KB, ask())
    judge.seconds = 0.01
    result = await search.search("default", KB, ask())
    assert not [stage for stage in result.trace if stage.skipped]
    assert len(judge.asked) == 2


async def test_a_reranker_that_no_longer_fits_is_skipped_and_named(clock: Clock) -> None:
    judge = Judge(texts_of(NAMES[::-1]), clock, seconds=0.3)
    search = make_pipeline(SHELF, Index(candidates(*NAMES)), Index([]), reranker=judge)
    for _ in range(3):
        result = await search.search("default", KB, ask(mode="balanced"))
        assert [hit.chunk_id for hit in result.hits] == NAMES[::-1]
    result = await search.search("default", KB, ask(mode="fast"))
    assert [hit.chunk_id for hit in result.hits] == NAMES
    (skipped,) = [stage for stage in result.trace if stage.skipped]
    assert (skipped.stage, skipped.skipped) == ("rerank", "needs about 300 ms")
    assert result.degraded == ()
    assert len(judge.asked) == 3


async def test_a_reranker_that_does_not_come_back_is_cut_off(clock: Clock) -> None:
    judge = Judge(texts_of(NAMES[::-1]), clock)
    search = make_pipeline(SHELF, Index(candidates(*NAMES)), Index([]), reranker=judge)
    await search.search("default", KB, ask(mode="fast"))
    judge.hangs = True
    result = await search.search("default", KB, ask(mode="fast"))
    assert [hit.chunk_id for hit in result.hits] == NAMES
    assert result.degraded == ("rerank: out of time",)
    judge.hangs = False
    recovered = await search.search("default", KB, ask(mode="fast"))
    assert [hit.chunk_id for hit in recovered.hits] == NAMES[::-1], "one failure does not turn it off"


async def test_loading_the_embedder_does_not_count(clock: Clock) -> None:
    embedder = FakeEmbedder()
    slow = [30.0, 0.0]

    async def loading(space: Space) -> FakeEmbedder:
        clock.seconds += slow.pop(0)
        return embedder

    judge = Judge(texts_of(NAMES[::-1]), clock)
    dense = Index(candidates(*NAMES))
    search = make_pipeline(SHELF, dense, Index([]), embedder_for=loading, reranker=judge)
    for _ in range(2):
        result = await search.search("default", KB, ask(mode="fast"))
        assert not [stage for stage in result.trace if stage.skipped]
        assert [hit.chunk_id for hit in result.hits] == NAMES[::-1]


@pytest.mark.req("R-HYB-16")
@pytest.mark.parametrize(("query", "first"), [("moduleControllerCreate", "b#0"), ("how are modules made", "a#0")])
async def test_a_name_leans_on_its_spelling_and_a_question_on_its_meaning(query: str, first: str) -> None:
    spelled = Index([Candidate("b#0", 9.0), Candidate("a#0", 3.0)])
    search = make_pipeline(SHELF, Index(candidates("a#0", "b#0")), spelled)
    result = await search.search("default", KB, ask(query, fusion="zscore"))
    assert result.hits[0].chunk_id == first
