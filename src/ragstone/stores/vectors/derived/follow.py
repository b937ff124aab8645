"""Fill the partitions of a vector database from the ledger once, then keep them in step by its change feed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ragstone.core.batches import batched
from ragstone.core.types import KnowledgeBase, Space
from ragstone.core.vectors import Point, VectorPartition, VectorProvider, WordProvider
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.documents import read_kbs, read_sequence
from ragstone.stores.ledger.index_feed import Changes, Mark
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.sql.database import Connection
from ragstone.stores.vectors.derived.reconcile import BATCH, PartitionWriter, reconcile
from ragstone.stores.vectors.partitions import partition_of
from ragstone.stores.vectors.source_types import CollectionsBySourceType

ONE_COLLECTION, BY_SOURCE_TYPE, MIXED = 1, 2, 3
"""Layouts of a Space: one collection, one per source type, or something of both while it changes.

Their points name the origin of their document as `source`, and its connector beside it.
"""
FAR_BEHIND = 1_000
"""A mark this far behind moves on even if nothing of its Space changed: searches read the feed from there, and it is
not kept for ever."""


class FollowPlan(NamedTuple):
    """Spaces of a tenant that an index holds, and those that it has to be filled with."""

    tenant_id: str
    marks: list[Mark]
    unheld: list[tuple[KnowledgeBase, Space]]


class _Step(NamedTuple):
    kb: KnowledgeBase
    space: Space
    changes: Changes | None


class PartitionFollower:
    """Writes to a provider what the ledger says, one Space at a time."""

    def __init__(self, ledger: SqlLedger, provider: VectorProvider) -> None:
        self._ledger = ledger
        self._provider = provider
        self._words = provider.capabilities.sparse
        self._layout = BY_SOURCE_TYPE if isinstance(provider, CollectionsBySourceType) else ONE_COLLECTION
        self._prepared: dict[str, set[tuple[int, str]]] = {}
        """Chunks, by tenant and Space, that were written before they went live and need not be written again."""

    async def due(self, tenant: str) -> FollowPlan:
        """Return what there is to follow."""
        return await self._ledger.read(tenant, _due, self._provider.name)

    async def prepare(self, tenant: str, kb: KnowledgeBase, space: Space, staged: Sequence[tuple[str, int]]) -> None:
        """Write staged versions, and remember those that cannot have been removed since."""
        partition = await self._open(tenant, space)
        points, doubtful = await self._ledger.read(
            tenant, _read_staged, self._provider.name, kb.id, space, staged, words=self._words
        )
        if await PartitionWriter(self._ledger, self._provider, tenant, kb.id, space, partition).write(points):
            prepared = self._prepared.setdefault(partition.tenant_id, set())
            prepared.difference_update((space.id, chunk_id) for chunk_id in doubtful)
            sure = (point.chunk_id for point in points if point.chunk_id not in doubtful)
            prepared.update((space.id, chunk_id) for chunk_id in sure)

    def forget_prepared(self, tenant_id: str) -> None:
        """Write every later change, also of points that were written in advance."""
        self._prepared.pop(tenant_id, None)

    async def fill(
        self, tenant: str, kb: KnowledgeBase, space: Space, on_progress: Callable[[int], None] | None = None
    ) -> int:
        """Write every live chunk of a Space; return how many there were."""
        sequence = await self._ledger.read(tenant, read_sequence)
        partition = await self._open(tenant, space)
        if self._words:
            await self._ledger.write(tenant, index_feed.renew_word_length, kb.id, space.id, self._provider.name)
        writer = PartitionWriter(self._ledger, self._provider, tenant, kb.id, space, partition)
        written = 0
        async for points in writer.scan():
            if not await writer.write(points):
                return written
            written += len(points)
            if on_progress:
                on_progress(written)
        # Later changes stand behind this place in the feed, and are applied by the next catch-up.
        await self.advance(tenant, partition.tenant_id, {space.id: sequence})
        await self._set_layout(tenant, partition, space.id, self._layout)
        return written

    async def follow(self, tenant: str, partition: VectorPartition, mark: Mark, *, first: bool) -> int | None:
        """Apply what changed since the mark; where it may move to, when it should.

        With `first` it checks that all points are there: a folder may have been removed, an engine may have
        lost what it had acknowledged.
        """
        if mark.kb_id is None:
            await self.drop(tenant, partition, mark)
            return None
        step = await self._ledger.read(tenant, _step, mark.kb_id, mark)
        if step is None:
            return None
        kb, space, changes = step
        if first and isinstance(self._provider, WordProvider) and await self._provider.misfit(partition):
            await self._provider.open(partition)  # says what is wrong, and what to do
        writer = PartitionWriter(self._ledger, self._provider, tenant, kb.id, space, partition)
        if self._is_elsewhere(mark):
            # The ledger answers until all is in the other collections; after a crash this begins again.
            await self._set_layout(tenant, partition, space.id, MIXED)
            await self._drop_layouts(partition, MIXED)
            await self.fill(tenant, kb, space)
            return None
        if changes is None or (first and await self._has_lost(tenant, partition, kb, space, changes.arrived)):
            await self.fill(tenant, kb, space)
            # Deletions in between cannot be read from the feed: they are whatever the ledger does not know.
            await reconcile(writer)
            return None
        await self._apply(writer, changes)
        if self._words and changes.arrived and await self._weighs_wrong(tenant, kb, space):
            await self.fill(tenant, kb, space)
            return None
        is_far = changes.sequence - mark.sequence > FAR_BEHIND
        return changes.sequence if changes.arrived or changes.gone or is_far else None

    async def drop(self, tenant: str, partition: VectorPartition, mark: Mark) -> None:
        """Remove a partition; what a crash leaves of it is still marked, and goes the next time."""
        await self._drop_layouts(partition, mark.layout)
        await self._ledger.write(tenant, index_feed.unmark, self._provider.name, mark.space_id)
        if self._words:
            await self._ledger.write(tenant, index_feed.forget_word_length, mark.space_id)

    def _is_elsewhere(self, mark: Mark) -> bool:
        """Return whether points of a Space are in collections of another layout than the settings ask for."""
        return mark.layout == MIXED or (mark.layout == BY_SOURCE_TYPE) != (self._layout == BY_SOURCE_TYPE)

    async def _drop_layouts(self, partition: VectorPartition, layout: int) -> None:
        """Remove a partition, in the layout of the settings and in the one that it was written in."""
        await self._provider.drop(partition)
        if isinstance(self._provider, CollectionsBySourceType):
            if layout != BY_SOURCE_TYPE:
                await self._provider.inner.drop(partition)
        elif layout in (BY_SOURCE_TYPE, MIXED):
            await CollectionsBySourceType(self._provider).drop(partition)

    async def _set_layout(self, tenant: str, partition: VectorPartition, space_id: int, layout: int) -> None:
        whose = (partition.tenant_id, self._provider.name, space_id)
        await self._ledger.write(tenant, index_feed.set_layout, *whose, layout)

    async def advance(self, tenant: str, tenant_id: str, reached: dict[int, int]) -> None:
        """Remember how far each Space has been followed."""
        if reached:
            await self._ledger.write(tenant, index_feed.advance, tenant_id, self._provider.name, reached)

    async def _apply(self, writer: PartitionWriter, changes: Changes) -> None:
        if changes.gone:
            await writer.remove(changes.gone)
        prepared = self._prepared.get(writer.partition.tenant_id, set())
        missed = [
            chunk_id
            for chunk_id in changes.arrived
            if chunk_id in changes.again or (writer.space.id, chunk_id) not in prepared
        ]
        for part in batched(missed, BATCH):
            await self._provider.open(writer.partition)
            if not await writer.write(await writer.read(part)):
                return

    async def _weighs_wrong(self, tenant: str, kb: KnowledgeBase, space: Space) -> bool:
        """Return whether the kb has grown so much that the words of all points have to be weighted again."""
        return await self._ledger.read(tenant, index_feed.has_grown, space.id) and await self._ledger.write(
            tenant, index_feed.renew_word_length, kb.id, space.id, self._provider.name, index_feed.FAR_OFF
        )

    async def _open(self, tenant: str, space: Space) -> VectorPartition:
        """Record the partition, then create it, so that it can be found and removed whatever happens next."""
        tenant_id, marks = await self._ledger.read(tenant, _list_marked, self._provider.name)
        if space.id not in marks:
            await self._ledger.write(tenant, index_feed.mark, self._provider.name, space, self._layout)
        partition = partition_of(tenant_id, space)
        await self._provider.open(partition)
        return partition

    async def _has_lost(
        self, tenant: str, partition: VectorPartition, kb: KnowledgeBase, space: Space, arriving: Sequence[str]
    ) -> bool:
        if self._words:
            expected = await self._ledger.read(tenant, index_feed.count_words, kb)
        else:
            expected = await self._ledger.read(tenant, index_feed.count_live, kb, space, None)
        return await self._provider.count(partition) < expected - len(arriving)


def _due(connection: Connection, tenant_id: str, index: str) -> FollowPlan:
    kbs = {kb.id: kb for kb in read_kbs(connection, tenant_id)}
    marks = index_feed.marks(connection, tenant_id, index)
    held = {mark.space_id for mark in marks}
    rows = connection.execute(
        "SELECT kb_id, id, model, dimension, generation, state FROM spaces "
        "WHERE tenant_id = ? AND state <> 'retired' ORDER BY id",
        (tenant_id,),
    )
    needed = [(kbs[row[0]], Space(*row[1:])) for row in rows if row[0] in kbs]
    return FollowPlan(tenant_id, marks, [pair for pair in needed if pair[1].id not in held])


def _step(connection: Connection, tenant_id: str, kb_id: int, mark: Mark) -> _Step | None:
    """Return a Space with its kb and what changed there; None when one of them has just been deleted."""
    kb = next((kb for kb in read_kbs(connection, tenant_id) if kb.id == kb_id), None)
    row = connection.execute(
        "SELECT id, model, dimension, generation, state FROM spaces WHERE tenant_id = ? AND id = ?",
        (tenant_id, mark.space_id),
    ).fetchone()
    if kb is None or row is None:
        return None
    return _Step(kb, Space(*row), index_feed.changes(connection, tenant_id, kb_id, mark.sequence))


def _list_marked(connection: Connection, tenant_id: str, index: str) -> tuple[str, set[int]]:
    return tenant_id, {mark.space_id for mark in index_feed.marks(connection, tenant_id, index)}


def _read_staged(
    connection: Connection,
    tenant_id: str,
    index: str,
    kb_id: int,
    space: Space,
    versions: Sequence[tuple[str, int]],
    *,
    words: bool,
) -> tuple[list[Point], set[str]]:
    """Return the points of staged versions, and the ids among them that a follower of the feed has yet to remove."""
    points = index_feed.staged_points(connection, tenant_id, space, versions, words=words)
    marks = {mark.space_id: mark.sequence for mark in index_feed.marks(connection, tenant_id, index)}
    changes = index_feed.changes(connection, tenant_id, kb_id, marks.get(space.id, 0))
    return points, set(changes.gone) if changes else {point.chunk_id for point in points}
