"""Run a Retriever over the labelled queries of a data set, one at a time, and score what it finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from ragstone.core.clock import canonical_text
from ragstone.core.protocols import Retriever
from ragstone.core.search import SearchResult
from ragstone.core.types import Hit
from ragstone.evaluate.dataset import Dataset
from ragstone.evaluate.metrics import REPORTED, deepest, score

MAX_HITS = 1000
"""The most hits that are asked for when one document takes several places."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class SystemScores:
    """The scores and times of one system."""

    system: str
    scores: Mapping[str, float]
    """By metric, the mean over all queries; a query without hits counts as 0."""
    per_query: Mapping[str, tuple[float, ...]]
    """By metric, one score per query in the order of the data set."""
    latencies_ms: tuple[float, ...]
    degraded: tuple[str, ...] = ()
    """Stages that at least one of the results reported as skipped or failed."""
    stages: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Milliseconds of each stage, in the searches that it took part in."""

    def latency_ms(self, percentile: float) -> float:
        """Return the time that this percentage of the queries stayed under."""
        return float(np.percentile(self.latencies_ms, percentile))

    def stage_ms(self, stage: str, percentile: float) -> float:
        """Return the time that one stage stayed under for this percentage of the queries."""
        return float(np.percentile(self.stages[stage], percentile))


async def evaluate(
    retriever: Retriever,
    dataset: Dataset,
    *,
    system: str,
    metrics: Sequence[str] = REPORTED,
    on_progress: Progress | None = None,
) -> SystemScores:
    """Score a retriever; queries run one after another, so that times are those of an idle machine."""
    depth = deepest(metrics)
    # The first search may load a model or fill a matrix, which is not the time of a search.
    await retriever.retrieve(dataset.queries[0].text, depth)
    collected: dict[str, list[float]] = {name: [] for name in metrics}
    latencies: list[float] = []
    degraded: dict[str, None] = {}
    stages: dict[str, list[float]] = {}
    for done, query in enumerate(dataset.queries, start=1):
        started = perf_counter()
        result = await retriever.retrieve(query.text, depth)
        latencies.append((perf_counter() - started) * 1000)
        degraded.update(dict.fromkeys(result.degraded))
        for stage in result.trace:
            if not stage.skipped:
                stages.setdefault(stage.stage, []).append(stage.ms)
        ranking = await _documents(retriever, result, query.text, depth)
        grades = {canonical_text(doc): grade for doc, grade in dataset.grades[query.id].items()}
        for name, value in score(ranking, grades, metrics).items():
            collected[name].append(value)
        if on_progress is not None:
            on_progress(done, len(dataset.queries))
    return SystemScores(
        system=system,
        scores={name: float(np.mean(values)) for name, values in collected.items()},
        per_query={name: tuple(values) for name, values in collected.items()},
        latencies_ms=tuple(latencies),
        degraded=tuple(degraded),
        stages={name: tuple(spent) for name, spent in stages.items()},
    )


async def _documents(retriever: Retriever, result: SearchResult, query: str, depth: int) -> list[str]:
    """Return the first `depth` documents; ask further, off the clock, while chunks of one crowd out others."""
    asked = depth
    ranking = ranked_documents(result.hits)
    while len(ranking) < depth and len(result.hits) >= asked and asked < MAX_HITS:
        asked = min(asked * 2, MAX_HITS)
        result = await retriever.retrieve(query, asked)
        ranking = ranked_documents(result.hits)
    return ranking[:depth]


def ranked_documents(hits: Sequence[Hit]) -> list[str]:
    """Return each document once, where its best chunk stands."""
    return list(dict.fromkeys(dataset_id(hit) for hit in hits))


def dataset_id(hit: Hit) -> str:
    """Return the id that judgements know a hit by, in the form the ledger keeps text that reads as a date."""
    return canonical_text(str(hit.metadata.get("dataset_id", hit.uri)))
