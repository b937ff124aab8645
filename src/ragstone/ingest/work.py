"""The documents of a run while they are worked on, their progress, and the counts of what became of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from ragstone.core.clock import ReadTime, current_read_time
from ragstone.core.documents import FileKind, IngestReport
from ragstone.core.errors import PASSING, kb_gone
from ragstone.core.jobs import JobProgress, Ticket
from ragstone.core.ledger import Ledger
from ragstone.core.search import Stage
from ragstone.core.types import SKIPPED, Chunk, Failure, Item, KnowledgeBase, Stats
from ragstone.ingest.stage_times import StageTimes
from ragstone.settings.tree import LimitSettings

MOST_REMARKS = 20
Watch = Callable[[str, str, int, int], None]
"""Takes a document's address, its stage, and how many parts of how many are done."""


@dataclass(slots=True)
class JobBatch:
    """The documents of one job: a mail and its attachments, an archive and its members, most often just one.

    The job has ended when all of them have; the transaction that stores the last one ends it.
    """

    ticket: Ticket | None = None
    document_id: str = ""
    """The document that the job is about."""
    size: int = 0
    """The bytes that the job counts with while it waits."""
    waiting: int = 1
    """Documents that have not ended, and one more while documents may still be added."""
    stored: int = 0
    failures: list[Failure] = field(default_factory=list)
    skipped: list[Failure] = field(default_factory=list)
    """Items that are neither failures nor documents."""
    retryable: bool = False
    last_attempt: bool = False
    """True if a temporary failure is final this time."""
    remarks: list[str] = field(default_factory=list)
    """Warnings to show although the job completed."""
    was_opened: bool = False
    """True if the item that this job is about is an archive or a mailbox that was opened."""
    members: set[str] = field(default_factory=set)
    """Documents that are in the archive that this job is about, those that fail as well."""
    progress: JobProgress = field(default_factory=JobProgress)
    watch: Watch | None = None
    """Called with the progress of documents that belong to no job."""
    is_ending: bool = False
    """True once its own worker ends the job: that its ticket is void then does not mean that somebody took the job."""

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Note that the block ends the job; one that fails has not."""
        self.is_ending = True
        try:
            yield
        except BaseException:
            self.is_ending = False
            raise

    @property
    def has_ended(self) -> bool:
        return self.waiting <= 0

    @property
    def is_good(self) -> bool:
        """Return whether something was stored, or everything was skipped on purpose, and no failure may pass."""
        return bool(self.stored or (self.skipped and not self.failures)) and not self.passing

    @property
    def passing(self) -> list[Failure]:
        """Return the failures of documents that may be taken in later."""
        return [failure for failure in self.failures if failure.code in PASSING]

    def fail(self, failure: Failure) -> None:
        """Record a document that failed or was skipped."""
        (self.skipped if failure.code == SKIPPED else self.failures).append(failure)

    def final_progress(self) -> JobProgress:
        """Return the progress of a finished job, with its remarks."""
        remarks = [failure.error for failure in (*self.failures, *self.skipped)] + self.remarks
        return replace(
            self.progress,
            stage="verify",
            pages=self.progress.pages_total,
            chunks=self.progress.chunks_total,
            percent=100,
            eta_seconds=0.0,
            remarks=tuple(dict.fromkeys(remarks))[:MOST_REMARKS],
        )


@dataclass(slots=True)
class ParentDocument:
    """A document that brought attachments. It counts as unfinished until all of them have ended."""

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
    """True if an earlier version of it is live."""
    parent_id: str = ""
    parent_hash: str = ""
    """Content hash of the document that it came in with."""
    waiting_job: str = ""
    """A queued job for older content of the same document, which this one replaces."""
    pending_parents: tuple[ParentDocument, ...] = ()
    """Its parent, and itself if it brings attachments."""

    @property
    def read(self) -> ReadTime:
        """Return when its content was read."""
        return self.item.read or ReadTime()

    @property
    def size(self) -> int:
        """Return the length of its content, 0 for what came inside another document."""
        return 0 if self.parent_id else len(self.item.content)

    def note_stage(self, stage: str, **counts: int) -> None:
        """Record its progress: for the next heartbeat of its job, or for `watch` at once when it has no job."""
        batch = self.batch
        if batch.ticket is None:
            for what in ("pages", "chunks"):
                if batch.watch and what in counts:
                    batch.watch(self.item.uri, stage, counts[what], counts[f"{what}_total"])
            return
        # Of several documents of one job the furthest is shown, so that its progress never falls.
        before = batch.progress
        after = replace(
            before,
            stage=stage,
            pages=counts.get("pages", before.pages),
            pages_total=counts.get("pages_total", before.pages_total),
            chunks=counts.get("chunks", before.chunks),
            chunks_total=counts.get("chunks_total", before.chunks_total),
        )
        batch.progress = replace(after, percent=max(before.percent, _percent(after)))


def _percent(progress: JobProgress) -> int:
    """Return how far a document is: extracting is the first fifth of the way, embedding most of the rest."""
    match progress.stage:
        case "fetch":
            return 0
        case "extract":
            return round(20 * progress.pages / progress.pages_total) if progress.pages_total else 5
        case "normalize" | "chunk" | "enrich":
            return 20
        case "embed":
            return 20 + (round(70 * progress.chunks / progress.chunks_total) if progress.chunks_total else 0)
        case _:
            return 90


@dataclass(frozen=True, slots=True)
class SourceListing:
    """The complete list of a source's documents: those that are not listed are gone."""

    source: str
    listed: frozenset[str]
    under: str = ""
    """The listing covers only documents whose external id begins with this."""
    is_there: Callable[[str], bool] = lambda _: False
    """Tells whether a file that is not listed exists all the same, only of a kind that is never listed."""
    read: ReadTime = field(default_factory=current_read_time)
    """The time just before the listing began."""


@dataclass(frozen=True, slots=True)
class PinnedKb:
    """The kb that a run writes to, as it was when the run began."""

    ledger: Ledger
    tenant: str
    kb: KnowledgeBase

    async def current(self) -> KnowledgeBase:
        """Return the kb as it is now; raise `KbGone` if it was renamed or deleted."""
        found = await self.ledger.of(self.tenant).kb(self.kb.name)
        if found is None or found.id != self.kb.id:
            names = {kb.id: kb.name for kb in await self.ledger.of(self.tenant).kbs()}
            raise kb_gone(self.kb.name, names.get(self.kb.id))
        return found


@dataclass
class ChunkSizes:
    """The chunks of a run that are out of bounds; a bound of 0 is no bound."""

    least: int = 0
    most: int = 0
    small: int = 0
    alone: int = 0
    """Small chunks that are all of their document."""
    large: list[str] = field(default_factory=list)
    """One line for each document that has too large chunks."""

    @classmethod
    def from_limits(cls, limits: LimitSettings) -> ChunkSizes:
        return cls(limits.chunk_tokens_least, limits.chunk_tokens_most)

    def add(self, uri: str, chunks: Sequence[Chunk]) -> list[str]:
        """Count the chunks of a document and return its remarks. A document of one small chunk gets none."""
        small = sum(chunk.tokens < self.least for chunk in chunks)
        large = sum(chunk.tokens > self.most for chunk in chunks) if self.most else 0
        remarks = []
        if large:
            remarks.append(f"{_chunks(large)} over {self.most:,} tokens")
            self.large.append(f"{uri}: {remarks[0]}")
        if small and len(chunks) > 1:
            remarks.append(f"{_chunks(small)} under {self.least:,} tokens")
        self.small += small
        self.alone += small if len(chunks) == 1 else 0
        return remarks

    def warnings(self) -> list[str]:
        """Return the warnings of the run. Small chunks are only counted: most documents end with one."""
        if not self.small:
            return self.large
        whole = f", {self.alone:,} of them whole documents" if self.alone else ""
        return [*self.large, f"{_chunks(self.small)} under {self.least:,} tokens{whole}"]


def _chunks(count: int) -> str:
    return "1 chunk is" if count == 1 else f"{count:,} chunks are"


Phase = Literal["reading", "waiting for the model", "embedding"]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run; `document` has just ended, or is a long one that is at `stage`.

    It is empty when only the phase or the counts of chunks have changed.
    """

    done: int
    chunks: int
    failed: int
    document: str
    stage: str = ""
    part: int = 0
    """Pages that are extracted or chunks that are embedded, out of `parts`."""
    parts: int = 0
    phase: Phase = "reading"
    embedded: int = 0
    """Chunks that the model is through with, out of `cut`."""
    cut: int = 0
    """Chunks of the documents that were read."""
    cut_bytes: int = 0
    """The size of the documents that those chunks are of."""
    read_bytes: int = 0
    """The size of all documents that were read, unchanged and failed ones as well."""


OnProgress = Callable[[Progress], None]


@dataclass
class RunReport:
    """The counts of a run while it goes on."""

    on_progress: OnProgress | None = None
    started: float = field(default_factory=time.perf_counter)
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    moved: int = 0
    duplicates: int = 0
    chunks: int = 0
    skipped_chunks: int = 0
    skipped: list[Failure] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    remarked: dict[str, list[str]] = field(default_factory=dict)
    """The documents that were read with a remark of their parser, by the remark."""
    degraded: dict[str, None] = field(default_factory=dict)
    times: StageTimes = field(default_factory=StageTimes)
    sizes: ChunkSizes = field(default_factory=ChunkSizes)
    files: list[FileKind] = field(default_factory=list)
    at_model: int = 0
    """Chunks that are with the model."""
    embedded: int = 0
    cut: int = 0
    cut_bytes: int = 0
    read_bytes: int = 0

    @property
    def phase(self) -> Phase:
        """Return what the run is waiting for most."""
        if not self.at_model:
            return "reading"
        return "embedding" if self.embedded else "waiting for the model"

    def note_cut(self, size: int, chunks: int) -> None:
        """Record a document that was read and cut into chunks."""
        self.cut += chunks
        self.cut_bytes += size
        self.note_progress("")

    @contextmanager
    def with_model(self, chunks: int) -> Iterator[Callable[[int], None]]:
        """Count chunks as being with the model while the block runs; it calls what it is given as they come back."""
        left = chunks

        def come_back(count: int) -> None:
            nonlocal left
            left -= count
            self.at_model -= count
            self.embedded += count
            self.note_progress("")

        self.at_model += chunks
        self.note_progress("")
        try:
            yield come_back
        except asyncio.CancelledError:
            self.at_model -= left
            raise
        except BaseException:
            come_back(left)
            raise
        come_back(left)

    def note_progress(self, uri: str, stage: str = "", part: int = 0, parts: int = 0) -> None:
        """Tell the caller how far a long document is; without a stage, that a document has ended."""
        if self.on_progress:
            done = self.added + self.updated + self.unchanged + self.duplicates
            done += len(self.failed) + len(self.skipped)
            counts = (self.phase, self.embedded, self.cut, self.cut_bytes, self.read_bytes)
            self.on_progress(Progress(done, self.chunks, len(self.failed), uri, stage, part, parts, *counts))

    def note_foreign_model(self, model: str, space: str) -> None:
        """Record that vectors of a fallback model were kept out of a Space of another model (C-07)."""
        self.degraded[f"embedding: {model} answered, but this index is of {space}"] = None

    def add_failure(self, failure: Failure) -> None:
        """Count a document that failed or was skipped."""
        (self.skipped if failure.code == SKIPPED else self.failed).append(failure)
        self.note_progress(failure.uri)

    def note_remarks(self, uri: str, remarks: Sequence[str]) -> None:
        """Record what the parser said of a document."""
        for remark in remarks:
            self.remarked.setdefault(remark, []).append(uri)

    def finish(self, stats: Stats) -> IngestReport:
        """Return the report of the run, with the totals of its kb."""
        return IngestReport(
            added=self.added,
            updated=self.updated,
            unchanged=self.unchanged,
            failed=tuple(self.failed),
            documents=stats.documents,
            chunks=stats.chunks,
            seconds=round(time.perf_counter() - self.started, 3),
            warnings=(
                *_name_remarked(self.remarked),
                *self.warnings,
                *self.sizes.warnings(),
                *describe_skipped(self.skipped),
            ),
            skipped_chunks=self.skipped_chunks,
            degraded=tuple(self.degraded),
            removed=self.removed,
            moved=self.moved,
            duplicates=self.duplicates,
            skipped=len(self.skipped),
            stages=self.times.stages(),
            files=tuple(self.files),
            shares=self.times.shares(),
        )


def describe_skipped(skipped: Sequence[Failure]) -> list[str]:
    """Return one line for each reason that pictures were skipped for, naming the first of them."""
    uris: dict[str, list[str]] = {}
    for failure in skipped:
        uris.setdefault(failure.error, []).append(failure.uri)
    return [f"{_name_first(names)} skipped: {error}" for error, names in uris.items()]


def _name_remarked(remarked: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"{_name_first(uris)}: {remark}" for remark, uris in remarked.items()]


def _name_first(uris: Sequence[str]) -> str:
    return f"{uris[0]} and {len(uris) - 1:,} more" if len(uris) > 1 else uris[0]


def merge_reports(first: IngestReport, second: IngestReport) -> IngestReport:
    """Return two runs as one; what the kb holds is what it holds after the second."""
    return replace(
        second,
        added=first.added + second.added,
        updated=first.updated + second.updated,
        unchanged=first.unchanged + second.unchanged,
        failed=(*first.failed, *second.failed),
        seconds=round(first.seconds + second.seconds, 3),
        warnings=(*first.warnings, *second.warnings),
        skipped_chunks=first.skipped_chunks + second.skipped_chunks,
        degraded=tuple(dict.fromkeys((*first.degraded, *second.degraded))),
        removed=first.removed + second.removed,
        moved=first.moved + second.moved,
        duplicates=first.duplicates + second.duplicates,
        skipped=first.skipped + second.skipped,
        stages=_sum_stages(first.stages, second.stages),
        shares=dict(Counter(first.shares) + Counter(second.shares)),
    )


def _sum_stages(first: Sequence[Stage], second: Sequence[Stage]) -> tuple[Stage, ...]:
    stages = {stage.stage: stage for stage in first}
    for stage in second:
        before = stages.get(stage.stage)
        if before:
            ms = round(before.ms + stage.ms, 1)
            stage = replace(before, ms=ms, entered=before.entered + stage.entered, left=before.left + stage.left)
        stages[stage.stage] = stage
    return tuple(stages.values())
