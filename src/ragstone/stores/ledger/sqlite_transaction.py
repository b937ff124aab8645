"""A unit of work on a tenant's SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from ragstone.core.errors import StoreError
from ragstone.core.ids import check_name
from ragstone.core.jobs import Job, JobProgress, NewJob, Ticket
from ragstone.core.types import Json, KnowledgeBase, NewVersion
from ragstone.stores.blobs import Blobs
from ragstone.stores.colocated import ColocatedIndex
from ragstone.stores.ledger import sqlite_checkpoints as checkpoints
from ragstone.stores.ledger import sqlite_documents as documents
from ragstone.stores.ledger import sqlite_jobs as jobs
from ragstone.stores.ledger import sqlite_originals as originals
from ragstone.stores.ledger import sqlite_sources as sources
from ragstone.stores.ledger import sqlite_status as status
from ragstone.stores.ledger import sqlite_writes as writes
from ragstone.stores.ledger.sqlite_file import SqliteFile

T = TypeVar("T")


class TenantFile(SqliteFile):
    """A tenant's file together with the opaque id that its rows carry, and its original files."""

    def __init__(self, folder: Path, tenant_id: str) -> None:
        super().__init__(folder / "tenants" / tenant_id / "ledger.db", "tenant")
        self.tenant_id = tenant_id
        self.blobs = Blobs(folder / "documents" / tenant_id)


class SqliteTransaction:
    """Implements `core.protocols.Transaction`. The write lock is taken by the first write, not before."""

    def __init__(self, file: TenantFile, indexes: Sequence[ColocatedIndex]) -> None:
        self._file = file
        self._indexes = indexes
        self._asked = False
        self._begun = False
        self._originals: dict[str, list[str]] = {}
        """Files of what is deleted, by document: those its jobs name. What is on its way in has no job yet."""

    async def __aenter__(self) -> SqliteTransaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._asked:
            # A cancelled caller must not leave the connection inside a transaction: what it asked for last may
            # still wait for the writer's thread, so this waits its turn there, shielded.
            await asyncio.shield(self._file.write(_rollback if kind else _commit))
        if self._originals and kind is None:
            # After the commit: should this process die between the two, the next sweep finds the files.
            await asyncio.to_thread(self._drop_originals)

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
        def work(db: sqlite3.Connection) -> list[str]:
            names = originals.of_document(db, self._file.tenant_id, document_id)
            gone = writes.delete_document(db, self._file.tenant_id, self._indexes, document_id)
            if gone and names:
                self._originals[document_id] = names
            return gone

        return bool(await self._write(work))

    async def delete_kb(self, name: str) -> int:
        def work(db: sqlite3.Connection) -> list[str]:
            names = originals.of_kb(db, self._file.tenant_id, name)
            self._originals.update(names)
            return writes.delete_kb(db, self._file.tenant_id, self._indexes, name)

        return len(await self._write(work))

    async def has_document(self, document_id: str) -> bool:
        return await self._write(lambda db: documents.has_document(db, self._file.tenant_id, document_id))

    async def move(self, document_id: str, external_id: str, uri: str) -> None:
        await self._write(
            lambda db: documents.move_document(db, self._file.tenant_id, document_id, external_id, uri)
        )

    async def enqueue(self, kb: KnowledgeBase, job: NewJob) -> Job:
        return await self._write(lambda db: jobs.enqueue(db, self._file.tenant_id, kb, job))

    async def complete(self, ticket: Ticket, progress: JobProgress) -> None:
        await self._write(lambda db: jobs.complete(db, ticket, progress, "; ".join(progress.remarks[:3])))

    async def identify(self, kb: KnowledgeBase, source: str, external_id: str) -> str | None:
        return await self._write(
            lambda db: status.identify(db, self._file.tenant_id, kb, source, external_id)
        )

    async def set_recipe(self, document_id: str, recipe: str) -> None:
        await self._write(lambda db: documents.set_recipe(db, self._file.tenant_id, document_id, recipe))

    async def holds(self, ticket: Ticket) -> bool:
        return await self._write(lambda db: jobs.holds(db, ticket))

    async def advance(self, source_id: str, cursor: Json) -> None:
        await self._write(lambda db: sources.advance(db, self._file.tenant_id, source_id, cursor))

    async def save_part(self, document_id: str, made_from: str, part: str, data: bytes) -> None:
        await self._write(
            lambda db: checkpoints.save(db, self._file.tenant_id, document_id, made_from, part, data)
        )

    def _drop_originals(self) -> None:
        for document_id, names in self._originals.items():
            self._file.blobs.remove(document_id, names)

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
