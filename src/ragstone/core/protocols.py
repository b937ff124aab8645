"""The seams. An adapter is checked against them by the type checker and by the suites in `ragstone.testing`.

Those of the ledger and of what follows it stand in `ragstone.core.ledger`.
I/O is async; pure computation (parsing, chunking, counting) is not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ragstone.core.filters import Filter
from ragstone.core.jobs import (
    Job,
    JobKind,
    JobProgress,
    JobState,
    Lane,
    Notice,
    SourceFailures,
    SourceRecord,
    TaskResult,
    Ticket,
)
from ragstone.core.model_types import EmbeddingModel, Embeddings, Entailment, Message
from ragstone.core.remedies import Remedy
from ragstone.core.search import KeptResults, QueryType, SearchResult, WebResult
from ragstone.core.spaces import Complete, EmbeddedText, Lacking, Rows, SpaceRecord
from ragstone.core.types import Candidate, Chunk, Hit, Json, KnowledgeBase, Metadata, Page, Parsed, Role, Space, Vector


@dataclass(frozen=True, slots=True)
class RecordFindings:
    """Rows for a query, best first. `problem` says which could not be read."""

    rows: tuple[Hit, ...]
    problem: str = ""


class SharedCache(Protocol):
    """Keeps values for the processes of an installation, each tenant's apart. It may lose any of them."""

    async def get(self, tenant_id: str, key: str) -> bytes | None:
        """Return what is kept under a key, or None; never fails."""
        ...

    async def put(self, tenant_id: str, key: str, value: bytes, seconds: float) -> None:
        """Keep a value for some seconds, if that is possible now; never fails."""
        ...


class Tokenizer(Protocol):
    """Splits text the way a model does."""

    @property
    def name(self) -> str:
        """Names the vocabulary: part of a chunker's fingerprint."""
        ...

    def offsets(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the span of each token in the text, special tokens left out."""
        ...


class Source(Protocol):
    """A configured connector."""

    def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield the pages of items that are new since `cursor` (None at first).

        Raises `SourceError` or `FetchError` when the source as a whole cannot be read; an item that cannot is a
        `Failure` among the items. A page that was yielded is never taken back: a stored cursor goes on there.
        """
        ...

    async def close(self) -> None: ...


class Chunker(Protocol):
    """Cuts a document into spans."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same text would be cut differently."""
        ...

    def chunk(self, document: Parsed) -> list[Chunk]: ...


class Embedder(Protocol):
    """Turns text into vectors of one space."""

    @property
    def model(self) -> EmbeddingModel: ...

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        """Return one unit-length row per text, in order, or raise `ModelError` when none could be made."""
        ...

    async def close(self) -> None: ...


EmbedderFor = Callable[[Space], Awaitable[Embedder]]
"""Gives the embedder of a Space's model in its dimension, or raises `ModelError`."""


class Reranker(Protocol):
    """Scores passages against a query. It only scores: order, ties and cut-offs are the pipeline's."""

    @property
    def name(self) -> str: ...

    async def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """Return one score per passage between 0 and 1."""
        ...

    async def close(self) -> None: ...


class Entailer(Protocol):
    """Says what passages mean for a claim."""

    @property
    def name(self) -> str: ...

    async def label(self, premises: Sequence[str], hypothesis: str) -> Sequence[Entailment]:
        """Return one judgement per premise, in order, or raise `ModelError` or `RemoteError`."""
        ...

    async def close(self) -> None: ...


class LLM(Protocol):
    """Completes a conversation."""

    @property
    def name(self) -> str: ...

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> str:
        """Return the whole reply, or raise `RemoteError` when none came within `seconds`."""
        ...

    def stream(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> AsyncIterator[str]:
        """Yield the reply as it is written."""
        ...

    async def close(self) -> None: ...


class WebSearch(Protocol):
    """Finds pages of the web. Their addresses are data: nothing is fetched from them."""

    @property
    def name(self) -> str: ...

    async def search(self, query: str, k: int) -> list[WebResult]:
        """At most k results, best first. Raises `RateLimited` or another `RemoteError` when there is no answer."""
        ...

    async def close(self) -> None: ...


class WebResultCache(Protocol):
    """Keeps what a tenant was given by a search engine. It raises nothing."""

    async def get(self, provider: str, query: str, k: int) -> KeptResults | None:
        """Return what was found the last time, fresh or not."""
        ...

    async def put(self, provider: str, query: str, k: int, results: Sequence[WebResult]) -> None:
        """Keep results in place of earlier ones."""
        ...


class RecordSearch(Protocol):
    """Finds rows of databases as they are now. A row is given to the tenant that it belongs to and to no other."""

    @property
    def about(self) -> frozenset[QueryType]:
        """The types of queries that some rows are for."""
        ...

    async def find(self, tenant: str, query: str, of: QueryType) -> RecordFindings:
        """Return the rows that share most words with the query, best first, or raise `SourceError`."""
        ...


class VectorIndex(Protocol):
    """Finds chunks by meaning. Searches live content of one tenant and kb only."""

    async def search(
        self, tenant: str, kb: KnowledgeBase, vector: Vector, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        """Return the k nearest chunks by cosine, best first, ties by id; the filter acts before the cut."""
        ...


class LexicalIndex(Protocol):
    """Finds chunks by word. Searches live content of one tenant and kb only."""

    async def search(
        self, tenant: str, kb: KnowledgeBase, query: str, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        """Return the k best chunks by BM25 over any term, best first, ties by id; the filter acts before the cut."""
        ...


class Retriever(Protocol):
    """Anything that answers a query with hits: the runner in `evaluate` measures these."""

    async def retrieve(self, query: str, k: int) -> SearchResult: ...


class SourceBook(Protocol):
    """The configured sources of all tenants."""

    def of(self, tenant: str) -> TenantSources:
        """Return the sources of one tenant."""
        ...


class TenantSources(Protocol):
    """The configured sources of one tenant."""

    async def add(
        self, kb: KnowledgeBase, name: str, kind: str, config: Metadata, schedule: str, next_run_at: datetime | None
    ) -> SourceRecord: ...

    async def get(self, kb: str, name: str) -> SourceRecord | None: ...

    async def all(self, kb: str | None = None) -> list[SourceRecord]:
        """Return the sources of a kb or of all, in order of kb and name."""
        ...

    async def due(self, moment: datetime) -> list[SourceRecord]:
        """Return the sources whose time has come and that are not paused, without failed documents, secrets sealed."""
        ...

    async def ran(
        self,
        source_id: str,
        error: str,
        next_run_at: datetime | None,
        unread: SourceFailures,
        ticket: Ticket | None = None,
    ) -> None:
        """Write down the end of a run: when the next one is, what broke it off, and what it could not read.

        A worker whose ticket is void writes nothing: its job was cancelled, or another worker says how it ended.
        """
        ...

    async def pause(self, source_id: str, paused: bool) -> None: ...

    async def remove(self, source_id: str) -> None:
        """Remove a source and cancel its jobs, all at once: a worker that reads it cannot queue any more."""
        ...


class SpaceBook(Protocol):
    """The Spaces of all kbs of all tenants."""

    def of(self, tenant: str) -> TenantSpaces:
        """Return the Spaces of one tenant."""
        ...


class TenantSpaces(Protocol):
    """The Spaces of all kbs of one tenant."""

    async def all(self, kb: KnowledgeBase) -> list[SpaceRecord]:
        """Return all Spaces of a kb, oldest generation first."""
        ...

    async def outline(self, kb: KnowledgeBase) -> list[tuple[Space, datetime]]:
        """Return the Spaces of a kb and when each was made, oldest generation first, without counting vectors."""
        ...

    async def sample(self, kb: KnowledgeBase, space: Space, count: int, after: str) -> list[EmbeddedText]:
        """Return some live chunks with their vectors: those whose ids follow `after`, and then from the first on."""
        ...

    async def open(self, kb: KnowledgeBase, model: str, dimension: int, after: int = 0) -> Space:
        """Return the Space of this model that is being built, of a generation above `after`, or a new one."""
        ...

    async def lacking(self, kb: KnowledgeBase, space: Space, after: int, limit: int) -> list[Lacking]:
        """Return live chunks without a vector, in order of their numbers, behind number `after`."""
        ...

    async def coverage(self, kb: KnowledgeBase, space: Space) -> tuple[int, int]:
        """Return the number of live chunks with a vector in a Space, and of all live chunks."""
        ...

    async def find_vectors(self, space: Space, hashes: Sequence[bytes]) -> Mapping[bytes, Vector]:
        """Return vectors that a Space already holds for equal text."""
        ...

    async def add(self, space: Space, rows: Rows) -> int:
        """Write vectors of chunks that are still there and have none; return how many."""
        ...

    async def is_truncated(self, kb: KnowledgeBase) -> bool:
        """Return whether the live Space took the place of all others and has not been filled since."""
        ...

    async def word_only(self, kb: KnowledgeBase) -> bool:
        """Return whether a live document is found by word only."""
        ...

    async def note_embedded(self, kb: KnowledgeBase, refused: Collection[int]) -> None:
        """Mark documents that lack nothing in the live Space but refused chunks as found by meaning."""
        ...

    async def promote(
        self, kb: KnowledgeBase, space: Space, *, keep_until: datetime, refused: Collection[int], complete: Complete
    ) -> bool:
        """Make a Space the live one and retire the one that was, in one step.

        Only when no live chunk lacks a vector in it: a few that do are completed while no other process writes.
        Return False when there are too many for that.
        """
        ...

    async def list_expired(self, moment: datetime) -> list[Space]:
        """Return retired Spaces of all kbs whose grace period was over at that moment."""
        ...

    async def drop(self, space: Space) -> bool:
        """Remove a Space with its vectors wherever they are; False when it is the live one, or has become it."""
        ...


class Queue(Protocol):
    """Jobs of all tenants. A job is held by lease and by ticket: a worker that lost it cannot write for it any more."""

    def of(self, tenant: str) -> TenantQueue:
        """Return the queue of one tenant."""
        ...

    async def work_signals(self) -> Mapping[str, int]:
        """Return the active tenants, each with a number that changes when there is new work for it."""
        ...

    async def signal_work(self, tenant: str) -> None:
        """Signal that there is new work: after the transaction that brought it."""
        ...


class TenantQueue(Protocol):
    """Jobs of one tenant, and notices of how they ended."""

    async def claim(
        self,
        worker: str,
        kind: JobKind = "document",
        *,
        lease_seconds: float,
        attempts: int,
        most: int,
        most_bytes: int,
        lane: Lane = "all",
    ) -> list[Job]:
        """Take the next jobs of one kb; an empty list when there are none."""
        ...

    async def take_back(self, worker: str, attempts: int) -> int:
        """Give back what a dead worker held, before its lease ends; return how many jobs."""
        ...

    async def heartbeat(self, held: Mapping[Ticket, JobProgress | None], lease_seconds: float) -> set[Ticket]:
        """Renew leases and write down progress that is new; return the tickets that are void."""
        ...

    async def complete(
        self, ticket: Ticket, message: str, progress: JobProgress | None = None, result: TaskResult | None = None
    ) -> None:
        """End a job well that no document's transaction has ended; the result of a task takes its input's place."""
        ...

    async def forget_tasks(self, *, keep: int = 0, before: datetime | None = None) -> list[str]:
        """Forget ended tasks but for the newest, and those that ended before; return what their files are kept under.

        With `keep=0` and no moment, tasks that have not ended go as well: what they read may be about to be erased.
        """
        ...

    async def fail(
        self, ticket: Ticket, code: str, error: str, hint: str = "", remedy: Remedy | None = None
    ) -> None: ...

    async def put_back(
        self,
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

    async def cancel(self, job_id: str) -> bool: ...

    async def retry(self, job_id: str) -> bool: ...

    async def job(self, job_id: str) -> Job | None: ...

    async def jobs(self, states: Sequence[JobState] = (), source: str | None = None, limit: int = 100) -> list[Job]:
        """Return jobs, newest first; no states mean all of them."""
        ...

    async def newest(self, kb: KnowledgeBase, kind: JobKind) -> Job | None:
        """Return the last job of a kind that a kb had."""
        ...

    async def counts(self, source: str | None = None) -> Mapping[str, int]:
        """Return the number of jobs in each state, of all or of one source."""
        ...

    async def next_due(self, attempts: int, kind: JobKind = "document", lane: Lane = "all") -> float | None:
        """Return in how many seconds there is something that `claim` may take; None when there is nothing."""
        ...

    async def spent_originals(self, jobs: Sequence[Job]) -> list[tuple[str, str]]:
        """Return files that these jobs and earlier ones brought and nothing needs any more, by document and name."""
        ...

    async def notices(self, *, unread: bool = False, limit: int = 100) -> list[Notice]: ...

    async def mark_read(self, notices_read: Sequence[int]) -> None: ...

    async def warn(self, uri: str, message: str, *, quiet_since: datetime) -> bool:
        """Tell the tenant something that no job did; False when it was told of the same thing since then."""
        ...

    async def unsent(self, limit: int = 100) -> list[Notice]:
        """Return the notices that the webhook has not received yet, oldest first."""
        ...

    async def mark_sent(self, notice: int) -> None: ...
