"""What a run has done so far: the report while it grows, the time each stage took, and how far each job is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ragstone.core.jobs import STAGES
from ragstone.core.types import Failure, IngestReport, Stage, Stats
from ragstone.ingest.task import Group, Task


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; `document` is the one that has just ended."""

    done: int
    chunks: int
    failed: int
    document: str


OnProgress = Callable[[Progress], None]


@dataclass
class Tally:
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
    failed: list[Failure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    degraded: dict[str, None] = field(default_factory=dict)
    times: StageTimes = field(default_factory=lambda: StageTimes())

    def ended(self, uri: str) -> None:
        """One more document is through, whatever became of it."""
        if self.on_progress:
            done = self.added + self.updated + self.unchanged + len(self.failed)
            self.on_progress(Progress(done, self.chunks, len(self.failed), uri))

    def foreign(self, model: str, space: str) -> None:
        """C-07: vectors of a fallback model never enter a Space of another; what is left is search by word."""
        self.degraded[f"embedding: {model} answered, but this index is of {space}"] = None

    def fail(self, failure: Failure) -> None:
        self.failed.append(failure)
        self.ended(failure.uri)

    def report(self, stats: Stats) -> IngestReport:
        """What the run did, and what the kb holds after it."""
        return IngestReport(
            added=self.added,
            updated=self.updated,
            unchanged=self.unchanged,
            failed=tuple(self.failed),
            documents=stats.documents,
            chunks=stats.chunks,
            seconds=round(time.perf_counter() - self.started, 3),
            warnings=tuple(self.warnings),
            skipped_chunks=self.skipped_chunks,
            degraded=tuple(self.degraded),
            removed=self.removed,
            moved=self.moved,
            duplicates=self.duplicates,
            stages=self.times.stages(),
        )


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


def at_stage(task: Task, stage: str, **counts: int) -> None:
    """Note how far a job is. Written down by the worker's next heartbeat."""
    group = task.group
    if group.ticket is not None:
        group.progress = replace(
            group.progress, stage=stage, percent=_percent(group, stage, counts), **counts
        )


def _percent(group: Group, stage: str, counts: dict[str, int]) -> int:
    """Extracting is the first fifth of the way, embedding most of the rest."""
    progress = group.progress
    pages, pages_total = counts.get("pages", progress.pages), counts.get("pages_total", progress.pages_total)
    chunks, chunks_total = (
        counts.get("chunks", progress.chunks),
        counts.get("chunks_total", progress.chunks_total),
    )
    match stage:
        case "fetch":
            percent = 0
        case "extract":
            percent = round(20 * pages / pages_total) if pages_total else 5
        case "normalize" | "chunk" | "enrich":
            percent = 20
        case "embed":
            percent = 20 + (round(70 * chunks / chunks_total) if chunks_total else 0)
        case _:
            percent = 90
    # Of several documents of one job the furthest is shown: a bar that runs backwards tells nobody anything.
    return max(progress.percent, min(99, percent))
