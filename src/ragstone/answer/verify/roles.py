"""Who does what to whom: words around the same verb in another order, and first names with other surnames."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from ragstone.language.analyzer import STOP_WORDS, analyze

_WORD = re.compile(r"[^\W_][\w'’.-]{0,60}")
_PIVOTS = frozenset(("to", "than", "before", "after", "when", "because", "if", "by"))
"""Function words whose two sides are not the same."""
_MUTUAL = frozenset(
    analyze("meet met marry married border equal resemble differ adjoin neighbour share connect join link")
)
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being)\s(?:\w{1,20}\s){1,3}by\b", re.I)
_FULL_NAME = re.compile(r"\b[A-Z][\w'’-]{1,30}(?: [A-Z][\w'’-]{1,30}){1,4}")
MOST_WORDS = 60
"""Words of a text whose order is looked at."""


def reversed_roles(claim: str, source: str) -> bool:
    """Whether two words that stand on either side of a third have changed sides."""
    mine, theirs = _places(claim), _places(source)
    if bool(_PASSIVE.search(claim)) != bool(_PASSIVE.search(source)):
        return False
    shared = [word for word in mine if word in theirs]
    movable = [word for word in shared if word not in _PIVOTS and not word[0].isdigit()]
    for pivot in shared:
        if pivot in _MUTUAL or pivot[0].isdigit():
            continue
        moved_back = any(mine[word] > mine[pivot] and theirs[word] < theirs[pivot] for word in movable)
        moved_on = any(mine[word] < mine[pivot] and theirs[word] > theirs[pivot] for word in movable)
        if moved_back and moved_on:
            return True
    return False


def _places(text: str) -> dict[str, int]:
    """Where each term stands that a text has once."""
    terms: list[str] = []
    for word in _WORD.findall(text)[:MOST_WORDS]:
        folded = word.lower().strip(".")
        if folded in _PIVOTS:
            terms.append(folded)
        elif folded not in STOP_WORDS:
            terms += analyze(word)[:1]
    counts = Counter(terms)
    return {term: place for place, term in enumerate(terms) if counts[term] == 1}


def mixed_names(claim: str, source: str) -> bool:
    """Whether the claim gives a name of the source another partner: Maria Holt where it says Maria Lind."""
    known = [frozenset(run.split()) for run in _FULL_NAME.findall(source)]
    everything = frozenset[str]().union(*known)
    words = set(_WORD.findall(source))
    return any(
        first in everything
        and (second in everything or second not in words)
        and not any({first, second} <= run for run in known)
        for run in _FULL_NAME.findall(claim)
        for first, second in pairwise(run.split())
        if first.lower() not in STOP_WORDS
    )
