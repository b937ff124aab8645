"""Compares a vector database with the ledger, and searches in it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragstone.core.batches import batched
from ragstone.core.types import Candidate, Json, KnowledgeBase, Matrix, Space, Vector
from ragstone.core.vectors import Point, VectorPartition, VectorProvider
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.vectors.derived.index import DerivedIndex
from ragstone.stores.vectors.derived.reconcile import BATCH, PartitionWriter, remove_orphans
from ragstone.stores.vectors.partitions import partition_of
from ragstone.transfer.compare.searches import K, Samples, Search, SearchAgreement, agree, judge
from ragstone.transfer.reports import NONE, Differences, OnMove

ALIKE = 0.999
"""The cosine of a vector and what an engine made of it."""
OWN = ("tenant_id", "space", "chunk_id")
"""Payload names that a provider writes itself."""
ATTEMPTS = 3


@dataclass(slots=True)
class IndexCompared:
    """The points of a Space that were compared, and the differences."""

    chunks: int = 0
    removed: int = 0
    """Points of deleted chunks that were still there."""
    agreement: SearchAgreement = SearchAgreement()  # noqa: RUF009
    differences: Differences = NONE


async def compare_index(
    ledger: SqlLedger, index: DerivedIndex, tenant: str, kb: KnowledgeBase, space: Space, tell: OnMove
) -> IndexCompared:
    """Compare every point of a Space with its chunk, then search for some of them."""
    provider = index.provider
    tenant_id = await ledger.read(tenant, lambda _, tenant_id: tenant_id)
    partition = partition_of(tenant_id, space)
    total = await ledger.read(tenant, index_feed.count_live, kb, space, None)
    done, samples = IndexCompared(), Samples()
    suspects: list[str] = []
    async for points in scan_points(ledger, tenant, kb, space):
        suspects += await _list_differing(provider, partition, points)
        for point in points:
            samples.offer("", point.vector)
        done.chunks += len(points)
        tell(f"compare {tenant}/{kb.name}", done.chunks, total)
    done.removed = await remove_orphans(PartitionWriter(ledger, provider, tenant, kb.id, space, partition))
    done.differences = await _compare_again(ledger, index, tenant, partition, space, suspects)
    done.agreement = await _compare_searches(ledger, provider, tenant, kb, space, partition, samples)
    exact = provider.capabilities.exact
    done.differences += judge(done.agreement, exact=exact, what=f"{provider.name} in '{kb.name}'")
    return done


async def scan_points(ledger: SqlLedger, tenant: str, kb: KnowledgeBase, space: Space) -> AsyncIterator[list[Point]]:
    """Yield all live chunks of a Space as points, some at a time."""
    after = 0
    while True:
        points, after = await ledger.read(tenant, index_feed.scan, kb.id, space, after, BATCH)
        if not points:
            return
        yield points


async def exact_answers(
    ledger: SqlLedger, tenant: str, kb: KnowledgeBase, space: Space, vectors: Sequence[Vector]
) -> list[list[Candidate]]:
    """Return the nearest chunks of each vector by one scan of all of them."""
    best: list[list[Candidate]] = [[] for _ in vectors]
    if not vectors:
        return best
    queries: Matrix = np.stack(vectors)
    async for points in scan_points(ledger, tenant, kb, space):
        scores = np.stack([point.vector for point in points]) @ queries.T
        for at, column in enumerate(scores.T.tolist()):
            here = [Candidate(point.chunk_id, score) for point, score in zip(points, column, strict=True)]
            best[at] = sorted(best[at] + here, key=lambda candidate: (-candidate.score, candidate.chunk_id))[:K]
    return best


async def compare_searches(
    ledger: SqlLedger, tenant: str, kb: KnowledgeBase, space: Space, samples: Samples, search: Search
) -> SearchAgreement:
    """Ask an index for the neighbours of sampled vectors, and the ledger's own vectors too."""
    vectors = [vector for _, vector in samples.chosen]
    answers = await exact_answers(ledger, tenant, kb, space, vectors)
    agreement = SearchAgreement()
    for vector, answer in zip(vectors, answers, strict=True):
        agreement += agree(answer, await search(vector))
    return agreement


async def _compare_searches(
    ledger: SqlLedger,
    provider: VectorProvider,
    tenant: str,
    kb: KnowledgeBase,
    space: Space,
    partition: VectorPartition,
    samples: Samples,
) -> SearchAgreement:
    """Search, and repeat when something was written during the search."""

    async def search(vector: Vector) -> Sequence[Candidate]:
        return await provider.search(partition, vector, K)

    for _ in range(ATTEMPTS):
        sequence = await ledger.of(tenant).sequence()
        agreement = await compare_searches(ledger, tenant, kb, space, samples, search)
        if sequence == await ledger.of(tenant).sequence():
            break
    return agreement


async def _list_differing(provider: VectorProvider, partition: VectorPartition, points: Sequence[Point]) -> list[str]:
    there = {point.chunk_id: point for point in await provider.read(partition, [point.chunk_id for point in points])}
    return [point.chunk_id for point in points if _difference(point, there.get(point.chunk_id))]


async def _compare_again(
    ledger: SqlLedger,
    index: DerivedIndex,
    tenant: str,
    partition: VectorPartition,
    space: Space,
    suspects: Sequence[str],
) -> Differences:
    """Compare again what differed, once the index has caught up: only these differences count."""
    if not suspects:
        return NONE
    await index.catch_up(tenant)
    found = NONE
    for part in batched(suspects, BATCH):
        points = await ledger.read(tenant, index_feed.points, space, part)
        there = {point.chunk_id: point for point in await index.provider.read(partition, part)}
        said = [(point.chunk_id, _difference(point, there.get(point.chunk_id))) for point in points]
        found += Differences.of(*(f"chunk {chunk_id} {what}" for chunk_id, what in said if what))
    return found


def _difference(ours: Point, theirs: Point | None) -> str:
    """Return the difference of a point in words; empty when there is none."""
    if theirs is None:
        return "is missing"
    length = float(np.linalg.norm(ours.vector)) * float(np.linalg.norm(theirs.vector))
    if length and float(ours.vector @ theirs.vector) / length < ALIKE:
        return "has another vector"
    mine, their = _comparable(ours.payload), _comparable(theirs.payload)
    names = sorted(name for name in mine.keys() | their.keys() if mine.get(name) != their.get(name))
    return f"differs in {', '.join(names)}" if names else ""


def _comparable(payload: Mapping[str, Json]) -> dict[str, str]:
    # As JSON, which tells 1, 1.0 and true apart; a field without a value is as good as none.
    return {
        name: json.dumps(value, sort_keys=True)
        for name, value in payload.items()
        if name not in OWN and value is not None
    }
