"""Entries of a catalogue by words: what is written down of an entry, and the order of those that match a query.

An entry keeps the terms of its fields, those of its name several times: BM25 then weighs fields without knowing them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ragstone.core.shop import Product, Service
from ragstone.language.detector import language_of
from ragstone.language.terms import choose_language, terms_of

LONGEST_QUERY = 1000
"""Characters of a query that are looked at."""
SATURATION, LENGTH_SHARE = 1.2, 0.3
LEAST_SHARE = 0.4
"""The share of the best score that an entry needs: with a name in the query, the rest of its category is not meant."""
NAME, LABEL, DESCRIPTION = 3, 2, 1
"""Weights of the fields."""


class IndexedWords(NamedTuple):
    """The terms of an entry, joined and enclosed by blanks, and the language they are in; "" for English."""

    terms: str
    language: str


def index_words(*fields: tuple[str, int]) -> IndexedWords:
    """Return the words of an entry from its fields, each with its weight."""
    whole = "\n".join(text for text, _ in fields if text)
    language = choose_language(language_of(whole[:LONGEST_QUERY]) or "", whole)
    terms = [term for text, weight in fields for term in terms_of(text, language) * weight if text]
    return IndexedWords(f" {' '.join(terms)} ", language)


def index_product(product: Product) -> IndexedWords:
    """Return the words of a product."""
    labels = ((product.brand, LABEL), (product.category, LABEL))
    return index_words((product.name, NAME), *labels, (product.description, DESCRIPTION))


def index_service(service: Service) -> IndexedWords:
    """Return the words of a service."""
    return index_words((service.name, NAME), (service.description, DESCRIPTION))


def rank(
    entries: Sequence[tuple[str, Sequence[str]]], asked: Sequence[Collection[str]], total: int, limit: int
) -> list[str]:
    """Return ids of entries by BM25, best first; a word of the query is any of some terms."""
    counts = [(entry_id, Counter(terms), len(terms)) for entry_id, terms in entries]
    if not counts:
        return []
    mean = sum(length for *_, length in counts) / len(counts)
    scores = dict.fromkeys((entry_id for entry_id, *_ in counts), 0.0)
    for terms in asked:
        held = {entry_id: sum(count[term] for term in terms) for entry_id, count, _ in counts}
        having = sum(number > 0 for number in held.values())
        rarity = math.log(1 + (total - having + 0.5) / (having + 0.5))
        for entry_id, _, length in counts:
            damping = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / mean)
            scores[entry_id] += rarity * held[entry_id] * (SATURATION + 1) / (held[entry_id] + damping)
    ordered = sorted(scores, key=lambda entry_id: (-scores[entry_id], entry_id))
    least = LEAST_SHARE * scores[ordered[0]]
    return [entry_id for entry_id in ordered if scores[entry_id] > 0 and scores[entry_id] >= least][:limit]
