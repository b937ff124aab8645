"""Score the best candidates with a reranker, as many as the deadline allows.

The reranker only scores. What was scored comes first, in the order of its scores; what was not comes after it in
the order it had, so that the order is sound however much of the work was done.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from ragstone.core.errors import RagstoneError
from ragstone.core.protocols import Reranker
from ragstone.core.types import Mode
from ragstone.query.context import RankedChunk, Recorder, SearchContext, StageSpan
from ragstone.settings.retrieval import RerankingStage

logger = logging.getLogger(__name__)
BATCH = 16
"""Passages scored at a time: the clock is looked at in between."""
HOPE = 0.9
"""A little less is expected each time the stage is skipped: one slow moment must not switch it off for good."""


class RerankStage:
    """Scores the first candidates with one reranker, and remembers how long that takes."""

    def __init__(self, name: str, reranker: Reranker, settings: RerankingStage) -> None:
        self._name = name
        self._reranker = reranker
        self._settings = settings
        self._by_llm = settings.kind == "llm"
        self._warm = self._by_llm  # there is nothing to load
        self._ms_each = 0.0

    def candidates(self, mode: Mode) -> int:
        """Return the number of candidates to score in a mode; an LLM scores in thorough mode only."""
        return 0 if self._by_llm and mode != "thorough" else self._settings.candidates

    async def run(self, search: SearchContext, found: list[RankedChunk]) -> list[RankedChunk]:
        """Return the candidates in their new order, without those under the threshold."""
        head = found[: self._settings.candidates]
        if not head:
            return found
        reason = self._reason_to_skip(search, len(head))
        if reason:
            search.record.skip(self._name, len(head), reason)
            return found
        with search.record.stage(self._name, len(head)) as span:
            scores = await self._scores(search, [item.chunk.chunk.contextual for item in head], span)
            if not scores:
                span.left = len(head)
                return found
            ranked = self._reorder(head, scores)
            span.left = len(ranked)
        if self._settings.threshold:
            return ranked
        return ranked + _rank_below(found[len(scores) :], ranked)

    def _reason_to_skip(self, search: SearchContext, count: int) -> str:
        if not self.candidates(search.request.mode):
            return "an LLM reranks in thorough mode only"
        needed = self._ms_each * min(count, self._batch(count))
        if self._warm and needed > search.record.rerank_ms:
            self._ms_each *= HOPE
            return f"needs about {needed:.0f} ms"
        return ""

    def _batch(self, count: int) -> int:
        # An LLM compares passages with each other, so it has to see all of them at once.
        return count if self._by_llm else BATCH

    async def _scores(self, search: SearchContext, texts: Sequence[str], span: StageSpan) -> list[float]:
        """Return the scores of the first texts, as many as there was time for."""
        scores: list[float] = []
        record, size = search.record, self._batch(len(texts))
        while len(scores) < len(texts):
            batch = texts[len(scores) : len(scores) + size]
            if scores and self._ms_each * len(batch) > record.rerank_ms:
                break
            try:
                scores += await self._score_batch(search.request.query, batch, record)
            except TimeoutError:
                record.degrade(f"{self._name}: out of time")
                break
            except RagstoneError as error:
                logger.warning("reranking is off: %s", error)
                record.degrade(f"{self._name}: {error}")
                break
        if len(scores) < len(texts):
            span.skipped = f"{len(texts) - len(scores)} of {len(texts)} were not scored"
        return scores

    async def _score_batch(self, query: str, batch: Sequence[str], record: Recorder) -> Sequence[float]:
        started, limit_ms = time.perf_counter(), max(record.rerank_ms, 1.0)
        try:
            async with asyncio.timeout(limit_ms / 1000 if self._warm else None):
                scores = await self._reranker.score(query, batch)
        except TimeoutError:
            self._ms_each = max(self._ms_each, limit_ms / len(batch))
            raise
        spent = (time.perf_counter() - started) * 1000
        if self._warm:
            each = spent / len(batch)
            self._ms_each = 0.8 * self._ms_each + 0.2 * each if self._ms_each else each
        else:
            self._warm = True
            record.excuse(spent)
        return scores

    def _reorder(self, head: Sequence[RankedChunk], scores: Sequence[float]) -> list[RankedChunk]:
        scored = [
            _rescore(item, score, {"fused": item.score, **item.fused.scores, self._name: score})
            for item, score in zip(head, scores, strict=False)
            if score >= self._settings.threshold
        ]
        # Stable: between equal scores the order they came in decides.
        return sorted(scored, key=lambda item: -item.score)


def _rescore(item: RankedChunk, score: float, scores: dict[str, float]) -> RankedChunk:
    return RankedChunk(replace(item.fused, score=score, scores=scores), item.chunk)


def _rank_below(rest: Sequence[RankedChunk], ranked: Sequence[RankedChunk]) -> list[RankedChunk]:
    """Return the rest with scores no higher than the last that was scored."""
    least = ranked[-1].score if ranked else 1.0
    return [_rescore(item, min(item.score, least), dict(item.fused.scores)) for item in rest]
