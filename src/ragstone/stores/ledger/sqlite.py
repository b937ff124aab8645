"""The embedded ledger: one SQLite file per tenant, a small control file that knows their names."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from ragstone.core.clock import canonical, now
from ragstone.core.errors import NotFoundError
from ragstone.core.filters import Filter
from ragstone.core.ids import check_name, opaque_id
from ragstone.core.jobs import DocumentStatus
from ragstone.core.types import Document, KnowledgeBase, LiveChunk, Space, Stats, Vector
from ragstone.stores.colocated import ColocatedIndex
from ragstone.stores.ledger import sqlite_checkpoints as checkpoints
from ragstone.stores.ledger import sqlite_originals as originals
from ragstone.stores.ledger import sqlite_reads as reads
from ragstone.stores.ledger import sqlite_status as status
from ragstone.stores.ledger import sqlite_writes as writes
from ragstone.stores.ledger.sqlite_file import SqliteFile
from ragstone.stores.ledger.sqlite_transaction import SqliteTransaction, TenantFile

T = TypeVar("T")


class UnknownTenant(NotFoundError):
    """A tenant that nothing has been written for."""

    def __init__(self, tenant: str) -> None:
        super().__init__(f"there is no tenant '{tenant}' yet", hint="make it with: ragstone ingest PATH")


class SqliteLedger:
    """Implements `core.protocols.Ledger` on files under one folder. Any number of processes may share it."""

    def __init__(self, folder: Path, indexes: Sequence[ColocatedIndex] = (), open_tenants: int = 64) -> None:
        self._folder = folder
        self._indexes = indexes
        self._limit = open_tenants
        self._control: SqliteFile | None = None
        self._tenants: OrderedDict[str, TenantFile] = OrderedDict()
        self._opening = asyncio.Lock()
        self._opening_control = asyncio.Lock()
        self._busy: dict[str, int] = {}

    @asynccontextmanager
    async def file(self, tenant: str, *, make: bool = False) -> AsyncIterator[TenantFile]:
        """The tenant's file; it stays open at least while the block runs. Only a writer may make a new one."""
        opened = self._tenants.get(tenant)
        if opened is None:
            async with self._opening:
                opened = self._tenants.get(tenant) or await self._open(tenant, make)
                self._tenants[tenant] = opened
                self._busy[tenant] = self._busy.get(tenant, 0)
                self._close_idle(keep=tenant)
        self._tenants.move_to_end(tenant)
        self._busy[tenant] += 1
        try:
            yield opened
        finally:
            self._busy[tenant] -= 1

    @asynccontextmanager
    async def transaction(self, tenant: str) -> AsyncIterator[SqliteTransaction]:
        async with (
            self.file(tenant, make=True) as file,
            file.turn,
            SqliteTransaction(file, self._indexes) as transaction,
        ):
            yield transaction

    async def kb(self, tenant: str, name: str) -> KnowledgeBase | None:
        try:
            return await self.read(tenant, lambda file, db: reads.read_kb(db, file.tenant_id, name))
        except UnknownTenant:
            return None

    async def kbs(self, tenant: str) -> list[KnowledgeBase]:
        try:
            return await self.read(tenant, lambda file, db: reads.read_kbs(db, file.tenant_id))
        except UnknownTenant:
            return []

    async def space(self, tenant: str, kb: KnowledgeBase) -> Space | None:
        found = await self.kb(tenant, kb.name)
        return found.space if found else None

    async def find(
        self, tenant: str, kb: KnowledgeBase, source: str, external_ids: Sequence[str]
    ) -> Mapping[str, Document]:
        return await self.read(
            tenant, lambda file, db: reads.find_documents(db, file.tenant_id, kb, source, external_ids)
        )

    async def document(self, tenant: str, document_id: str) -> Document | None:
        try:
            return await self.read(
                tenant, lambda file, db: reads.read_document(db, file.tenant_id, document_id)
            )
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
        return await self.read(
            tenant, lambda file, db: reads.read_documents(db, file.tenant_id, kb, where, after, limit)
        )

    async def text(self, tenant: str, document_id: str) -> str:
        text = await self.read(tenant, lambda file, db: reads.read_text(db, file.tenant_id, document_id))
        if text is None:
            raise NotFoundError(f"no document {document_id}", hint="list them with: ragstone documents")
        return text

    async def chunks(
        self, tenant: str, kb: KnowledgeBase, chunk_ids: Sequence[str]
    ) -> Mapping[str, LiveChunk]:
        return await self.read(tenant, lambda file, db: reads.read_chunks(db, file.tenant_id, kb, chunk_ids))

    async def document_chunks(self, tenant: str, document_id: str) -> list[LiveChunk]:
        return await self.read(
            tenant, lambda file, db: reads.read_document_chunks(db, file.tenant_id, document_id)
        )

    async def known_vectors(
        self, tenant: str, kb: KnowledgeBase, texts: Sequence[str]
    ) -> Mapping[str, Vector]:
        space = kb.space
        if space is None:
            return {}
        keys = {writes.short_hash(text): text for text in texts}
        found = await self.read(
            tenant, lambda file, db: reads.known_vectors(db, file.tenant_id, space, list(keys))
        )
        return {keys[key]: vector for key, vector in found.items()}

    async def stats(self, tenant: str, kb: KnowledgeBase) -> Stats:
        return await self.read(tenant, lambda file, db: reads.read_stats(db, file.tenant_id, kb))

    async def sequence(self, tenant: str) -> int:
        return await self.read(tenant, lambda _, db: reads.read_sequence(db))

    async def status(self, tenant: str, document_id: str) -> DocumentStatus | None:
        try:
            return await self.read(
                tenant, lambda file, db: status.read_status(db, file.tenant_id, document_id)
            )
        except UnknownTenant:
            return None

    async def belongings(
        self, tenant: str, kb: KnowledgeBase, source: str, under: str = ""
    ) -> Mapping[str, tuple[str, str]]:
        return await self.read(
            tenant, lambda file, db: status.belongings(db, file.tenant_id, kb, source, under)
        )

    async def identify(self, tenant: str, kb: KnowledgeBase, source: str, external_id: str) -> str | None:
        return await self.read(
            tenant, lambda file, db: status.identify(db, file.tenant_id, kb, source, external_id)
        )

    async def children(self, tenant: str, document_id: str) -> list[str]:
        return await self.read(tenant, lambda file, db: status.children(db, file.tenant_id, document_id))

    async def part(self, tenant: str, document_id: str, made_from: str, part: str) -> bytes | None:
        return await self.read(
            tenant, lambda file, db: checkpoints.load(db, file.tenant_id, document_id, made_from, part)
        )

    async def resembling(
        self, tenant: str, kb: KnowledgeBase, bands: Sequence[int], but: str
    ) -> Mapping[str, bytes]:
        return await self.read(
            tenant, lambda file, db: checkpoints.resembling(db, file.tenant_id, kb.id, bands, but)
        )

    async def keep_original(self, tenant: str, document_id: str, content: bytes) -> str:
        async with self.file(tenant, make=True) as file:
            return await asyncio.to_thread(file.blobs.put, document_id, content)

    async def original(self, tenant: str, document_id: str, name: str) -> bytes:
        async with self.file(tenant) as file:
            return await asyncio.to_thread(file.blobs.get, document_id, name)

    async def drop_original(self, tenant: str, document_id: str, name: str) -> None:
        async with self.file(tenant) as file:
            await asyncio.to_thread(file.blobs.remove, document_id, [name])

    async def sweep(self, tenant: str) -> None:
        """Remove what crashes left behind: files that no job needs."""
        async with self.file(tenant) as file:
            for document_id, names in (await asyncio.to_thread(file.blobs.settled)).items():
                needed = await file.read(
                    partial(originals.needed, tenant_id=file.tenant_id, document_id=document_id)
                )
                left = [name for name in names if name not in needed]
                await asyncio.to_thread(file.blobs.remove, document_id, left)

    async def close(self) -> None:
        async with self._opening:
            for file in self._tenants.values():
                await asyncio.to_thread(file.close)
            self._tenants.clear()
            if self._control:
                await asyncio.to_thread(self._control.close)
                self._control = None

    async def read(self, tenant: str, work: Callable[[TenantFile, sqlite3.Connection], T]) -> T:
        """What `work` finds in one snapshot of the tenant's file."""
        async with self.file(tenant) as file:
            return await file.read(lambda connection: work(file, connection))

    async def write(self, tenant: str, work: Callable[[TenantFile, sqlite3.Connection], T]) -> T:
        """Run `work` as a transaction of its own on a tenant that exists."""

        def whole(db: sqlite3.Connection) -> T:
            db.execute("BEGIN IMMEDIATE")
            try:
                result = work(file, db)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            return result

        async with self.file(tenant) as file, file.turn:
            return await asyncio.shield(file.write(whole))

    async def control(self, make: bool = False) -> SqliteFile | None:
        """The file that knows the tenants; None while there is none."""
        path = self._folder / "control.db"
        async with self._opening_control:
            if self._control is None:
                if not make and not path.exists():
                    return None
                self._control = await asyncio.to_thread(SqliteFile, path, "control")
        return self._control

    async def _open(self, tenant: str, make: bool) -> TenantFile:
        check_name(tenant, "tenant")
        control = await self.control(make)
        if control is None:
            raise UnknownTenant(tenant)

        def known(db: sqlite3.Connection) -> str | None:
            row = db.execute("SELECT id FROM tenants WHERE name = ?", (tenant,)).fetchone()
            return row[0] if row else None

        def register(db: sqlite3.Connection) -> str:
            db.execute(
                "INSERT INTO tenants (name, id, created_at) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING",
                (tenant, opaque_id(), canonical(now())),
            )
            return str(known(db))

        tenant_id = await control.read(known)
        if tenant_id is None:
            if not make:
                raise UnknownTenant(tenant)
            async with control.turn:
                tenant_id = await control.write(register)
        return await asyncio.to_thread(TenantFile, self._folder, tenant_id)

    def _close_idle(self, keep: str) -> None:
        idle = [name for name in self._tenants if name != keep and not self._busy[name]]
        for name in idle[: max(0, len(self._tenants) - self._limit)]:
            del self._busy[name]
            self._tenants.pop(name).close()
