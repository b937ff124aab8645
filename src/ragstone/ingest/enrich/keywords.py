"""What a document is about, in a few words and phrases of its own.

Candidates are the runs between function words and marks, as in RAKE, and the one to three words inside them.
A phrase counts by how often it is used and by how often its words are; what stands in a heading counts more.
A word that is hardly used outside one phrase gives way to the phrase.

Scripts written without spaces have no words to count here and give no keywords.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

from ragstone.ingest.enrich.excerpt import Excerpt, StemmedSentence, take_fitting

MAX_WORDS = 3
IN_HEADING = 2.0
"""How much more a candidate counts whose words all stand in headings."""
MIN_SHARE = 0.5
"""A word goes when one phrase holds at least this share of its uses."""
_ROOTS = [math.sqrt(words) for words in range(MAX_WORDS + 1)]
Words = tuple[str, ...]
"""The stems of a candidate, or the words they are of."""


def find_keywords(excerpt: Excerpt, limit: int) -> list[str]:
    """The words and phrases that matter most, best first, no two of one stem."""
    if not limit:
        return []
    uses: dict[Words, int] = {}
    spelt: dict[Words, Words] = {}
    whole_runs: set[Words] = set()
    for sentence in (*excerpt.sentences, *excerpt.headings, excerpt.title):
        for stems, words in _keyword_runs(sentence):
            if 1 < len(stems) <= MAX_WORDS:
                whole_runs.add(stems)
            for first, last in _spans(len(stems)):
                key = stems[first:last]
                uses[key] = uses.get(key, 0) + 1
                spelt.setdefault(key, words[first:last])
    best = _take_distinct(_rank(uses, whole_runs, _heading_terms(excerpt)), limit)
    usual = _usual_spelling(excerpt, {key[0] for key in best if len(key) == 1})
    return take_fitting(" ".join(spelt[key]) if len(key) > 1 else usual[key[0]] for key in best)


def _keyword_runs(sentence: StemmedSentence) -> Iterator[tuple[Words, Words]]:
    """Stems and words of each stretch without a function word or a mark."""
    start = 0
    for position, stem in enumerate((*sentence.stems, "")):
        if not stem:
            if position > start:
                yield sentence.stems[start:position], sentence.tokens[start:position]
            start = position + 1


@lru_cache(maxsize=64)
def _spans(length: int) -> tuple[tuple[int, int], ...]:
    """Where the one to three neighbouring words of a run of this length can stand."""
    return tuple(
        (first, last)
        for first in range(length)
        for last in range(first + 1, min(first + MAX_WORDS, length) + 1)
    )


def _heading_terms(excerpt: Excerpt) -> set[str]:
    """The stems of the title and the headings."""
    return {stem for heading in (excerpt.title, *excerpt.headings) for stem in heading.terms}


def _rank(uses: dict[Words, int], whole_runs: set[Words], in_headings: set[str]) -> list[Words]:
    # A phrase that is used once and is part of a longer run was put together by chance.
    candidates = {
        key: count for key, count in uses.items() if len(key) == 1 or count > 1 or key in whole_runs
    }
    for key in set(_find_absorbed(candidates)):
        del candidates[key]
    weight = {key[0]: math.log1p(count) for key, count in uses.items() if len(key) == 1}
    scores = {}
    for key, count in candidates.items():
        of_words = sum([weight[word] for word in key]) / _ROOTS[len(key)]
        scores[key] = count * of_words * (IN_HEADING if in_headings.issuperset(key) else 1)
    # Sorting is stable: of equals, the one that is used first.
    return sorted(scores, key=scores.__getitem__, reverse=True)


def _find_absorbed(candidates: dict[Words, int]) -> Iterator[Words]:
    """Candidates that are mostly used as a part of a longer one."""
    for key, count in candidates.items():
        if count > 1 and len(key) > 1:
            for first, last in _spans(len(key)):
                part = key[first:last]
                if len(part) < len(key) and count >= MIN_SHARE * candidates.get(part, math.inf):
                    yield part


def _take_distinct(ranked: Iterable[Words], limit: int) -> list[Words]:
    """The first candidates that say something which none before them said."""
    chosen: list[set[str]] = []
    distinct = []
    for key in ranked:
        stems = set(key)
        if not any(stems <= other or len(stems & other) > 1 for other in chosen):
            chosen.append(stems)
            distinct.append(key)
            if len(distinct) == limit:
                break
    return distinct


def _usual_spelling(excerpt: Excerpt, stems: set[str]) -> dict[str, str]:
    """The most usual word of each stem; of equals, the first in the text."""
    counts = Counter(
        (stem, word)
        for sentence in (*excerpt.sentences, *excerpt.headings, excerpt.title)
        for stem, word in zip(sentence.stems, sentence.tokens, strict=True)
        if stem in stems
    )
    usual: dict[str, str] = {}
    for (stem, word), _ in counts.most_common():
        usual.setdefault(stem, word)
    return usual
