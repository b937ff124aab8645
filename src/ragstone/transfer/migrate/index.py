"""MIGRATE to another vector index: it is built from the ledger while the present one serves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial

from ragstone.core.protocols import VectorIndex
from ragstone.core.types import Candidate, KnowledgeBase, Space, Vector
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.spaces import SqlSpaceBook
from ragstone.stores.vectors.derived.index import DerivedIndex
from ragstone.transfer.compare.index import compare_index, compare_searches, scanned
from ragstone.transfer.compare.searches import Agreement, K, Samples, Search, judged
from ragstone.transfer.reports import NONE, OnMove, TenantMove

EXACT = ("sqlite",)
"""Indexes inside a ledger that look at everything."""


async def move_to_provider(ledger: SqlLedger, index: DerivedIndex, tenant: str, tell: OnMove) -> TenantMove:
    """Fill a vector database with all that may be searched, let it catch up, and compare."""
    kbs = await ledger.kbs(tenant)
    written = chunks = removed = 0
    agreement, differences = Agreement(), NONE
    needed = [one async for one in _searchable(ledger, tenant, kbs)]
    for kb, space in needed:
        total = await ledger.read(tenant, index_feed.count_live, kb, space, None)
        told = partial(_told, tell, f"fill {tenant}/{kb.name}", total)
        written += await index.fill(tenant, kb, space, told)
    await index.catch_up(tenant)
    for kb, space in needed:
        compared = await compare_index(ledger, index, tenant, kb, space, tell)
        chunks += compared.chunks
        removed += compared.removed
        agreement += compared.agreement
        differences += compared.differences
    remarks = (f"{removed} points of chunks that are no more were removed",) if removed else ()
    documents = sum([(await ledger.stats(tenant, kb)).documents for kb in kbs])
    return TenantMove(
        *(tenant, len(kbs), documents, chunks, chunks, written, agreement.searches),
        *(agreement.share, differences, remarks),
    )


async def look_at_own_index(ledger: SqlLedger, index: VectorIndex, kind: str, tenant: str, tell: OnMove) -> TenantMove:
    """Nothing has to be moved into the ledger's own index: its vectors are there. So this only searches."""
    kbs = await ledger.kbs(tenant)
    chunks = 0
    agreement, differences = Agreement(), NONE
    for kb, space in [one async for one in _searchable(ledger, tenant, kbs)]:
        samples = Samples()
        async for points in scanned(ledger, tenant, kb, space):
            for point in points:
                samples.offer("", point.vector)
            tell(f"compare {tenant}/{kb.name}", samples.seen, 0)
        chunks += samples.seen
        found = await compare_searches(ledger, tenant, kb, space, samples, _search(index, tenant, kb, space))
        agreement += found
        differences += judged(found, exact=kind in EXACT, what=f"{kind} in '{kb.name}'")
    documents = sum([(await ledger.stats(tenant, kb)).documents for kb in kbs])
    return TenantMove(
        *(tenant, len(kbs), documents, chunks, chunks, 0, agreement.searches, agreement.share, differences)
    )


def _told(tell: OnMove, what: str, total: int, done: int) -> None:
    tell(what, done, total)


def _search(index: VectorIndex, tenant: str, kb: KnowledgeBase, space: Space) -> Search:
    async def search(vector: Vector) -> Sequence[Candidate]:
        return await index.search(tenant, replace(kb, space=space), vector, K)

    return search


async def _searchable(
    ledger: SqlLedger, tenant: str, kbs: Sequence[KnowledgeBase]
) -> AsyncIterator[tuple[KnowledgeBase, Space]]:
    """Spaces that are live or may become it."""
    for kb in kbs:
        for record in await SqlSpaceBook(ledger).of(tenant).all(kb):
            if record.space.state != "retired":
                yield kb, record.space
