"""Searching for several things in place of one query."""

from __future__ import annotations

import pytest
from tests.unit.query.doubles import KB, Index, Judge, Shelf, ask, candidates, make_pipeline

from ragstone.core.errors import RemoteError
from ragstone.core.types import Candidate, Space
from ragstone.query.arms import best_of
from ragstone.query.transform import Transformer, Variants
from ragstone.settings.retrieval import RerankingSettings
from ragstone.testing.fakes import FakeEmbedder, FakeLLM

TEXTS = {name: f"text of {name}" for name in ("a#0", "b#0", "c#0", "d#0")}


class Given(Transformer):
    """Always gives these variants."""

    def __init__(self, variants: Variants) -> None:
        super().__init__(["decompose"])
        self.variants = variants

    async def apply(self, query: str, **options: object) -> Variants:  # type: ignore[override]
        return self.variants


@pytest.mark.req("R-HYB-24")
def test_a_chunk_that_several_variants_find_is_there_once_with_its_best_score() -> None:
    lists = [[Candidate("a", 0.9), Candidate("b", 0.4)], [Candidate("b", 0.7), Candidate("c", 0.7)]]
    assert best_of(lists, 10) == [("a", 0.9), ("b", 0.7), ("c", 0.7)]
    assert best_of(lists, 2) == [("a", 0.9), ("b", 0.7)]
    assert best_of([[]], 10) == []


@pytest.mark.req("R-HYB-24", "R-HYB-30")
async def test_every_variant_is_searched_for_and_vectors_are_made_in_one_call() -> None:
    embedder = FakeEmbedder()

    async def embedder_for(space: Space) -> FakeEmbedder:
        return embedder

    lexical = Index([], by_query={"one": candidates("a#0", "b#0"), "two": candidates("b#0", "c#0")})
    dense = Index(candidates("d#0"))
    variants = Variants("one or two", "one two", dense=("one", "two"), lexical=("one", "two"))
    search = make_pipeline(Shelf(TEXTS), dense, lexical, embedder_for=embedder_for, transformer=Given(variants))
    result = await search.search("default", KB, ask("one or two"))
    assert embedder.queries == [("one", "two")]
    assert sorted(hit.chunk_id for hit in result.hits) == sorted(TEXTS)
    assert (result.query, result.rewritten_query) == ("one or two", "one two")
    counts = {stage.stage: (stage.entered, stage.left) for stage in result.trace}
    assert (counts["embed_query"], counts["lexical"], counts["dense"]) == ((2, 2), (2, 3), (2, 1))


async def test_passages_are_reranked_against_what_was_asked() -> None:
    asked: list[str] = []

    class Listening(Judge):
        async def score(self, query: str, passages: object) -> list[float]:  # type: ignore[override]
            asked.append(query)
            return [0.5]

    variants = Variants("the question", "other words", dense=("other words",), lexical=("other words",))
    search = make_pipeline(
        Shelf(TEXTS),
        Index(candidates("a#0")),
        Index([]),
        transformer=Given(variants),
        reranker=Listening({}),
        reranking=RerankingSettings(kind="cross_encoder"),
    )
    await search.search("default", KB, ask("the question"))
    assert asked == ["the question"]


async def test_a_transform_that_fails_leaves_the_query_and_says_so() -> None:
    llm = FakeLLM([RemoteError("down")])
    search = make_pipeline(
        Shelf(TEXTS), Index(candidates("a#0")), Index([]), transformer=Transformer(["rewrite"], llm=llm)
    )
    result = await search.search("default", KB, ask("words", mode="thorough"))
    assert ([hit.chunk_id for hit in result.hits], result.rewritten_query) == (["a#0"], "words")
    assert result.degraded == ("rewrite: down",)


async def test_a_transform_reads_the_first_passages_by_word() -> None:
    read: list[object] = []

    class Reading(Transformer):
        async def apply(self, query: str, **options: object) -> Variants:  # type: ignore[override]
            read.extend(await options["passages"](query))  # type: ignore[operator]
            return Variants(query, query, (query,), (query,))

    search = make_pipeline(
        Shelf(TEXTS), Index([]), Index(candidates("b#0", "gone#0")), transformer=Reading(["feedback"])
    )
    await search.search("default", KB, ask("words"))
    assert read == ["Part: text of b#0"]
