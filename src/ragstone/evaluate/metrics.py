"""Ranking quality, defined as trec_eval defines it.

Every metric takes the ids of a ranking, best first and each id once, the grades of the judged ids, and a
cut-off. A grade above 0 is relevant; an id without a judgement is not. A query without a relevant document
scores 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from ragstone.core.errors import InputError

Grades = Mapping[str, int]
Measure = Callable[[Sequence[str], Grades, int], float]

REPORTED = ("ndcg@10", "recall@10", "recall@100", "mrr@10", "p@5", "hit@10")


def ndcg(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """Discounted gain of the first k over that of the best possible order; a gain is the grade itself."""
    ideal = _discount_gains(sorted(grades.values(), reverse=True)[:k])
    return _discount_gains([grades.get(doc, 0) for doc in ranking[:k]]) / ideal if ideal else 0.0


def recall(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """Share of the relevant documents that are among the first k."""
    relevant = sum(grade > 0 for grade in grades.values())
    return _count_found(ranking, grades, k) / relevant if relevant else 0.0


def precision(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """Share of the first k places that hold a relevant document; a shorter ranking leaves places empty."""
    return _count_found(ranking, grades, k) / k


def reciprocal_rank(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """Return one over the rank of the first relevant document; 0 when none is among the first k."""
    for rank, doc in enumerate(ranking[:k], start=1):
        if grades.get(doc, 0) > 0:
            return 1 / rank
    return 0.0


def hit_rate(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """1 when a relevant document is among the first k, else 0."""
    return float(_count_found(ranking, grades, k) > 0)


MEASURES: Mapping[str, Measure] = {
    "ndcg": ndcg,
    "recall": recall,
    "p": precision,
    "mrr": reciprocal_rank,
    "hit": hit_rate,
}
_NAME = re.compile(r"([a-z]+)@([1-9][0-9]{0,3})")


def parse_metric(name: str) -> tuple[Measure, int]:
    """Return the measure and the cut-off that a name such as `ndcg@10` stands for."""
    match = _NAME.fullmatch(name)
    if match is None or match[1] not in MEASURES:
        raise InputError(
            f"{name!r} is not a metric",
            hint=f"use one of {', '.join(MEASURES)} with a cut-off up to 9999, such as ndcg@10",
        )
    return MEASURES[match[1]], int(match[2])


def deepest(metrics: Sequence[str]) -> int:
    """Return the number of ranked documents that the metrics need."""
    return max(parse_metric(name)[1] for name in metrics)


def score(ranking: Sequence[str], grades: Grades, metrics: Sequence[str] = REPORTED) -> dict[str, float]:
    """Return one query's ranking under each of the metrics."""
    scores = {}
    for name in metrics:
        measure, k = parse_metric(name)
        scores[name] = measure(ranking, grades, k)
    return scores


def _discount_gains(gains: Sequence[int]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1) if gain > 0)


def _count_found(ranking: Sequence[str], grades: Grades, k: int) -> int:
    return sum(grades.get(doc, 0) > 0 for doc in ranking[:k])


DRAWS_AT_ONCE = 2_000_000
"""Bounds the memory: this many drawn positions, 16 MB, are held at a time."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The difference of two means and the bounds it lies between with the given confidence."""

    difference: float
    low: float
    high: float
    confidence: float


def paired_bootstrap(
    scores: Sequence[float],
    baseline: Sequence[float],
    *,
    confidence: float = 0.95,
    samples: int = 10_000,
    seed: int = 20260101,
) -> Interval:
    """Percentile interval of mean(scores) - mean(baseline), both over the same queries in the same order."""
    if len(scores) != len(baseline) or not scores:
        raise InputError(
            f"cannot compare {len(scores)} scores with {len(baseline)}: both systems need the same queries"
        )
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, not {confidence}")
    differences = np.asarray(scores, dtype=np.float64) - np.asarray(baseline, dtype=np.float64)
    means = _resampled_means(differences, samples, np.random.default_rng(seed))
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(differences.mean()), float(low), float(high), confidence)


def _resampled_means(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], samples: int, random: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    size = len(values)
    rows = max(1, DRAWS_AT_ONCE // size)
    means = np.empty(samples)
    for start in range(0, samples, rows):
        stop = min(start + rows, samples)
        means[start:stop] = values[random.integers(size, size=(stop - start, size))].mean(axis=1)
    return means
