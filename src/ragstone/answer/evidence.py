"""Strength of a sentence as an answer to a question, on one scale for all embedding models.

A cosine says little by itself: two unrelated sentences have about 0.55 with one model and 0.05 with another.
So each question is also compared with a few sentences that are about nothing in particular. Their median
cosine is this model's "unrelated" for this question, and a sentence's closeness is how much of the way from
there to identity it goes: 0 unrelated, 1 the same.

Closeness is joined by coverage: the share of the question's terms that stand in the sentence or its headings,
where a term counts the more the fewer sentences have it, and most when none has it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ragstone.answer.cite import Quote
from ragstone.core.types import Hit, Matrix, Vector
from ragstone.language.analyzer import analyze, analyze_query

UNRELATED = (
    "The train to the coast leaves at noon from the second platform.",
    "She planted three rows of beans behind the old shed.",
    "Our committee will meet again after the summer break.",
    "Rain is expected in the north before the evening.",
    "The recipe asks for two cups of flour and a pinch of salt.",
    "He sold his bicycle to a neighbour last week.",
    "The museum opened a new wing for modern sculpture.",
    "Please send the signed form back to the office.",
    "The team lost the final by a single goal.",
    "Interest on the loan is paid every month.",
    "The bridge was closed while workers repaired the road.",
    "The album has ten songs and a short introduction.",
)
"""Of many fields, so that no question is near to more than a few of them."""

COVERAGE_WEIGHT = 0.5
MIN_EVIDENCE = 0.75
"""Closeness and weighted coverage together that the best sentence must have for a question to be answered."""
UNKNOWN_NAME = 0.25
"""Additional strength needed when the question names something that no passage names."""
MIN_COVERAGE = 0.6
"""Coverage needed without a model."""

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<=[\w,;:)] )[A-Z][\w-]*")
"""A capital inside a sentence."""
ASKING = frozenset(
    analyze(
        "who whom whose much many long often must may might any some tell explain describe mean means "
        "happen happens use used using way best get please know find"
    )
)
"""Terms that ask rather than name what is asked about."""


@dataclass(frozen=True, slots=True)
class SentenceMatch:
    """A candidate sentence and what speaks for it; `closeness` is None where no model could be asked."""

    quote: Quote
    closeness: float | None
    coverage: float

    @property
    def strength(self) -> float:
        """Return a measure that is comparable across questions and embedding models."""
        if self.closeness is None:
            return self.coverage
        return self.closeness + COVERAGE_WEIGHT * self.coverage

    def enough(self, *, unknown_name: bool = False) -> bool:
        """Return whether it may be given as an answer."""
        least = MIN_COVERAGE if self.closeness is None else MIN_EVIDENCE
        return self.strength >= least + UNKNOWN_NAME * unknown_name


def closeness(question: Vector, sentences: Matrix, unrelated: Matrix) -> list[float]:
    """Return where each sentence stands between unrelated (0) and identical (1) to the question."""
    background = float(np.median(unrelated @ question))
    return [(float(cosine) - background) / max(1.0 - background, 1e-6) for cosine in sentences @ question]


def asked_terms(question: str) -> list[str]:
    """Return the terms that a question names, or all of its terms."""
    asked = analyze_query(question)
    return [term for term in asked if term not in ASKING] or asked


def coverage(question: str, quotes: Sequence[Quote], read: Sequence[str] = ()) -> list[float]:
    """Return the weighted share of the question's terms in each sentence or the headings above it.

    `read` is what each sentence is read as, where that is more than its own words.
    """
    terms = asked_terms(question)
    inside = [set(analyze(words)) for words in read or [quote.text for quote in quotes]]
    frequency = Counter(term for found in inside for term in found)
    weights = {term: math.log(1 + len(quotes) / (0.5 + frequency[term])) for term in terms}
    total = sum(weights.values())
    if not total:
        return [0.0] * len(quotes)
    headings = {
        quote.hit.chunk_id: set(analyze(f"{quote.hit.title}\n{quote.hit.section}")) for quote in quotes
    }
    return [
        sum(
            weight
            for term, weight in weights.items()
            if term in found or term in headings[quote.hit.chunk_id]
        )
        / total
        for quote, found in zip(quotes, inside, strict=True)
    ]


def names_unknown(question: str, hits: Iterable[Hit]) -> bool:
    """Return whether the question has a capitalised name of which no part occurs in any hit."""
    words = _WORD.findall(question)
    names = [name for name in _NAME.findall(question) if len(name) > 1]
    if 2 * len(names) > len(words):
        return False  # Written In Title Case: capitals say nothing.
    known = {term for hit in hits for term in analyze(all_words(hit))}
    return any(known.isdisjoint(analyze(name)) for name in names)


def all_words(hit: Hit) -> str:
    """Return a passage with the headings over it."""
    return "\n".join((hit.title, hit.section, hit.table_head.text if hit.table_head else "", hit.text))
