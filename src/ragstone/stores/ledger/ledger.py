"""The ledger in SQL: what it does is the same on every database; how one is opened is the adapter's business."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Concatenate, ParamSpec, TypeVar

from ragstone.core.errors import NotFoundError
from ragstone.core.filters import Filter
from ragstone.core.jobs import DocumentStatus
from ragstone.core.types import Document, KnowledgeBase, LiveChunk, Space, Stats, Vector
from ragstone.stores.blobs import Blobs
from ragstone.stores.database import Connection
from ragstone.stores.ledger import checkpoints, originals, reads, status, writes
from ragstone.stores.ledger.transaction import SqlTransaction, UnitOfWork

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[Concatenate[Connection, str, P], T]
"""Reads or writes rows of one tenant: given a connection and the tenant's id."""


class UnknownTenant(NotFoundError):
    """A tenant that nothing has been written for."""

    def __init__(self, tenant: str) -> None:
        super().__init__(f"there is no tenant '{tenant}' yet", hint="make it with: ragstone ingest PATH")


class SqlLedger(ABC):
    """Implements `core.protocols.Ledger` over rows; a database adds how to reach them."""

    @abstractmethod
    async def read(self, tenant: str, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` finds in one snapshot; `UnknownTenant` when nothing was ever written."""

    @abstractmethod
    async def write(self, tenant: str, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` as a transaction of its own on a tenant that exists."""

    @abstractmethod
    def unit(self, tenant: str) -> AbstractAsyncContextManager[UnitOfWork]:
        """A unit of work; the tenant is made if it does not exist."""

    @abstractmethod
    async def blobs(self, tenant: str, *, make: bool = False) -> Blobs:
        """The tenant's original files."""

    @abstractmethod
    async def bells(self) -> Mapping[str, int]:
        """All tenants, each with a number that changes when there is new work for it."""

    @abstractmethod
    async def ring(self, tenant: str) -> None:
        """Say that there is new work."""

    @abstractmethod
    async def close(self) -> None: ...

    @asynccontextmanager
    async def transaction(self, tenant: str) -> AsyncIterator[SqlTransaction]:
        async with self.unit(tenant) as unit, SqlTransaction(unit) as transaction:
            yield transaction

    async def kb(self, tenant: str, name: str) -> KnowledgeBase | None:
        try:
            return await self.read(tenant, reads.read_kb, name)
        except UnknownTenant:
            return None

    async def kbs(self, tenant: str) -> list[KnowledgeBase]:
        try:
            return await self.read(tenant, reads.read_kbs)
        except UnknownTenant:
            return []

    async def space(self, tenant: str, kb: KnowledgeBase) -> Space | None:
        found = await self.kb(tenant, kb.name)
        return found.space if found else None

    async def find(
        self, tenant: str, kb: KnowledgeBase, source: str, external_ids: Sequence[str]
    ) -> Mapping[str, Document]:
        return await self.read(tenant, reads.find_documents, kb, source, external_ids)

    async def document(self, tenant: str, document_id: str) -> Document | None:
        try:
            return await self.read(tenant, reads.read_document, document_id)
        except UnknownTenant:
            return None

    async def documents(
        self,
        tenant: str,
        kb: KnowledgeBase,
        *,
        where: Filter | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Document]:
        return await self.read(tenant, reads.read_documents, kb, where, after, limit)

    async def text(self, tenant: str, document_id: str) -> str:
        text = await self.read(tenant, reads.read_text, document_id)
        if text is None:
            raise NotFoundError(f"no document {document_id}", hint="list them with: ragstone documents")
        return text

    async def chunks(
        self, tenant: str, kb: KnowledgeBase, chunk_ids: Sequence[str]
    ) -> Mapping[str, LiveChunk]:
        return await self.read(tenant, reads.read_chunks, kb, chunk_ids)

    async def document_chunks(self, tenant: str, document_id: str) -> list[LiveChunk]:
        return await self.read(tenant, reads.read_document_chunks, document_id)

    async def known_vectors(
        self, tenant: str, kb: KnowledgeBase, texts: Sequence[str]
    ) -> Mapping[str, Vector]:
        if kb.space is None:
            return {}
        keys = {writes.short_hash(text): text for text in texts}
        found = await self.read(tenant, reads.known_vectors, kb.space, list(keys))
        return {keys[key]: vector for key, vector in found.items()}

    async def stats(self, tenant: str, kb: KnowledgeBase) -> Stats:
        return await self.read(tenant, reads.read_stats, kb)

    async def sequence(self, tenant: str) -> int:
        return await self.read(tenant, reads.read_sequence)

    async def status(self, tenant: str, document_id: str) -> DocumentStatus | None:
        try:
            return await self.read(tenant, status.read_status, document_id)
        except UnknownTenant:
            return None

    async def belongings(
        self, tenant: str, kb: KnowledgeBase, source: str, under: str = ""
    ) -> Mapping[str, tuple[str, str]]:
        return await self.read(tenant, status.belongings, kb, source, under)

    async def identify(self, tenant: str, kb: KnowledgeBase, source: str, external_id: str) -> str | None:
        return await self.read(tenant, status.identify, kb, source, external_id)

    async def children(self, tenant: str, document_id: str) -> list[str]:
        return await self.read(tenant, status.children, document_id)

    async def part(self, tenant: str, document_id: str, made_from: str, part: str) -> bytes | None:
        return await self.read(tenant, checkpoints.load, document_id, made_from, part)

    async def resembling(
        self, tenant: str, kb: KnowledgeBase, bands: Sequence[int], but: str
    ) -> Mapping[str, bytes]:
        return await self.read(tenant, checkpoints.resembling, kb.id, bands, but)

    async def keep_original(self, tenant: str, document_id: str, content: bytes) -> str:
        blobs = await self.blobs(tenant, make=True)
        return await asyncio.to_thread(blobs.put, document_id, content)

    async def original(self, tenant: str, document_id: str, name: str) -> bytes:
        blobs = await self.blobs(tenant)
        return await asyncio.to_thread(blobs.get, document_id, name)

    async def drop_original(self, tenant: str, document_id: str, name: str) -> None:
        blobs = await self.blobs(tenant)
        await asyncio.to_thread(blobs.remove, document_id, [name])

    async def sweep(self, tenant: str) -> None:
        """Remove what crashes left behind: files that no job needs."""
        blobs = await self.blobs(tenant)
        for document_id, names in (await asyncio.to_thread(blobs.settled)).items():
            needed = await self.read(tenant, originals.needed, document_id)
            left = [name for name in names if name not in needed]
            await asyncio.to_thread(blobs.remove, document_id, left)
