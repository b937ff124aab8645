"""One search: (dense ∥ lexical) → fuse → read back → rerank → pack, under one deadline.

The two arms are never cut for time. What an arm cannot do is named in `degraded`; an optional stage that no
longer fits is skipped and named in the trace. Hits are read back from the ledger, and what drops out there is
made up for by fetching further.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ragstone.core.errors import ModelError, ModelMismatch, RagstoneError, RemoteError, StoreError
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import Embedder, LexicalIndex, Reranker, VectorIndex
from ragstone.core.query_settings import RerankingSettings, RetrievalSettings
from ragstone.core.types import Candidate, Hit, KnowledgeBase, LiveChunk, SearchResult
from ragstone.query.fusion import Fused, fuse
from ragstone.query.kind import NAME_WEIGHT, asks_for_names
from ragstone.query.request import SearchRequest
from ragstone.query.trace import Recorder

logger = logging.getLogger(__name__)
EmbedderFor = Callable[[str], Awaitable[Embedder]]
"""Gives the embedder of a Space's model, or raises `ModelError`."""


@dataclass(frozen=True, slots=True)
class Found:
    """A fused candidate together with the chunk it names."""

    fused: Fused
    chunk: LiveChunk


class SearchPipeline:
    """Searches one kb of one tenant at a time. Holds no state between searches but which models are warm."""

    def __init__(
        self,
        ledger: Ledger,
        vectors: VectorIndex,
        lexical: LexicalIndex,
        embedder_for: EmbedderFor,
        reranker: Reranker | None,
        retrieval: RetrievalSettings,
        reranking: RerankingSettings,
    ) -> None:
        self._ledger = ledger
        self._vectors = vectors
        self._lexical = lexical
        self._embedder_for = embedder_for
        self._reranker = reranker
        self._retrieval = retrieval
        self._reranking = reranking
        self._warm: set[str] = set()
        self._rerank_ms = 0.0

    async def search(self, tenant: str, kb: KnowledgeBase, request: SearchRequest) -> SearchResult:
        """The k best passages, and how they were found."""
        record = Recorder(request.mode)
        found = await self._retrieve(tenant, kb, request, record)
        found = await self._rerank(request, found, record)
        hits = self._pack(request, found, record)
        return SearchResult(
            query=request.query,
            rewritten_query=request.query,
            mode=request.mode,
            hits=hits,
            trace=tuple(record.stages),
            degraded=tuple(record.degraded),
            took_ms=round(record.elapsed_ms, 3),
        )

    async def arms(
        self, tenant: str, kb: KnowledgeBase, request: SearchRequest, k: int, record: Recorder
    ) -> Mapping[str, list[Candidate]]:
        """Each arm's candidates; an arm that failed is missing and named in `degraded`."""
        runs: dict[str, Awaitable[list[Candidate] | None]] = {}
        if request.arms != "lexical":
            runs["dense"] = self._dense(tenant, kb, request, k, record)
        if request.arms != "dense":
            runs["lexical"] = self._by_word(tenant, kb, request, k, record)
        lists = await asyncio.gather(*runs.values())
        return {arm: found for arm, found in zip(runs, lists, strict=True) if found is not None}

    def fused(self, request: SearchRequest, arms: Mapping[str, Sequence[Candidate]]) -> list[Fused]:
        """The arms' lists as one; a query that is nothing but names leans on their spelling."""
        dense = self._retrieval.dense_weight
        if asks_for_names(request.query):
            dense = min(dense, NAME_WEIGHT)
        weights = {"dense": dense, "lexical": 1 - dense}
        return fuse(request.fusion, arms, weights, self._retrieval.rrf_k)

    @property
    def reranked(self) -> int:
        """How many of the fused candidates are reranked; 0 without a reranker."""
        return self._reranking.candidates if self._reranker else 0

    def depth(self, request: SearchRequest) -> int:
        """How many candidates each arm is asked for at first."""
        return max(request.candidates, self._wanted(request))

    def _wanted(self, request: SearchRequest) -> int:
        return max(request.k, self.reranked)

    async def _retrieve(
        self, tenant: str, kb: KnowledgeBase, request: SearchRequest, record: Recorder
    ) -> list[Found]:
        """Fuse and read back; when reading back drops candidates, fetch further until there are enough."""
        wanted, depth = self._wanted(request), self.depth(request)
        while True:
            arms = await self.arms(tenant, kb, request, depth, record)
            with record.stage("fuse", sum(map(len, arms.values()))) as span:
                fused = self.fused(request, arms)
                span.left = len(fused)
            with record.stage("read_back", len(fused)) as span:
                found = await self._read_back(tenant, kb, fused, wanted)
                span.left = len(found)
            exhausted = all(len(candidates) < depth for candidates in arms.values())
            if len(found) >= wanted or exhausted:
                return found
            depth *= 4

    async def _read_back(
        self, tenant: str, kb: KnowledgeBase, fused: Sequence[Fused], wanted: int
    ) -> list[Found]:
        found: list[Found] = []
        start = 0
        while len(found) < wanted and start < len(fused):
            part = fused[start : start + wanted - len(found)]
            live = await self._ledger.chunks(tenant, kb, [item.chunk_id for item in part])
            found += [Found(item, live[item.chunk_id]) for item in part if item.chunk_id in live]
            start += len(part)
        return found

    async def _dense(
        self, tenant: str, kb: KnowledgeBase, request: SearchRequest, k: int, record: Recorder
    ) -> list[Candidate] | None:
        if kb.space is None:
            record.skip("dense", 0, "nothing is embedded yet")
            return None
        try:
            with record.stage("embed_query", 1) as span:
                started = time.perf_counter()
                embedder = await self._embedder_for(kb.space.model)
                embedded = await embedder.embed([request.query], "query")
                if embedded.model != kb.space.model:
                    raise ModelMismatch(f"{embedded.model} answered instead of {kb.space.model}")
                if embedder.model.id not in self._warm:
                    self._warm.add(embedder.model.id)
                    record.excuse((time.perf_counter() - started) * 1000)
                span.left = 1
            with record.stage("dense", 1) as span:
                found = await self._vectors.search(tenant, kb, embedded.vectors[0], k, request.where)
                floor = self._retrieval.min_similarity
                found = [candidate for candidate in found if candidate.score >= floor] if floor > 0 else found
                span.left = len(found)
            return found
        except ModelError as error:
            # C-07: better by word alone than by vectors of another space.
            logger.warning("dense search of kb '%s' is off: %s", kb.name, error)
            record.degrade(f"dense: {error}")
            return None
        except (StoreError, RemoteError) as error:
            logger.warning("Vector store unavailable: %s", error)
            record.degrade(f"dense: {error}")
            return None

    async def _by_word(
        self, tenant: str, kb: KnowledgeBase, request: SearchRequest, k: int, record: Recorder
    ) -> list[Candidate]:
        with record.stage("lexical", 1) as span:
            found = await self._lexical.search(tenant, kb, request.query, k, request.where)
            span.left = len(found)
        return found

    async def _rerank(self, request: SearchRequest, found: list[Found], record: Recorder) -> list[Found]:
        if self._reranker is None or not found:
            return found
        head, tail = found[: self._reranking.candidates], found[self._reranking.candidates :]
        cold = self._reranker.name not in self._warm
        if not cold and self._rerank_ms > record.left_ms:
            record.skip("rerank", len(head), f"needs about {self._rerank_ms:.0f} ms")
            # A little more hope each time: one slow moment must not switch it off for good.
            self._rerank_ms *= 0.9
            return found
        limit_ms = max(record.left_ms, 1)
        try:
            with record.stage("rerank", len(head)) as span:
                started = time.perf_counter()
                async with asyncio.timeout(None if cold else limit_ms / 1000):
                    scores = await self._reranker.score(
                        request.query, [item.chunk.chunk.contextual for item in head]
                    )
                spent = (time.perf_counter() - started) * 1000
                self._note_rerank(cold, spent, record)
                ranked = _reordered(head, scores, self._reranking.threshold)
                span.left = len(ranked)
            return ranked if self._reranking.threshold else ranked + _below(tail, ranked)
        except TimeoutError:
            self._rerank_ms = max(self._rerank_ms, limit_ms)
            record.degrade("rerank: out of time")
        except RagstoneError as error:
            logger.warning("reranking is off: %s", error)
            record.degrade(f"rerank: {error}")
        return found

    def _note_rerank(self, cold: bool, spent: float, record: Recorder) -> None:
        assert self._reranker is not None
        if cold:
            self._warm.add(self._reranker.name)
            record.excuse(spent)
        else:
            self._rerank_ms = spent if not self._rerank_ms else 0.8 * self._rerank_ms + 0.2 * spent

    def _pack(self, request: SearchRequest, found: Sequence[Found], record: Recorder) -> tuple[Hit, ...]:
        with record.stage("pack", len(found)) as span:
            kept = [item for item in found if item.fused.score >= request.min_score][: request.k]
            span.left = len(kept)
        return tuple(_hit(item) for item in kept)


def _reordered(head: Sequence[Found], scores: Sequence[float], threshold: float) -> list[Found]:
    scored = [
        Found(
            replace(
                item.fused,
                score=score,
                scores={**item.fused.scores, "fused": item.fused.score, "rerank": score},
            ),
            item.chunk,
        )
        for item, score in zip(head, scores, strict=True)
        if score >= threshold
    ]
    return sorted(scored, key=lambda item: (-item.fused.score, item.fused.chunk_id))


def _below(tail: Sequence[Found], ranked: Sequence[Found]) -> list[Found]:
    """What was not reranked comes after what was, and its score says so."""
    least = ranked[-1].fused.score if ranked else 1.0
    return [Found(replace(item.fused, score=min(item.fused.score, least)), item.chunk) for item in tail]


def _hit(item: Found) -> Hit:
    live = item.chunk
    return Hit(
        chunk_id=live.id,
        document_id=live.document_id,
        title=live.title,
        uri=live.uri,
        section=" > ".join(live.chunk.section),
        page=live.chunk.page,
        text=live.chunk.text,
        score=round(item.fused.score, 6),
        scores={name: round(value, 6) for name, value in item.fused.scores.items()},
        metadata={
            **live.metadata,
            **live.chunk.metadata,
            "source": live.source,
            "chunk_index": live.chunk.index,
        },
        start=live.chunk.start,
        end=live.chunk.end,
    )
