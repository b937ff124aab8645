"""Reranking in stages and in batches: whatever is cut, the order stays sound."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.unit.query.doubles import KB, Clock, Index, Judge, Shelf, ask, candidates, make_pipeline

from ragstone.core.errors import RemoteError
from ragstone.core.search import SearchResult
from ragstone.query import arms as arms_module
from ragstone.query import context as trace_module
from ragstone.query import rerank as rerank_module
from ragstone.query.rerank import BATCH
from ragstone.settings.retrieval import RerankingSettings, RerankingStage

MANY = [f"d{n:02}#0" for n in range(40)]
TEXTS = {name: f"text {name}" for name in MANY}
BACKWARDS = {text: n / 100 for n, text in enumerate(TEXTS.values())}
"""Scores that turn the fused order round."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (arms_module, rerank_module, trace_module):
        monkeypatch.setattr(module, "time", clock)
    return clock


async def reranked(
    judge: Judge, settings: RerankingSettings, times: int = 1, then: Judge | None = None
) -> SearchResult:
    search = make_pipeline(
        Shelf(TEXTS),
        Index(candidates(*MANY, step=0.01)),
        Index([]),
        reranker=judge,
        second_reranker=then,
        reranking=settings,
    )
    for _ in range(times):
        result = await search.search("default", KB, ask(k=40))
    return result


def order(result: SearchResult) -> list[str]:
    return [hit.chunk_id for hit in result.hits]


async def test_passages_are_scored_in_batches() -> None:
    judge = Judge(BACKWARDS)
    result = await reranked(judge, RerankingSettings(kind="cross_encoder", candidates=40))
    assert [len(batch) for batch in judge.asked] == [BATCH, BATCH, 8]
    assert order(result) == MANY[::-1]


async def test_an_llm_sees_all_passages_at_once() -> None:
    judge = Judge(BACKWARDS)
    search = make_pipeline(
        Shelf(TEXTS),
        Index(candidates(*MANY, step=0.01)),
        Index([]),
        reranker=judge,
        reranking=RerankingSettings(kind="llm", candidates=40),
    )
    await search.search("default", KB, ask(k=40, mode="thorough"))
    assert [len(batch) for batch in judge.asked] == [40]


async def test_when_the_time_is_up_what_was_scored_comes_first(clock: Clock) -> None:
    # 200 ms a batch: two of the three fit into 500 ms.
    judge = Judge(BACKWARDS, clock, seconds=0.2)
    result = await reranked(judge, RerankingSettings(kind="cross_encoder", candidates=40), times=2)
    scored = 2 * BATCH
    assert order(result) == MANY[:scored][::-1] + MANY[scored:]
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)
    (stage,) = [stage for stage in result.trace if stage.stage == "rerank"]
    assert stage.skipped == "8 of 40 were not scored"


async def test_a_batch_that_would_leave_no_time_for_packing_is_not_scored(clock: Clock) -> None:
    # Two batches of 240 ms end within the 500 ms, but after the 475 ms that reranking may use.
    judge = Judge(BACKWARDS, clock, seconds=0.24)
    result = await reranked(judge, RerankingSettings(kind="cross_encoder", candidates=40), times=2)
    assert order(result) == MANY[:BATCH][::-1] + MANY[BATCH:]


async def test_what_was_scored_before_a_failure_counts() -> None:
    class Breaking(Judge):
        async def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
            if self.asked:
                raise RemoteError("gone")
            return await super().score(query, passages)

    result = await reranked(Breaking(BACKWARDS), RerankingSettings(kind="cross_encoder", candidates=40))
    assert order(result) == MANY[:BATCH][::-1] + MANY[BATCH:]
    assert result.degraded == ("rerank: gone",)


@pytest.mark.req("R-RRK-15")
async def test_a_second_stage_reads_the_best_of_the_first() -> None:
    settings = RerankingSettings(
        kind="cross_encoder", candidates=40, then=RerankingStage(kind="cross_encoder", candidates=3, threshold=0.5)
    )
    first, second = Judge(BACKWARDS), Judge({"text d39#0": 0.6, "text d38#0": 0.4, "text d37#0": 0.9})
    result = await reranked(first, settings, then=second)
    assert second.asked == [("Part: text d39#0", "Part: text d38#0", "Part: text d37#0")]
    assert order(result) == ["d37#0", "d39#0"]
    assert (result.hits[0].scores["rerank"], result.hits[0].scores["rerank_2"]) == (0.37, 0.9)
    assert [stage.stage for stage in result.trace if "rerank" in stage.stage] == ["rerank", "rerank_2"]


async def test_between_equal_scores_the_fused_order_decides() -> None:
    result = await reranked(
        Judge(dict.fromkeys(TEXTS.values(), 0.5)), RerankingSettings(kind="cross_encoder", candidates=40)
    )
    assert order(result) == MANY
