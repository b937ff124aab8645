"""The searches that the five designs name, each as one way to call the one search there is."""

from __future__ import annotations

from importlib.metadata import requires
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.unit.query.doubles import KB, Index, Judge, Shelf, ask, candidates, make_pipeline

from ragstone.core.errors import InputError
from ragstone.core.search import Arm, SearchQuery, SearchResult
from ragstone.core.types import Candidate, Hit
from ragstone.query.arms import fuse
from ragstone.query.context import search_request
from ragstone.query.kind import dense_weight
from ragstone.query.pipeline import SearchPipeline
from ragstone.query.transform import Transformer
from ragstone.settings.load import load_settings
from ragstone.settings.retrieval import RerankingSettings, RerankingStage, RetrievalSettings
from ragstone.settings.tree import Settings
from ragstone.stores.lexical.bm25_file import build_index, load_index, save_index
from ragstone.testing.fakes import FakeLLM

PLAIN = "Lack of sleep raises the risk of diabetes in adults"
NAMES = ("a#0", "b#0", "c#0")
SHELF = Shelf({name: f"text of {name}" for name in NAMES})
DENSE, LEXICAL = candidates("a#0", "b#0"), candidates("b#0", "c#0", start=9.0, step=3.0)


def profile(name: str) -> Settings:
    return load_settings(overrides={"profile": name}, environment={})


async def found_by(arms: Arm, settings: Settings, **more: Any) -> SearchResult:
    request = search_request(settings, SearchQuery("words", arms=arms, **more))
    pipeline = make_pipeline(SHELF, Index(DENSE), Index(LEXICAL), retrieval=settings.retrieval)
    return await pipeline.search("default", KB, request)


@pytest.mark.req("R-HYB-14", "R-TST-28")
async def test_documents_are_searched_by_meaning_by_word_or_both_and_five_are_given() -> None:
    tulia = profile("tulia")
    request = search_request(tulia, SearchQuery("words"))
    assert (request.arms, request.k) == ("hybrid", 5)
    expected: dict[Arm, set[str]] = {
        "dense": {"a#0", "b#0"},
        "lexical": {"b#0", "c#0"},
        "hybrid": {"a#0", "b#0", "c#0"},
    }
    for arms, names in expected.items():
        assert {hit.chunk_id for hit in (await found_by(arms, tulia)).hits} == names


@pytest.mark.req("R-HYB-21")
async def test_scores_by_word_are_from_0_to_1_and_bm25_s_own_stand_beside_them() -> None:
    found = await found_by("lexical", profile("rpg"), fusion="weighted")
    assert [(hit.score, hit.scores["lexical"]) for hit in found.hits] == [(1.0, 9.0), (0.0, 6.0)]


@pytest.mark.req("R-HYB-23", "R-TST-23")
@pytest.mark.parametrize("arms", get_args(Arm))
async def test_every_way_to_search_takes_a_query_a_count_and_a_filter_and_gives_hits(arms: Arm) -> None:
    names = [f"d{number:02}#0" for number in range(60)]
    metadata = {name: {"source": "files" if number % 2 else "mail"} for number, name in enumerate(names)}
    dense, lexical = Index(candidates(*names[:40]), metadata), Index(candidates(*names[20:]), metadata)
    pipeline = make_pipeline(Shelf({name: f"text of {name}" for name in names}), dense, lexical)
    places = {"dense": range(40), "lexical": range(20, 60), "hybrid": range(60)}[arms]
    found: dict[int | None, tuple[Hit, ...]] = {}
    for k in (None, 3, 60):
        request = search_request(profile("rpg"), SearchQuery("words", k=k, arms=arms, where={"source": "files"}))
        found[k] = (await pipeline.search("default", KB, request)).hits
    assert [len(hits) for hits in found.values()] == [10, 3, len(places) // 2]
    assert {hit.chunk_id for hit in found[60]} == {names[place] for place in places if place % 2}
    assert found[3] == found[None][:3] == found[60][:3]
    assert all(isinstance(hit, Hit) and hit.text == f"text of {hit.chunk_id}" for hit in found[60])


@pytest.mark.req("R-HYB-09")
async def test_ranks_are_fused_unless_a_request_asks_for_weighted_scores() -> None:
    rpg = profile("rpg")
    default, by_rank, by_score = [
        {hit.chunk_id: hit.score for hit in (await found_by("hybrid", rpg, **more)).hits}
        for more in ({}, {"fusion": "rrf"}, {"fusion": "weighted"})
    ]
    assert default == by_rank
    assert by_rank == pytest.approx({"b#0": (1 + 61 / 62) / 2, "a#0": 1 / 2, "c#0": 61 / 62 / 2})
    assert by_score["c#0"] == 0.0
    with pytest.raises(InputError, match="fusion is 'borda'; it must be one of: zscore, rrf, weighted"):
        search_request(rpg, SearchQuery("words", fusion="borda"))


@pytest.mark.parametrize(
    ("name", "fusion", "scores"),
    [
        pytest.param("tulia", None, [0.7, 0.3], marks=pytest.mark.req("R-HYB-06")),
        pytest.param("kosmos", None, [0.7, 0.3], marks=pytest.mark.req("R-HYB-06", "R-HYB-08")),
        pytest.param("rpg", "weighted", [0.5, 0.5], marks=pytest.mark.req("R-HYB-07")),
    ],
)
async def test_each_arm_has_the_weight_of_the_profile(name: str, fusion: str | None, scores: list[float]) -> None:
    retrieval = profile(name).retrieval.model_copy(update={"min_similarity": 0.0})
    pipeline = make_pipeline(SHELF, Index(candidates("a#0")), Index(candidates("b#0")), retrieval=retrieval)
    # A query of no particular kind leaves the weights as they are.
    request = search_request(profile(name), SearchQuery(PLAIN, fusion=fusion))
    assert dense_weight(PLAIN, retrieval.dense_weight) == retrieval.dense_weight
    found = {hit.chunk_id: hit.score for hit in (await pipeline.search("default", KB, request)).hits}
    assert [found["a#0"], found["b#0"]] == pytest.approx(scores)


@pytest.mark.req("R-HYB-27", "R-TST-28")
async def test_a_weighted_merge_of_ten_and_ten_gives_five() -> None:
    tulia = profile("tulia").retrieval
    assert (tulia.dense_weight, tulia.fusion, tulia.candidates, tulia.k) == (0.7, "weighted", 10, 5)
    dense, lexical = Index(DENSE), Index(LEXICAL)
    await make_pipeline(SHELF, dense, lexical, retrieval=tulia).search(
        "default", KB, search_request(profile("tulia"), SearchQuery("what words are there in the text"))
    )
    assert (dense.asked, lexical.asked) == ([10], [10])
    merged = fuse("weighted", {"dense": DENSE, "lexical": LEXICAL}, {"dense": 0.7, "lexical": 0.3}, rrf_k=60, depth=10)
    assert [(one.chunk_id, one.score) for one in merged] == [("a#0", 0.7), ("b#0", 0.3), ("c#0", 0.0)]


@pytest.mark.req("R-HYB-28")
async def test_an_index_of_words_comes_from_its_file_and_vectors_from_whoever_has_them(tmp_path: Path) -> None:
    save_index(build_index([(1, "b#0", "ferry"), (2, "c#0", "ferry ticket")]), tmp_path / "index")
    loaded, _ = load_index(tmp_path / "index")

    class FromFile(Index):
        async def search(self, *given: Any) -> list[Candidate]:
            return loaded.best([["ticket"]], 10)

    pipeline = make_pipeline(SHELF, Index(DENSE), FromFile([]))
    result = await pipeline.search("default", KB, ask("ticket"))
    assert {hit.chunk_id for hit in result.hits if "lexical" in hit.scores} == {"c#0"}
    # Nothing but a search is asked of the store of vectors.
    assert {hit.chunk_id for hit in result.hits if "dense" in hit.scores} == {"a#0", "b#0"}


@pytest.mark.req("R-RRK-14")
def test_no_service_beside_us_is_needed_to_rerank() -> None:
    assert set(get_args(RerankingStage.model_fields["kind"].annotation)) == {"none", "cross_encoder", "llm"}
    needed = " ".join(requires("ragstone") or []).lower()
    assert not [name for name in ("cohere", "ragflow", "colbert", "ragatouille") if name in needed]


def stages(result: SearchResult) -> set[str]:
    return {stage.stage for stage in result.trace if not stage.skipped}


def made(retrieval: RetrievalSettings, reranking: RerankingSettings, replies: list[str]) -> SearchPipeline:
    judge = Judge({f"text of {name}": 0.5 for name in NAMES})
    return make_pipeline(
        SHELF,
        Index(DENSE),
        Index(LEXICAL),
        reranker=judge if reranking.kind != "none" else None,
        second_reranker=judge if reranking.then.kind != "none" else None,
        transformer=Transformer(retrieval.transforms, llm=FakeLLM(replies)),
        retrieval=retrieval,
        reranking=reranking,
    )


@pytest.mark.req("R-TOL-19")
async def test_naive_advanced_and_modular_retrieval_are_settings() -> None:
    reranker = {"kind": "cross_encoder", "candidates": 20}
    naive = made(RetrievalSettings(arms="dense"), RerankingSettings(), [])
    advanced = made(RetrievalSettings(transforms=("rewrite",)), RerankingSettings(**reranker), ["fuller words"])
    modular = made(
        RetrievalSettings(transforms=("decompose", "rewrite", "expand"), diversity=0.3),
        RerankingSettings(**reranker, then=reranker),
        ["fuller words", "other words"],
    )
    always = {"fuse", "read_back", "relevance", "pack"}
    vector = {"embed_query", "dense"}
    request = ask("some words", mode="thorough")
    plain = await naive.search("default", KB, ask("some words", arms="dense"))
    assert stages(plain) == always | vector
    assert stages(await advanced.search("default", KB, request)) == always | vector | {"transform", "lexical", "rerank"}
    assert stages(await modular.search("default", KB, request)) == always | vector | {
        "transform",
        "lexical",
        "rerank",
        "rerank_2",
        "diversify",
    }
