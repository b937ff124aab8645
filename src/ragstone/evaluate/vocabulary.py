"""Words of queries and words of documents for the same thing, learnt from useful passages.

A word of a query that none of its useful passages has is taken to mean what those passages say again and again and
others do not. It needs two queries to say so: one alone may have been about anything.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from ragstone.language.analyzer import STOP_WORDS, analyze

WORD = re.compile(r"[^\W\d_]{3,40}")
FEWEST_QUERIES = 2
MOST_OTHERS = 3
MOST_TERMS = 1000
PASSAGE_CHARS = 4000


def learnt_terms(useful: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the words of documents that a word of a query may stand for; `useful` has passages by query."""
    passages = {query: _words(" ".join(text[:PASSAGE_CHARS] for text in texts)) for query, texts in useful.items()}
    asked_in: dict[str, list[str]] = defaultdict(list)
    for query, said in passages.items():
        for stem, word in _words(query).items():
            if stem not in said:
                asked_in[word].append(query)
    spread = Counter(stem for said in passages.values() for stem in said)
    frequent = sorted(asked_in.items(), key=lambda item: (-len(item[1]), item[0]))
    found = {
        word: _others(queries, passages, spread)
        for word, queries in frequent[:MOST_TERMS]
        if len(queries) >= FEWEST_QUERIES
    }
    return {word: others for word, others in sorted(found.items()) if others}


def _others(queries: Sequence[str], passages: Mapping[str, dict[str, str]], spread: Counter[str]) -> list[str]:
    """Return the words that the passages of these queries share and those of other queries lack."""
    shared = Counter(stem for query in queries for stem in passages[query])
    asked = {stem for query in queries for stem in _words(query)}
    scores = {
        stem: count * math.log(len(passages) / spread[stem])
        for stem, count in shared.items()
        if count >= max(FEWEST_QUERIES, (len(queries) + 1) // 2) and stem not in asked and spread[stem] <= 2 * count
    }
    best = sorted((stem for stem in scores if scores[stem] > 0), key=lambda stem: (-scores[stem], stem))
    spelled = {stem: word for query in queries for stem, word in passages[query].items()}
    return [spelled[stem] for stem in best[:MOST_OTHERS]]


def _words(text: str) -> dict[str, str]:
    """Return the words that say something, by their stems."""
    words = {word for word in WORD.findall(text.lower()) if word not in STOP_WORDS}
    return {stems[0]: word for word in sorted(words) if (stems := analyze(word))}
