"""Relevance: what it is read from, and what it leaves out."""

from __future__ import annotations

import pytest
from tests.unit.query.doubles import Index, ask, candidates, make_pipeline
from tests.unit.query.test_pipeline import KB, SHELF

from ragstone.core.errors import InputError, ModelUnavailable
from ragstone.core.search import SearchQuery
from ragstone.core.types import Candidate, Space
from ragstone.query.context import search_request
from ragstone.query.relevance import rate
from ragstone.settings.tree import Settings

STEPS = [0.0, 0.25, 0.5, 0.75, 1.0]


def test_relevance_grows_with_closeness_and_with_the_words_of_the_query() -> None:
    near, worded = [rate(step, 0.5) for step in STEPS], [rate(0.4, step) for step in STEPS]
    assert near == sorted(near)
    assert worded == sorted(worded)
    assert rate(0.2, 0.0) < 0.05
    assert rate(0.35, 1.0) > 0.8


async def test_passages_below_min_relevance_are_dropped() -> None:
    search = make_pipeline(SHELF, Index(candidates("a#0", "b#0", "c#0")), Index([]))
    everything = (await search.search("default", KB, ask())).hits
    rated = [hit.relevance for hit in everything]
    assert all(value is not None and 0 <= value <= 1 for value in rated)
    least = max(value for value in rated if value is not None)
    kept = (await search.search("default", KB, ask(min_relevance=least - 0.0001))).hits
    assert {hit.chunk_id for hit in kept} == {hit.chunk_id for hit in everything if hit.relevance == least}


async def test_without_a_model_words_alone_are_rated() -> None:
    async def gone(space: Space) -> None:
        raise ModelUnavailable("no model")

    search = make_pipeline(SHELF, Index([]), Index([Candidate("a#0", 3.0)]), embedder_for=gone)
    (hit,) = (await search.search("default", KB, ask(arms="lexical"))).hits
    assert hit.relevance is not None


@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_min_relevance_is_a_share(value: float) -> None:
    with pytest.raises(InputError, match="min_relevance"):
        search_request(Settings(), SearchQuery("words", min_relevance=value))
