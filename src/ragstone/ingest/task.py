"""What travels through a run: one task per document, and the group of those that came in together."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragstone.core.jobs import JobProgress, Ticket
from ragstone.core.types import Failure, Item


@dataclass(slots=True)
class Group:
    """The documents of one job: a mail and its attachments, an archive and its members, most often just one.

    The job has ended when all of them have; whoever stores the last one ends it in the same transaction.
    """

    ticket: Ticket | None = None
    waiting: int = 1
    """Tasks that have not ended, and one more while tasks may still be added."""
    stored: int = 0
    failures: list[Failure] = field(default_factory=list)
    retryable: bool = False
    progress: JobProgress = field(default_factory=JobProgress)

    @property
    def ended(self) -> bool:
        return self.waiting <= 0


@dataclass(frozen=True, slots=True)
class Task:
    """One document to make."""

    item: Item
    group: Group
    document_id: str = ""
    known: bool = False
    """Whether an earlier version of it is live."""
    parent_id: str = ""
