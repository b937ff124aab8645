"""Two Spaces of a kb side by side: which finds better, how sure that is, and how much they agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ragstone.core.protocols import Retriever
from ragstone.evaluate.dataset import Dataset
from ragstone.evaluate.metrics import Interval, paired_bootstrap
from ragstone.evaluate.runner import SystemScores, evaluate

METRICS = ("mrr@10", "recall@10", "ndcg@10")
DECIDING = "mrr@10"
TOLERATED = 0.02
"""The difference by which the new figure may be lower when it is not certain that it is lower at all."""
VALIDATION = ("prompt caching", "LangGraph tools", "vector databases")
"""Asked of both in every comparison, whatever the kb is about."""
TOP = 5
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class HitOverlap:
    """The first hits of both Spaces for one query."""

    query: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def common(self) -> int:
        """Return the number of chunks among the first of both."""
        return len(set(self.before) & set(self.after))


@dataclass(frozen=True, slots=True)
class SpaceComparison:
    """The scores of the live Space and its successor on the same queries."""

    dataset: str
    queries: int
    before: Mapping[str, float]
    after: Mapping[str, float]
    interval: Interval
    """Of the deciding metric's difference, new minus old."""
    agreements: tuple[HitOverlap, ...]
    problems: tuple[str, ...] = ()
    """Why the new Space could not be searched as it should."""
    remarks: tuple[str, ...] = ()
    """Why the old one could not."""

    @property
    def metric(self) -> str:
        """Return the metric that decides."""
        return DECIDING

    @property
    def is_worse(self) -> bool:
        """Return whether the new Space is certainly worse, seems worse beyond the tolerance, or cannot be searched."""
        surely = self.interval.high < 0
        return bool(self.problems) or surely or self.interval.difference < -TOLERATED


async def compare_spaces(
    old: Retriever, new: Retriever, dataset: Dataset, on_progress: Progress | None = None
) -> SpaceComparison:
    """Ask both the same."""
    total = 2 * len(dataset.queries)
    before = await _row(old, dataset, "before", on_progress, 0, total)
    after = await _row(new, dataset, "after", on_progress, len(dataset.queries), total)
    interval = paired_bootstrap(after.per_query[DECIDING], before.per_query[DECIDING])
    agreements = [HitOverlap(query, await _top(old, query), await _top(new, query)) for query in VALIDATION]
    return SpaceComparison(
        dataset=dataset.name,
        queries=len(dataset.queries),
        before=before.scores,
        after=after.scores,
        interval=interval,
        agreements=tuple(agreements),
        problems=after.degraded,
        remarks=before.degraded,
    )


async def _row(
    retriever: Retriever, dataset: Dataset, system: str, on_progress: Progress | None, first: int, total: int
) -> SystemScores:
    def advance(done: int, _: int) -> None:
        if on_progress:
            on_progress(first + done, total)

    return await evaluate(retriever, dataset, system=system, metrics=METRICS, on_progress=advance)


async def _top(retriever: Retriever, query: str) -> tuple[str, ...]:
    return tuple(hit.chunk_id for hit in (await retriever.retrieve(query, TOP)).hits)


def labels(dataset: Dataset) -> frozenset[str]:
    """Everything that judgements call a document by."""
    return frozenset(label for grades in dataset.grades.values() for label in grades)


def label_of(names: Sequence[str], known: frozenset[str]) -> str:
    """Which of a document's names the judgements know it by; the first when they do not know it."""
    return next((name for name in names if name in known), names[0])
