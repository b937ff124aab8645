"""What else the words of a query are called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from ragstone.language.analyzer import STOP_WORDS, analyze_query
from ragstone.query.transform.proposal import Proposal

LONGEST_TERM = 4
"""Words of a term that is looked up as one."""
MOST_TERMS = 32
"""Words of a query that are looked up."""
MOST_PER_TERM = 3
_WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")


class Thesaurus(Protocol):
    """Knows other words for a term."""

    def others(self, term: str) -> Sequence[str]:
        """Other words for a term in lower case, the nearest first; none when it is not known."""
        ...


def synonyms(query: str, thesauri: Sequence[Thesaurus]) -> Proposal:
    """Other words for the terms of a query; the longest term that is known wins over its parts."""
    found = [
        other
        for thesaurus in thesauri
        for other in _of_each_term(_WORD.findall(query.lower())[:MOST_TERMS], thesaurus)
    ]
    known = set(analyze_query(query))
    return Proposal(words=tuple(other for other in found if not known.issuperset(analyze_query(other))))


def _of_each_term(words: Sequence[str], thesaurus: Thesaurus) -> Iterator[str]:
    start = 0
    while start < len(words):
        for count in range(min(LONGEST_TERM, len(words) - start), 0, -1):
            term = " ".join(words[start : start + count])
            others = () if term in STOP_WORDS else thesaurus.others(term)[:MOST_PER_TERM]
            if others:
                yield from others
                break
        start += count
