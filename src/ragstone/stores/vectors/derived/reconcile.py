"""Write to a partition of a vector database, compare it with the ledger, and make the two agree.

Others may write at the same time, so the ledger is looked at again after each write. Erasing removes from the ledger
first and then from the engine: what was written to the engine is either still in the ledger, and is removed with
it, or is removed at once by its writer. All ids are compared, some at a time; of all of them together
only sixteen bytes each are held.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragstone.core.batches import batched
from ragstone.core.errors import NotFoundError
from ragstone.core.types import Space
from ragstone.core.vectors import Point, VectorPartition, VectorProvider
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.index_feed import LIVE
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.sql.database import PER_STATEMENT, Connection

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
            return  # the partition was given up, and is emptied by that
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


ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Difference:
    """The points that one partition of a provider has too many, and those it lacks."""

    held: int
    """Points that are there."""
    orphans: int
    """Points whose chunk is neither live nor staged."""
    missing: int
    """Live chunks with a vector that are not there."""


async def reconcile(writer: PartitionWriter, *, repair: bool = True) -> Difference:
    """Return how a partition differs from the ledger; with `repair` delete the orphans and write what is missing."""
    missing = 0
    listed = await _list_points(writer, repair=repair)
    async for expected in _live_ids(writer):
        absent = await _list_absent(writer, listed.held, expected)
        missing += len(absent)
        if repair and absent:
            await _write(writer, absent)
    return Difference(len(listed.held) + len(listed.orphans), len(listed.orphans), missing)


async def remove_orphans(writer: PartitionWriter) -> int:
    """Delete points whose chunk is neither live nor staged; return how many there were."""
    return len((await _list_points(writer, repair=True)).orphans)


class _Listed(NamedTuple):
    held: NDArray[np.bytes_]
    """Ids that the ledger knows, packed and in order."""
    orphans: list[str]


async def _list_points(writer: PartitionWriter, *, repair: bool) -> _Listed:
    """List a partition, split by whether the ledger knows an id; delete the orphans if `repair` is set."""
    orphans: list[str] = []
    pages: list[NDArray[np.bytes_]] = []
    async for page in writer.provider.ids(writer.partition):
        for part in batched(list(page), PER_STATEMENT):
            # The ledger is asked after the provider: whatever is on its way in was there before.
            known = await writer.ledger.read(writer.tenant, index_feed.known_among, writer.kb_id, part)
            orphans += [chunk_id for chunk_id in part if chunk_id not in known]
            pages.append(_pack_ids([chunk_id for chunk_id in part if chunk_id in known]))
    if repair:
        # Not before: an engine that counts its way through a listing would leave some out.
        for part in batched(orphans, PER_STATEMENT):
            await writer.remove(part)
    return _Listed(np.unique(np.concatenate(pages)) if pages else np.empty(0, f"S{ID_BYTES}"), orphans)


async def _list_absent(writer: PartitionWriter, held: NDArray[np.bytes_], expected: Sequence[str]) -> list[str]:
    """Return the ids that were not listed (`held` is in order) and are not there now either."""
    wanted = _pack_ids(expected)
    at = np.searchsorted(held, wanted)
    there = np.zeros(len(wanted), bool)
    inside = at < len(held)
    there[inside] = held[at[inside]] == wanted[inside]
    unlisted = [chunk_id for chunk_id, is_there in zip(expected, there.tolist(), strict=True) if not is_there]
    if not unlisted:
        return []
    come_since = {point.chunk_id for point in await writer.provider.read(writer.partition, unlisted)}
    return [chunk_id for chunk_id in unlisted if chunk_id not in come_since]


async def _write(writer: PartitionWriter, chunk_ids: Sequence[str]) -> None:
    points = await writer.read(chunk_ids)
    if points:
        await writer.provider.open(writer.partition)
        await writer.write(points)


async def _live_ids(writer: PartitionWriter) -> AsyncIterator[list[str]]:
    after, words = 0, writer.provider.capabilities.sparse
    while rows := await writer.ledger.read(writer.tenant, _live_page, writer.kb_id, writer.space.id, after, words):
        yield [chunk_id for _, chunk_id in rows]
        after = rows[-1][0]


def _live_page(
    connection: Connection, tenant_id: str, kb_id: int, space_id: int, after: int, words: bool
) -> list[tuple[int, str]]:
    """Return live chunks that have a vector, or all of them for an index with words, in the order they came in."""
    join = "LEFT JOIN" if words else "JOIN"
    rows = connection.execute(
        f"SELECT c.seq, c.id FROM chunks c {LIVE} "
        f"{join} vectors v ON v.tenant_id = c.tenant_id AND v.space_id = ? AND v.chunk_seq = c.seq "
        "WHERE c.tenant_id = ? AND c.kb_id = ? AND c.seq > ? ORDER BY c.seq LIMIT ?",
        (space_id, tenant_id, kb_id, after, BATCH),
    )
    return [(number, chunk_id) for number, chunk_id in rows]


def _pack_ids(chunk_ids: Sequence[str]) -> NDArray[np.bytes_]:
    # All have the same length, so that zeros at the end, which numpy takes for padding, cannot make two alike.
    return np.array([bytes.fromhex(chunk_id) for chunk_id in chunk_ids], f"S{ID_BYTES}")
