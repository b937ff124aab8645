"""The hits that an index should find, computed by brute force."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from ragstone.core.types import Candidate

K1 = 1.2
B = 0.75
IDF_FLOOR = 1e-6


def bm25(query: Sequence[str], texts: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Return the BM25 score of every text, given as terms, that holds one of the query's terms."""
    average = sum(map(len, texts.values())) / max(len(texts), 1)
    counts = {key: Counter(terms) for key, terms in texts.items()}
    scores: dict[str, float] = {}
    for term in dict.fromkeys(query):
        holders = [key for key in texts if counts[key][term]]
        idf = math.log((len(texts) - len(holders) + 0.5) / (len(holders) + 0.5))
        for key in holders:
            count = counts[key][term]
            norm = K1 * (1 - B + B * len(texts[key]) / average)
            gain = max(idf, IDF_FLOOR) * count * (K1 + 1) / (count + norm)
            scores[key] = scores.get(key, 0.0) + gain
    return scores


def check_ranking(found: Sequence[Candidate], expected: Mapping[str, float], k: int, tolerance: float) -> None:
    """Assert that `found` is the top k of the expected scores: best first, ties by id, none twice."""
    ids = [candidate.chunk_id for candidate in found]
    assert len(set(ids)) == len(ids), f"an id came twice: {ids}"
    assert len(found) == min(k, len(expected)), f"{len(found)} of {min(k, len(expected))} came"
    for candidate in found:
        assert candidate.chunk_id in expected, f"{candidate.chunk_id} should not have been found"
        off = abs(candidate.score - expected[candidate.chunk_id])
        assert off <= tolerance, f"{candidate} should score {expected[candidate.chunk_id]}"
    assert list(found) == sorted(found, key=lambda candidate: (-candidate.score, candidate.chunk_id)), "not best first"
    if found:
        least = found[-1].score + 2 * tolerance
        missed = {key: score for key, score in expected.items() if key not in set(ids) and score > least}
        assert not missed, f"better ones were left out: {missed}"
