"""The state of one search: its request, its clock and trace, and what the stages pass on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ragstone.core.results import Stage
from ragstone.core.types import KnowledgeBase, LiveChunk, Mode
from ragstone.query.fusion import Fused
from ragstone.query.request import SearchRequest

DEADLINES_MS: dict[Mode, float] = {"fast": 200.0, "balanced": 500.0, "thorough": 2000.0}
HARD_SECONDS = 2.0
KEPT_FOR_READING = 0.1
"""Share of the hard limit that no arm may use: what was found has to be read as well."""
COLD_TIMES = 5
"""How much longer an arm may take for its first search of a kb, which may have to bring an index into memory."""


@dataclass
class StageSpan:
    """A running stage: its counts, and the part of its work that it skipped."""

    entered: int = 0
    left: int = 0
    skipped: str = ""


class Recorder:
    """Collects the stages of one search and keeps its clock: a deadline for what is optional, a hard limit for all."""

    def __init__(self, mode: Mode, seconds: float = HARD_SECONDS) -> None:
        self._started = time.perf_counter()
        self._excused: list[tuple[float, float]] = []
        self._hard = seconds * 1000
        self._limit = min(DEADLINES_MS[mode], self._hard)
        self.stages: list[Stage] = []
        self.degraded: list[str] = []

    @contextmanager
    def stage(self, name: str, entered: int = 0) -> Iterator[StageSpan]:
        """Time a stage; it is recorded also when it fails."""
        span = StageSpan(entered)
        started = time.perf_counter()
        try:
            yield span
        finally:
            spent = (time.perf_counter() - started) * 1000
            self.stages.append(Stage(name, round(spent, 3), span.entered, span.left, span.skipped))

    def skip(self, name: str, entered: int, reason: str) -> None:
        """Record a stage that did not run, and why."""
        self.stages.append(Stage(name, 0.0, entered, entered, reason))

    def degrade(self, note: str) -> None:
        """Name a thing that could not be done, once."""
        if note not in self.degraded:
            self.degraded.append(note)

    def is_degraded(self, stage: str) -> bool:
        """Return whether a stage is named in `degraded`."""
        return any(note.startswith(f"{stage}: ") for note in self.degraded)

    def excuse(self, ms: float) -> None:
        """Do not count the last `ms` against the deadline: they went into loading a model or an index.

        Arms load side by side: what two of them took at the same time is excused once.
        """
        end = self.elapsed_ms
        start = end - ms
        while self._excused and self._excused[-1][1] > start:
            start = min(start, self._excused.pop()[0])
        self._excused.append((start, end))

    @property
    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self._started) * 1000

    @property
    def left_ms(self) -> float:
        """Return the time left for optional stages."""
        return self._limit - self._spent_ms

    @property
    def search_seconds(self) -> float:
        """Return the time left for an arm before it is given up."""
        return max(self._hard * (1 - KEPT_FOR_READING) - self._spent_ms, 0.0) / 1000

    @property
    def cold_seconds(self) -> float:
        """Return the time for an arm whose index may have to be loaded first."""
        return COLD_TIMES * self._hard / 1000

    @property
    def read_seconds(self) -> float:
        """Return the time left before the search ends with what it has."""
        return max(self._hard - self._spent_ms, 0.0) / 1000

    @property
    def _spent_ms(self) -> float:
        return self.elapsed_ms - sum(end - start for start, end in self._excused)


@dataclass(frozen=True, slots=True)
class SearchContext:
    """The tenant, kb, request and clock of one search."""

    tenant: str
    kb: KnowledgeBase
    request: SearchRequest
    record: Recorder


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """A fused candidate together with the chunk it names."""

    fused: Fused
    chunk: LiveChunk

    @property
    def score(self) -> float:
        return self.fused.score


@dataclass(frozen=True, slots=True)
class Variants:
    """The texts that are searched for in place of a query."""

    query: str
    """The query itself; passages are always reranked against this."""
    rewritten: str
    """The text that the result shows as `rewritten_query`."""
    dense: tuple[str, ...]
    """Texts whose vectors are searched with, the main one first."""
    lexical: tuple[str, ...]
    """Texts that are matched by word, the main one first."""
    notes: tuple[str, ...] = ()
    """Transforms that failed, such as "rewrite: no LLM"."""

    @classmethod
    def of(cls, query: str) -> Variants:
        """Return the query alone, as it was asked."""
        return cls(query, query, (query,), (query,))
