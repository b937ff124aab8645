"""Why a document was found, or where it was lost: every way there is."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.query.doubles import KB, Index, Judge, Shelf, ask, candidates, fake_embedder, make_pipeline

from ragstone.core.errors import ModelUnavailable, NotFoundError
from ragstone.core.filters import parse_filter
from ragstone.core.remedies import Action, Remedy
from ragstone.core.search import Explanation
from ragstone.query.context import SearchRequest
from ragstone.query.explain import explain
from ragstone.settings.retrieval import RerankingSettings, RetrievalSettings

TEXTS = {
    "a#0": "alpha words",
    "b#0": "beta words",
    "c#0": "gamma",
    "dated#0": "delta words",
    "two#0": "first page",
    "two#1": "second page",
    "other#0": "of another kb",
}
METADATA = {"a": {"year": 2025}, "b": {"year": 2026}}
BY_CHUNK = {"a#0": METADATA["a"], "b#0": METADATA["b"]}


async def explained(
    document: str,
    request: SearchRequest,
    *,
    dense: tuple[str, ...] = ("a#0", "b#0", "c#0", "dated#0"),
    lexical: tuple[str, ...] = ("a#0", "b#0"),
    embedded: bool = True,
    **parts: Any,
) -> Explanation:
    shelf = Shelf(TEXTS, METADATA)
    shelf.embedded = embedded
    search = make_pipeline(shelf, Index(candidates(*dense), BY_CHUNK), Index(candidates(*lexical), BY_CHUNK), **parts)
    return await explain(shelf, search, "default", KB, request, document)


async def test_a_document_that_is_found() -> None:
    found = await explained("b", ask("beta words missing"))
    assert (found.query, found.document_id, found.title) == ("beta words missing", "b", "Title of b")
    assert (found.found, found.lost_at, found.reason) == (True, "", "found at rank 2")
    assert [dict(stage) for stage in found.stages] == [
        {"stage": "dense", "rank": 2, "score": 0.9, "candidates": 100, "reached": True},
        {
            "stage": "lexical",
            "rank": 2,
            "score": 0.9,
            "candidates": 100,
            "reached": True,
            "matched_terms": ["beta", "word"],
            "missing_terms": ["miss"],
        },
        {"stage": "fuse", "rank": 2, "score": pytest.approx(61 / 62, abs=1e-6)},
        {"stage": "result", "rank": 2, "k": 10},
    ]


async def test_lost_to_the_filter() -> None:
    lost = await explained("a", ask(where=parse_filter({"year": 2026})))
    assert (lost.found, lost.lost_at, lost.reason) == (False, "filter", "the filter does not let it through")
    assert [stage["rank"] for stage in lost.stages] == [1, 1, None]


@pytest.mark.parametrize(
    ("document", "where", "passes"),
    [
        ("dated", {"modified_at": "2026-01-01"}, True),
        ("c", {"modified_at": "2026-01-01"}, False),
        ("c", {"title": "Title of c", "source": "files", "media_type": "text/plain"}, True),
        ("c", {"uri": "test:c", "external_id": "c", "document_id": "c"}, True),
        ("c", {"created_at": {"lte": "2026-01-01"}, "updated_at": {"gte": "2026-01-01"}}, True),
        ("two", {"page": 2, "level": 0, "kind": "paragraph"}, True),
        ("two", {"page": 3}, False),
    ],
)
async def test_a_filter_sees_facts_and_chunks(document: str, where: dict[str, Any], passes: bool) -> None:
    lost = await explained(document, ask(where=parse_filter(where)), dense=(), lexical=())
    assert (lost.lost_at == "filter") is not passes


async def test_lost_because_no_arm_knows_it() -> None:
    lost = await explained("c", ask(), dense=("a#0",))
    assert (lost.found, lost.lost_at) == (False, "arms")
    assert lost.reason == "dense: it is under retrieval.min_similarity; lexical: it shares no word with the query"


async def test_lost_because_it_stands_too_low_in_both_arms() -> None:
    lost = await explained("b", ask(candidates=1, k=1))
    assert (lost.found, lost.lost_at) == (False, "arms")
    assert lost.reason == "dense: rank 2, of which 1 are kept; lexical: rank 2, of which 1 are kept"


async def test_the_reason_names_an_arm_that_is_off() -> None:
    async def missing(space: object) -> None:
        raise ModelUnavailable("no weights")

    lost = await explained("c", ask(), embedder_for=missing)
    assert lost.reason == "lexical: it shares no word with the query; dense: no weights"


async def test_lost_at_the_cut() -> None:
    lost = await explained("c", ask(k=2))
    assert (lost.found, lost.lost_at, lost.reason) == (False, "pack", "rank 3 after fusion; 2 were asked for")


async def test_lost_to_min_score() -> None:
    lost = await explained("c", ask(min_score=0.9))
    assert (lost.found, lost.lost_at, lost.reason) == (False, "pack", "its score is under min_score 0.9")


async def test_lost_to_the_reranker() -> None:
    judge = Judge({text: 0.1 if text == "alpha words" else 0.9 for text in TEXTS.values()})
    settings = RerankingSettings(kind="cross_encoder", threshold=0.5)
    lost = await explained("a", ask(), reranker=judge, reranking=settings)
    assert (lost.found, lost.lost_at) == (False, "rerank")
    assert lost.reason == "the reranker scored it under its threshold"


async def test_lost_to_a_reranker_that_puts_it_lower() -> None:
    judge = Judge({text: 0.1 if text == "alpha words" else 0.9 for text in TEXTS.values()})
    settings = RerankingSettings(kind="cross_encoder")
    lost = await explained("a", ask(k=2), reranker=judge, reranking=settings)
    assert (lost.lost_at, lost.reason) == ("rerank", "rank 1 after fusion, 4 after reranking; 2 were asked for")
    step = next(stage for stage in lost.stages if stage["stage"] == "rerank")
    assert (step["rank"], step["score"], step["skipped"]) == (4, 0.1, [])


async def test_lost_to_a_better_passage_that_is_the_same() -> None:
    shelf = Shelf({"a#0": "the ferry leaves at nine", "b#0": "the ferry leaves at nine"})
    search = make_pipeline(shelf, Index(candidates("a#0", "b#0")), Index([]), retrieval=RetrievalSettings(collapse=0.9))
    lost = await explain(shelf, search, "default", KB, ask(), "b")
    assert (lost.lost_at, lost.reason) == ("select", "it is too much like a better passage")


async def test_lost_because_the_filter_left_only_a_chunk_that_no_arm_knows() -> None:
    shelf = Shelf(TEXTS)
    index = Index(candidates("two#0"), {"two#0": {"page": 1}})
    search = make_pipeline(shelf, index, Index([]), embedder_for=fake_embedder)
    lost = await explain(shelf, search, "default", KB, ask(where=parse_filter({"page": 2})), "two")
    assert (lost.found, lost.lost_at) == (False, "arms")


async def test_lost_because_it_was_stored_without_a_vector() -> None:
    lost = await explained("c", ask(), dense=("a#0",), embedded=False)
    assert lost.reason == "dense: it has no vector; lexical: it shares no word with the query"


@pytest.mark.parametrize("document", ["unknown", "other"])
async def test_a_document_of_another_kb_is_unknown(document: str) -> None:
    with pytest.raises(NotFoundError, match="no document") as raised:
        await explained(document, ask())
    assert raised.value.remedy == Remedy(Action.LIST_DOCUMENTS)


async def test_the_index_changed_meanwhile() -> None:
    shelf = Shelf(TEXTS, METADATA)
    index = Index(candidates("a#0"))
    search = make_pipeline(shelf, index, Index([]), embedder_for=fake_embedder)
    reach = search.arms

    async def vanishing(*arguments: Any) -> Any:
        found = await reach(*arguments)
        index.found = candidates("a#0")
        return found

    index.found = []
    search.arms = vanishing  # type: ignore[method-assign]
    lost = await explain(shelf, search, "default", KB, ask(), "a")
    assert (lost.found, lost.lost_at) == (False, "fuse")
