"""One search: transform → (dense ∥ lexical) → fuse → read back → rerank → select → compress → expand → pack.

A mode is a deadline. The two arms are never cut for it, only given up at the hard limit; an optional stage that
no longer fits is skipped and named in the trace. Hits are read back from the ledger, and what drops out there is
made up for by fetching further.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragstone.core.documents import origin_of, page_starts, placement, table_head, without_places
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import EmbedderFor, LexicalIndex, Reranker, VectorIndex
from ragstone.core.search import SearchResult
from ragstone.core.types import Candidate, Chunk, Hit, KnowledgeBase, Vector
from ragstone.language.detector import language_of_query
from ragstone.query.arms import Arms, fuse, read_back
from ragstone.query.compress import CompressStage
from ragstone.query.context import (
    READ_BACK,
    Fused,
    RankedChunk,
    Recorder,
    SearchContext,
    SearchRequest,
    Variants,
    compute,
    degrade_on_timeout,
)
from ragstone.query.kind import dense_weight
from ragstone.query.relevance import rate_passages
from ragstone.query.rerank import RerankStage
from ragstone.query.transform.transformer import RephraseStage, Transformer
from ragstone.settings.retrieval import RerankingSettings, RetrievalSettings

SCORE_DIGITS, RELEVANCE_DIGITS = 6, 4
"""Digits that are returned, and compared with the least that is asked for."""
POOL = 3
"""The number of passages ranked for each one wanted, when copies and near copies are left out."""
SOON_COMPARED = 100_000
"""Characters that are compared within thirty milliseconds: the passages for ten hits."""
SOON_CHOSEN = 300
"""Passages that are chosen from within five milliseconds."""
RUN = 3
"""Words of a run: passages with the same runs are copies."""
LONGEST = 20_000
"""Characters of context: more than that is a document, not a surrounding."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class StageResults:
    """The results of each stage of a search."""

    variants: Variants
    fused: Sequence[Fused]
    found: Sequence[RankedChunk]
    ranked: Sequence[RankedChunk]
    selected: Sequence[RankedChunk]
    chosen: Sequence[RankedChunk]
    relevance: Mapping[str, float]
    """Of every ranked passage, by chunk id."""
    hits: tuple[Hit, ...]


class SearchPipeline:
    """Searches one kb of one tenant at a time. Keeps only what is warm, and how fast."""

    def __init__(
        self,
        ledger: Ledger,
        vectors: VectorIndex,
        lexical: LexicalIndex,
        embedder_for: EmbedderFor,
        reranker: Reranker | None,
        retrieval: RetrievalSettings,
        reranking: RerankingSettings,
        *,
        second_reranker: Reranker | None = None,
        transformer: Transformer | None = None,
        compress: CompressStage | None = None,
    ) -> None:
        self._ledger = ledger
        self._retrieval = retrieval
        self._transformer = transformer or Transformer(())
        self._rephrase = RephraseStage(self._transformer, ledger, lexical)
        self._compress = compress if compress and compress.method != "off" else None
        self._arms = Arms(vectors, lexical, embedder_for, retrieval.min_similarity)
        stages = (("rerank", reranker, reranking), ("rerank_2", second_reranker, reranking.then))
        self._rerank = [RerankStage(name, model, own) for name, model, own in stages if model is not None]

    async def search(self, tenant: str, kb: KnowledgeBase, request: SearchRequest) -> SearchResult:
        """Return the k best passages and a trace of the search."""
        search = self.begin(tenant, kb, request)
        results = await self.run(search)
        return SearchResult(
            query=request.query,
            rewritten_query=results.variants.rewritten,
            mode=request.mode,
            hits=results.hits,
            trace=tuple(search.record.stages),
            degraded=tuple(search.record.degraded),
            took_ms=round(search.record.elapsed_ms, 3),
        )

    def begin(self, tenant: str, kb: KnowledgeBase, request: SearchRequest) -> SearchContext:
        """Start the clock of a search."""
        return SearchContext(tenant, kb, request, Recorder(request.mode, self._retrieval.timeout))

    async def run(self, search: SearchContext) -> StageResults:
        """Run every stage in turn and return their results."""
        transforms = search.request.strategy or self._transformer.names
        variants = await self._rephrase.run(search) if transforms else Variants.of(search.request.query)
        fused, found = await self._retrieve(search, variants)
        ranked = found
        for stage in self._rerank if search.request.reranking else ():
            ranked = await stage.run(search, ranked)
        rated = await rate_passages(search, ranked)
        relevance = {item.chunk.id: round(value, RELEVANCE_DIGITS) for item, value in zip(ranked, rated, strict=True)}
        selected = await self._select(search, ranked, relevance)
        # A passage may have several runs of sentences to give; k is still k.
        runs = await self._compress.run(search, selected) if self._compress else selected
        chosen = runs[: search.request.k]
        around = await self._expand(search, chosen)
        with search.record.stage("pack", len(ranked)) as span:
            hits = tuple(pack_hit(item, around.get(item.chunk.id, ""), relevance.get(item.chunk.id)) for item in chosen)
            span.left = len(hits)
        return StageResults(variants, fused, found, ranked, selected, chosen, relevance, hits)

    async def arms(self, search: SearchContext, variants: Variants, k: int) -> Mapping[str, list[Candidate]]:
        """Return the candidates of each arm; an arm that failed is missing and named in `degraded`."""
        return await self._arms.run(search, variants, k)

    def depth(self, request: SearchRequest) -> int:
        """Return the number of candidates that each arm is asked for at first."""
        return max(request.candidates, self._pool_size(request))

    def _pool_size(self, request: SearchRequest) -> int:
        """Return the number of passages to read so that k of them can be returned."""
        thinned = self._retrieval.collapse is not None or self._retrieval.diversity > 0
        reranked = max((stage.candidates(request.mode) for stage in self._rerank), default=0)
        return max(request.k * (POOL if thinned else 1), reranked)

    async def _retrieve(self, search: SearchContext, variants: Variants) -> tuple[list[Fused], list[RankedChunk]]:
        """Fuse and read back; when reading back drops candidates, fetch further until there are enough."""
        record, wanted, depth = search.record, self._pool_size(search.request), self.depth(search.request)
        while True:
            arms = await self.arms(search, variants, depth)
            with record.stage("fuse", sum(map(len, arms.values()))) as span:
                fused = self._fuse(search, arms, depth)
                span.left = len(fused)
            with record.stage(READ_BACK, len(fused)) as span:
                found = await read_back(self._ledger, search, fused, wanted)
                span.left = len(found)
            exhausted = all(len(candidates) < depth for candidates in arms.values())
            if len(found) >= wanted or exhausted or not record.search_seconds or record.is_degraded(READ_BACK):
                return fused, found
            depth *= 4

    def _fuse(self, search: SearchContext, arms: Mapping[str, Sequence[Candidate]], depth: int) -> list[Fused]:
        """Fuse the lists of the arms; names lean on spelling, questions on meaning."""
        request, language = search.request, language_of_query(search.request.query, search.kb.languages)
        dense = dense_weight(request.query, self._retrieval.dense_weight, fusion=request.fusion, language=language)
        weights = {"dense": dense, "lexical": 1 - dense}
        return fuse(request.fusion, arms, weights, rrf_k=self._retrieval.rrf_k, depth=depth)

    async def _select(
        self, search: SearchContext, ranked: Sequence[RankedChunk], relevance: Mapping[str, float]
    ) -> Sequence[RankedChunk]:
        """Return the k passages that are strong enough, without copies and near copies where the settings say so."""
        record, own, asked = search.record, self._retrieval, search.request
        chosen: Sequence[RankedChunk] = [
            item
            for item in ranked
            if round(item.score, SCORE_DIGITS) >= asked.min_score and relevance[item.chunk.id] >= asked.min_relevance
        ]
        if own.collapse is not None:
            with record.stage("collapse", len(chosen)) as span:
                much = sum(len(item.chunk.chunk.text) for item in chosen) > SOON_COMPARED
                async with degrade_on_timeout(record, "collapse", record.read_seconds):
                    chosen = await compute(drop_copies, much, chosen, own.collapse)
                span.left = len(chosen)
        if own.diversity > 0:
            chosen = await self._diversify(search, chosen)
        return chosen[: search.request.k]

    async def _diversify(self, search: SearchContext, chosen: Sequence[RankedChunk]) -> Sequence[RankedChunk]:
        record, texts = search.record, [item.chunk.chunk.contextual for item in chosen]
        with record.stage("diversify", len(chosen)) as span:
            async with degrade_on_timeout(record, "diversify", max(record.left_ms, 0.0) / 1000):
                vectors = await self._ledger.of(search.tenant).known_vectors(search.kb, texts)
                much, k = len(chosen) > SOON_CHOSEN, search.request.k
                chosen = await compute(diversify, much, chosen, k, self._retrieval.diversity, vectors)
            span.left = len(chosen)
        return chosen

    async def _expand(self, search: SearchContext, chosen: Sequence[RankedChunk]) -> Mapping[str, str]:
        """Return the text around each passage, where the settings ask for it and there is time."""
        own, record = self._retrieval, search.record
        if not (own.neighbours or own.parents) or not chosen:
            return {}
        around: Mapping[str, str] = {}
        with record.stage("expand", len(chosen)) as span:
            async with degrade_on_timeout(record, "expand", max(record.left_ms, 0.0) / 1000):
                around = await load_contexts(
                    self._ledger, search, chosen, neighbours=own.neighbours, parents=own.parents
                )
            span.left = len(around)
        return around


def drop_copies(ranked: Sequence[RankedChunk], share: float) -> list[RankedChunk]:
    """Leave out a passage when this share of its runs of words, or of those of a better one, is common to both."""
    kept: list[RankedChunk] = []
    sizes: list[int] = []
    holders: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for item in ranked:
        runs = _runs(item.chunk.chunk.text)
        common = Counter(holder for run in runs for holder in holders.get(run, ()))
        if any(count >= share * min(len(runs), sizes[holder]) for holder, count in common.items()):
            continue
        for run in runs:
            holders[run].append(len(kept))
        sizes.append(len(runs))
        kept.append(item)
    return kept


def diversify(
    ranked: Sequence[RankedChunk], k: int, diversity: float, vectors: Mapping[str, Vector]
) -> list[RankedChunk]:
    """Pick k by maximal marginal relevance; a passage without a vector counts as unlike all others.

    A passage keeps its own score, so that scores need not fall from one to the next.
    """
    import numpy as np

    if not ranked:
        return []
    length = max((len(vector) for vector in vectors.values()), default=1)
    rows = [vectors.get(item.chunk.chunk.contextual, np.zeros(length)) for item in ranked]
    matrix = np.asarray(rows, np.float32)
    relevance = (1 - diversity) * np.array([item.score for item in ranked])
    likeness = np.zeros(len(ranked))
    chosen: list[int] = []
    for _ in range(min(k, len(ranked))):
        worth = relevance - diversity * likeness
        worth[chosen] = -np.inf
        best = int(worth.argmax())
        chosen.append(best)
        likeness = np.maximum(likeness, matrix @ matrix[best])
    return [ranked[n] for n in chosen]


def _runs(text: str) -> set[tuple[str, ...]]:
    """Return each run of three words once; all words together if there are fewer."""
    words = _WORD.findall(text.casefold())
    size = min(RUN, len(words))
    return {tuple(words[n : n + size]) for n in range(len(words) - size + 1)} if words else set()


async def load_contexts(
    ledger: Ledger, search: SearchContext, found: Sequence[RankedChunk], *, neighbours: int, parents: bool
) -> Mapping[str, str]:
    """Return the text around each passage, itself included, by chunk id."""
    around: dict[str, str] = {}
    chunks: dict[str, Sequence[Chunk]] = {}
    for item in found:
        live = item.chunk
        if live.document_id not in chunks:
            read = await ledger.of(search.tenant).document_chunks(live.document_id)
            # Of another version the offsets would not fit.
            chunks[live.document_id] = [other.chunk for other in read if other.version == live.version]
        own = chunks[live.document_id]
        wanted = _section(own, live.chunk) if parents else set()
        wanted.update(range(live.chunk.index - neighbours, live.chunk.index + neighbours + 1))
        around[live.id] = join_chunks([chunk for chunk in own if chunk.index in wanted], live.chunk)
    return around


def join_chunks(chunks: Sequence[Chunk], hit: Chunk) -> str:
    """Return the text that the chunks cover, each part once; cut to the part around the hit if it is long."""
    text, end, hit_at = "", -1, 0
    for chunk in sorted(chunks, key=lambda chunk: (chunk.start, chunk.end)):
        if chunk.end <= end:
            continue
        if text and chunk.start > end:
            text += "\n\n"
        if chunk.index == hit.index:
            hit_at = len(text)
        text += chunk.text[max(end - chunk.start, 0) :] if end >= 0 else chunk.text
        end = chunk.end
    if len(text) <= LONGEST:
        return text or hit.text
    start = max(0, min(hit_at - LONGEST // 4, len(text) - LONGEST))
    return text[start : start + LONGEST]


def _section(chunks: Sequence[Chunk], hit: Chunk) -> set[int]:
    """Return the indexes of the chunks under the hit's heading, and of the chunk that holds the heading."""
    same = {chunk.index for chunk in chunks if chunk.section == hit.section and chunk.parent == hit.parent}
    return same | ({hit.parent} if hit.parent is not None else set())


def pack_hit(item: RankedChunk, context: str = "", relevance: float | None = None) -> Hit:
    """Return a passage as a hit, with its place and its score of each stage."""
    live = item.chunk
    return Hit(
        chunk_id=live.id,
        document_id=live.document_id,
        title=live.title,
        uri=live.uri,
        section=" > ".join(live.chunk.section),
        page=live.chunk.page,
        text=live.chunk.text,
        score=round(item.score, SCORE_DIGITS),
        scores={name: round(value, SCORE_DIGITS) for name, value in item.fused.scores.items()},
        metadata={
            **live.metadata,
            **without_places(live.chunk.metadata),
            "source": origin_of(live.metadata, live.source, live.uri),
            "connector": live.source,
            "chunk_index": live.chunk.index,
        },
        start=live.chunk.start,
        end=live.chunk.end,
        context=context,
        placement=tuple(placement(live).items()),
        page_starts=page_starts(live.chunk.metadata),
        table_head=table_head(live.chunk.metadata),
        relevance=relevance,
    )
