"""Compare what a vector database holds with what the ledger says it should, and make the two agree.

All ids are looked at, some at a time; of all of them together only sixteen bytes each are held. Others may write
meanwhile: what is written twice does no harm, and what was deleted in between is looked for again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragstone.core.types import KnowledgeBase, Space
from ragstone.core.vectors import VectorPartition, VectorProvider
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.index_feed import LIVE, PER_STATEMENT
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.sql.database import Connection
from ragstone.stores.vectors.derived.writes import PartitionWriter

BATCH = 500
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


async def compare(
    ledger: SqlLedger,
    provider: VectorProvider,
    tenant: str,
    kb: KnowledgeBase,
    space: Space,
    partition: VectorPartition,
) -> Difference:
    """Return how a partition differs from the ledger; change nothing."""
    return await _reconcile(ledger, provider, tenant, kb, space, partition, repair=False)


async def reconcile(
    ledger: SqlLedger,
    provider: VectorProvider,
    tenant: str,
    kb: KnowledgeBase,
    space: Space,
    partition: VectorPartition,
) -> Difference:
    """Delete the orphans and write what is missing; return the difference there was."""
    return await _reconcile(ledger, provider, tenant, kb, space, partition, repair=True)


async def remove_orphans(
    ledger: SqlLedger,
    provider: VectorProvider,
    tenant: str,
    kb: KnowledgeBase,
    space: Space,
    partition: VectorPartition,
) -> int:
    """Delete points whose chunk is neither live nor staged; return how many there were."""
    writer = PartitionWriter(ledger, provider, tenant, kb.id, space, partition)
    return len((await _sorted_out(writer, repair=True)).orphans)


async def _reconcile(
    ledger: SqlLedger,
    provider: VectorProvider,
    tenant: str,
    kb: KnowledgeBase,
    space: Space,
    partition: VectorPartition,
    *,
    repair: bool,
) -> Difference:
    missing = 0
    writer = PartitionWriter(ledger, provider, tenant, kb.id, space, partition)
    listed = await _sorted_out(writer, repair=repair)
    async for expected in _live_ids(ledger, tenant, kb, space, words=provider.capabilities.sparse):
        absent = await _absent(provider, partition, listed.held, expected)
        missing += len(absent)
        if repair and absent:
            await _write(writer, absent)
    return Difference(len(listed.held) + len(listed.orphans), len(listed.orphans), missing)


class _Listed(NamedTuple):
    held: NDArray[np.bytes_]
    """Ids that the ledger knows, packed and in order."""
    orphans: list[str]


async def _sorted_out(writer: PartitionWriter, *, repair: bool) -> _Listed:
    """List a partition, split by whether the ledger knows an id; delete the orphans if `repair` is set."""
    orphans: list[str] = []
    pages: list[NDArray[np.bytes_]] = []
    async for page in writer.provider.ids(writer.partition):
        for part in _parts(list(page)):
            # The ledger is asked after the provider: whatever is on its way in was there before.
            known = await writer.ledger.read(writer.tenant, index_feed.known_among, writer.kb_id, part)
            orphans += [chunk_id for chunk_id in part if chunk_id not in known]
            pages.append(_pack_ids([chunk_id for chunk_id in part if chunk_id in known]))
    if repair:
        # Not before: an engine that counts its way through a listing would leave some out.
        for part in _parts(orphans):
            await writer.remove(part)
    return _Listed(np.unique(np.concatenate(pages)) if pages else np.empty(0, f"S{ID_BYTES}"), orphans)


async def _absent(
    provider: VectorProvider, partition: VectorPartition, held: NDArray[np.bytes_], expected: Sequence[str]
) -> list[str]:
    """Return the ids that were not listed (`held` is in order) and are not there now either."""
    wanted = _pack_ids(expected)
    at = np.searchsorted(held, wanted)
    there = np.zeros(len(wanted), bool)
    inside = at < len(held)
    there[inside] = held[at[inside]] == wanted[inside]
    unlisted = [chunk_id for chunk_id, is_there in zip(expected, there.tolist(), strict=True) if not is_there]
    if not unlisted:
        return []
    come_since = {point.chunk_id for point in await provider.read(partition, unlisted)}
    return [chunk_id for chunk_id in unlisted if chunk_id not in come_since]


async def _write(writer: PartitionWriter, chunk_ids: Sequence[str]) -> None:
    points = await writer.read(chunk_ids)
    if points:
        await writer.provider.open(writer.partition)
        await writer.write(points)


async def _live_ids(
    ledger: SqlLedger, tenant: str, kb: KnowledgeBase, space: Space, *, words: bool
) -> AsyncIterator[list[str]]:
    after = 0
    while True:
        rows = await ledger.read(tenant, _live_page, kb.id, space.id, after, words)
        if not rows:
            return
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


def _parts(chunk_ids: Sequence[str]) -> list[Sequence[str]]:
    return [chunk_ids[start : start + PER_STATEMENT] for start in range(0, len(chunk_ids), PER_STATEMENT)]
