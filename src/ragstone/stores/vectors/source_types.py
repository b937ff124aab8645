"""A vector database with a collection per source type of each Space.

A search that asks for one source type reads its collection only; any other search asks all and merges. A collection is
made with its first point, and all of them go with their Space. Their names are fixed, so that nothing has to be listed:
documents of any other source type share `other`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace

from ragstone.core.collections import PLURALS
from ragstone.core.filters import And, Equals, Filter, In, Or
from ragstone.core.types import Candidate, Vector
from ragstone.core.vectors import Capabilities, Health, Point, VectorPartition, VectorProvider
from ragstone.stores.vectors.checks import check_dimension

SOURCE_TYPES = ("email", "paper", "rss", "hacker_news", "web", "files", "git", "docs", "upload", "corpus", "database")
OTHER = "other"
COLLECTIONS = (*(PLURALS.get(source_type, source_type) for source_type in SOURCE_TYPES), OTHER)


def collection_of(source_type: object) -> str:
    """Return the collection of documents of a source type."""
    if isinstance(source_type, str) and source_type in SOURCE_TYPES:
        return PLURALS.get(source_type, source_type)
    return OTHER


def collections_for(where: Filter | None) -> frozenset[str]:
    """Return the collections that may hold what a filter lets through; a list of source types is in `other`."""
    match where:
        case Equals("source_type", value):
            return frozenset((collection_of(value), OTHER))
        case In("source_type", values):
            return frozenset((*map(collection_of, values), OTHER))
        case And(terms):
            return frozenset(COLLECTIONS).intersection(*(collections_for(term) for term in terms))
        case Or(terms):
            return frozenset[str]().union(*(collections_for(term) for term in terms))
        case _:
            return frozenset(COLLECTIONS)


class CollectionsBySourceType:
    """Implements `core.vectors.VectorProvider` over another one."""

    def __init__(self, inner: VectorProvider) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    def can_filter(self, where: Filter) -> bool:
        return self.inner.can_filter(where)

    async def open(self, partition: VectorPartition) -> None:
        """Do nothing: a collection is made with its first point."""

    async def upsert(self, partition: VectorPartition, points: Sequence[Point]) -> None:
        grouped: dict[str, list[Point]] = {}
        for point in points:
            grouped.setdefault(collection_of(point.payload.get("source_type")), []).append(point)
        for collection, members in grouped.items():
            own = part_of(partition, collection)
            await self.inner.open(own)
            await self.inner.upsert(own, members)

    async def delete(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> None:
        for own in parts_of(partition):
            await self.inner.delete(own, chunk_ids)

    async def search(
        self, partition: VectorPartition, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        check_dimension(partition, len(vector))
        parts = parts_of(partition, collections_for(where))
        found = await asyncio.gather(*(self.inner.search(own, vector, k, where) for own in parts))
        # A chunk whose document has changed its source type may be in two collections.
        best = {candidate.chunk_id: candidate for candidates in found for candidate in candidates}
        return sorted(best.values(), key=lambda candidate: (-candidate.score, candidate.chunk_id))[:k]

    async def read(self, partition: VectorPartition, chunk_ids: Sequence[str]) -> list[Point]:
        found = [point for own in parts_of(partition) for point in await self.inner.read(own, chunk_ids)]
        return list({point.chunk_id: point for point in found}.values())

    async def ids(self, partition: VectorPartition) -> AsyncIterator[Sequence[str]]:
        for own in parts_of(partition):
            async for page in self.inner.ids(own):
                yield page

    async def count(self, partition: VectorPartition) -> int:
        return sum((await self.counts(partition)).values())

    async def counts(self, partition: VectorPartition) -> Mapping[str, int]:
        """Return the number of points in each collection that has some."""
        held = {name: await self.inner.count(part_of(partition, name)) for name in COLLECTIONS}
        return {name: count for name, count in held.items() if count}

    async def drop(self, partition: VectorPartition) -> None:
        for own in parts_of(partition):
            await self.inner.drop(own)

    async def health(self) -> Health:
        return await self.inner.health()

    async def close(self) -> None:
        await self.inner.close()


def part_of(partition: VectorPartition, collection: str) -> VectorPartition:
    """Return the place of one collection of a Space."""
    return replace(partition, space=f"{partition.space}_{collection}")


def parts_of(partition: VectorPartition, names: frozenset[str] = frozenset(COLLECTIONS)) -> list[VectorPartition]:
    """Return the places of these collections of a Space, in their order."""
    return [part_of(partition, name) for name in COLLECTIONS if name in names]
