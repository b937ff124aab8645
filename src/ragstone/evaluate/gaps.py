"""Reports on the searches that were made: quality, latency and gaps in the knowledge."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ragstone.core.activity import Gap, GoldenQuery, LoggedSearch, PassageVote, SearchReport, net_grades, same_query
from ragstone.evaluate.dataset import Dataset, Query
from ragstone.evaluate.metrics import precision, recall
from ragstone.language.analyzer import analyze

Labels = Mapping[str, Mapping[str, int]]
"""By query as `same_query` has it, then by document: 1 or 0."""


def labels_of(votes: Sequence[PassageVote], golden: Iterable[GoldenQuery] = ()) -> dict[str, dict[str, int]]:
    """Return the grades of documents by query. Golden queries outweigh votes."""
    labels = net_grades(votes)
    for asked in golden:
        labels.setdefault(same_query(asked.query), {}).update(dict.fromkeys(asked.document_ids, 1))
    return labels


def relevance(search: LoggedSearch, labels: Labels) -> float | None:
    """Share of the judged passages of a search that are relevant; None when none is judged."""
    judged = labels.get(same_query(search.query), {})
    grades = [judged[shown.document_id] for shown in search.shown if shown.document_id in judged]
    return sum(grades) / len(grades) if grades else None


def search_report(searches: Sequence[LoggedSearch], labels: Labels) -> SearchReport:
    """Times of all searches, and quality of those that somebody has judged."""
    latencies = [search.latency_ms for search in searches]
    p50, p95, p99 = np.percentile(latencies, [50, 95, 99]).tolist() if latencies else (None, None, None)
    relevances = [found for search in searches if (found := relevance(search, labels)) is not None]
    recalls, precisions = [], []
    for search in searches:
        judged = labels.get(same_query(search.query), {})
        if any(judged.values()):
            ranking = list(dict.fromkeys(hit.document_id for hit in search.shown))
            recalls.append(recall(ranking, judged, 10))
            precisions.append(precision(ranking, judged, 5))
    return SearchReport(
        searches=len(searches),
        judged=sum(same_query(search.query) in labels for search in searches),
        latency_p50=p50,
        latency_p95=p95,
        latency_p99=p99,
        avg_relevance=_mean(relevances),
        recall_at_10=_mean(recalls),
        precision_at_5=_mean(precisions),
    )


def labelled_queries(name: str, queries: Mapping[str, str], labels: Labels) -> Dataset | None:
    """Return a data set of those queries that something answers; None when there is none.

    `queries` gives the words to ask with, by query as `same_query` has it.
    """
    asked = {key: text for key, text in queries.items() if any(labels.get(key, {}).values())}
    if not asked:
        return None
    return Dataset(
        name, Path(), name, tuple(Query(key, text) for key, text in asked.items()), {key: labels[key] for key in asked}
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


ALIKE = 0.5
"""Queries that share this much of their words (Jaccard) are about one thing."""
LITTLE = 0.5
"""Passages that have no more than this share of the query's words are not about it."""
FEWEST_USEFUL = 10
FEWEST_SEARCHES = 20
"""With fewer of them, what is unlike the others cannot be told."""
SPREADS = 2.0
"""The distance below the middle, in spreads of the upper half, from which a best passage is too far from its query."""
MOST_QUERIES = 5000
SHOWN_QUERIES = 5
SHOWN_WORDS = 8
OPENING = "\"'“”‘’«»([{<¿¡*_"
CLOSING = "\"'“”‘’«»)]}>.,;:!?…*_。，、；：！？"
"""Marks around a word that are the sentence's; others may be its own, as in `.net` and `c++`."""
REASONS = {
    "voted down": "what was found was voted down",
    "nothing": "nothing was found",
    "far": "the best passage is far from the question",
    "little": "the passages have few of the words that were asked for",
}


@dataclass(slots=True)
class _Group:
    terms: frozenset[str]
    searches: list[LoggedSearch] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)


def knowledge_gaps(searches: Sequence[LoggedSearch], labels: Labels, limit: int = 20) -> list[Gap]:
    """Return the gaps that were run into most often, first."""
    unmet: dict[str, list[tuple[LoggedSearch, str]]] = defaultdict(list)
    nearest = fence(searches, labels)
    for search in searches:
        if reason := why_unmet(search, labels, nearest):
            unmet[same_query(search.query)].append((search, reason))
    frequent = sorted(unmet.items(), key=lambda item: (-len(item[1]), item[0]))[:MOST_QUERIES]
    groups: list[_Group] = []
    by_term: dict[str, set[int]] = defaultdict(set)
    for query, times in frequent:
        group = _group(frozenset(analyze(query)) or frozenset([query]), groups, by_term)
        group.searches += [search for search, _ in times]
        group.reasons.update(reason for _, reason in times)
    groups.sort(key=lambda group: (-len(group.searches), sorted(group.terms)))
    return [_gap(group) for group in groups[:limit]]


def fence(searches: Sequence[LoggedSearch], labels: Labels) -> float:
    """Return the similarity under which hardly any search is of use: cosines mean something else for every model.

    Searches that somebody found useful tell, else the searches themselves: those above the middle are taken for
    answered, and what lies twice as far below the middle as they lie above it, for not.
    """
    useful = [
        search.similarity
        for search in searches
        if search.similarity is not None and any(labels.get(same_query(search.query), {}).values())
    ]
    if len(useful) >= FEWEST_USEFUL:
        return float(np.quantile(useful, 0.05))
    all_of_them = np.array([search.similarity for search in searches if search.similarity is not None])
    if len(all_of_them) < FEWEST_SEARCHES:
        return -1.0
    middle = float(np.median(all_of_them))
    return middle - SPREADS * float(np.median(all_of_them[all_of_them >= middle] - middle))


def why_unmet(search: LoggedSearch, labels: Labels, nearest: float = -1.0) -> str:
    """Why a search counts as one that found nothing of use; empty when it does not."""
    judged = labels.get(same_query(search.query), {})
    if judged:
        # Somebody looked: their word goes before any figure.
        return "" if any(judged.values()) else "voted down"
    if not search.num_results:
        return "nothing"
    if search.similarity is not None and search.similarity < nearest:
        return "far"
    return "little" if search.coverage <= LITTLE else ""


def _group(terms: frozenset[str], groups: list[_Group], by_term: dict[str, set[int]]) -> _Group:
    """Return the first group about the same thing, or a new one."""
    for number in sorted({number for term in terms for number in by_term[term]}):
        leader = groups[number].terms
        if len(terms & leader) >= ALIKE * len(terms | leader):
            return groups[number]
    for term in terms:
        by_term[term].add(len(groups))
    groups.append(_Group(terms))
    return groups[-1]


def _gap(group: _Group) -> Gap:
    spelled = Counter(" ".join(search.query.split()) for search in group.searches)
    missing = Counter(_bare(word) for search in group.searches for word in search.missing)
    return Gap(
        queries=tuple(query for query, _ in spelled.most_common(SHOWN_QUERIES)),
        times=len(group.searches),
        last=max(search.moment for search in group.searches),
        reason=REASONS[group.reasons.most_common(1)[0][0]],
        missing=tuple(word for word, _ in missing.most_common(SHOWN_WORDS)),
    )


def _bare(word: str) -> str:
    """Return a word as it was typed, without the marks of the sentence around it."""
    return word.casefold().lstrip(OPENING).rstrip(CLOSING) or word.casefold()
