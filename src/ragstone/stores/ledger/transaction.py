"""A unit of work on a tenant's rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from ragstone.core.audit import ErasureTarget
from ragstone.core.clock import ReadTime
from ragstone.core.collections import check_kb_name
from ragstone.core.ids import check_name
from ragstone.core.jobs import Job, JobProgress, NewJob, Ticket
from ragstone.core.spaces import Lacking, Rows
from ragstone.core.types import Json, KnowledgeBase, LiveContent, Matrix, NewVersion, Space
from ragstone.stores.activity import removal
from ragstone.stores.activity.removal import Removed
from ragstone.stores.blobs import Blobs
from ragstone.stores.indexes import TransactionalIndex
from ragstone.stores.ledger import documents, erasure, jobs, originals, sources, spaces, writes
from ragstone.stores.sql.database import Connection
from ragstone.stores.vault import Vault

P = ParamSpec("P")
T = TypeVar("T")


class UnitOfWork(Protocol):
    """A transaction of a database: no other writes for this tenant until it ends."""

    @property
    def tenant_id(self) -> str: ...

    @property
    def blobs(self) -> Blobs: ...

    @property
    def indexes(self) -> Sequence[TransactionalIndex]: ...

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Run on the transaction's connection; the transaction begins with the first call."""
        ...

    async def end(self, *, commit: bool) -> None: ...


class Erased(NamedTuple):
    """The removed rows: where they were, and how many of each kind."""

    traces: erasure.Traces
    rows: dict[str, int]
    removed: Removed
    """The removed things that the retrieval log is to be cleaned of."""
    activity: int
    """Rows of conversations, votes and golden queries."""


class SqlTransaction:
    """Implements `core.ledger.Transaction`."""

    def __init__(self, unit: UnitOfWork, check_dimension: Callable[[int], None], vault: Vault) -> None:
        self._unit = unit
        self._check_dimension = check_dimension
        self._vault = vault
        self.changed = False
        """True when something that could be found no longer can, or the other way round."""
        self.removed = Removed()
        """For the retrieval log, which may lie elsewhere."""
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

    async def open_kb(self, name: str, *, draft: bool = False) -> KnowledgeBase:
        check_name(name, "knowledge base")
        return await self._run(writes.open_kb, self._unit.indexes, name, draft=draft)

    async def present(self, kb: KnowledgeBase) -> KnowledgeBase:
        return await self._run(writes.present, kb)

    async def open_space(self, kb: KnowledgeBase, model: str, dimension: int) -> KnowledgeBase:
        self._check_dimension(dimension)
        return await self._run(writes.open_space, kb, model, dimension)

    async def stage(self, kb: KnowledgeBase, version: NewVersion) -> int:
        return (await self.stage_all(kb, [version]))[0]

    async def activate(self, kb: KnowledgeBase, document_id: str, version: int) -> None:
        self.changed = True
        await self._run(writes.activate, self._unit.indexes, kb, document_id, version)

    async def delete(self, document_id: str) -> bool:
        self.changed = True
        names = await self._run(originals.of_document, document_id)
        gone = await self._run(writes.delete_document, self._unit.indexes, document_id)
        self.removed.documents += gone
        if gone and names:
            self._originals[document_id] = names
        return bool(gone)

    async def withdraw(self, document_id: str) -> bool:
        for child in await self._run(documents.children, document_id):
            await self.delete(child)
        self.changed = True
        return await self._run(writes.withdraw, self._unit.indexes, document_id)

    async def delete_kb(self, name: str) -> int:
        kb = await self._run(documents.read_kb, name)
        if kb is None:
            return 0
        self.changed = True
        self.removed.kbs.setdefault(kb.id, None)
        self._originals.update(await self._run(originals.of_kb, name))
        return len(await self._run(writes.delete_kb, self._unit.indexes, name))

    async def replace_kb(self, name: str, by: KnowledgeBase) -> tuple[KnowledgeBase, int]:
        """Give a kb's name to another, which is asked what it was; the kb, and the documents that went."""
        replaced = await self._run(documents.read_kb, name)
        if replaced:
            await self._run(removal.pass_on_questions, replaced.id, by.id)
            self.removed.kbs[replaced.id] = by.id
        gone = await self.delete_kb(name)
        return await self.rename_kb(by, name), gone

    async def rename_kb(self, kb: KnowledgeBase, name: str) -> KnowledgeBase:
        check_kb_name(name)
        renamed = await self._run(writes.rename_kb, kb, name)
        await self._run(sources.follow_renamed_kb, renamed, kb.name, self._vault)
        return renamed

    async def delete_source(self, kb: KnowledgeBase, name: str) -> int:
        self.changed = True
        self._originals.update(await self._run(originals.of_kb, kb.name, name))
        gone = await self._run(erasure.delete_source, self._unit.indexes, kb, name)
        self.removed.documents += gone
        return len(gone)

    async def erase(self, target: ErasureTarget) -> Erased | None:
        """Remove a document, a source or a kb, and say what there was of it; None when there is none."""
        traces = await self._run(erasure.survey, target)
        if traces is None:
            return None
        counts = await self._run(erasure.count, traces)
        whole_kb = traces.kb.id if traces.whole_kb else None
        activity = await self._run(removal.count_rows, traces.document_ids, whole_kb)
        await self._run(removal.erase_questions, traces.document_ids)
        self.removed.erased = True
        match target.kind:
            case "document":
                await self.delete(target.name)
            case "source":
                await self.delete_source(traces.kb, target.name)
            case _:
                await self.delete_kb(target.name)
        return Erased(traces, counts, self.removed, activity)

    async def discard_leftovers(self, moment: datetime) -> int:
        """Remove what was staged long ago and nobody works on; how many versions."""
        self.changed = True
        return await self._run(writes.discard_leftovers, self._unit.indexes, moment)

    async def live_contents(self, document_ids: Sequence[str]) -> dict[str, LiveContent]:
        return await self._run(documents.live_contents, document_ids)

    async def is_live(self, document_id: str) -> bool:
        return await self._run(documents.is_live, document_id)

    async def move(self, document_id: str, external_id: str, uri: str) -> bool:
        self.changed = True
        for staged in await self._run(documents.in_the_way, document_id, external_id):
            await self.delete(staged)
        if await self._run(documents.is_taken, document_id, external_id):
            return False
        await self._run(documents.move_document, document_id, external_id, uri)
        return True

    async def supersede(self, by: Mapping[str, ReadTime | None]) -> None:
        await self._run(jobs.supersede, by)

    async def supersede_failed(self, document_ids: Sequence[str]) -> None:
        await self._run(jobs.supersede_failed, document_ids)

    async def is_newest(self, job_id: str, document_id: str) -> bool:
        newest = await self._run(jobs.newest_job, document_id)
        return newest is not None and newest.id == job_id

    async def enqueue(self, kb: KnowledgeBase, job: NewJob) -> Job:
        return await self._run(jobs.enqueue, kb, job, self._weigh)

    async def identify(self, kb: KnowledgeBase, source: str, external_id: str) -> str | None:
        return await self._run(documents.identify, kb, source, external_id)

    async def set_recipe(self, document_id: str, content_hash: str, recipe: str) -> None:
        await self._run(documents.set_recipe, document_id, content_hash, recipe)

    async def holds(self, ticket: Ticket) -> bool:
        return await self._run(jobs.holds, ticket)

    async def advance(self, source_id: str, cursor: Json) -> None:
        await self._run(sources.advance, source_id, cursor)

    async def reschedule(self, source_id: str, due: datetime | None, next_run_at: datetime | None) -> bool:
        return await self._run(sources.reschedule, source_id, due, next_run_at)

    async def save_part(self, document_id: str, made_from: str, part: str, data: bytes) -> None:
        await self._run(writes.save_part, document_id, made_from, part, data)

    async def stage_all(self, kb: KnowledgeBase, versions: Sequence[NewVersion]) -> list[int]:
        return await self._run(writes.stage_all, kb, versions)

    async def activate_all(self, kb: KnowledgeBase, versions: Sequence[tuple[str, int]]) -> None:
        self.changed = True
        await self._run(writes.activate_all, self._unit.indexes, kb, versions)

    async def discard_all(self, kb: KnowledgeBase, versions: Sequence[tuple[str, int]]) -> None:
        self.changed = True
        await self._run(writes.discard_all, self._unit.indexes, kb, versions)

    async def existing(self, document_ids: Sequence[str]) -> set[str]:
        return await self._run(documents.existing, document_ids)

    async def holding(self, tickets: Sequence[Ticket]) -> set[Ticket]:
        return await self._run(jobs.holding, tickets)

    async def enqueue_all(self, kb: KnowledgeBase, jobs: Sequence[NewJob]) -> list[Job]:
        return await self._run(writes.enqueue_all, kb, jobs, self._weigh)

    async def complete_all(self, finished: Mapping[Ticket, JobProgress]) -> None:
        await self._run(writes.complete_all, finished)

    async def keep_vectors(
        self, kb: KnowledgeBase, model: str, staged: Sequence[tuple[str, int]], vectors: Sequence[Matrix]
    ) -> None:
        await self._run(spaces.keep_vectors, kb, model, staged, vectors)

    async def lacking(self, kb: KnowledgeBase, space: Space, after: int, limit: int) -> list[Lacking]:
        """Live chunks without a vector in a Space."""
        return await self._run(spaces.lacking, kb, space, after, limit)

    async def add_vectors(self, space: Space, rows: Rows) -> int:
        """Write vectors of chunks that are still there and have none; return how many."""
        self.changed = True
        return await self._run(spaces.add_vectors, space, rows)

    async def truncate(self, kb: KnowledgeBase, model: str, dimension: int) -> KnowledgeBase:
        self._check_dimension(dimension)
        self.changed = True
        return await self._run(spaces.truncate, kb, model, dimension)

    async def flip(self, kb: KnowledgeBase, space: Space, keep_until: str) -> None:
        """Make a Space the live one and retire the one that was."""
        self.changed = True
        await self._run(spaces.flip, kb, space, keep_until)

    async def run(self, work: Callable[Concatenate[Connection, str, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something else in the same transaction."""
        return await self._run(work, *args, **kwargs)

    def _weigh(self, document_id: str, name: str) -> int:
        return self._unit.blobs.size(document_id, name)

    def _drop_originals(self) -> None:
        for document_id, names in self._originals.items():
            self._unit.blobs.remove(document_id, names)

    async def _run(self, work: Callable[Concatenate[Connection, str, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._unit.run(lambda connection: work(connection, self._unit.tenant_id, *args, **kwargs))
