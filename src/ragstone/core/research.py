"""What was found about a topic, and how it was looked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ragstone.core.types import Hit

Depth = Literal["quick", "medium", "deep"]
DEPTHS: Mapping[Depth, int] = {"quick": 5, "medium": 15, "deep": 30}
"""How many passages each depth keeps, and asks of every search."""
MOST_ITERATIONS = 5
Stopped = Literal["sufficient", "nothing_new", "iterations", "out_of_time"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A passage about the topic, how near it is to it, and the queries that found it."""

    hit: Hit
    relevance: float
    """Against the topic itself, from 0 to 1, whichever query found it."""
    queries: tuple[str, ...]
    about: bool
    """Whether it is surely about the topic; what is not only fills up the number that was asked for."""

    @property
    def source(self) -> str:
        """What its document calls its origin, or its address where it says none."""
        return source_of(self.hit)


@dataclass(frozen=True, slots=True)
class Round:
    """One wave of sub-queries that ran side by side, and what it added."""

    queries: tuple[str, ...]
    found: int
    new: int
    """Passages about the topic that no earlier query had found."""


@dataclass(frozen=True, slots=True)
class Research:
    """Findings, best first, and why the search for more ended."""

    topic: str
    findings: tuple[Finding, ...]
    queries: tuple[str, ...]
    """Every search that was made, the topic itself first."""
    rounds: tuple[Round, ...]
    uncovered: tuple[str, ...]
    """Sub-queries for which nothing about the topic was found."""
    stopped: Stopped
    took_ms: float
    degraded: tuple[str, ...] = ()

    @property
    def by_source(self) -> Mapping[str, tuple[Finding, ...]]:
        """The findings under their sources; the source of the best finding comes first."""
        groups: dict[str, list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault(finding.source, []).append(finding)
        return {source: tuple(found) for source, found in groups.items()}


def source_of(hit: Hit) -> str:
    """What a passage's document calls its origin, or its address where it says none."""
    return str(hit.metadata.get("source") or hit.uri)
