"""Work that outlives a process: jobs, the sources that make them, and notices of how they ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Literal, NamedTuple, Protocol

from ragstone.core.clock import ReadTime
from ragstone.core.remedies import Remedy, advise
from ragstone.core.types import Failure, Json, KnowledgeBase, Metadata

JobKind = Literal["document", "sync", "reembed"]
JobState = Literal["pending", "running", "completed", "failed", "cancelled"]
Status = Literal["pending", "processing", "completed", "failed"]
"""What a document is; one whose only job was cancelled has failed, and `processing_error` says so."""
SourceState = Literal["paused", "new", "failed", "failing", "partly", "ok"]
"""`new` before the first run; `failed` when the last run was broken off, `failing` when nothing could be taken in,
`partly` when something could not."""
Lane = Literal["all", "batch", "express", "lost"]
"""Which jobs to take: `express` is what was tried before and what somebody waits for, `batch` all but last tries,
`lost` what was tried before but for last tries."""
ACTIVE: tuple[JobState, ...] = ("pending", "running")
MOST_NAMED = 100
"""How many failures of a source are remembered one by one."""
NEAR_DUPLICATE = "near_duplicate"
"""Why a document was left out."""
STAGES = ("fetch", "extract", "normalize", "chunk", "enrich", "embed", "store", "verify")
"""What every document goes through, in order."""


class Priority(IntEnum):
    """Lower is sooner: somebody waits for an upload, nobody for a nightly batch."""

    UPLOAD = 0
    RESEARCH = 1
    SYNC = 5
    BATCH = 10


@dataclass(frozen=True, slots=True)
class NewJob:
    """A document to make, a source to look at, or a kb whose embeddings are to be refreshed."""

    kind: JobKind
    source: str
    external_id: str
    uri: str
    priority: Priority
    document_id: str = ""
    """Empty for all but documents."""
    content_hash: str = ""
    size: int = 0
    facts: Metadata = field(default_factory=dict)
    """What the item was besides its content: title, metadata, media type, when it was modified and read."""
    notify: bool = False
    """Whether somebody wants to hear how it ended."""


def read_of(facts: Metadata) -> ReadTime:
    """When an item was read, as its facts tell; those of before this was written down do not."""
    return ReadTime(*facts.get("read", ()))


class UnderWay(NamedTuple):
    """A job that has not ended."""

    job_id: str = ""
    content_hash: str = ""
    read: ReadTime = ReadTime()


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
    """What a look at a source found: how many were queued, unchanged, removed, moved, failed."""
    remarks: Sequence[str] = ()
    """What somebody should know of a job that completed: members that failed, warnings, missing vectors."""
    hint: str = ""
    """What to do about the error of a job that failed, in words."""
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
    """Who has it or had it last: host, process and a random part."""
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
    """Where the original lies under the data folder; empty when it is not kept."""
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
    """Whether nothing of the source could be taken in."""


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
    """What its last run could not read, and its documents whose last job failed."""

    @property
    def state(self) -> SourceState:
        """Return how the source does."""
        if self.paused:
            return "paused"
        if self.last_run_at is None:
            return "new"
        if self.last_error:
            return "failed"
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


class Queue(Protocol):
    """Jobs of all tenants. A job is held by lease and by ticket: who lost it cannot write for it any more."""

    async def work_signals(self) -> Mapping[str, int]:
        """All tenants, each with a number that changes when there is new work for it."""
        ...

    async def signal_work(self, tenant: str) -> None:
        """Say that there is new work: after the transaction that brought it."""
        ...

    async def claim(
        self,
        tenant: str,
        worker: str,
        kind: JobKind = "document",
        *,
        lease_seconds: float,
        attempts: int,
        most: int,
        most_bytes: int,
        lane: Lane = "all",
    ) -> list[Job]:
        """Take the next jobs of one kb; none when there are none."""
        ...

    async def take_back(self, tenant: str, worker: str, attempts: int) -> int:
        """Let others have what a worker held that is known to be dead, before its lease ends; how many jobs."""
        ...

    async def heartbeat(
        self, tenant: str, held: Mapping[Ticket, JobProgress | None], lease_seconds: float
    ) -> set[Ticket]:
        """Renew leases and write down progress, None for none that is new; the tickets that are void."""
        ...

    async def complete(self, tenant: str, ticket: Ticket, message: str, progress: JobProgress | None = None) -> None:
        """End a job well that no document's transaction has ended."""
        ...

    async def fail(
        self, tenant: str, ticket: Ticket, code: str, error: str, hint: str = "", remedy: Remedy | None = None
    ) -> None: ...

    async def put_back(
        self,
        tenant: str,
        ticket: Ticket,
        *,
        wait_seconds: float,
        code: str,
        error: str,
        counts: bool,
        hint: str = "",
        remedy: Remedy | None = None,
    ) -> None:
        """Let it be tried again later; `counts=False` when the attempt was not the job's fault."""
        ...

    async def cancel(self, tenant: str, job_id: str) -> bool: ...

    async def retry(self, tenant: str, job_id: str) -> bool: ...

    async def job(self, tenant: str, job_id: str) -> Job | None: ...

    async def jobs(
        self, tenant: str, states: Sequence[JobState] = (), source: str | None = None, limit: int = 100
    ) -> list[Job]:
        """Newest first; no states mean all of them."""
        ...

    async def newest(self, tenant: str, kb: KnowledgeBase, kind: JobKind) -> Job | None:
        """The last job of a kind that a kb had."""
        ...

    async def counts(self, tenant: str, source: str | None = None) -> Mapping[str, int]:
        """Return the number of jobs in each state, of all or of one source."""
        ...

    async def next_due(
        self, tenant: str, attempts: int, kind: JobKind = "document", lane: Lane = "all"
    ) -> float | None:
        """In how many seconds there is something that `claim` may take; None when there is nothing."""
        ...

    async def spent_originals(self, tenant: str, jobs: Sequence[Job]) -> list[tuple[str, str]]:
        """Files of these jobs and earlier ones of their documents that nobody needs, by document id and name."""
        ...

    async def notices(self, tenant: str, *, unread: bool = False, limit: int = 100) -> list[Notice]: ...

    async def mark_read(self, tenant: str, notices_read: Sequence[int]) -> None: ...

    async def warn(self, tenant: str, uri: str, message: str, *, quiet_since: datetime) -> bool:
        """Tell the tenant something that no job did; False when it was told of the same thing since then."""
        ...

    async def unsent(self, tenant: str, limit: int = 100) -> list[Notice]:
        """Return the notices that the webhook has not received yet, oldest first."""
        ...

    async def mark_sent(self, tenant: str, notice: int) -> None: ...
