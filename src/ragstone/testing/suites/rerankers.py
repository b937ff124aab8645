"""Conformance tests of every `Reranker`, to inherit.

    from ragstone.testing.suites.rerankers import RerankerSuite

    class TestMyReranker(RerankerSuite):
        def make_reranker(self):
            return MyReranker()

pytest finds the class by its name and runs every test of the suite against it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from ragstone.core.protocols import Reranker

QUERY = "where does the cat sleep"
PASSAGES = ["the cat sleeps on the mat", "rates rose", "", "naïve café 東京都", "cat " * 3000]


class RerankerSuite:
    """Inherit and say how to make one."""

    def make_reranker(self) -> Reranker:
        raise NotImplementedError

    @pytest_asyncio.fixture
    async def reranker(self) -> AsyncIterator[Reranker]:
        """Yield a new reranker, closed after the test."""
        made = self.make_reranker()
        yield made
        await made.close()

    async def test_one_score_per_passage_between_0_and_1(self, reranker: Reranker) -> None:
        scores = await reranker.score(QUERY, PASSAGES)
        assert len(scores) == len(PASSAGES)
        assert all(0.0 <= score <= 1.0 for score in scores)

    async def test_no_passages_no_scores(self, reranker: Reranker) -> None:
        assert list(await reranker.score(QUERY, [])) == []

    async def test_a_score_does_not_depend_on_its_neighbours(self, reranker: Reranker) -> None:
        together = await reranker.score(QUERY, PASSAGES)
        backwards = await reranker.score(QUERY, PASSAGES[::-1])
        alone = [(await reranker.score(QUERY, [passage]))[0] for passage in PASSAGES]
        assert alone == pytest.approx(list(together), abs=1e-3)
        assert list(backwards)[::-1] == pytest.approx(list(together), abs=1e-3)

    async def test_a_long_query_is_scored(self, reranker: Reranker) -> None:
        scores = await reranker.score("cat " * 3000, PASSAGES[:2])
        assert len(scores) == 2

    async def test_calls_at_once_do_not_mix(self, reranker: Reranker) -> None:
        queries = ["cat", "rates", "café"]
        at_once = await asyncio.gather(*(reranker.score(query, PASSAGES) for query in queries))
        one_by_one = [await reranker.score(query, PASSAGES) for query in queries]
        for ours, theirs in zip(at_once, one_by_one, strict=True):
            assert list(ours) == pytest.approx(list(theirs), abs=1e-3)

    async def test_it_has_a_name(self, reranker: Reranker) -> None:
        assert reranker.name
