"""Work that outlives a process: jobs, the sources that make them, and notices of how they ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Literal, NamedTuple

from ragstone.core.clock import ReadTime
from ragstone.core.errors import StoreError
from ragstone.core.remedies import Remedy, advise
from ragstone.core.types import Failure, Json, Metadata

JobKind = Literal["document", "sync", "reembed", "task"]
"""A task is an export, an import, an evaluation or a tuning; its `source` says which."""
JobState = Literal["pending", "running", "completed", "failed", "cancelled"]
Status = Literal["pending", "processing", "completed", "failed"]
"""The status of a document; one whose only job was cancelled has failed, and `processing_error` says so."""
SourceState = Literal["paused", "new", "failed", "failing", "partly", "ok"]
"""`new` before the first run; `failed` when the last run was broken off, `failing` when nothing could be taken in,
`partly` when something could not."""
Lane = Literal["all", "batch", "express", "lost"]
"""Which jobs to take: `express` is what was tried before and what somebody waits for, `batch` all but last tries,
`lost` what was tried before but for last tries."""
Labels = Literal["golden", "feedback"]
"""The queries that a measurement is made on: golden ones, or those with votes."""
ACTIVE: tuple[JobState, ...] = ("pending", "running")
MOST_NAMED = 100
"""The number of failures of a source that are remembered one by one."""
NEAR_DUPLICATE = "near_duplicate"
"""Why a document was left out."""
STAGES = ("fetch", "extract", "normalize", "chunk", "enrich", "embed", "store", "verify")
"""The stages of every document, in order."""


class Priority(IntEnum):
    """Lower is sooner: somebody waits for an upload, nobody for a nightly batch."""

    UPLOAD = 0
    RESEARCH = 1
    SYNC = 5
    BATCH = 10


@dataclass(frozen=True, slots=True)
class NewJob:
    """A document to make, a source to look at, a kb whose embeddings are to be refreshed, or a task."""

    kind: JobKind
    source: str
    external_id: str
    uri: str
    priority: Priority
    document_id: str = ""
    """Of a task, the id that its files are kept under; empty for all other kinds but documents."""
    content_hash: str = ""
    size: int = 0
    facts: Metadata = field(default_factory=dict)
    """The facts of the item besides its content: title, metadata, media type, when it was modified and read."""
    notify: bool = False
    """True when its end is to be reported."""


def read_of(facts: Metadata) -> ReadTime:
    """When an item was read, as its facts tell; those of before this was written down do not."""
    return ReadTime(*facts.get("read", ()))


class UnderWay(NamedTuple):
    """A job that has not ended."""

    job_id: str = ""
    content_hash: str = ""
    read: ReadTime = ReadTime()


class TaskResult(NamedTuple):
    """A file that a task has made, kept under its job's `document_id`."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class TaskFile:
    """The file that a task has made, with its content."""

    filename: str
    media_type: str
    content: bytes


class Ticket(NamedTuple):
    """The right to finish a job: void as soon as the job is given to another worker."""

    job_id: str
    token: int


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The progress of a document."""

    stage: str = ""
    pages: int = 0
    pages_total: int = 0
    chunks: int = 0
    chunks_total: int = 0
    percent: int = 0
    eta_seconds: float | None = None
    found: Mapping[str, int] = field(default_factory=dict)
    """The counts of a sync: queued, unchanged, removed, moved, failed."""
    remarks: Sequence[str] = ()
    """Remarks on a job that completed: members that failed, warnings, missing vectors."""
    hint: str = ""
    """The advice about the error of a job that failed, in words."""
    remedy: Remedy | None = None
    """The same as data."""

    @property
    def advice(self) -> str:
        """Return what to do about the error, in the words of the surface that is in use."""
        return advise(self.hint, self.remedy)


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the ledger knows it."""

    id: str
    kind: JobKind
    kb: str
    state: JobState
    priority: int
    document_id: str
    source: str
    external_id: str
    uri: str
    content_hash: str
    size: int
    facts: Metadata
    progress: JobProgress
    attempts: int
    token: int
    worker: str
    """The worker that has it or had it last: host, process and a random part."""
    error_code: str
    error: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def read(self) -> ReadTime:
        """When the content that it is to make a document of was read."""
        return read_of(self.facts)

    @property
    def ticket(self) -> Ticket:
        """Return the ticket with which the worker that claimed the job finishes it."""
        return Ticket(self.id, self.token)


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """The status of a document: `completed` means that it can be found."""

    document_id: str
    status: Status
    uri: str
    title: str
    chunk_count: int
    total_tokens: int
    processed_at: datetime | None
    processing_error: str
    job: Job | None
    """Its newest job; None for what was ingested without one, or long ago."""
    filename: str = ""
    file_type: str = ""
    """As the name ends: `pdf`, `txt`, `docx` and others."""
    file_size: int | None = None
    """In bytes, as it came in; None for what no job brought."""
    file_path: str = ""
    """The path of the original under the data folder; empty when it is not kept."""
    description: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    uploaded_at: datetime | None = None
    embedding_model: str = ""
    """The model whose vectors find it; empty while there are none."""


@dataclass(frozen=True, slots=True)
class SourceFailures:
    """The failures of a source that are known now."""

    count: int = 0
    first: tuple[Failure, ...] = ()
    """Up to `MOST_NAMED` of them."""
    total: bool = False
    """True when nothing of the source could be taken in."""


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A configured connector and how far it has been read."""

    id: str
    kb: str
    name: str
    kind: str
    config: Metadata
    schedule: str
    cursor: Json
    paused: bool
    next_run_at: datetime | None
    last_run_at: datetime | None
    last_error: str
    created_at: datetime
    source_failures: SourceFailures = SourceFailures()
    """The items that its last run could not read, and its documents whose last job failed."""
    damage: StoreError | None = None
    """The reason why its secrets cannot be opened; they are sealed in its configuration then."""

    @property
    def state(self) -> SourceState:
        """Return how the source does."""
        if self.paused:
            return "paused"
        if self.last_error:
            return "failed"
        if self.last_run_at is None:
            return "new"
        if self.source_failures.count:
            return "failing" if self.source_failures.total else "partly"
        return "ok"


@dataclass(frozen=True, slots=True)
class Notice:
    """Tells a tenant how something ended."""

    id: int
    kind: Literal["completed", "failed", "warning"]
    """A warning is about no job."""
    job_id: str
    document_id: str
    uri: str
    message: str
    created_at: datetime
    read: bool
