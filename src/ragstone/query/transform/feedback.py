"""Pseudo-relevance feedback: add words of the first passages found to the query."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from ragstone.language.terms import is_function_word, terms_of
from ragstone.query.transform.proposals import Proposal

FEEDBACK_PASSAGES = 10
FEEDBACK_WORDS = 5
_READ = 20_000
"""Characters of a passage that are looked at."""
_WORD = re.compile(r"[^\W\d_]{3,40}+")


def feedback(query: str, passages: Sequence[str], language: str = "") -> Proposal:
    """Return the words that the first passages share beyond the query's own, the most telling first.

    A word's weight is its share of a passage, summed over the passages, each with less say than the one before
    it, as in a relevance model; a word of a single passage says more about that passage than about the query.
    """
    asked = set(terms_of(query, language))
    weights: defaultdict[str, float] = defaultdict(float)
    seen_in: Counter[str] = Counter()
    spelling: dict[str, str] = {}
    for rank, passage in enumerate(passages[:FEEDBACK_PASSAGES]):
        stems = _stems(passage[:_READ], spelling, language)
        for stem, count in stems.items():
            weights[stem] += count / stems.total() / math.log2(rank + 2)
            seen_in[stem] += 1
    common = [stem for stem in weights if stem not in asked and seen_in[stem] > 1]
    best = sorted(common, key=lambda stem: (-weights[stem] * math.log(seen_in[stem]), stem))
    return Proposal(words=tuple(spelling[stem] for stem in best[:FEEDBACK_WORDS]))


def _stems(passage: str, spelling: dict[str, str], language: str) -> Counter[str]:
    """Count the stems of a passage; `spelling` keeps the first word of each."""
    stems: Counter[str] = Counter()
    for word in _WORD.findall(passage.lower()):
        if not is_function_word(word, language):
            stem = terms_of(word, language)[0]
            stems[stem] += 1
            spelling.setdefault(stem, word)
    return stems
