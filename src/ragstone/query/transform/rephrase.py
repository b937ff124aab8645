"""What is searched for in place of the query: the transforms that the settings or the request name."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.core.ledger import Ledger
from ragstone.core.protocols import LexicalIndex
from ragstone.query.context import SearchContext
from ragstone.query.transform.proposals import Variants, unchanged
from ragstone.query.transform.transformer import LLM_TRANSFORMS, Transformer
from ragstone.settings.retrieval import Transform

FIRST_PASSAGES = 10
"""Passages that transforms may read of the kb's own text."""
KEPT_FOR_SEARCH_MS = 300.0
"""What an LLM must leave of the time for the search that follows it."""


class RephraseStage:
    """Applies transforms. An LLM is asked in thorough mode, or when the request itself names the strategy."""

    def __init__(self, transformer: Transformer, ledger: Ledger, lexical: LexicalIndex) -> None:
        self._transformer = transformer
        self._ledger = ledger
        self._lexical = lexical

    async def run(self, search: SearchContext) -> Variants:
        """Return the texts to search for; the query itself if no transform applies."""
        request, record = search.request, search.record
        names = self._names(search)
        if not names:
            return unchanged(request.query)
        if request.strategy:
            seconds = record.search_seconds - KEPT_FOR_SEARCH_MS / 1000
        else:
            kept = KEPT_FOR_SEARCH_MS if LLM_TRANSFORMS.intersection(names) else 0.0
            seconds = (record.left_ms - kept) / 1000
        if seconds <= 0:
            record.skip("transform", 1, "out of time")
            return unchanged(request.query)

        async def passages(query: str) -> Sequence[str]:
            return await self._first_passages(search, query)

        with record.stage("transform", 1) as span:
            variants = await self._transformer.apply(
                request.query, seconds=seconds, passages=passages, names=names
            )
            span.left = len(set(variants.dense + variants.lexical))
        for note in variants.notes:
            record.degrade(note)
        return variants

    def _names(self, search: SearchContext) -> tuple[Transform, ...]:
        strategy = search.request.strategy
        if strategy:
            return (strategy,)
        names = self._transformer.names
        if search.request.mode == "thorough":
            return names
        for name in LLM_TRANSFORMS.intersection(names):
            search.record.skip("transform", 1, f"{name}: an LLM is asked in thorough mode only")
        return tuple(name for name in names if name not in LLM_TRANSFORMS)

    async def _first_passages(self, search: SearchContext, query: str) -> Sequence[str]:
        found = await self._lexical.search(
            search.tenant, search.kb, query, FIRST_PASSAGES, search.request.where
        )
        live = await self._ledger.chunks(
            search.tenant, search.kb, [candidate.chunk_id for candidate in found]
        )
        return [live[chunk_id].chunk.contextual for chunk_id, _ in found if chunk_id in live]
