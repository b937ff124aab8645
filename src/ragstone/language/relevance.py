"""Relevance of texts to a query: coverage of its terms, and closeness on one scale for all embedding models.

Coverage is the share of the query's terms that a text has, where a term counts the more the fewer texts have it, and
most when none has it.

A cosine says little by itself: two unrelated sentences have about 0.55 with one model and 0.05 with another. So each
query is also compared with a few sentences that are about nothing in particular. Their median cosine is this model's
"unrelated" for this query, and a text's closeness is how much of the way from there to identity it goes: 0 unrelated,
1 the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from statistics import median

from ragstone.core.errors import ModelMismatch
from ragstone.core.protocols import Embedder
from ragstone.core.types import Matrix, Vector
from ragstone.language.analyzer import analyze, analyze_query, find_terms

COVERAGE_WEIGHT = 0.5
"""Weight of coverage beside closeness."""
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
"""Of many fields, so that no query is near to more than a few of them."""
ASKING = frozenset(
    analyze(
        "who whom whose much many long often must may might any some tell explain describe mean means "
        "happen happens use used using way best get please know find"
    )
)
"""Terms that ask rather than name what is asked about."""
MOST_MODELS = 16


def asked_terms(question: str) -> list[str]:
    """Return the terms that a question names, or all of its terms."""
    asked = analyze_query(question)
    return [term for term in asked if term not in ASKING] or asked


def term_share(query: str, text: str) -> float:
    """Return the share of the query's distinct terms in a text, each with the same weight."""
    terms, known = analyze_query(query), set(analyze(text))
    return sum(term in known for term in terms) / len(terms) if terms else 0.0


def weigh_terms(terms: Iterable[str], texts: Sequence[AbstractSet[str]]) -> dict[str, float]:
    """Return the weight of each term: the fewer of the texts have it, the higher."""
    return {term: math.log(1 + len(texts) / (0.5 + sum(term in text for text in texts))) for term in terms}


def weighted_share(weights: Mapping[str, float], found: AbstractSet[str]) -> float:
    """Return the share of the weight that falls on the found terms; 0 without any weight."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in found) / total if total else 0.0


def measure_coverage(terms: Iterable[str], texts: Sequence[str], headings: Sequence[str] | None = None) -> list[float]:
    """Return the weighted share of the terms in each text or the headings above it."""
    asked = dict.fromkeys(terms)
    inside = [find_terms(asked.keys(), text) for text in texts]
    weights = weigh_terms(asked, inside)
    if headings is None:
        return [weighted_share(weights, found) for found in inside]
    above = {heading: find_terms(asked.keys(), heading) for heading in set(headings)}
    return [weighted_share(weights, found | above[heading]) for found, heading in zip(inside, headings, strict=True)]


def closeness(query: Vector, texts: Matrix, unrelated: Matrix) -> list[float]:
    """Return the place of each text between unrelated (0) and identical (1) to the query."""
    return scale_cosines([float(cosine) for cosine in texts @ query], query, unrelated)


def scale_cosines(cosines: Iterable[float], query: Vector, unrelated: Matrix) -> list[float]:
    """Return cosines to a query as closeness, given the vectors of unrelated sentences."""
    background = unrelated_level(query, unrelated)
    return [(cosine - background) / max(1.0 - background, 1e-6) for cosine in cosines]


def unrelated_level(query: Vector, unrelated: Matrix) -> float:
    """Return the cosine to a query of text that has nothing to do with it."""
    return float(median((unrelated @ query).tolist()))


class UnrelatedVectors:
    """Keeps the vectors of the unrelated sentences for each embedding model and dimension."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Matrix] = {}

    async def load(self, embedder: Embedder, model: str) -> Matrix:
        """Return the vectors of a model. Raises `ModelMismatch` if the embedder answers with another one."""
        key = model, embedder.model.dimension
        if key not in self._known:
            embedded = await embedder.embed(UNRELATED, "document")
            require_model(embedded.model, model)
            if len(self._known) >= MOST_MODELS:
                self._known.clear()
            self._known[key] = embedded.vectors
        return self._known[key]


def require_model(answered: str, model: str) -> None:
    """Raise `ModelMismatch` if texts were embedded by another model than the query."""
    if answered != model:
        raise ModelMismatch("the embedding model changed while sentences were compared")
