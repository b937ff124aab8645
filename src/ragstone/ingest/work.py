"""Units of work: items, batches and parent documents of one kb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ragstone.core.clock import Reading
from ragstone.core.errors import kb_gone
from ragstone.core.jobs import JobProgress, Ticket
from ragstone.core.ledger import Ledger
from ragstone.core.types import SKIPPED, Failure, Item, KnowledgeBase

MOST_REMARKS = 20
Watch = Callable[[str, str, int, int], None]
"""Takes a document's address, its stage, and how many parts of how many are done."""


@dataclass(slots=True)
class JobBatch:
    """The documents of one job: a mail and its attachments, an archive and its members, most often just one.

    The job has ended when all of them have; whoever stores the last one ends it in the same transaction.
    """

    ticket: Ticket | None = None
    waiting: int = 1
    """Tasks that have not ended, and one more while tasks may still be added."""
    stored: int = 0
    failures: list[Failure] = field(default_factory=list)
    skipped: list[Failure] = field(default_factory=list)
    """What is no failure and no document either."""
    retryable: bool = False
    last_attempt: bool = False
    """Whether a failure that may pass is final this time."""
    remarks: list[str] = field(default_factory=list)
    """What somebody should know although the job completed."""
    members: set[str] = field(default_factory=set)
    """Documents that are in the archive that this job is about."""
    progress: JobProgress = field(default_factory=JobProgress)
    watch: Watch | None = None
    """Is told how far its documents are, where no job is there to tell."""

    @property
    def has_ended(self) -> bool:
        return self.waiting <= 0

    @property
    def is_good(self) -> bool:
        """Whether something came of it, or nothing was to."""
        return bool(self.stored or (self.skipped and not self.failures))

    def fail(self, failure: Failure) -> None:
        """Note what became of one of its documents."""
        (self.skipped if failure.code == SKIPPED else self.failures).append(failure)

    def final_progress(self) -> JobProgress:
        """Progress at the end, with what should be known."""
        told = [failure.error for failure in (*self.failures, *self.skipped)] + self.remarks
        return replace(
            self.progress,
            stage="verify",
            pages=self.progress.pages_total,
            chunks=self.progress.chunks_total,
            percent=100,
            eta_seconds=0.0,
            remarks=tuple(dict.fromkeys(told))[:MOST_REMARKS],
        )


@dataclass(slots=True)
class ParentDocument:
    """A document and what came in with it. Until all of it is there, the document counts as unfinished."""

    document_id: str
    content_hash: str
    recipe: str
    waiting: int


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One document to make."""

    item: Item
    batch: JobBatch
    document_id: str = ""
    known: bool = False
    """Whether an earlier version of it is live."""
    parent_id: str = ""
    parent_hash: str = ""
    """Of the content that it was in."""
    waiting_job: str = ""
    """That was to make the document from what was there before: this takes its place."""
    pending_parents: tuple[ParentDocument, ...] = ()
    """Those it belongs to: that of its parent, and its own if it brings something itself."""

    @property
    def read(self) -> Reading:
        """When its content was read."""
        return self.item.read or Reading()


@dataclass(frozen=True, slots=True)
class PinnedKb:
    """Where documents of a run go."""

    ledger: Ledger
    tenant: str
    kb: KnowledgeBase
    """As it was when the run began."""

    async def current(self) -> KnowledgeBase:
        """The kb as it is now; `KbGone` when it was renamed or deleted."""
        found = await self.ledger.kb(self.tenant, self.kb.name)
        if found is None or found.id != self.kb.id:
            names = {kb.id: kb.name for kb in await self.ledger.kbs(self.tenant)}
            raise kb_gone(self.kb.name, names.get(self.kb.id))
        return found
