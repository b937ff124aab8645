"""A unit of work on a tenant's rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from ragstone.core.ids import check_name
from ragstone.core.jobs import Job, JobProgress, NewJob, Ticket
from ragstone.core.types import Json, KnowledgeBase, NewVersion
from ragstone.stores.blobs import Blobs
from ragstone.stores.colocated import ColocatedIndex
from ragstone.stores.database import Connection
from ragstone.stores.ledger import checkpoints, documents, jobs, originals, sources, status, writes

P = ParamSpec("P")
T = TypeVar("T")


class UnitOfWork(Protocol):
    """What a database gives to whoever writes: nobody else writes for this tenant until it ends."""

    @property
    def tenant_id(self) -> str: ...

    @property
    def blobs(self) -> Blobs: ...

    @property
    def indexes(self) -> Sequence[ColocatedIndex]: ...

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Run on the transaction's connection; the transaction begins with the first call."""
        ...

    async def end(self, *, commit: bool) -> None: ...


class SqlTransaction:
    """Implements `core.protocols.Transaction`."""

    def __init__(self, unit: UnitOfWork) -> None:
        self._unit = unit
        self._originals: dict[str, list[str]] = {}
        """Files of what is deleted, by document: those its jobs name. What is on its way in has no job yet."""

    async def __aenter__(self) -> SqlTransaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._unit.end(commit=kind is None)
        if self._originals and kind is None:
            # After the commit: should this process die between the two, the next sweep finds the files.
            await asyncio.to_thread(self._drop_originals)

    async def open_kb(self, name: str) -> KnowledgeBase:
        check_name(name, "knowledge base")
        return await self._run(writes.open_kb, self._unit.indexes, name)

    async def open_space(self, kb: KnowledgeBase, model: str, dimension: int) -> KnowledgeBase:
        return await self._run(writes.open_space, kb, model, dimension)

    async def stage(self, kb: KnowledgeBase, version: NewVersion) -> int:
        return await self._run(writes.stage, kb, version)

    async def activate(self, kb: KnowledgeBase, document_id: str, version: int) -> None:
        await self._run(writes.activate, self._unit.indexes, kb, document_id, version)

    async def delete(self, document_id: str) -> bool:
        names = await self._run(originals.of_document, document_id)
        gone = await self._run(writes.delete_document, self._unit.indexes, document_id)
        if gone and names:
            self._originals[document_id] = names
        return bool(gone)

    async def delete_kb(self, name: str) -> int:
        self._originals.update(await self._run(originals.of_kb, name))
        return len(await self._run(writes.delete_kb, self._unit.indexes, name))

    async def has_document(self, document_id: str) -> bool:
        return await self._run(documents.has_document, document_id)

    async def move(self, document_id: str, external_id: str, uri: str) -> None:
        await self._run(documents.move_document, document_id, external_id, uri)

    async def enqueue(self, kb: KnowledgeBase, job: NewJob) -> Job:
        return await self._run(jobs.enqueue, kb, job)

    async def complete(self, ticket: Ticket, progress: JobProgress) -> None:
        await self._run(jobs.complete, ticket, progress, "; ".join(progress.remarks[:3]))

    async def identify(self, kb: KnowledgeBase, source: str, external_id: str) -> str | None:
        return await self._run(status.identify, kb, source, external_id)

    async def set_recipe(self, document_id: str, recipe: str) -> None:
        await self._run(documents.set_recipe, document_id, recipe)

    async def holds(self, ticket: Ticket) -> bool:
        return await self._run(jobs.holds, ticket)

    async def advance(self, source_id: str, cursor: Json) -> None:
        await self._run(sources.advance, source_id, cursor)

    async def save_part(self, document_id: str, made_from: str, part: str, data: bytes) -> None:
        await self._run(checkpoints.save, document_id, made_from, part, data)

    def _drop_originals(self) -> None:
        for document_id, names in self._originals.items():
            self._unit.blobs.remove(document_id, names)

    async def _run(
        self, work: Callable[Concatenate[Connection, str, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._unit.run(
            lambda connection: work(connection, self._unit.tenant_id, *args, **kwargs)
        )
