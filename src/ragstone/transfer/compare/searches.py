"""Compares two indexes by searching both for a sample of their contents."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from ragstone.core.types import Candidate, Vector
from ragstone.transfer.reports import NONE, Differences

SEARCHES = 50
K = 10
TOLERANCE = 2e-3
"""By how much a cosine may differ that was worked out from the same float16 vectors."""
ENOUGH = 0.95
"""The share of the nearest that an index must find which does not look at everything."""
Search = Callable[[Vector], Awaitable[Sequence[Candidate]]]


@dataclass(slots=True)
class Samples:
    """Some of the chunks that were offered, each as likely as any other, the same ones for the same offers."""

    most: int = SEARCHES
    seen: int = 0
    chosen: list[tuple[str, Vector]] = field(default_factory=list)
    _choose: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311

    def offer(self, text: str, vector: Vector) -> None:
        self.seen += 1
        if len(self.chosen) < self.most:
            self.chosen.append((text, vector))
            return
        at = self._choose.randrange(self.seen)
        if at < self.most:
            self.chosen[at] = text, vector


@dataclass(frozen=True, slots=True)
class SearchAgreement:
    """The agreement of two indexes: hits expected, and hits found."""

    searches: int = 0
    expected: int = 0
    found: int = 0
    differences: Differences = NONE

    def __add__(self, other: SearchAgreement) -> SearchAgreement:
        return SearchAgreement(
            self.searches + other.searches,
            self.expected + other.expected,
            self.found + other.found,
            self.differences + other.differences,
        )

    @property
    def share(self) -> float:
        """Return the share of expected hits that were found; 1 when nothing was expected."""
        return round(self.found / self.expected, 4) if self.expected else 1.0


def agree(
    expected: Sequence[Candidate], found: Sequence[Candidate], *, tolerance: float = TOLERANCE
) -> SearchAgreement:
    """Compare two answers. One of several that are equally near at the cut is as good as another."""
    scores = {candidate.chunk_id: candidate.score for candidate in expected}
    last = expected[-1].score - tolerance if expected else 0.0
    right = [candidate for candidate in found if candidate.chunk_id in scores or candidate.score >= last]
    off = [
        f"chunk {candidate.chunk_id} scores {candidate.score:.4f} instead of {scores[candidate.chunk_id]:.4f}"
        for candidate in found
        if candidate.chunk_id in scores and abs(candidate.score - scores[candidate.chunk_id]) > tolerance
    ]
    return SearchAgreement(1, len(expected), min(len(right), len(expected)), Differences.of(*off))


def judge(agreement: SearchAgreement, *, exact: bool, what: str) -> Differences:
    """Return the problems of an agreement; none when it is as close as the engine can come."""
    needed = 1.0 if exact else ENOUGH
    if agreement.share >= needed:
        return agreement.differences
    said = f"{what} found {agreement.found} of {agreement.expected} nearest chunks"
    return agreement.differences + Differences.of(said)
