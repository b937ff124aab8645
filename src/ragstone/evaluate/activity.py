"""What the log of searches and the votes on passages say about how search does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ragstone.core.activity import (
    Feedback,
    GoldenQuery,
    LoggedSearch,
    SearchReport,
    net_grades,
    same_query,
)
from ragstone.evaluate.dataset import Dataset, Query
from ragstone.evaluate.metrics import precision, recall

Labels = Mapping[str, Mapping[str, int]]
"""By query as `same_query` has it, then by document: 1 or 0."""


def labels_of(votes: Sequence[Feedback], golden: Iterable[GoldenQuery] = ()) -> dict[str, dict[str, int]]:
    """What is known to answer which query. Golden queries are somebody's own word and outweigh votes."""
    labels = net_grades(votes)
    for one in golden:
        labels.setdefault(same_query(one.query), {}).update(dict.fromkeys(one.document_ids, 1))
    return labels


def relevance(search: LoggedSearch, labels: Labels) -> float | None:
    """Share of the judged passages of a search that are relevant; None when none is judged."""
    judged = labels.get(same_query(search.query), {})
    grades = [judged[one.document_id] for one in search.shown if one.document_id in judged]
    return sum(grades) / len(grades) if grades else None


def search_report(searches: Sequence[LoggedSearch], labels: Labels) -> SearchReport:
    """Times of all searches, and quality of those that somebody has judged."""
    latencies = [one.latency_ms for one in searches]
    p50, p95, p99 = np.percentile(latencies, [50, 95, 99]).tolist() if latencies else (None, None, None)
    relevances = [found for one in searches if (found := relevance(one, labels)) is not None]
    recalls, precisions = [], []
    for one in searches:
        judged = labels.get(same_query(one.query), {})
        if any(judged.values()):
            ranking = list(dict.fromkeys(hit.document_id for hit in one.shown))
            recalls.append(recall(ranking, judged, 10))
            precisions.append(precision(ranking, judged, 5))
    return SearchReport(
        searches=len(searches),
        judged=sum(same_query(one.query) in labels for one in searches),
        latency_p50=p50,
        latency_p95=p95,
        latency_p99=p99,
        avg_relevance=_mean(relevances),
        recall_at_10=_mean(recalls),
        precision_at_5=_mean(precisions),
    )


def labelled_queries(name: str, queries: Mapping[str, str], labels: Labels) -> Dataset | None:
    """A data set of those queries that something answers; None when there is none.

    `queries` gives the words to ask with, by query as `same_query` has it.
    """
    asked = {key: text for key, text in queries.items() if any(labels.get(key, {}).values())}
    if not asked:
        return None
    return Dataset(
        name,
        Path(),
        name,
        tuple(Query(key, text) for key, text in asked.items()),
        {key: labels[key] for key in asked},
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
