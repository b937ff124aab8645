"""Results of several kinds of sources as one list: by how far each is about the query, and how far it is trusted.

A score of the kb, a share of words in a row and a rank on the web are no common scale. What all results have in
common are their words, so half of a result's relevance is the share of the query's terms that it holds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragstone.core.analysis import SourceKind
from ragstone.core.types import Hit, SearchResult
from ragstone.core.web import web_hits
from ragstone.language.analyzer import analyze, analyze_query

CONFIDENCE: Mapping[SourceKind, float] = {"documents": 1.0, "database": 1.0, "internet": 0.7}
"""What a source is worth: the tenant's own words come before anybody else's."""
OWN_SCORE = 0.5
"""How much of its relevance is what its own source made of it."""
MOST_TERMS = 64


def passages_of(found: SearchResult) -> tuple[Hit, ...]:
    """All that was found, best first, whatever the source; the kb's order stays where it is the only one."""
    if not found.records and not found.web:
        return found.hits
    return rank_results((*found.hits, *found.records, *web_hits(found.web)), found.query)


def rank_results(results: Sequence[Hit], query: str) -> tuple[Hit, ...]:
    """The results by relevance times confidence, both added to their scores; equals stay in the order they came."""
    asked = analyze_query(query)[:MOST_TERMS]
    inside = [set(analyze(f"{hit.title}\n{hit.section}\n{hit.text}")) for hit in results]
    frequency = Counter(term for found in inside for term in found)
    weights = {term: math.log(1 + len(results) / (0.5 + frequency[term])) for term in asked}
    total = sum(weights.values()) or 1.0
    ranked = [
        _with_scores(hit, sum(weight for term, weight in weights.items() if term in found) / total)
        for hit, found in zip(results, inside, strict=True)
    ]
    return tuple(sorted(ranked, key=lambda hit: -hit.scores["relevance"] * hit.scores["confidence"]))


def source_kind(hit: Hit) -> SourceKind:
    """Which kind of source a result is of."""
    match hit.scores:
        case {"web": _}:
            return "internet"
        case {"database": _}:
            return "database"
    return "documents"


def _with_scores(hit: Hit, coverage: float) -> Hit:
    relevance = OWN_SCORE * hit.score + (1 - OWN_SCORE) * coverage
    confidence = CONFIDENCE[source_kind(hit)]
    added = {"relevance": round(relevance, 6), "confidence": confidence}
    return replace(hit, scores={**hit.scores, **added})
