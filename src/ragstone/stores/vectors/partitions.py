"""Partitions of a provider: the places of the vectors of Spaces."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ragstone.core.batches import batched
from ragstone.core.types import Space
from ragstone.core.vectors import VectorPartition, VectorProvider
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.index_feed import Mark
from ragstone.stores.sql.database import Connection


def partition_of(tenant_id: str, space: Space) -> VectorPartition:
    """Return the partition of a Space."""
    return _partition(tenant_id, space.id, space.dimension)


def partition_of_mark(tenant_id: str, mark: Mark) -> VectorPartition:
    """Return the partition of a Space that may be deleted itself."""
    return _partition(tenant_id, mark.space_id, mark.dimension)


def _partition(tenant_id: str, space_id: int, dimension: int) -> VectorPartition:
    return VectorPartition(tenant_id, f"s{space_id}", dimension)


BATCH = 500
READ_AT_MOST = 2_000
"""Points that are looked up one by one; above that, listing all ids costs less than reading so many vectors."""


def list_partitions(
    connection: Connection, tenant_id: str, index: str, space_ids: Sequence[int]
) -> list[VectorPartition]:
    """Return the partitions in which an index holds something of the named Spaces, or of all when none is named."""
    return [
        partition_of_mark(tenant_id, mark)
        for mark in index_feed.marks(connection, tenant_id, index)
        if not space_ids or mark.space_id in space_ids
    ]


async def count_points(provider: VectorProvider, partition: VectorPartition, chunk_ids: Collection[str] | None) -> int:
    """Count these points in a partition; all points when no ids are given."""
    if chunk_ids is None:
        return await provider.count(partition)
    if len(chunk_ids) <= READ_AT_MOST:
        return sum([len(await provider.read(partition, part)) for part in batched(list(chunk_ids), BATCH)])
    wanted = frozenset(chunk_ids)
    found: set[str] = set()
    async for page in provider.ids(partition):
        found.update(wanted.intersection(page))
    return len(found)
