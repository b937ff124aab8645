"""Searching by meaning and by word, at the same time.

No arm is cut for the mode's deadline. One that hangs is given up shortly before the hard limit and named in
`degraded`; loading a model or an index is not counted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ragstone.core.errors import ModelError, ModelMismatch, RemoteError, StoreBusy, StoreError
from ragstone.core.ledger import Ledger
from ragstone.core.notes import collect_notes
from ragstone.core.protocols import Embedder, LexicalIndex, VectorIndex
from ragstone.core.types import Candidate, Vector
from ragstone.query.context import RankedChunk, SearchContext, Variants
from ragstone.query.deadline import WarmNames, degrade_on_timeout
from ragstone.query.fusion import Fused

logger = logging.getLogger(__name__)
EmbedderFor = Callable[[str], Awaitable[Embedder]]
"""Gives the embedder of a Space's model, or raises `ModelError`."""


class Arms:
    """Finds candidates. Keeps only which models and indexes are warm."""

    def __init__(
        self, vectors: VectorIndex, lexical: LexicalIndex, embedder_for: EmbedderFor, min_similarity: float
    ) -> None:
        self._vectors = vectors
        self._lexical = lexical
        self._embedder_for = embedder_for
        self._floor = min_similarity
        self._warm = WarmNames()

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
            vectors = await self._embed(search, kb.space.model, texts)
            with record.stage("dense", len(vectors)) as span, collect_notes() as remarks:
                with self._deadline(search, "dense") as seconds:
                    async with asyncio.timeout(seconds):
                        lists = await asyncio.gather(
                            *(self._vectors.search(search.tenant, kb, vector, k, where) for vector in vectors)
                        )
                found = best_of(lists, k)
                if self._floor > 0:
                    found = [candidate for candidate in found if candidate.score >= self._floor]
                span.left = len(found)
            for remark in remarks:
                record.degrade(f"dense: {remark}")
            return found
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

    async def _embed(self, search: SearchContext, model: str, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of the texts, made in one call."""
        with search.record.stage("embed_query", len(texts)) as span:
            started = time.perf_counter()
            embedder = await self._embedder_for(model)
            # Only a model on this machine has to be loaded; one behind an address may just be gone.
            cold = embedder.model.local and embedder.model.id not in self._warm
            async with asyncio.timeout(None if cold else search.record.search_seconds):
                embedded = await embedder.embed(texts, "query")
            if embedded.model != model:
                raise ModelMismatch(f"{embedded.model} answered instead of {model}")
            if cold:
                self._warm.add(embedder.model.id)
                search.record.excuse((time.perf_counter() - started) * 1000)
            vectors = [row for n, row in enumerate(embedded.vectors) if n not in embedded.failed]
            if not vectors:
                raise ModelError(f"{model} could make nothing of the query")
            span.left = len(vectors)
        return vectors

    async def _by_word(self, search: SearchContext, texts: Sequence[str], k: int) -> list[Candidate] | None:
        record, kb, where = search.record, search.kb, search.request.where
        try:
            with record.stage("lexical", len(texts)) as span, collect_notes() as remarks:
                with self._deadline(search, "lexical") as seconds:
                    async with asyncio.timeout(seconds):
                        lists = await asyncio.gather(
                            *(self._lexical.search(search.tenant, kb, text, k, where) for text in texts)
                        )
                found = best_of(lists, k)
                span.left = len(found)
            for remark in remarks:
                record.degrade(f"lexical: {remark}")
            return found
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
    async with degrade_on_timeout(search.record, "read_back", search.record.read_seconds):
        while len(found) < wanted and start < len(fused):
            part = fused[start : start + wanted - len(found)]
            live = await ledger.chunks(search.tenant, search.kb, [item.chunk_id for item in part])
            found += [RankedChunk(item, live[item.chunk_id]) for item in part if item.chunk_id in live]
            start += len(part)
    return found
