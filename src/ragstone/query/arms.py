"""Find candidates by meaning and by word at the same time, and fuse the two lists.

No arm is cut for the mode's deadline. One that hangs is given up shortly before the hard limit and named in
`degraded`; loading a model or an index is not counted.

Fusion is pure: the same lists always give the same order, and every strategy gives `score` between 0 and 1. RRF is
divided by the most it could be for the arms used, so that a chunk found by one of two arms reaches at most 0.5;
min-max scores are already there; scores by spread go through a curve.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ragstone.core.errors import InputError, ModelError, ModelMismatch, RemoteError, StoreBusy, StoreError
from ragstone.core.ledger import Ledger
from ragstone.core.model_types import Embeddings
from ragstone.core.protocols import Embedder, EmbedderFor, LexicalIndex, VectorIndex
from ragstone.core.search import collect_notes
from ragstone.core.types import Candidate, Space, Vector
from ragstone.language.relevance import UnrelatedVectors, unrelated_level
from ragstone.query.context import READ_BACK, Fused, RankedChunk, SearchContext, Variants, WarmNames, degrade_on_timeout
from ragstone.settings.retrieval import Fusion

logger = logging.getLogger(__name__)


class Arms:
    """Finds candidates. Keeps which models and indexes are warm, and vectors of unrelated text for each model."""

    def __init__(
        self, vectors: VectorIndex, lexical: LexicalIndex, embedder_for: EmbedderFor, min_similarity: float
    ) -> None:
        self._vectors = vectors
        self._lexical = lexical
        self._embedder_for = embedder_for
        self._floor = min_similarity
        self._warm = WarmNames()
        self._unrelated = UnrelatedVectors()

    async def run(self, search: SearchContext, variants: Variants, k: int) -> Mapping[str, list[Candidate]]:
        """Return the k best candidates of each arm; an arm that failed is missing and named in `degraded`."""
        runs: dict[str, Awaitable[list[Candidate] | None]] = {}
        if search.request.arms != "lexical":
            runs["dense"] = self._by_meaning(search, variants.dense, k)
        if search.request.arms != "dense":
            runs["lexical"] = self._by_word(search, variants.lexical, k)
        lists = await asyncio.gather(*runs.values())
        return {arm: found for arm, found in zip(runs, lists, strict=True) if found is not None}

    async def _by_meaning(self, search: SearchContext, texts: Sequence[str], k: int) -> list[Candidate] | None:
        record, kb, where = search.record, search.kb, search.request.where
        if kb.space is None:
            record.skip("dense", 0, "nothing is embedded yet")
            return None
        try:
            vectors = await self._embed(search, kb.space, texts)
            asked = [self._vectors.search(search.tenant, kb, vector, k, where) for vector in vectors]
            return await self._search_index(search, "dense", asked, k, self._floor)
        except TimeoutError:
            logger.warning("dense search of kb '%s' timed out", kb.name)
            record.degrade("dense: out of time")
        except ModelError as error:
            # C-07: better by word alone than by vectors of another space.
            logger.warning("dense search of kb '%s' is off: %s", kb.name, error)
            record.degrade(f"dense: {error}")
        except (StoreError, RemoteError) as error:
            logger.warning("Vector store unavailable: %s", error)
            record.degrade(f"dense: {error}")
        return None

    async def _search_index(
        self, search: SearchContext, arm: str, asked: Sequence[Awaitable[list[Candidate]]], k: int, floor: float = 0
    ) -> list[Candidate]:
        """Return the best of what an index finds for each wording, within the time of its arm."""
        with search.record.stage(arm, len(asked)) as span, collect_notes() as remarks:
            with self._deadline(search, arm) as seconds:
                async with asyncio.timeout(seconds):
                    lists = await asyncio.gather(*asked)
            found = best_of(lists, k)
            if floor > 0:
                found = [candidate for candidate in found if candidate.score >= floor]
            span.left = len(found)
        for remark in remarks:
            search.record.degrade(f"{arm}: {remark}")
        return found

    @contextmanager
    def _deadline(self, search: SearchContext, arm: str) -> Iterator[float]:
        """Yield the seconds that an arm may take; the first search of a kb is not counted."""
        index = f"{arm} {search.tenant} {search.kb.id}"
        if index in self._warm:
            yield search.record.search_seconds
            return
        started = time.perf_counter()
        yield search.record.cold_seconds
        self._warm.add(index)
        search.record.excuse((time.perf_counter() - started) * 1000)

    async def _embed(self, search: SearchContext, space: Space, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of the texts, made in one call."""
        with search.record.stage("embed_query", len(texts)) as span:
            started = time.perf_counter()
            embedder = await self._embedder_for(space)
            # Only a model on this machine has to be loaded; one behind an address may just be gone.
            cold = embedder.model.local and embedder.model.id not in self._warm
            seconds = None if cold else search.record.search_seconds
            async with asyncio.timeout(seconds):
                embedded = await embedder.embed(texts, "query")
                if embedded.model != space.model:
                    raise ModelMismatch(f"{embedded.model} answered instead of {space.model}")
            search.unrelated = await self._unrelated_level(embedder, embedded, seconds)
            if cold:
                self._warm.add(embedder.model.id)
                search.record.excuse((time.perf_counter() - started) * 1000)
            vectors = [row for n, row in enumerate(embedded.vectors) if n not in embedded.failed]
            if not vectors:
                said = f"{space.model} could make nothing of the query"
                # The store and the model work: a caller that asked for vectors alone has to ask something else.
                raise InputError(said) if search.request.arms == "dense" else ModelError(said)
            span.left = len(vectors)
        return vectors

    async def _unrelated_level(self, embedder: Embedder, query: Embeddings, seconds: float | None) -> float | None:
        """Return the cosine of unrelated text to a query, or None if the model gives none: only relevance needs it."""
        try:
            async with asyncio.timeout(seconds):
                return unrelated_level(query.vectors[0], await self._unrelated.load(embedder, query.model))
        except (ModelError, RemoteError, TimeoutError) as error:
            logger.warning("rating passages without vectors: %s", str(error) or "the model is out of time")
            return None

    async def _by_word(self, search: SearchContext, texts: Sequence[str], k: int) -> list[Candidate] | None:
        record, kb, where = search.record, search.kb, search.request.where
        try:
            asked = [self._lexical.search(search.tenant, kb, text, k, where) for text in texts]
            return await self._search_index(search, "lexical", asked, k)
        except TimeoutError:
            logger.warning("lexical search of kb '%s' timed out", kb.name)
            record.degrade("lexical: out of time")
        except StoreBusy as error:
            # A busy store recovers; a broken index stays an error.
            logger.warning("lexical search of kb '%s' is off: %s", kb.name, error)
            record.degrade(f"lexical: {error}")
        return None


def best_of(lists: Sequence[list[Candidate]], k: int) -> list[Candidate]:
    """Merge the results of several wordings into one list of k: each chunk once, with its best score."""
    if len(lists) == 1:
        return lists[0]
    best: dict[str, float] = {}
    for chunk_id, score in (candidate for found in lists for candidate in found):
        best[chunk_id] = max(score, best.get(chunk_id, score))
    ranked = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
    return [Candidate(chunk_id, score) for chunk_id, score in ranked[:k]]


async def read_back(ledger: Ledger, search: SearchContext, fused: Sequence[Fused], wanted: int) -> list[RankedChunk]:
    """Return the first `wanted` candidates that are live; fewer if the store is too slow, as `degraded` says."""
    found: list[RankedChunk] = []
    start = 0
    async with degrade_on_timeout(search.record, READ_BACK, search.record.read_seconds):
        while len(found) < wanted and start < len(fused):
            part = fused[start : start + wanted - len(found)]
            live = await ledger.of(search.tenant).chunks(search.kb, [item.chunk_id for item in part])
            found += [RankedChunk(item, live[item.chunk_id]) for item in part if item.chunk_id in live]
            start += len(part)
    return found


WORD_SPREAD = 2.5
"""Times the root mean square of word scores that weighs as much as the whole range of cosines."""
ArmLists = Mapping[str, Sequence[Candidate]]
Weights = Mapping[str, float]


def fuse(strategy: Fusion, arms: ArmLists, weights: Weights, *, rrf_k: int, depth: int) -> list[Fused]:
    """Return one list, best first, ties by id.

    Each arm's candidates must be in order of rank; an arm with `depth` of them is full and may have left some out.
    """
    combined = _combine(strategy, arms, weights, rrf_k, depth)
    evidence: dict[str, dict[str, float]] = {chunk_id: {} for chunk_id in combined}
    for arm, candidates in arms.items():
        for rank, candidate in enumerate(candidates, start=1):
            evidence[candidate.chunk_id][arm] = candidate.score
            evidence[candidate.chunk_id][f"{arm}_rank"] = rank
    fused = [Fused(chunk_id, score, evidence[chunk_id]) for chunk_id, score in combined.items()]
    return sorted(fused, key=lambda item: (-item.score, item.chunk_id))


def _combine(strategy: Fusion, arms: ArmLists, weights: Weights, rrf_k: int, depth: int) -> dict[str, float]:
    match strategy:
        case "rrf":
            return reciprocal_rank(arms, dict.fromkeys(arms, 1.0), rrf_k)
        case "weighted_rrf":
            return reciprocal_rank(arms, weights, rrf_k)
        case "weighted":
            return weighted_min_max(arms, weights)
        case "zscore":
            return weighted_spread(arms, weights, depth)


def reciprocal_rank(arms: ArmLists, weights: Weights, rrf_k: int) -> dict[str, float]:
    """Sum over the arms of weight / (k + rank), over the most that it could be."""
    most = sum(weights[arm] for arm in arms) / (rrf_k + 1) or 1.0
    combined: dict[str, float] = {}
    for arm, candidates in arms.items():
        for rank, candidate in enumerate(candidates, start=1):
            share = weights[arm] / (rrf_k + rank) / most
            combined[candidate.chunk_id] = combined.get(candidate.chunk_id, 0.0) + share
    return combined


def weighted_min_max(arms: ArmLists, weights: Weights) -> dict[str, float]:
    """Return sums of the arms, each scaled to 0–1 and weighted; a chunk that one arm found gets only that part."""
    total = sum(weights[arm] for arm in arms) or 1.0
    combined: dict[str, float] = {}
    for arm, candidates in arms.items():
        scores = [candidate.score for candidate in candidates]
        low, high = min(scores, default=0.0), max(scores, default=0.0)
        for candidate in candidates:
            scaled = (candidate.score - low) / (high - low) if high > low else 1.0
            share = weights[arm] / total * scaled
            combined[candidate.chunk_id] = combined.get(candidate.chunk_id, 0.0) + share
    return combined


def weighted_spread(arms: ArmLists, weights: Weights, depth: int) -> dict[str, float]:
    """Return sums of the arms, each in units of its own spread and weighted, on a curve that stays under 1.

    Raising a score never lowers the rank of its chunk, as it may with standard scores. What an arm did not bring
    counts as its weakest when the arm is full, because it may have scored as much, and else as nothing.
    """
    total = sum(weights[arm] for arm in arms) or 1.0
    combined = {candidate.chunk_id: 0.0 for candidates in arms.values() for candidate in candidates}
    for arm, candidates in arms.items():
        if not candidates:
            continue
        scores = [candidate.score for candidate in candidates]
        scaled = _scale_words(scores, len(combined)) if arm == "lexical" else _scale_cosines(scores)
        base = min(scaled) if len(scaled) >= depth else 0.0
        found = {candidate.chunk_id: value for candidate, value in zip(candidates, scaled, strict=True)}
        for chunk_id in combined:
            combined[chunk_id] += weights[arm] / total * found.get(chunk_id, base)
    return {chunk_id: 1.0 - math.exp(-2.0 * value) for chunk_id, value in combined.items()}


def _scale_words(scores: Sequence[float], among: int) -> list[float]:
    """Return scores of words, which start at nothing, over their root mean square among all candidates.

    The fewer candidates have the words, the more each that has them gets.
    """
    nothing = min(0.0, *scores)
    size = WORD_SPREAD * math.sqrt(sum((score - nothing) ** 2 for score in scores) / among)
    if not size:  # as much as equal scores above 0 would get
        return [math.sqrt(among / len(scores)) / WORD_SPREAD] * len(scores)
    return [(score - nothing) / size for score in scores]


def _scale_cosines(scores: Sequence[float]) -> list[float]:
    """Return cosines as their place between the weakest and the best: only a model knows which cosine is nothing."""
    weakest, best = min(scores), max(scores)
    return [(score - weakest) / (best - weakest) if best > weakest else 1.0 for score in scores]
