"""Results of several kinds of sources as one list."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragstone.core.search import SearchResult, WebResult
from ragstone.core.types import Hit
from ragstone.query.routing.federation import passages_of, rank_results, source_kind

QUERY = "price of Oriental Spice"


def hit(name: str, text: str, score: float, **scores: float) -> Hit:
    return Hit(name, name, "", f"test:{name}", "", None, text, score, scores, {}, 0, len(text))


KB = hit("kb", "Oriental Spice is a perfume.", 0.9, dense=0.5)
FAR = hit("far", "The shop opens at nine.", 0.9, dense=0.5)
ROW = hit("row:1", "Oriental Spice. Price: 42 USD", 1.0, database=1.0)
PAGE = hit("web:1", "Oriental Spice. Price: 42 USD", 1.0, web=1.0)


@pytest.mark.req("R-HYB-33", "R-TST-28")
def test_results_are_ranked_across_sources_by_relevance_and_confidence() -> None:
    ranked = rank_results([FAR, PAGE, KB, ROW], QUERY)
    assert [one.chunk_id for one in ranked] == ["row:1", "kb", "web:1", "far"]
    assert [one.scores["confidence"] for one in ranked] == [1.0, 1.0, 0.7, 1.0]
    row, kb, page, far = (one.scores["relevance"] for one in ranked)
    assert (row, page) == (1.0, 1.0)
    assert far == 0.45
    assert far < kb < 0.9


@pytest.mark.req("R-HYB-33")
def test_of_equals_the_tenant_s_own_comes_first() -> None:
    same = replace(KB, chunk_id="mine", text=PAGE.text, score=PAGE.score)
    assert [one.chunk_id for one in rank_results([PAGE, same], QUERY)] == ["mine", "web:1"]


def test_equals_stay_in_their_order_and_nothing_is_no_error() -> None:
    twin = replace(FAR, chunk_id="twin")
    assert [one.chunk_id for one in rank_results([FAR, twin], QUERY)] == ["far", "twin"]
    assert rank_results([], QUERY) == ()
    assert [one.scores["relevance"] for one in rank_results([FAR], "…")] == [0.45]


def test_a_document_cannot_pose_as_another_kind_of_source() -> None:
    assert source_kind(replace(KB, metadata={"source": "database", "web": 1})) == "documents"
    assert [source_kind(one) for one in (KB, ROW, PAGE)] == ["documents", "database", "internet"]


def test_one_source_alone_keeps_its_order() -> None:
    found = SearchResult(QUERY, QUERY, "fast", (FAR, KB), (), (), 0.0)
    assert passages_of(found) == (FAR, KB)
    page = WebResult("Oriental Spice", "https://shop.example/", "Price: 42 USD")
    several = passages_of(replace(found, records=(ROW,), web=(page,)))
    assert [one.chunk_id[:4] for one in several] == ["row:", "kb", "web:", "far"]
