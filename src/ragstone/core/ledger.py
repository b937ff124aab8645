"""The seam of the source of truth: what a ledger keeps, a unit of work on it, and who follows it elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from ragstone.core.clock import ReadTime
from ragstone.core.documents import ChunkRecord
from ragstone.core.filters import Filter
from ragstone.core.jobs import DocumentStatus, Job, JobProgress, NewJob, Status, Ticket, UnderWay
from ragstone.core.types import (
    Document,
    Json,
    KnowledgeBase,
    LiveChunk,
    LiveContent,
    Matrix,
    NewVersion,
    Space,
    Stats,
    Vector,
)


class Transaction(Protocol):
    """A unit of work: all of it commits, or none of it."""

    async def open_kb(self, name: str, *, draft: bool = False) -> KnowledgeBase:
        """Return the kb of that name, made if it does not exist; one for a build to work in only as a `draft`."""
        ...

    async def present(self, kb: KnowledgeBase) -> KnowledgeBase:
        """Return the kb as it is now, or raise `KbGone` when it was renamed or deleted."""
        ...

    async def open_space(self, kb: KnowledgeBase, model: str, dimension: int) -> KnowledgeBase:
        """Give a kb without a live Space one of this model; a live Space of another model is refused."""
        ...

    async def truncate(self, kb: KnowledgeBase, model: str, dimension: int) -> KnowledgeBase:
        """Put an empty Space of this model in the place of all Spaces of a kb, which may be removed from now on."""
        ...

    async def stage(self, kb: KnowledgeBase, version: NewVersion) -> int:
        """Write a version that nobody sees yet and return its number."""
        ...

    async def activate(self, kb: KnowledgeBase, document_id: str, version: int) -> None:
        """Make a staged version the live one and remove the one it replaces."""
        ...

    async def stage_all(self, kb: KnowledgeBase, versions: Sequence[NewVersion]) -> list[int]:
        """Stage several versions; their numbers."""
        ...

    async def activate_all(self, kb: KnowledgeBase, versions: Sequence[tuple[str, int]]) -> None:
        """Make staged versions live, by document id and number."""
        ...

    async def discard_all(self, kb: KnowledgeBase, versions: Sequence[tuple[str, int]]) -> None:
        """Remove staged versions that are not to go live."""
        ...

    async def keep_vectors(
        self, kb: KnowledgeBase, model: str, staged: Sequence[tuple[str, int]], vectors: Sequence[Matrix]
    ) -> None:
        """Write vectors of staged versions, by id and number, into a Space of their own model, if there is one."""
        ...

    async def delete(self, document_id: str) -> bool:
        """Remove a document and what came in with it, with versions, jobs and files; False when there is none."""
        ...

    async def withdraw(self, document_id: str) -> bool:
        """Remove what a document says and what came in with it; itself and its jobs stay, as if it never went live."""
        ...

    async def delete_kb(self, name: str) -> int:
        """Remove a kb with everything in it; the number of documents that went."""
        ...

    async def rename_kb(self, kb: KnowledgeBase, name: str) -> KnowledgeBase:
        """Give a kb another name; `CollectionExists` when that is taken, `StoreBusy` while a job works on it."""
        ...

    async def delete_source(self, kb: KnowledgeBase, name: str) -> int:
        """Remove a source, its jobs and what it brought, all at once; the number of documents that went."""
        ...

    async def existing(self, document_ids: Sequence[str]) -> set[str]:
        """Return those of the documents that there are, live or not yet."""
        ...

    async def live_contents(self, document_ids: Sequence[str]) -> Mapping[str, LiveContent]:
        """Return the content that the live documents among these were made from."""
        ...

    async def is_live(self, document_id: str) -> bool:
        """Return whether the document exists and had a live version at any time."""
        ...

    async def move(self, document_id: str, external_id: str, uri: str) -> bool:
        """Find the same document under another external id from now on; False when another one is live there."""
        ...

    async def supersede(self, by: Mapping[str, ReadTime | None]) -> None:
        """Cancel jobs that have not ended, but those that have something that was read later than this."""
        ...

    async def supersede_failed(self, document_ids: Sequence[str]) -> None:
        """Cancel jobs that failed of documents whose live content was read again since."""
        ...

    async def is_newest(self, job_id: str, document_id: str) -> bool:
        """Return whether no newer job is about the document."""
        ...

    async def enqueue(self, kb: KnowledgeBase, job: NewJob) -> Job:
        """Queue a job; one that waits to make the same document from the same content is returned instead."""
        ...

    async def enqueue_all(self, kb: KnowledgeBase, jobs: Sequence[NewJob]) -> list[Job]:
        """Queue several jobs."""
        ...

    async def holds(self, ticket: Ticket) -> bool:
        """Return whether the worker still holds the job."""
        ...

    async def holding(self, tickets: Sequence[Ticket]) -> set[Ticket]:
        """Return those of the jobs that are still this worker's."""
        ...

    async def complete_all(self, finished: Mapping[Ticket, JobProgress]) -> None:
        """End jobs well whose tickets are still good; the others are somebody else's to end."""
        ...

    async def identify(self, kb: KnowledgeBase, source: str, external_id: str) -> str | None:
        """Return the id of a document by what its source calls it, live or not yet."""
        ...

    async def set_recipe(self, document_id: str, content_hash: str, recipe: str) -> None:
        """Say what made the live version, if it is of this content, once all that came in with it is there."""
        ...

    async def advance(self, source_id: str, cursor: Json) -> None:
        """Remember how far a source has been read; `LeaseLost` when it was removed."""
        ...

    async def reschedule(self, source_id: str, due: datetime | None, next_run_at: datetime | None) -> bool:
        """Say when a source that is due is looked at next; False when somebody has."""
        ...

    async def save_part(self, document_id: str, made_from: str, part: str, data: bytes) -> None:
        """Keep a part of an unfinished document; `made_from` names its content and the way it is made."""
        ...


class Ledger(Protocol):
    """The source of truth: documents, versions, chunks, vectors and the change feed, per tenant."""

    def of(self, tenant: str) -> TenantLedger:
        """Return the ledger of one tenant."""
        ...

    def transaction(self, tenant: str) -> AbstractAsyncContextManager[Transaction]: ...

    async def clean_up(self, tenant: str) -> None:
        """Remove what a crash left behind."""
        ...

    @property
    def has_followers(self) -> bool:
        """True when an external index follows the ledger: staged versions are prepared there before they go live."""
        ...

    async def prepare(self, tenant: str, kb: KnowledgeBase, staged: Sequence[tuple[str, int]]) -> None:
        """Have every index elsewhere take in staged versions, by document id and number."""
        ...

    async def catch_up(self, tenant: str) -> None:
        """Have every index elsewhere catch up now, or say why it cannot."""
        ...

    async def close(self) -> None: ...


class TenantLedger(Protocol):
    """The kbs, documents, chunks and files of one tenant."""

    async def kb(self, name: str) -> KnowledgeBase | None: ...

    async def kbs(self) -> list[KnowledgeBase]: ...

    async def space(self, kb: KnowledgeBase) -> Space | None:
        """Return the live Space as it is now."""
        ...

    async def find(self, kb: KnowledgeBase, source: str, external_ids: Sequence[str]) -> Mapping[str, Document]:
        """Return the documents of a source by external id; ids without a document are left out."""
        ...

    async def document(self, document_id: str) -> Document | None: ...

    async def documents(
        self,
        kb: KnowledgeBase,
        *,
        where: Filter | None = None,
        status: Status | None = None,
        file_type: str | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Document]:
        """Return a page of documents in order of id, starting behind `after`; those that can be found, or of a status.

        A `file_type` is as the name of the file ends.
        """
        ...

    async def text(self, document_id: str) -> str:
        """Return the live version's text, which citation offsets point into."""
        ...

    async def chunks(self, kb: KnowledgeBase, chunk_ids: Sequence[str]) -> Mapping[str, LiveChunk]:
        """Read candidates back: what is foreign, stale or deleted is not in the answer."""
        ...

    async def document_chunks(self, document_id: str) -> list[LiveChunk]:
        """Return all live chunks of a document in order."""
        ...

    async def chunk_records(self, document_id: str) -> list[ChunkRecord]:
        """Return the same with the models of their vectors, under the names that others know."""
        ...

    async def known_vectors(self, kb: KnowledgeBase, texts: Sequence[str]) -> Mapping[str, Vector]:
        """Return vectors of the live Space for contextual texts that it holds: equal text is not embedded again."""
        ...

    async def status(self, document_id: str) -> DocumentStatus | None:
        """Return the status of a document, also of one that is not live yet."""
        ...

    async def source_documents(self, kb: KnowledgeBase, source: str, under: str = "") -> Mapping[str, tuple[str, str]]:
        """Return id and content hash of a source's documents by external id, of those that begin with `under`.

        The hash of one that is not live yet is empty.
        """
        ...

    async def identities(self, kb: KnowledgeBase, source: str, external_ids: Sequence[str]) -> Mapping[str, str]:
        """Return ids of documents by what their source calls them, live or not yet."""
        ...

    async def existing(self, document_ids: Sequence[str]) -> set[str]:
        """Return those of the documents that exist, live or not yet."""
        ...

    async def under_way(self, document_ids: Sequence[str]) -> Mapping[str, UnderWay]:
        """Return the last unfinished job of each document."""
        ...

    async def children(self, document_id: str) -> list[str]:
        """Return the documents that came in with this one."""
        ...

    async def part(self, document_id: str, made_from: str, part: str) -> bytes | None:
        """Return a part that `save_part` kept."""
        ...

    async def resembling(
        self, kb: KnowledgeBase, bands: Mapping[str, Sequence[int]]
    ) -> Mapping[str, Mapping[str, bytes]]:
        """Return signatures, by id, of other live documents that share a band with each of these."""
        ...

    async def newest_jobs(self, document_ids: Sequence[str]) -> Mapping[str, Job]:
        """Return the last job there was for each document."""
        ...

    async def keep_originals(self, contents: Sequence[tuple[str, bytes]]) -> list[str]:
        """Write files of documents down for good, and return their names."""
        ...

    async def originals(self, named: Sequence[tuple[str, str]]) -> list[bytes | None]:
        """Return files by document id and name; None for one that is gone."""
        ...

    async def drop_originals(self, named: Sequence[tuple[str, str]]) -> None: ...

    async def drop_files(self, document_id: str) -> None:
        """Remove all files of a document, or of a task."""
        ...

    async def stats(self, kb: KnowledgeBase) -> Stats: ...

    async def count_waiting(self, kb: KnowledgeBase) -> int:
        """Return how many documents are still to be read, or to be embedded where the kb has vectors."""
        ...

    async def sequence(self) -> int:
        """Return the last commit's place in the change feed."""
        ...

    async def resolve_sources(self, kb: KnowledgeBase, where: Filter | None) -> Filter | None:
        """Return a filter in which the name of a connector that is no `source` is asked for as `connector`."""
        ...

    async def source_types(self) -> list[tuple[str, int, int]]:
        """Return source types of live documents, with how many documents and chunks there are of each."""
        ...


class LedgerFollower(Protocol):
    """An index outside the ledger, from the writer's side: what is to go live is there before it does."""

    async def prepare(self, tenant: str, kb: KnowledgeBase, staged: Sequence[tuple[str, int]]) -> None:
        """Take in staged document versions, by id and number; they can be found from now on, but nobody looks."""
        ...

    async def catch_up(self, tenant: str) -> None:
        """Let go of what is live no more, and catch up with what was missed."""
        ...
