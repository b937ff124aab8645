"""A vector database outside the ledger, as an index that answers like one inside it.

What is to go live is written there first, so a live chunk can always be found there. What is live no more may
linger: every hit is looked up in the ledger, and what drops out is made up for by asking further. A filter that the
engine cannot apply with exactly our meaning, and a gap in its answer, are settled by the ledger's own vectors.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from ragstone.core.errors import ModelMismatch
from ragstone.core.filters import And, Filter, Not, Or
from ragstone.core.types import Candidate, KnowledgeBase, Space, Vector
from ragstone.core.vectors import RESERVED, Place, VectorProvider
from ragstone.stores.database import Connection
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.index_feed import Mark
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.reads import read_kbs, read_sequence
from ragstone.stores.vectors.reconcile import reconcile

logger = logging.getLogger(__name__)
BATCH = 512
SPARE = 10
"""How many more than wanted are asked for at first, for those that drop out."""
SAME = 1e-6
NOT_HELD = frozenset((*RESERVED, "created_at", "updated_at"))
"""Fields that a provider does not hold, or holds as Ragstone's own."""


class DerivedIndex:
    """Implements `core.protocols.VectorIndex` and `Mirror` over a `VectorProvider`."""

    def __init__(self, ledger: SqlLedger, provider: VectorProvider) -> None:
        self._ledger = ledger
        self._provider = provider
        self._settled: set[str] = set()
        self._prepared: set[tuple[int, str]] = set()
        """Chunks, by Space, that this process wrote there before they went live, and need not write again."""
        self._settling = asyncio.Lock()

    @property
    def provider(self) -> VectorProvider:
        """The engine behind it."""
        return self._provider

    async def search(
        self, tenant: str, kb: KnowledgeBase, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        space = kb.space
        if space is None:
            return []
        if len(vector) != space.dimension:
            raise ModelMismatch(
                f"a query vector of {len(vector)} dimensions cannot search '{kb.name}', "
                f"which was built with {space.model} ({space.dimension})",
                hint=f"set embedding.model to {space.model.split('@')[0]}",
            )
        tenant_id = await self._ledger.read(tenant, _tenant_id)
        if tenant_id not in self._settled:
            await self.settle(tenant)
        if where is not None and not self._can_filter(where):
            return await self._ledger.read(tenant, index_feed.nearest, kb, space, vector, k, where)
        return await self._ask(tenant, place_of(tenant_id, space), kb, space, vector, k, where)

    async def prepare(self, tenant: str, kb: KnowledgeBase, staged: Sequence[tuple[str, int]]) -> None:
        if kb.space is None:
            return
        tenant_id = await self._ledger.read(tenant, _tenant_id)
        place = await self._open(tenant, tenant_id, kb.space)
        points = await self._ledger.read(tenant, index_feed.staged_points, kb.space, staged)
        for start in range(0, len(points), BATCH):
            await self._provider.upsert(place, points[start : start + BATCH])
        self._prepared.update((kb.space.id, point.chunk_id) for point in points)

    async def settle(self, tenant: str) -> None:
        async with self._settling:
            tenant_id, marks, needed = await self._ledger.read(tenant, _held, self._provider.name)
            held = {mark.space_id for mark in marks}
            for kb, space in needed:
                if space.id not in held:
                    await self.fill(tenant, kb, space)
            for mark in marks:
                await self._follow(tenant, tenant_id, mark, anew=tenant_id not in self._settled)
            self._settled.add(tenant_id)

    async def erase(self, tenant: str) -> None:
        """Remove everything of a tenant; what a crash leaves is still marked, and goes the next time."""
        tenant_id, marks, _ = await self._ledger.read(tenant, _held, self._provider.name)
        for mark in marks:
            await self._provider.drop(Place(tenant_id, f"s{mark.space_id}", mark.dimension))
            await self._ledger.write(tenant, index_feed.unmark, self._provider.name, mark.space_id)

    async def fill(
        self, tenant: str, kb: KnowledgeBase, space: Space, on_progress: Callable[[int], None] | None = None
    ) -> int:
        """Write every live chunk of a Space; how many there were."""
        tenant_id = await self._ledger.read(tenant, _tenant_id)
        sequence = await self._ledger.read(tenant, read_sequence)
        place = await self._open(tenant, tenant_id, space)
        after, written = 0, 0
        while True:
            points, after = await self._ledger.read(tenant, index_feed.scan, kb.id, space, after, BATCH)
            if not points:
                break
            await self._provider.upsert(place, points)
            written += len(points)
            if on_progress:
                on_progress(written)
        # What changed meanwhile is behind this place in the feed and is applied by the next `settle`.
        await self._ledger.write(tenant, index_feed.mark, self._provider.name, space, sequence)
        return written

    async def close(self) -> None:
        await self._provider.close()

    async def _ask(
        self,
        tenant: str,
        place: Place,
        kb: KnowledgeBase,
        space: Space,
        vector: Vector,
        k: int,
        where: Filter | None,
    ) -> list[Candidate]:
        most = self._provider.capabilities.max_k
        asked = min(k + SPARE, most)
        while True:
            found = await self._provider.search(place, vector, asked, where)
            live = await self._ledger.read(
                tenant, index_feed.live_among, kb, [one.chunk_id for one in found], where
            )
            kept = sorted(
                (one for one in found if one.chunk_id in live), key=lambda one: (-one.score, one.chunk_id)
            )
            if len(found) < asked or asked >= most or _is_enough(found, kept, k):
                break
            asked = min(4 * asked, most)
        if len(kept) < k and len(kept) < await self._ledger.read(
            tenant, index_feed.count_live, kb, space, where
        ):
            logger.info("%s missed chunks that exist; the ledger answers instead", self._provider.name)
            return await self._ledger.read(tenant, index_feed.nearest, kb, space, vector, k, where)
        return kept[:k]

    def _can_filter(self, where: Filter) -> bool:
        return not NOT_HELD.intersection(fields_of(where)) and self._provider.can_filter(where)

    async def _open(self, tenant: str, tenant_id: str, space: Space) -> Place:
        """Make the place, after writing down that there is one: whatever happens next, it can be found and removed."""
        place = place_of(tenant_id, space)
        marks = await self._ledger.read(tenant, index_feed.marks, self._provider.name)
        if space.id not in {mark.space_id for mark in marks}:
            # From the beginning: should filling it fail half-way, whoever follows next starts over.
            await self._ledger.write(tenant, index_feed.mark, self._provider.name, space, 0)
        await self._provider.open(place)
        return place

    async def _follow(self, tenant: str, tenant_id: str, mark: Mark, *, anew: bool) -> None:
        """Apply what changed since, but for what this process itself prepared.

        Whoever comes `anew` looks whether all of it is there: a folder may have been removed, an engine may have
        lost what it had acknowledged.
        """
        place = Place(tenant_id, f"s{mark.space_id}", mark.dimension)
        if mark.kb_id is None:
            await self._provider.drop(place)
            await self._ledger.write(tenant, index_feed.unmark, self._provider.name, mark.space_id)
            return
        kb, space = await self._ledger.read(tenant, _kb_and_space, mark.kb_id, mark.space_id)
        if kb is None or space is None:
            return
        changes = await self._ledger.read(tenant, index_feed.changes, mark.kb_id, mark.sequence)
        if changes is None or (anew and await self._has_lost(tenant, place, kb, space, changes.arrived)):
            await self.fill(tenant, kb, space)
            # What went meanwhile cannot be read from the feed: it is whatever the ledger does not know.
            await reconcile(self._ledger, self._provider, tenant, kb, space, place)
            return
        if changes.gone:
            await self._provider.delete(place, changes.gone)
        missed = [one for one in changes.arrived if (space.id, one) not in self._prepared]
        for start in range(0, len(missed), BATCH):
            await self._provider.open(place)
            points = await self._ledger.read(tenant, index_feed.points, space, missed[start : start + BATCH])
            await self._provider.upsert(place, points)
        self._prepared.difference_update((space.id, one) for one in (*changes.arrived, *changes.gone))
        if changes.sequence > mark.sequence:
            await self._ledger.write(tenant, index_feed.mark, self._provider.name, space, changes.sequence)

    async def _has_lost(
        self, tenant: str, place: Place, kb: KnowledgeBase, space: Space, arriving: Sequence[str]
    ) -> bool:
        expected = await self._ledger.read(tenant, index_feed.count_live, kb, space, None)
        return await self._provider.count(place) < expected - len(arriving)


def place_of(tenant_id: str, space: Space) -> Place:
    """Where a Space's vectors live in a provider."""
    return Place(tenant_id, f"s{space.id}", space.dimension)


def fields_of(where: Filter) -> Iterable[str]:
    """Every field that a filter names."""
    match where:
        case And(terms) | Or(terms):
            for term in terms:
                yield from fields_of(term)
        case Not(term):
            yield from fields_of(term)
        case _:
            yield where.field


def _is_enough(found: Sequence[Candidate], kept: Sequence[Candidate], k: int) -> bool:
    # Among equals at the cut, which ones came is the engine's whim: all are needed to take them in order of id.
    return len(kept) >= k and kept[k - 1].score - found[-1].score > SAME


def _tenant_id(connection: Connection, tenant_id: str) -> str:
    return tenant_id


def _held(
    connection: Connection, tenant_id: str, index: str
) -> tuple[str, list[Mark], list[tuple[KnowledgeBase, Space]]]:
    """What an index holds something of, and what it has to hold: the live Spaces and those that may become live."""
    kbs = {kb.id: kb for kb in read_kbs(connection, tenant_id)}
    rows = connection.execute(
        "SELECT kb_id, id, model, dimension, generation, state FROM spaces "
        "WHERE tenant_id = ? AND state <> 'retired' ORDER BY id",
        (tenant_id,),
    )
    needed = [(kbs[row[0]], Space(*row[1:])) for row in rows if row[0] in kbs]
    return tenant_id, index_feed.marks(connection, tenant_id, index), needed


def _kb_and_space(
    connection: Connection, tenant_id: str, kb_id: int, space_id: int
) -> tuple[KnowledgeBase | None, Space | None]:
    kb = next((one for one in read_kbs(connection, tenant_id) if one.id == kb_id), None)
    row = connection.execute(
        "SELECT id, model, dimension, generation, state FROM spaces WHERE tenant_id = ? AND id = ?",
        (tenant_id, space_id),
    ).fetchone()
    return kb, Space(*row) if row else None
