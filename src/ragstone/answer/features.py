"""Features of units as answers to a question: numbers between 0 and 1 that speak for or against one.

What a unit is about is not only in its own words: "The default is five minutes." is about the setting that its entry
is headed with. So words of the heading, the term, the sentences around, the section and the title count as well. Each
word of the question counts once, for the nearest place that has it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from ragstone.answer.blocks import measure_word_share
from ragstone.answer.quotes import is_figure, named_cells, select_words
from ragstone.answer.units import AnswerUnit
from ragstone.language.analyzer import analyze, reader
from ragstone.language.asked import (
    MEASURED,
    STRICT,
    AskedKind,
    asks_for_default,
    asks_for_named_place,
    asks_whether,
    counts,
    find_asked_kind,
    find_counted,
    holds_kind,
    names_people,
    names_place,
    settles,
)
from ragstone.language.inflection import find_origins
from ragstone.language.names import find_identifiers
from ragstone.language.relevance import asked_terms, weigh_terms
from ragstone.language.synonyms import groups_of

COMMON = 0.3
"""The share of its weight that a term keeps which says little about a topic, or that the conversation is about."""
_COMMON_TERMS = frozenset(
    analyze(
        "make let give take want need like look see try put keep come go say tell thing something anything everything "
        "nothing just only own myself self always ever never still even also very really already again else instead "
        "without unless otherwise call name work change turn set time long same different other another new default "
        "kind sort type mean happen possible able first second one two right now once more most less least all every"
    )
)
_CONTACT_TERMS = frozenset(analyze("reach contact get touch hold write call phone email e-mail mail ring dial"))
"""Words of a question for a telephone number or an address that its answer need not have."""
_ENTRY_ASKED: frozenset[AskedKind] = frozenset(["definition", "setting", "command", "steps", "other"])
_CODE_ASKED: frozenset[AskedKind] = frozenset(["steps", "command", "setting"])
_LIST_ASKED: frozenset[AskedKind] = frozenset(["list", "steps"])
_OPEN: frozenset[AskedKind] = frozenset(["other", "yes-no", "default"])
"""Kinds that any sentence may answer."""
_DEFINED = re.compile(
    r"what (?:is|are|was|were|do|does) (?:(?:an?|the|[\w-]+'s) )?([\w./+-]+(?: [\w./+-]+){0,3}?)"
    r"(?=[,?]|\s\(| (?:in|of|for|on|that|which|mean|do|stand|used|under|to|with|by|and)\b|$)",
    re.I,
)
_TELLS = "is|are|was|were|means|denotes|stands for|refers to|describes|provides|tells|specifies|defines|an?|the"
_WORD = re.compile(r"[a-z][a-z'’-]*[a-z]")
_DENSE = 300
_LONGEST = 400
"""Length of a unit from which being longer makes no difference."""
_MOST_TERM_WORDS = 4
_NEIGHBOURS = (-2, -1, 1, 2)


Likeness = int | str


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, read once for all units."""

    text: str
    kind: AskedKind
    terms: Sequence[str]
    weights: Mapping[str, float]
    """The share of each term in what is asked for; together 1."""
    alike: Mapping[str, AbstractSet[Likeness]]
    """The likenesses of the words that a term is of."""
    counted: str
    named_place: bool
    whether: bool
    """It is answered by yes or no."""
    identifiers: Sequence[str]
    subject: re.Pattern[str] | None
    """The thing whose definition is asked for, as a sentence says what it is: "Massif is a …", "ReplayGain, a …"."""


class _Texts:
    """The terms, and what makes words alike, of texts that several units have around them."""

    def __init__(self) -> None:
        self._terms: dict[str, frozenset[str]] = {}
        self._alike: dict[str, frozenset[Likeness]] = {}

    def terms(self, text: str) -> frozenset[str]:
        if text not in self._terms:
            self._terms[text] = frozenset(analyze(text))
        return self._terms[text]

    def alike(self, text: str) -> frozenset[Likeness]:
        if text not in self._alike:
            words = set(_WORD.findall(text.lower()))
            self._alike[text] = frozenset[Likeness]().union(*map(_find_likeness, words))
        return self._alike[text]


def _find_likeness(word: str) -> AbstractSet[Likeness]:
    """Return the groups of words that mean the same as a word, and what it derives from: owner and own."""
    return groups_of(word) | find_origins(word)


def describe_units(
    question: str, units: Sequence[AnswerUnit], shared: AbstractSet[str] = frozenset()
) -> list[dict[str, float]]:
    """Return the features of each unit by name; terms that are `shared` with other questions count little."""
    texts, terms = _Texts(), frozenset(asked_terms(question))
    own = [texts.terms(select_words(unit.quote, terms)) for unit in units]
    asked = _read_question(question, own, shared)
    return [dict(_describe(asked, unit, found, texts)) for unit, found in zip(units, own, strict=True)]


def _read_question(question: str, texts: Sequence[AbstractSet[str]], shared: AbstractSet[str]) -> _Asked:
    terms, kind = asked_terms(question), find_asked_kind(question)
    little = _COMMON_TERMS | (frozenset() if shared >= set(terms) else shared)
    little |= _CONTACT_TERMS if kind == "contact" else frozenset()
    weights = {term: weight * (COMMON if term in little else 1.0) for term, weight in weigh_terms(terms, texts).items()}
    total = sum(weights.values()) or 1.0
    alike: dict[str, set[Likeness]] = {}
    for word in _WORD.findall(question.lower()):
        for term in analyze(word)[:1]:
            alike.setdefault(term, set()).update(_find_likeness(word))
    return _Asked(
        question,
        kind,
        terms,
        {term: weight / total for term, weight in weights.items()},
        alike,
        find_counted(question),
        asks_for_named_place(question),
        asks_whether(question) and reader.get() is None,  # in English only
        find_identifiers(question),
        _find_defined(question) if kind == "definition" else None,
    )


def _find_defined(question: str) -> re.Pattern[str] | None:
    """Return how a sentence begins that says what the asked thing is; None where the question names none."""
    asked = _DEFINED.match(question)
    if asked is None:
        return None
    name = r"\s+".join(map(re.escape, asked[1].split()))
    return re.compile(rf"(?<!\w){name}\b['\"”’`*_]*(?:\s\([^()]{{1,60}}\))?,?\s+(?:{_TELLS})\b", re.I)


def _describe(asked: _Asked, unit: AnswerUnit, own: AbstractSet[str], texts: _Texts) -> Iterator[tuple[str, float]]:
    covered = dict(_cover(asked, unit, own, texts))
    yield from covered.items()
    length = len(unit.text)
    yield "dense", covered["own"] * math.exp(-length / _DENSE)
    yield "length", min(length, _LONGEST) / _LONGEST
    yield "new", len(own - set(asked.terms)) / max(1, len(own))
    yield "pairs", _share_pairs(asked.terms, analyze(unit.text))
    yield "hit", unit.quote.hit.score
    yield "relevance", unit.quote.hit.relevance or 0.0
    yield from _describe_headings(asked, unit, texts)
    yield from _describe_kind(asked, unit)
    full = f"{unit.above}\n{unit.text}".lower()
    yield "other_identifier", float(any(name.lower() not in full for name in asked.identifiers))


def _cover(asked: _Asked, unit: AnswerUnit, own: AbstractSet[str], texts: _Texts) -> Iterator[tuple[str, float]]:
    """Yield the share of the question that each place around a unit has and no nearer one, and the heaviest rest."""
    hit, near = unit.quote.hit, [quote.text for quote in (unit.before, unit.after, unit.topic) if quote]
    around = frozenset[str]().union(*map(texts.terms, near))
    places = {"own": own, "above": texts.terms(unit.above), "near": around}
    places |= {"section": texts.terms(hit.section), "title": texts.terms(hit.title)}
    left = dict(asked.weights)
    for name, found in places.items():
        yield name, sum(left.pop(term) for term in list(left) if term in found)
    head = unit.quote.head.text if unit.quote.head else ""
    told = frozenset[Likeness]().union(*map(texts.alike, (unit.text, head, unit.above, *near)))
    alike = [term for term in left if not told.isdisjoint(asked.alike.get(term, frozenset()))]
    yield "alike", sum(left.pop(term) for term in alike)
    yield "lacking", max(left.values(), default=0.0)


def _share_pairs(terms: Sequence[str], found: Sequence[str]) -> float:
    """Return the share of neighbours in the question that stand close to each other in a text, too."""
    places: dict[str, set[int]] = {}
    for place, term in enumerate(found):
        places.setdefault(term, set()).add(place)
    pairs = list(pairwise(terms))
    close = sum(
        any(place + away in places[other] for place in places[one] for away in _NEIGHBOURS)
        for one, other in pairs
        if one in places and other in places
    )
    return close / max(1, len(pairs))


def _describe_headings(asked: _Asked, unit: AnswerUnit, texts: _Texts) -> Iterator[tuple[str, float]]:
    term = set(analyze(unit.term.text)[:_MOST_TERM_WORDS]) if unit.term else set[str]()
    yield "term_asked", len(term.intersection(asked.terms)) / max(1, len(term))
    heading = texts.terms(unit.heading.text if unit.heading else unit.quote.hit.section.split(" > ")[-1])
    yield "heading_asked", len(heading.intersection(asked.terms)) / max(1, len(heading))


def _describe_kind(asked: _Asked, unit: AnswerUnit) -> Iterator[tuple[str, float]]:
    kind, text = asked.kind, unit.text
    held, strict = unit_holds(kind, unit, asked.text), kind in STRICT
    yield "held", float(strict and held)
    yield "missed", float(strict and not held)
    yield "softly_held", float(not strict and kind not in _OPEN and held)
    yield "default", float(asks_for_default(asked.text) and holds_kind("default", text))
    yield "odd_code", float(unit.kind == "code" and kind not in _CODE_ASKED)
    yield "odd_list", float(unit.kind == "list" and kind not in _LIST_ASKED)
    yield "list", float(unit.kind == "list" and kind in _LIST_ASKED)
    yield from ((name, float(unit.kind == name)) for name in ("entry", "row", "item"))
    yield "announces", float(text.endswith((":", "：")))
    yield "asks", float(text.endswith(("?", "？")))
    yield "symbols", 1 - measure_word_share(text)
    yield "defines", float(asked.subject is not None and asked.subject.search(text) is not None)
    yield "settles", float(asked.whether and settles(text))
    yield "opens", float(_opens_entry(unit) and kind in _ENTRY_ASKED)
    counted = counts(asked.counted, _read_with_columns(unit))
    yield "counted", float(bool(asked.counted) and counted)
    yield "uncounted", float(bool(asked.counted) and not counted)
    placed = names_place(text, asked.text)
    yield "named_place", float(asked.named_place and placed)
    yield "no_named_place", float(asked.named_place and not placed)


def unit_holds(kind: AskedKind, unit: AnswerUnit, question: str) -> bool:
    """Return whether a unit holds a thing of the kind; in a row, a cell is what the name of its column calls it."""
    if unit.quote.head is None or kind not in MEASURED:
        return holds_kind(kind, unit.text, question)
    asked = question.casefold()
    cells = [cell for cell in named_cells(unit.text, unit.quote.head.text) if cell[1].casefold() not in asked]
    if kind == "person" and any(names_people(name) and cell[:1].isupper() for name, cell in cells):
        return True
    return holds_kind(kind, _read_with_columns(unit), question)


def _read_with_columns(unit: AnswerUnit) -> str:
    """Return the words of a unit; in a row, each figure also before the words of its column: "2 days"."""
    cells = named_cells(unit.text, unit.quote.head.text) if unit.quote.head else []
    figures = [(name, cell) for name, cell in cells if is_figure(cell)]
    return "\n".join([unit.text, *(f"{cell} {word}" for name, cell in figures for word in _WORD.findall(name.lower()))])


def _opens_entry(unit: AnswerUnit) -> bool:
    """Return whether a unit says first what the term over it is."""
    return unit.kind == "entry" or (unit.term is not None and unit.topic is None and unit.kind == "sentence")
