"""What a query asks for, what it names, and who may know: decided by its words and the tenant's own, without a model.

A product has a price and a stock, a service is booked: both are asked of databases too, where there are any. Names
are those that the tenant lists, those that the query spells like names, and, once something was found, those that
the passages spell so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from ragstone.core.analysis import QueryAnalysis, QueryType, SourceKind
from ragstone.language.analyzer import analyze
from ragstone.query.names import MOST_NAMES, dates_of, names_of, spelt_as_names
from ragstone.query.route import LONGEST_READ, route
from ragstone.query.wants import wants
from ragstone.settings.retrieval import VocabularySettings

OWN_NAME = 2
"""What a name of the tenant's own list weighs against a word such as "price" or "book"."""
_Terms = tuple[tuple[QueryType, str, str], ...]


def analyse(
    query: str, vocabulary: VocabularySettings, *, web: bool = False, database: Collection[QueryType] = ()
) -> QueryAnalysis:
    """Decide by the words; `web` says whether the web can be asked, `database` what databases know about."""
    chosen = route(query, web=web)
    text = query[:LONGEST_READ]
    dates = dates_of(text)
    own = list(_own_names(text, vocabulary))
    names = names_of(text)
    kind = _type(text, [of for of, _ in own], names)
    sources: list[SourceKind] = []
    if chosen.kind != "none":
        sources = ["documents"]
        sources += ["database"] if kind in database else []
        sources += ["internet"] if chosen.kind == "web" else []
    entities = _distinct([name for _, name in own], names)
    return QueryAnalysis(kind, entities, dates, tuple(sources), chosen.mode, chosen.reason)


def with_names(analysis: QueryAnalysis, query: str, passages: Iterable[str]) -> QueryAnalysis:
    """The analysis together with what the passages spell like a name and the query says in whatever spelling."""
    found = spelt_as_names(query[:LONGEST_READ], passages)
    return replace(analysis, entities=_distinct(found, analysis.entities)) if found else analysis


def _type(text: str, own: Sequence[QueryType], names: Sequence[str]) -> QueryType:
    asked = wants(text)
    has_code = any(any(map(str.isdigit, name)) for name in names)  # such as SKU-12345 or iPhone 15
    product = OWN_NAME * own.count("product") + asked.product + has_code
    service = OWN_NAME * own.count("service") + asked.service
    if not product and not service:
        return "general"
    return "service" if service > product else "product"


def _own_names(text: str, vocabulary: VocabularySettings) -> Iterator[tuple[QueryType, str]]:
    """Names of the tenant's list that the query says, in any form of its words."""
    said = f" {' '.join(analyze(text))} "
    for of, name, terms in _terms_of(vocabulary):
        if terms in said:
            yield of, name


@lru_cache(256)
def _terms_of(vocabulary: VocabularySettings) -> _Terms:
    of_type: tuple[tuple[QueryType, tuple[str, ...]], ...] = (
        ("product", vocabulary.product),
        ("service", vocabulary.service),
    )
    return tuple((of, name, f" {' '.join(analyze(name))} ") for of, names in of_type for name in names)


def _distinct(first: Iterable[str], then: Iterable[str]) -> tuple[str, ...]:
    """Each name once, and none that is only a part of another."""
    kept: list[str] = []
    for name in sorted((*first, *then), key=len, reverse=True):
        if not any(f" {name.casefold()} " in f" {other.casefold()} " for other in kept):
            kept.append(name)
    order = {name: place for place, name in reversed(list(enumerate((*first, *then))))}
    return tuple(sorted(kept, key=order.__getitem__)[:MOST_NAMES])
