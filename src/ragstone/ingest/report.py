"""Count what a run did."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ragstone.core.jobs import STAGES, JobProgress
from ragstone.core.types import SKIPPED, Chunk, Failure, IngestReport, Stage, Stats
from ragstone.ingest.work import WorkItem
from ragstone.settings.tree import LimitSettings


@dataclass
class ChunkSizes:
    """Notes the chunks of a run that are out of bounds; a bound of 0 is none."""

    least: int = 0
    most: int = 0
    small: int = 0
    alone: int = 0
    """Those of the small ones that are all of their document."""
    large: list[str] = field(default_factory=list)
    """Documents that have chunks which are too large, and how many."""

    @classmethod
    def from_limits(cls, limits: LimitSettings) -> ChunkSizes:
        return cls(limits.chunk_tokens_least, limits.chunk_tokens_most)

    def add(self, uri: str, chunks: Sequence[Chunk]) -> list[str]:
        """Note the chunks of a document; what is to be said of it. That it is short is no news."""
        small = sum(chunk.tokens < self.least for chunk in chunks)
        large = sum(chunk.tokens > self.most for chunk in chunks) if self.most else 0
        told = []
        if large:
            told.append(f"{_chunks(large)} over {self.most:,} tokens")
            self.large.append(f"{uri}: {told[0]}")
        if small and len(chunks) > 1:
            told.append(f"{_chunks(small)} under {self.least:,} tokens")
        self.small += small
        self.alone += small if len(chunks) == 1 else 0
        return told

    def warnings(self) -> list[str]:
        """What is to be said of the run. Small chunks are counted: most documents end with one."""
        if not self.small:
            return self.large
        whole = f", {self.alone:,} of them whole documents" if self.alone else ""
        return [*self.large, f"{_chunks(self.small)} under {self.least:,} tokens{whole}"]


def _chunks(count: int) -> str:
    return "1 chunk is" if count == 1 else f"{count:,} chunks are"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; `document` has just ended, or is a long one that is at `stage` still."""

    done: int
    chunks: int
    failed: int
    document: str
    stage: str = ""
    part: int = 0
    """Pages that are extracted or chunks that are embedded, of as many as `parts`."""
    parts: int = 0


OnProgress = Callable[[Progress], None]


@dataclass
class RunReport:
    """The report while it grows."""

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
    degraded: dict[str, None] = field(default_factory=dict)
    times: StageTimes = field(default_factory=lambda: StageTimes())
    sizes: ChunkSizes = field(default_factory=ChunkSizes)

    def note_done(self, uri: str) -> None:
        """One more document is through, whatever became of it."""
        self.note_progress(uri)

    def note_progress(self, uri: str, stage: str = "", part: int = 0, parts: int = 0) -> None:
        """A long document is so far; without a stage, it has ended."""
        if self.on_progress:
            done = self.added + self.updated + self.unchanged + self.duplicates
            done += len(self.failed) + len(self.skipped)
            self.on_progress(Progress(done, self.chunks, len(self.failed), uri, stage, part, parts))

    def note_foreign_model(self, model: str, space: str) -> None:
        """C-07: vectors of a fallback model never enter a Space of another; what is left is search by word."""
        self.degraded[f"embedding: {model} answered, but this index is of {space}"] = None

    def add_failure(self, failure: Failure) -> None:
        (self.skipped if failure.code == SKIPPED else self.failed).append(failure)
        self.note_done(failure.uri)

    def finish(self, stats: Stats) -> IngestReport:
        """What the run did, and what the kb holds after it."""
        return IngestReport(
            added=self.added,
            updated=self.updated,
            unchanged=self.unchanged,
            failed=tuple(self.failed),
            documents=stats.documents,
            chunks=stats.chunks,
            seconds=round(time.perf_counter() - self.started, 3),
            warnings=(*self.warnings, *self.sizes.warnings(), *describe_skipped(self.skipped)),
            skipped_chunks=self.skipped_chunks,
            degraded=tuple(self.degraded),
            removed=self.removed,
            moved=self.moved,
            duplicates=self.duplicates,
            skipped=len(self.skipped),
            stages=self.times.stages(),
        )


def describe_skipped(skipped: Sequence[Failure]) -> list[str]:
    """One line for each reason that pictures were skipped for, and one of them."""
    uris: dict[str, list[str]] = {}
    for one in skipped:
        uris.setdefault(one.error, []).append(one.uri)
    return [
        f"{names[0]}{f' and {len(names) - 1:,} more' if len(names) > 1 else ''} skipped: {error}"
        for error, names in uris.items()
    ]


class StageTimes:
    """How long each stage worked and how much went in and came out; stages overlap, so the sum exceeds the clock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, int, int]] = {}

    @contextmanager
    def measure(self, stage: str, entered: int = 1) -> Iterator[list[int]]:
        """Time a block; what it appends to the list is what came out, else as much as went in."""
        left: list[int] = []
        started = time.perf_counter()
        ended = False
        try:
            yield left
            ended = True
        finally:
            spent = (time.perf_counter() - started) * 1000
            with self._lock:
                ms, before_in, before_out = self._seen.get(stage, (0.0, 0, 0))
                out = (sum(left) if left else entered) if ended else 0
                self._seen[stage] = (ms + spent, before_in + entered, before_out + out)

    def stages(self) -> tuple[Stage, ...]:
        """All stages that ran, in their order."""
        with self._lock:
            return tuple(
                Stage(name, round(self._seen[name][0], 1), *self._seen[name][1:])
                for name in STAGES
                if name in self._seen
            )


def note_stage(work: WorkItem, stage: str, **counts: int) -> None:
    """Note how far a document is: the worker's next heartbeat writes it down for a job, others are told at once."""
    batch = work.batch
    if batch.ticket is None:
        for what in ("pages", "chunks"):
            if batch.watch and what in counts:
                batch.watch(work.item.uri, stage, counts[what], counts[f"{what}_total"])
        return
    before = batch.progress
    after = replace(
        before,
        stage=stage,
        pages=counts.get("pages", before.pages),
        pages_total=counts.get("pages_total", before.pages_total),
        chunks=counts.get("chunks", before.chunks),
        chunks_total=counts.get("chunks_total", before.chunks_total),
    )
    # Of several documents of one job the furthest is shown: a bar that runs backwards tells nobody anything.
    batch.progress = replace(after, percent=max(before.percent, _percent(after)))


def _percent(progress: JobProgress) -> int:
    """Extracting is the first fifth of the way, embedding most of the rest."""
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
    )


def _sum_stages(first: Sequence[Stage], second: Sequence[Stage]) -> tuple[Stage, ...]:
    stages = {stage.stage: stage for stage in first}
    for stage in second:
        before = stages.get(stage.stage)
        stages[stage.stage] = stage if before is None else _add_stage(before, stage)
    return tuple(stages.values())


def _add_stage(stage: Stage, other: Stage) -> Stage:
    return replace(
        stage,
        ms=round(stage.ms + other.ms, 1),
        entered=stage.entered + other.entered,
        left=stage.left + other.left,
    )
