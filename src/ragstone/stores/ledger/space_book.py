"""The Spaces of all kbs, on the rows of the ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from ragstone.core.clock import canonical
from ragstone.core.spaces import Complete, Lacking, Rows, SpaceRecord, Stored
from ragstone.core.types import KnowledgeBase, Space, Vector
from ragstone.stores.ledger import reads, spaces
from ragstone.stores.ledger.ledger import SqlLedger

FEW = 256
"""Chunks that may still lack a vector when the flip begins: writers wait while these are embedded."""


class SqlSpaceBook:
    """Implements `core.spaces.SpaceBook`."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger

    async def all(self, tenant: str, kb: KnowledgeBase) -> list[SpaceRecord]:
        return await self._ledger.read(tenant, spaces.read_spaces, kb)

    async def outline(self, tenant: str, kb: KnowledgeBase) -> list[tuple[Space, datetime]]:
        return await self._ledger.read(tenant, spaces.outline, kb)

    async def sample(self, tenant: str, kb: KnowledgeBase, space: Space, count: int, after: str) -> list[Stored]:
        return await self._ledger.read(tenant, spaces.sample, kb, space, count, after)

    async def models(self, tenant: str, kb: KnowledgeBase) -> set[str]:
        return await self._ledger.read(tenant, spaces.models, kb)

    async def open(self, tenant: str, kb: KnowledgeBase, model: str, dimension: int) -> Space:
        self._ledger.check_dimension(dimension)
        return await self._ledger.write(tenant, spaces.open_building, kb, model, dimension)

    async def lacking(self, tenant: str, kb: KnowledgeBase, space: Space, after: int, limit: int) -> list[Lacking]:
        return await self._ledger.read(tenant, spaces.lacking, kb, space, after, limit)

    async def coverage(self, tenant: str, kb: KnowledgeBase, space: Space) -> tuple[int, int]:
        return await self._ledger.read(tenant, spaces.coverage, kb, space)

    async def known(self, tenant: str, space: Space, hashes: Sequence[bytes]) -> Mapping[bytes, Vector]:
        return await self._ledger.read(tenant, reads.known_vectors, space, hashes)

    async def add(self, tenant: str, space: Space, rows: Rows) -> int:
        async with self._ledger.transaction(tenant) as tx:
            return await tx.add_vectors(space, rows)

    async def word_only(self, tenant: str, kb: KnowledgeBase) -> bool:
        return await self._ledger.read(tenant, spaces.word_only, kb)

    async def note_embedded(self, tenant: str, kb: KnowledgeBase, refused: Collection[int]) -> None:
        await self._ledger.write(tenant, spaces.note_embedded, kb, refused)

    async def promote(
        self,
        tenant: str,
        kb: KnowledgeBase,
        space: Space,
        *,
        keep_until: datetime,
        refused: Collection[int],
        complete: Complete,
    ) -> bool:
        # An index elsewhere must hold the Space before anyone is sent there.
        await self._ledger.catch_up(tenant)
        async with self._ledger.transaction(tenant) as tx:
            most = FEW + len(refused)
            left = await tx.lacking(kb, space, 0, most + 1)
            if len(left) > most:
                return False
            few = [one for one in left if one.number not in refused]
            if few:
                await tx.add_vectors(space, await complete(few))
            await tx.flip(kb, space, canonical(keep_until))
        return True

    async def expired(self, tenant: str, moment: datetime) -> list[Space]:
        return await self._ledger.read(tenant, spaces.expired, canonical(moment))

    async def drop(self, tenant: str, space: Space) -> bool:
        while (gone := await self._ledger.write(tenant, spaces.drop_some, space)) is None:
            pass
        if gone:
            await self._ledger.catch_up(tenant)
        return gone
