"""Writes to a vector database that somebody else may have overtaken: the ledger is looked at again after each.

Who erases takes from the ledger first and then from the engine. So whatever was written there is either still in the
ledger afterwards, and will be taken by whoever erases it, or it is taken back at once by the one who wrote it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from ragstone.core.batches import batched
from ragstone.core.errors import NotFoundError
from ragstone.core.types import Space
from ragstone.core.vectors import Point, VectorPartition, VectorProvider
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.sql.database import Connection

BATCH = 512


@dataclass(frozen=True, slots=True)
class PartitionWriter:
    """A partition of a provider, and the Space of the ledger that belongs there."""

    ledger: SqlLedger
    provider: VectorProvider
    tenant: str
    kb_id: int
    space: Space
    partition: VectorPartition

    async def write(self, points: Sequence[Point]) -> bool:
        """Write points except those deleted in between; return False when the whole partition is no longer wanted."""
        for batch in batched(points, BATCH):
            await self.provider.upsert(self.partition, batch)
            written = [point.chunk_id for point in batch]
            known = await self._find_known(written)
            if known is None:
                await self.provider.drop(self.partition)
                return False
            if gone := [chunk_id for chunk_id in written if chunk_id not in known]:
                await self.provider.delete(self.partition, gone)
        return True

    async def remove(self, chunk_ids: Sequence[str]) -> None:
        """Delete points except those that came back: an import gives chunks the ids they had."""
        known = await self._find_known(chunk_ids)
        if known is None:
            return  # whoever gave up the partition empties it
        if gone := [chunk_id for chunk_id in chunk_ids if chunk_id not in known]:
            await self.provider.delete(self.partition, gone)
            if back := await self._find_known(gone):
                await self.write(await self.read(sorted(back)))

    async def read(self, chunk_ids: Sequence[str]) -> list[Point]:
        """Return chunks of the ledger as points of this partition."""
        words = self.provider.capabilities.sparse
        return await self.ledger.read(self.tenant, index_feed.points, self.space, chunk_ids, words=words)

    async def scan(self) -> AsyncIterator[list[Point]]:
        """Yield all live chunks of the Space as points, some at a time."""
        after, words = 0, self.provider.capabilities.sparse
        while True:
            points, after = await self.ledger.read(
                self.tenant, index_feed.scan, self.kb_id, self.space, after, BATCH, words=words
            )
            if not points:
                return
            yield points

    async def _find_known(self, chunk_ids: Sequence[str]) -> set[str] | None:
        try:
            return await self.ledger.read(self.tenant, _find_known, self, chunk_ids)
        except NotFoundError:
            return None  # the tenant is gone or going


def _find_known(
    connection: Connection, tenant_id: str, writer: PartitionWriter, chunk_ids: Sequence[str]
) -> set[str] | None:
    """Return the ids that the ledger has, live or staged; None when it does not know the partition."""
    if tenant_id != writer.partition.tenant_id:
        return None  # another tenant has the name by now
    marks = index_feed.marks(connection, tenant_id, writer.provider.name)
    if writer.space.id not in {mark.space_id for mark in marks}:
        return None
    return index_feed.known_among(connection, tenant_id, writer.kb_id, chunk_ids)
