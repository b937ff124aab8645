"""Search for better settings, one knob at a time, and accept them only on queries that they were not chosen by."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import yaml

from ragstone.core.errors import InputError
from ragstone.core.types import Json
from ragstone.evaluate.dataset import Dataset, Query
from ragstone.evaluate.metrics import Interval, paired_bootstrap
from ragstone.evaluate.runner import SystemScores
from ragstone.settings.tree import Settings

DECIDING = "ndcg@10"
FEWEST_QUERIES = 10
"""On each side of the split: fewer decide by luck."""
Changes = Mapping[str, Json]
Measure = Callable[[Changes, Dataset], Awaitable[SystemScores]]
"""Searches with some settings changed for the queries of a data set."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting and the values that are tried for it."""

    key: str
    values: tuple[Json, ...]


RETRIEVAL_KNOBS = (
    Knob("retrieval.fusion", ("zscore", "rrf", "weighted", "weighted_rrf")),
    Knob("retrieval.dense_weight", (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)),
    Knob("retrieval.candidates", (50, 100, 200)),
)
MODE_MS = {"fast": 200.0, "balanced": 500.0, "thorough": 2000.0}
"""The p95 that each mode promises."""
RERANKING_KNOBS = (Knob("reranking.candidates", (10, 20, 50, 100)),)


@dataclass(frozen=True, slots=True)
class Trial:
    """Settings that were tried, and what came of them on the training queries."""

    changes: Changes
    score: float
    p95_ms: float
    within_budget: bool


@dataclass(frozen=True, slots=True)
class Tuning:
    """The best settings that were found, and whether they are better on held-out queries."""

    dataset: str
    trained_on: int
    held_out: int
    changes: Changes
    trials: tuple[Trial, ...]
    before: SystemScores
    """On the held-out queries, as everything below."""
    after: SystemScores
    interval: Interval
    budget_ms: float

    @property
    def metric(self) -> str:
        """Return the metric that decides."""
        return DECIDING

    @property
    def is_better(self) -> bool:
        """Return whether the new settings certainly find better within the time limit."""
        return bool(self.changes) and self.interval.low > 0 and self.after.latency_ms(95) <= self.budget_ms


def split_queries(dataset: Dataset, held_out: float = 0.5) -> tuple[Dataset, Dataset]:
    """Queries to choose by and queries to judge by: the same ones on every run, whatever their order."""
    train: list[Query] = []
    test: list[Query] = []
    for query in dataset.queries:
        digest = hashlib.sha256(query.text.encode("utf-8", "surrogatepass")).digest()
        share = int.from_bytes(digest[:8], "big") / 2**64
        (test if share < held_out else train).append(query)
    if min(len(train), len(test)) < FEWEST_QUERIES:
        raise InputError(
            f"{len(dataset.queries)} labelled queries are too few to tune by",
            hint=f"at least {FEWEST_QUERIES} are needed on each side of the split: about {3 * FEWEST_QUERIES} in all",
        )
    return replace(dataset, queries=tuple(train)), replace(dataset, queries=tuple(test))


async def tune(measure: Measure, dataset: Dataset, knobs: Sequence[Knob], budget_ms: float, rounds: int = 2) -> Tuning:
    """Turn one knob after another to its best place, again until nothing moves or `rounds` are over."""
    train, test = split_queries(dataset)
    climb = _Climb(measure, train, budget_ms)
    await climb.start()
    for _ in range(rounds):
        moved = [await climb.turn(knob) for knob in knobs]
        if not any(moved):
            break
    before = await measure({}, test)
    after = await measure(climb.changes, test) if climb.changes else before
    return Tuning(
        dataset=dataset.name,
        trained_on=len(train.queries),
        held_out=len(test.queries),
        changes=climb.changes,
        trials=tuple(climb.trials),
        before=before,
        after=after,
        interval=paired_bootstrap(after.per_query[DECIDING], before.per_query[DECIDING]),
        budget_ms=budget_ms,
    )


class _Climb:
    """The best settings so far, and every one that was tried."""

    def __init__(self, measure: Measure, train: Dataset, budget_ms: float) -> None:
        self._measure = measure
        self._train = train
        self._budget_ms = budget_ms
        self._best = float("-inf")
        self.changes: Changes = {}
        self.trials: list[Trial] = []

    async def start(self) -> None:
        # What is set now is where it starts, in time or not: it is what the new settings are held against.
        self._best = (await self._try({})).score

    async def turn(self, knob: Knob) -> bool:
        """Try every value; whether one of them is better than what there was."""
        best = self.changes
        for value in knob.values:
            changes = {**self.changes, knob.key: value}
            if any(trial.changes == changes for trial in self.trials):
                continue
            trial = await self._try(changes)
            if trial.within_budget and trial.score > self._best:
                self._best, best = trial.score, changes
        moved, self.changes = best != self.changes, best
        return moved

    async def _try(self, changes: Changes) -> Trial:
        row = await self._measure(changes, self._train)
        p95 = row.latency_ms(95)
        self.trials.append(Trial(changes, row.scores[DECIDING], p95, p95 <= self._budget_ms))
        return self.trials[-1]


def knobs_for(settings: Settings, chunk_sizes: Sequence[int] = ()) -> list[Knob]:
    """Return the settings to try; chunk sizes come first, because they decide what there is to be found."""
    knobs = [*RETRIEVAL_KNOBS, *(RERANKING_KNOBS if settings.reranking.kind != "none" else ())]
    if chunk_sizes:
        fitting = tuple(size for size in chunk_sizes if size > settings.chunking.overlap)
        knobs.insert(0, Knob("chunking.size", fitting))
    return knobs


def settings_file(tuning: Tuning) -> str:
    """Return the settings that were found as YAML that says where they come from."""
    tree: dict[str, dict[str, object]] = {}
    for key, value in tuning.changes.items():
        section, name = key.split(".")
        tree.setdefault(section, {})[name] = value
    before, after = (row.scores["ndcg@10"] for row in (tuning.before, tuning.after))
    interval = tuning.interval
    return (
        f"# Tuned on {tuning.trained_on} queries of {tuning.dataset!r}.\n"
        f"# On {tuning.held_out} others nDCG@10 is {after:.3f} instead of {before:.3f}: "
        f"{interval.difference:+.3f} ({interval.low:+.3f} to {interval.high:+.3f}, {interval.confidence:.0%}).\n"
        f"{yaml.safe_dump(tree, sort_keys=True)}"
    )
