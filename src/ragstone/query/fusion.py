"""Fuse the lists of the arms. Pure functions: the same lists always give the same order.

Every strategy gives `score` between 0 and 1. RRF is divided by the most it could be for the arms used, so that
a chunk found by one of two arms reaches at most 0.5; z-scores go through the logistic function; min-max scores
are already there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ragstone.core.types import Candidate
from ragstone.language.analyzer import STOP_WORDS
from ragstone.language.names import QUESTION_WORDS, is_code, is_identifier
from ragstone.settings.retrieval import Fusion

ArmLists = Mapping[str, Sequence[Candidate]]
Weights = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Fused:
    """A candidate with its fused score, and its raw score and rank in each arm that found it."""

    chunk_id: str
    score: float
    scores: Mapping[str, float]


def fuse(strategy: Fusion, arms: ArmLists, weights: Weights, rrf_k: int) -> list[Fused]:
    """Return one list, best first, ties by id. Each arm's candidates must be in order of rank."""
    combine = STRATEGIES[strategy]
    combined = combine(arms, weights, rrf_k)
    evidence: dict[str, dict[str, float]] = {chunk_id: {} for chunk_id in combined}
    for arm, candidates in arms.items():
        for rank, candidate in enumerate(candidates, start=1):
            evidence[candidate.chunk_id][arm] = candidate.score
            evidence[candidate.chunk_id][f"{arm}_rank"] = rank
    fused = [Fused(chunk_id, score, evidence[chunk_id]) for chunk_id, score in combined.items()]
    return sorted(fused, key=lambda item: (-item.score, item.chunk_id))


def reciprocal_rank(arms: ArmLists, weights: Weights, rrf_k: int) -> dict[str, float]:
    """Sum over the arms of 1 / (k + rank), each arm with the same weight."""
    return _reciprocal_rank(arms, dict.fromkeys(arms, 1.0), rrf_k)


def weighted_reciprocal_rank(arms: ArmLists, weights: Weights, rrf_k: int) -> dict[str, float]:
    """Sum over the arms of weight / (k + rank)."""
    return _reciprocal_rank(arms, weights, rrf_k)


def weighted_min_max(arms: ArmLists, weights: Weights, rrf_k: int) -> dict[str, float]:
    """Each arm scaled to 0–1, times its weight; a chunk that only one arm found gets only that part."""
    total = sum(weights[arm] for arm in arms) or 1.0
    combined: dict[str, float] = {}
    for arm, candidates in arms.items():
        scores = [candidate.score for candidate in candidates]
        low, high = min(scores, default=0.0), max(scores, default=0.0)
        for candidate in candidates:
            scaled = (candidate.score - low) / (high - low) if high > low else 1.0
            share = weights[arm] / total * scaled
            combined[candidate.chunk_id] = combined.get(candidate.chunk_id, 0.0) + share
    return combined


def weighted_z_score(arms: ArmLists, weights: Weights, rrf_k: int) -> dict[str, float]:
    """Standard scores over the union of the arms, weighted, then the logistic function.

    A chunk that an arm did not bring counts as that arm's weakest: it scored no better than the last one kept.
    """
    total = sum(weights[arm] for arm in arms) or 1.0
    combined = {candidate.chunk_id: 0.0 for candidates in arms.values() for candidate in candidates}
    base = 0.0
    for arm, candidates in arms.items():
        scores = [candidate.score for candidate in candidates]
        if not scores:
            continue
        weakest, absent = min(scores), len(combined) - len(scores)
        mean = (sum(scores) + weakest * absent) / len(combined)
        variance = (sum((score - mean) ** 2 for score in scores) + absent * (weakest - mean) ** 2) / len(combined)
        if variance <= 0:
            continue
        share = weights[arm] / total / math.sqrt(variance)
        # Every chunk starts as the arm's weakest; those found get the rest.
        base += share * (weakest - mean)
        for candidate in candidates:
            combined[candidate.chunk_id] += share * (candidate.score - weakest)
    return {chunk_id: _logistic(base + value) for chunk_id, value in combined.items()}


STRATEGIES: Mapping[Fusion, Callable[[ArmLists, Weights, int], dict[str, float]]] = {
    "rrf": reciprocal_rank,
    "weighted_rrf": weighted_reciprocal_rank,
    "weighted": weighted_min_max,
    "zscore": weighted_z_score,
}


def _reciprocal_rank(arms: ArmLists, weights: Weights, rrf_k: int) -> dict[str, float]:
    most = sum(weights[arm] for arm in arms) / (rrf_k + 1) or 1.0
    combined: dict[str, float] = {}
    for arm, candidates in arms.items():
        for rank, candidate in enumerate(candidates, start=1):
            share = weights[arm] / (rrf_k + rank) / most
            combined[candidate.chunk_id] = combined.get(candidate.chunk_id, 0.0) + share
    return combined


def _logistic(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-value))


Kind = Literal["names", "phrase", "product", "title", "mixed", "question", "description", "statement"]

NAME_WEIGHT = 0.2
"""The dense arm's weight when only a name is asked for: it knows what a name is about, not how it is spelt."""
MOST_WEIGHT: Mapping[Kind, float] = {"names": NAME_WEIGHT, "phrase": 0.3, "product": 0.3, "title": 0.5, "mixed": 0.5}
"""The dense arm's highest weight where spelling counts."""
MEANT: frozenset[Kind] = frozenset({"question", "description"})
"""Kinds of query where meaning counts."""
TOWARDS_MEANING = 1 / 6
"""Share of the lexical arm's weight that the dense arm gets there: more cost the sample corpus its best answers."""

_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{1,200})[\"”“»]")
_AROUND = "`'\"()?!.,;:“”„«»"
_SHORT = 6
"""Words of a description; what is longer states something, and its many words can be trusted as they are."""


def asks_for_names(query: str) -> bool:
    """Return whether every word of the query is spelt like an identifier."""
    words = query.strip().strip("`'\"()").split()
    return bool(words) and all(is_identifier(word.strip("`'\"()?,;")) for word in words)


def query_kind(query: str) -> Kind:
    """Return the kind of a query by its form: spelling, quotes, question words, length."""
    if asks_for_names(query):
        return "names"
    if _QUOTED.fullmatch(query.strip()):
        return "phrase"
    words = [bare for word in query.split() if (bare := word.strip(_AROUND))]
    if _is_title(words):
        return "product" if any(map(is_code, words)) else "title"
    if _QUOTED.search(query) or any(map(is_identifier, words)):
        return "mixed"
    if query.rstrip().endswith("?") or (len(words) > 1 and words[0].lower() in QUESTION_WORDS):
        return "question"
    return "description" if 1 < len(words) <= _SHORT else "statement"


def dense_weight(query: str, configured: float) -> float:
    """Return the weight of the dense arm for this query; a configured 0 or 1 stays."""
    if configured in (0, 1):
        return configured
    kind = query_kind(query)
    moved = configured + (1 - configured) * TOWARDS_MEANING if kind in MEANT else configured
    return min(moved, MOST_WEIGHT.get(kind, 1.0))


def _is_title(words: Sequence[str]) -> bool:
    """Return whether a few words are all capitalised or codes, such as iPhone 15 Pro or Kestrel Sound."""
    if not 1 < len(words) <= _SHORT or words[0].lower() in QUESTION_WORDS | STOP_WORDS:
        return False
    return all(word[0].isupper() or is_code(word) for word in words)
