"""The chance that a passage is relevant, from 0 to 1: comparable between queries, kbs and embedding models.

The score of a hit ranks the passages of one search: the best of many bad ones still scores high. Relevance is read from
the passage alone: its closeness to the query, between unrelated text and the same text, and the share of the query's
words that it holds. The weights are fitted to labelled passages of three collections (`python -m bench relevance`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ragstone.language.relevance import asked_terms, measure_coverage
from ragstone.query.context import SOON_READ, RankedChunk, SearchContext, compute

BASE, CLOSENESS, COVERAGE, EVERY_WORD = -5.6, 5.9, 3.7, 1.8
"""Weights in the exponent of the logistic function; the last is for a passage with every word of the query."""
CLOSENESS_UNKNOWN = 0.35
"""Closeness of a passage that was found by its words, where no model compared it."""
MOST_TERMS = 64


async def rate_passages(search: SearchContext, ranked: Sequence[RankedChunk]) -> list[float]:
    """Return the relevance of each passage."""
    if not ranked:
        return []
    with search.record.stage("relevance", len(ranked)) as span:
        terms, texts = asked_terms(search.request.query)[:MOST_TERMS], [_text_of(item) for item in ranked]
        covered = await compute(measure_coverage, sum(map(len, texts)) > SOON_READ, terms, texts)
        span.left = len(ranked)
    return [rate(*measured) for measured in zip(_closeness(search.unrelated, ranked), covered, strict=True)]


def rate(closeness: float, coverage: float) -> float:
    """Return the relevance of a passage."""
    whole = EVERY_WORD if coverage > 1 - 1e-9 else 0.0
    return 1 / (1 + math.exp(-(BASE + CLOSENESS * closeness + COVERAGE * coverage + whole)))


def _closeness(unrelated: float | None, ranked: Sequence[RankedChunk]) -> list[float]:
    """Return the place of each passage between unrelated text and the query itself."""
    cosines = [item.fused.scores.get("dense") for item in ranked]
    known = [cosine for cosine in cosines if cosine is not None]
    if unrelated is None or not known:
        return [CLOSENESS_UNKNOWN] * len(ranked)
    # What only its words brought is no closer than what the dense arm brought.
    least = min(*known, unrelated + CLOSENESS_UNKNOWN * (1 - unrelated))
    return [((least if cosine is None else cosine) - unrelated) / max(1 - unrelated, 1e-6) for cosine in cosines]


def _text_of(item: RankedChunk) -> str:
    return f"{item.chunk.title}\n{' '.join(item.chunk.chunk.section)}\n{item.chunk.chunk.text}"
