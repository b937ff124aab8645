"""Searches two Spaces of one kb for the same things."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ragstone.core.errors import InputError, NotFoundError
from ragstone.core.ledger import Ledger
from ragstone.core.remedies import Action, Remedy
from ragstone.core.search import SearchResult
from ragstone.core.types import KnowledgeBase, Space
from ragstone.evaluate.dataset import Dataset
from ragstone.evaluate.golden import known_items
from ragstone.evaluate.spaces import SpaceComparison, compare_spaces, label_of, labels
from ragstone.query.context import SearchRequest
from ragstone.query.pipeline import SearchPipeline

SAMPLE = 200
"""Documents that queries are made of."""
PAGE = 1000


@dataclass(frozen=True, slots=True)
class SpaceRetriever:
    """One Space of a kb, searched by meaning alone: what is by word does not change with the model."""

    search: SearchPipeline
    tenant: str
    kb: KnowledgeBase
    known: frozenset[str]
    """What the judgements call documents by: their id, their dataset's id for them, or their address."""

    async def retrieve(self, query: str, k: int) -> SearchResult:
        """Hits labelled the way the judgements do."""
        request = SearchRequest(query, k, mode="thorough", arms="dense", fusion="zscore", candidates=k)
        found = await self.search.search(self.tenant, self.kb, request)
        hits = [
            replace(hit, metadata={"dataset_id": label_of([hit.document_id, given, hit.uri], self.known)})
            for hit in found.hits
            for given in [str(hit.metadata.get("dataset_id", hit.uri))]
        ]
        return replace(found, hits=tuple(hits))


class SpaceComparer:
    """Compares a Space with the live one."""

    def __init__(self, ledger: Ledger, search: SearchPipeline) -> None:
        self._ledger = ledger
        self._search = search

    async def compare(
        self, tenant: str, kb: KnowledgeBase, space: Space, labelled: Dataset | None
    ) -> SpaceComparison | None:
        """By labelled queries, else by some made of the kb's own text; None when there is nothing to compare."""
        if kb.space is None:
            return None
        dataset = labelled or await self._generate_queries(tenant, kb)
        if dataset is None:
            return None
        known = labels(dataset)
        old = SpaceRetriever(self._search, tenant, kb, known)
        new = SpaceRetriever(self._search, tenant, replace(kb, space=space), known)
        return await compare_spaces(old, new, dataset)

    async def check(self, tenant: str, kb: KnowledgeBase, labelled: Dataset) -> None:
        """Raise `InputError` when no judgement names a document of the kb: both Spaces would find nothing."""
        known, after = labels(labelled), ""
        while page := await self._ledger.of(tenant).documents(kb, after=after, limit=PAGE):
            if any({document.id, document.uri, str(document.metadata.get("dataset_id"))} & known for document in page):
                return
            after = page[-1].id
        raise InputError(
            f"no label of {labelled.name} names a document of knowledge base '{kb.name}', "
            f"the first being {next(iter(sorted(known)))!r:.80}",
            hint="a label is the id or the uri of a document",
            remedy=Remedy(Action.LIST_DOCUMENTS),
        )

    async def _generate_queries(self, tenant: str, kb: KnowledgeBase) -> Dataset | None:
        # Ids are hashes, so the first of them are as good a sample as any.
        sample = []
        for document in await self._ledger.of(tenant).documents(kb, limit=SAMPLE):
            try:
                sample.append((document.id, document.title, await self._ledger.of(tenant).text(document.id)))
            except NotFoundError:
                continue  # deleted meanwhile
        return known_items(sample)
