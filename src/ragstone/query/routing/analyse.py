"""Decide what kind of query this is and which sources can answer it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from ragstone.core.search import QueryAnalysis, QueryType, SourceKind
from ragstone.core.types import Mode, RouteKind
from ragstone.language.analyzer import analyze
from ragstone.language.names import MOST_NAMES, find_names, find_spelt_dates, find_spelt_names
from ragstone.settings.retrieval import VocabularySettings

_PRODUCT = re.compile(
    r"\b(?:prices?|priced|costs?|how much|in stock|out of stock|stock|sell|selling|sold|buy|purchase|order"
    r"|products?|brands?|sizes?|colou?rs?|ingredients|specifications?|specs|discounts?|catalogue|catalog)\b"
)
_SERVICE = re.compile(
    r"\b(?:book (?:a|an|the|my|me|in|for|another|online)|how do i book|bookings?|booked|appointments?"
    r"|reserv(?:e|ation|ations)|slots?|reschedule|cancel (?:a|an|the|my)|services?|sessions?|consultations?"
    r"|treatments?|lessons?|available (?:on|at|today|tomorrow|this|next)|free (?:on|at))\b"
)


class Intent(NamedTuple):
    """The number of words in a query that ask for products and for services."""

    product: int
    service: int


def find_intent(query: str) -> Intent:
    """Count the words that ask for products and for services."""
    words = " ".join(query.casefold().split())
    return Intent(len(set(_PRODUCT.findall(words))), len(set(_SERVICE.findall(words))))


LONGEST_READ = 1000
"""Characters that are looked at: what a longer text is about does not depend on its end."""
LONGEST_TALK = 80
MOST_SIMPLE_TERMS = 3
MOST_SIMPLE_WORDS = 6
LEAST_COMPLEX_WORDS = 25

_TALK = (
    r"(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|night|day))(?: (?:there|all|everyone|again))?"
    r"|(?:many )?(?:thanks|thank you|thx|cheers)(?: (?:a lot|so much|very much|again))?"
    r"|(?:good ?bye|bye|bye bye|see you|see you (?:later|soon|tomorrow)|take care)"
    r"|how are you(?: doing)?(?: today)?|how is it going|nice to meet you|you are welcome|who are you|what are you"
    r"|what is your name|(?:tell|say) me a joke|(?:that is|that's)? ?(?:ok|okay|great|cool|nice|perfect|fine|awesome)"
    r"|yes|yes please|no|no thanks|sure|got it|i see|all right|alright|never mind|please|lol"
)
_FOLLOW_UP = (
    r"why(?: not)?|how so|and|and then|so|then|go on|continue|please continue|more|more please|tell me more|say more"
    r"|what else|anything else|explain(?: (?:that|it|this|more))?|elaborate|(?:summarize|shorten)(?: (?:that|it))?"
    r"|shorter|again|repeat(?: (?:that|it))?|say that again|really|are you sure|what do you mean|for example|such as"
)
SMALL_TALK = re.compile(f"(?:{_TALK})(?: (?:{_TALK}))?")
FOLLOW_UP = re.compile(_FOLLOW_UP)
ASKS_FOR_SUM = re.compile(
    r"(?:what is|what's|calculate|compute|how much is) [-\d.,()+*/×÷^% ]*\d ?[-+*/×÷^%] ?\(?\d[-\d.,()+*/×÷^% ]*"
)
# A date, a range of years or a part number is no sum: `-` and `/` are one only where a sum is asked for.
BARE_SUM = re.compile(r"[-\d.,()+*/×÷^% ]*\d ?[+*×÷^] ?\(?\d[-\d.,()+*/×÷^% ]*=?")
TIMELY = re.compile(
    r"\b(?:today|tonight|yesterday|tomorrow|latest|newest|breaking|nowadays|right now|as of now|news|headlines"
    r"|this (?:week|weekend|month|year|morning|afternoon|evening|season)|weather(?: forecast)?"
    r"|(?:current|live|today's) (?:price|rate|exchange rate|version|score|status|stock|weather|events?)s?"
    r"|(?:stock|share) prices?|exchange rates?|price now)\b|\bnow\W*$"
)
SEVERAL_SIDES = re.compile(
    r"\b(?:compare|comparison|compared|versus|vs|differences?|differ|pros and cons|advantages|disadvantages"
    r"|trade-?offs?|relationship|relate|similarities|on the one hand|step by step)\b"
)
QUESTION_WORD = re.compile(r"\b(?:how|what|when|where|why|who|which)\b")


@dataclass(frozen=True, slots=True)
class Route:
    """The sources and the mode for a query (None leaves the mode as it is), with the reason."""

    kind: RouteKind
    mode: Mode | None = None
    reason: str = ""


def route(query: str, *, web: bool = False) -> Route:
    """Decide by the words; `web` says whether the web can be asked."""
    words = " ".join(query.casefold().replace("’", "'").split())[:LONGEST_READ]
    if reason := _reason_to_skip(words):
        return Route("none", reason=reason)
    if web and TIMELY.search(words):
        return Route("web", reason="it asks for what changes from day to day")
    return Route("retrieve", *_depth(words))


def _reason_to_skip(words: str) -> str:
    if len(words) > LONGEST_TALK:
        return ""
    bare = " ".join(re.sub(r"[!?.,;:…\"()]+", " ", words).split())
    if not bare or SMALL_TALK.fullmatch(bare):
        return "small talk" if bare else ""
    if FOLLOW_UP.fullmatch(bare):
        return "a follow-up with nothing to look for"
    sum_ = words.rstrip("? =")
    return "a sum" if BARE_SUM.fullmatch(sum_) or ASKS_FOR_SUM.fullmatch(sum_) else ""


def _depth(words: str) -> tuple[Mode | None, str]:
    count = words.count(" ") + 1
    asked = words.count("?") > 1 or len(QUESTION_WORD.findall(words)) > 1
    if count >= LEAST_COMPLEX_WORDS or asked or SEVERAL_SIDES.search(words):
        return "thorough", "it has several sides"
    if count <= MOST_SIMPLE_WORDS and len(analyze(words)) <= MOST_SIMPLE_TERMS:
        return "fast", "a few words"
    return None, ""


OWN_NAME = 2
"""The weight of a name of the tenant's own list against a word such as "price" or "book"."""
_Terms = tuple[tuple[QueryType, str, str], ...]


def analyse(
    query: str, vocabulary: VocabularySettings, *, web: bool = False, database: Collection[QueryType] = ()
) -> QueryAnalysis:
    """Decide by the words; `web` says whether the web can be asked, `database` what databases know about."""
    chosen = route(query, web=web)
    text = query[:LONGEST_READ]
    dates = find_spelt_dates(text)
    own = list(_own_names(text, vocabulary))
    names = find_names(text)
    kind = _type(text, [of for of, _ in own], names)
    sources: list[SourceKind] = []
    if chosen.kind != "none":
        sources = ["documents"]
        sources += ["database"] if kind in database else []
        sources += ["internet"] if chosen.kind == "web" else []
    entities = _distinct([name for _, name in own], names)
    return QueryAnalysis(kind, entities, dates, tuple(sources), chosen.mode, chosen.reason)


def add_names(analysis: QueryAnalysis, query: str, passages: Iterable[str]) -> QueryAnalysis:
    """Return the analysis with the names that passages spell with capitals and the query has in any spelling."""
    found = find_spelt_names(query[:LONGEST_READ], passages)
    return replace(analysis, entities=_distinct(found, analysis.entities)) if found else analysis


def _type(text: str, own: Sequence[QueryType], names: Sequence[str]) -> QueryType:
    asked = find_intent(text)
    has_code = any(any(map(str.isdigit, name)) for name in names)  # such as SKU-12345 or iPhone 15
    product = OWN_NAME * own.count("product") + asked.product + has_code
    service = OWN_NAME * own.count("service") + asked.service
    if not product and not service:
        return "general"
    return "service" if service > product else "product"


def _own_names(text: str, vocabulary: VocabularySettings) -> Iterator[tuple[QueryType, str]]:
    """Yield the names of the tenant's list that the query has, in any form of its words."""
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
    """Return each name once, and none that is only a part of another."""
    kept: list[str] = []
    for name in sorted((*first, *then), key=len, reverse=True):
        if not any(f" {name.casefold()} " in f" {other.casefold()} " for other in kept):
            kept.append(name)
    order = {name: place for place, name in reversed(list(enumerate((*first, *then))))}
    return tuple(sorted(kept, key=order.__getitem__)[:MOST_NAMES])
