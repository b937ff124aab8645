"""What the sentences of a receipt stand on: each quote and its surroundings are analysed once for all of them.

The checks are those of `support`, which an answer went through when it was made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragstone.answer.support import MIN_TERMS, nearest_clauses, negated, numbers, opposed
from ragstone.core.analyzer import analyze, analyze_query

MOST_CLAUSES = 50
"""As many of the nearest clauses are looked at for one that does not say the opposite."""


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """The terms and numbers of a text."""

    terms: frozenset[str]
    numbers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Ground:
    """A quote by the terms of its clauses, and what is said above and around it."""

    clauses: Mapping[str, frozenset[str]]
    above: Said
    around: Said


def said(text: str) -> Said:
    """What a text says."""
    return Said(frozenset(analyze(text)), frozenset(numbers(text)))


def clauses(quote: str) -> dict[str, frozenset[str]]:
    """The clauses of a quote with their terms."""
    each = dict.fromkeys(nearest_clauses("", [quote]))  # nothing is nearer than anything else: all of them
    return {clause: frozenset(analyze(clause)) for clause in each}


def not_borne_out(sentence: str, grounds: Sequence[Ground]) -> str:
    """Why a sentence does not stand on these; empty when it does."""
    texts = {part for one in grounds for part in (one.above, one.around)}
    if numbers(sentence).difference(*(text.numbers for text in texts)):
        return "a number is not in its source"
    terms = set(analyze_query(sentence))
    shared = {clause: len(terms & its) for one in grounds for clause, its in one.clauses.items()}
    most = max(shared.values())
    denies = negated(sentence)
    near = [clause for clause, count in shared.items() if count == most and negated(clause) == denies]
    if not near:
        return "it negates what its source says, or the reverse"
    if all(opposed(sentence, clause) for clause in near[:MOST_CLAUSES]):
        return "it says the opposite of its source"
    known = terms.intersection(frozenset().union(*(text.terms for text in texts)))
    if not terms or len(known) / len(terms) < MIN_TERMS:
        return "its source does not say it"
    return ""
