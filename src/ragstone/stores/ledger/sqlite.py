"""The embedded ledger: one SQLite file per tenant, a small control file that knows their names."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from ragstone.core.clock import canonical, now
from ragstone.core.errors import NotFoundError, StoreError
from ragstone.core.filters import Filter
from ragstone.core.ids import check_name, opaque_id
from ragstone.core.types import Document, KnowledgeBase, LiveChunk, NewVersion, Space, Stats, Vector
from ragstone.stores.colocated import ColocatedIndex
from ragstone.stores.ledger import sqlite_reads as reads
from ragstone.stores.ledger import sqlite_writes as writes
from ragstone.stores.ledger.sqlite_file import SqliteFile

T = TypeVar("T")


class UnknownTenant(NotFoundError):
    """A tenant that nothing has been written for."""

    def __init__(self, tenant: str) -> None:
        super().__init__(f"there is no tenant '{tenant}' yet", hint="make it with: ragstone ingest PATH")


class TenantFile(SqliteFile):
    """A tenant's file together with the opaque id that its rows carry."""

    def __init__(self, path: Path, tenant_id: str) -> None:
        super().__init__(path, "tenant")
        self.tenant_id = tenant_id


class SqliteLedger:
    """Implements `core.protocols.Ledger` on files under one folder. Any number of processes may share it."""

    def __init__(self, folder: Path, indexes: Sequence[ColocatedIndex] = (), open_tenants: int = 64) -> None:
        self._folder = folder
        self._indexes = indexes
        self._limit = open_tenants
        self._control: SqliteFile | None = None
        self._tenants: OrderedDict[str, TenantFile] = OrderedDict()
        self._opening = asyncio.Lock()
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
            return await self._read(tenant, lambda file, db: reads.read_kb(db, file.tenant_id, name))
        except UnknownTenant:
            return None

    async def kbs(self, tenant: str) -> list[KnowledgeBase]:
        try:
            return await self._read(tenant, lambda file, db: reads.read_kbs(db, file.tenant_id))
        except UnknownTenant:
            return []

    async def space(self, tenant: str, kb: KnowledgeBase) -> Space | None:
        found = await self.kb(tenant, kb.name)
        return found.space if found else None

    async def find(
        self, tenant: str, kb: KnowledgeBase, source: str, external_ids: Sequence[str]
    ) -> Mapping[str, Document]:
        return await self._read(
            tenant, lambda file, db: reads.find_documents(db, file.tenant_id, kb, source, external_ids)
        )

    async def document(self, tenant: str, document_id: str) -> Document | None:
        try:
            return await self._read(
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
        return await self._read(
            tenant, lambda file, db: reads.read_documents(db, file.tenant_id, kb, where, after, limit)
        )

    async def text(self, tenant: str, document_id: str) -> str:
        text = await self._read(tenant, lambda file, db: reads.read_text(db, file.tenant_id, document_id))
        if text is None:
            raise NotFoundError(f"no document {document_id}", hint="list them with: ragstone documents")
        return text

    async def chunks(
        self, tenant: str, kb: KnowledgeBase, chunk_ids: Sequence[str]
    ) -> Mapping[str, LiveChunk]:
        return await self._read(tenant, lambda file, db: reads.read_chunks(db, file.tenant_id, kb, chunk_ids))

    async def document_chunks(self, tenant: str, document_id: str) -> list[LiveChunk]:
        return await self._read(
            tenant, lambda file, db: reads.read_document_chunks(db, file.tenant_id, document_id)
        )

    async def known_vectors(
        self, tenant: str, kb: KnowledgeBase, texts: Sequence[str]
    ) -> Mapping[str, Vector]:
        space = kb.space
        if space is None:
            return {}
        keys = {writes.short_hash(text): text for text in texts}
        found = await self._read(
            tenant, lambda file, db: reads.known_vectors(db, file.tenant_id, space, list(keys))
        )
        return {keys[key]: vector for key, vector in found.items()}

    async def stats(self, tenant: str, kb: KnowledgeBase) -> Stats:
        return await self._read(tenant, lambda file, db: reads.read_stats(db, file.tenant_id, kb))

    async def sequence(self, tenant: str) -> int:
        return await self._read(tenant, lambda _, db: reads.read_sequence(db))

    async def close(self) -> None:
        async with self._opening:
            for file in self._tenants.values():
                await asyncio.to_thread(file.close)
            self._tenants.clear()
            if self._control:
                await asyncio.to_thread(self._control.close)
                self._control = None

    async def _read(self, tenant: str, work: Callable[[TenantFile, sqlite3.Connection], T]) -> T:
        async with self.file(tenant) as file:
            return await file.read(lambda connection: work(file, connection))

    async def _open(self, tenant: str, make: bool) -> TenantFile:
        check_name(tenant, "tenant")
        path = self._folder / "control.db"
        if self._control is None:
            if not make and not path.exists():
                raise UnknownTenant(tenant)
            self._control = await asyncio.to_thread(SqliteFile, path, "control")
        control = self._control

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
        return await asyncio.to_thread(
            TenantFile, self._folder / "tenants" / tenant_id / "ledger.db", tenant_id
        )

    def _close_idle(self, keep: str) -> None:
        idle = [name for name in self._tenants if name != keep and not self._busy[name]]
        for name in idle[: max(0, len(self._tenants) - self._limit)]:
            del self._busy[name]
            self._tenants.pop(name).close()


class SqliteTransaction:
    """Implements `core.protocols.Transaction`. The write lock is taken by the first write, not before."""

    def __init__(self, file: TenantFile, indexes: Sequence[ColocatedIndex]) -> None:
        self._file = file
        self._indexes = indexes
        self._asked = False
        self._begun = False

    async def __aenter__(self) -> SqliteTransaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._asked:
            # A cancelled caller must not leave the connection inside a transaction: what it asked for last may
            # still wait for the writer's thread, so this waits its turn there, shielded.
            await asyncio.shield(self._file.write(_rollback if kind else _commit))

    async def open_kb(self, name: str) -> KnowledgeBase:
        check_name(name, "knowledge base")
        return await self._write(lambda db: writes.open_kb(db, self._file.tenant_id, self._indexes, name))

    async def open_space(self, kb: KnowledgeBase, model: str, dimension: int) -> KnowledgeBase:
        return await self._write(lambda db: writes.open_space(db, self._file.tenant_id, kb, model, dimension))

    async def stage(self, kb: KnowledgeBase, version: NewVersion) -> int:
        return await self._write(lambda db: writes.stage(db, self._file.tenant_id, kb, version))

    async def activate(self, kb: KnowledgeBase, document_id: str, version: int) -> None:
        await self._write(
            lambda db: writes.activate(db, self._file.tenant_id, self._indexes, kb, document_id, version)
        )

    async def delete(self, document_id: str) -> bool:
        return await self._write(
            lambda db: writes.delete_document(db, self._file.tenant_id, self._indexes, document_id)
        )

    async def delete_kb(self, name: str) -> int:
        return await self._write(lambda db: writes.delete_kb(db, self._file.tenant_id, self._indexes, name))

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def begun(connection: sqlite3.Connection) -> T:
            if not self._begun:
                connection.execute("BEGIN IMMEDIATE")
                self._begun = True
            elif not connection.in_transaction:
                raise StoreError("the transaction was undone by an earlier failure", hint="begin another")
            return work(connection)

        self._asked = True
        return await asyncio.shield(self._file.write(begun))


def _commit(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.Error:
        _rollback(connection)
        raise


def _rollback(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")
