"""Score units against a question: by their words and those that stand over them, by meaning, and by kind.

What a unit is about is not only in its own words: "The default is five minutes." is about the setting that its entry
is headed with. So words of the heading, the term, the sentences around, the section and the title count as well, each
the less the further off they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ragstone.answer.quotes import select_words
from ragstone.answer.sanitize import strip_hidden
from ragstone.answer.units import AnswerUnit
from ragstone.language.analyzer import analyze
from ragstone.language.asked import STRICT, AskedKind, asks_for_default, find_asked_kind, holds_kind
from ragstone.language.relevance import COVERAGE_WEIGHT, asked_terms, weigh_terms

ABOVE, NEAR, SECTION, TITLE = 0.9, 0.6, 0.8, 0.5
"""The worth of a term that stands over the unit, next to it, in the section path or in the title; 1 is in it."""
KIND_FOUND, KIND_MISSED = 0.1, 0.15
HIT_WEIGHT = 0.5
COMMON = 0.3
"""The share of its weight that a term keeps which says little about a topic."""
_COMMON_TERMS = frozenset(
    analyze(
        "make let give take want need like look see try put keep come go say tell thing something anything everything "
        "nothing just only own myself self always ever never still even also very really already again else instead "
        "without unless otherwise call name work change turn set time long same different other another new default "
        "kind sort type mean happen possible able first second one two right now once more most less least all every"
    )
)
_LONGEST_READ, _LONGEST_LEAD = 500, 200
_LEANING = re.compile(
    r"(?:(?:After|Before|Despite|Because of|In|For|With|Use|Using|To do|Like|On|At|From|By) "
    r"(?:that|this|these|those|which|it|them|such)"
    r"|They|It|Its|He|She|This|That|These|Those|Then|Otherwise|However|Instead|Therefore|Afterwards|Both|Neither|Such"
    r"|Their|The (?:former|latter|same|following|above)|In (?:this|that|both|either|neither) case"
    r"|If (?:so|not|it|this|they)|Doing so|Alternatively|Similarly|Likewise"
    r"|For example|Also|But|And|Or|So|Thus|Hence|Note that (?:this|it))\b"
)


def leans(text: str) -> bool:
    """Return whether an English text begins with words that stand for something said before."""
    return _LEANING.match(text) is not None


@dataclass(frozen=True, slots=True)
class ScoredUnit:
    """A unit and what speaks for it; `closeness` is None where no model could be asked."""

    unit: AnswerUnit
    coverage: float
    closeness: float | None = None
    kind: float = 0.0
    """Positive when the unit holds the kind of thing that is asked for, negative when it should and does not."""

    @property
    def strength(self) -> float:
        """Return a measure that is comparable across questions and embedding models."""
        if self.closeness is None:
            return self.coverage
        return self.closeness + COVERAGE_WEIGHT * self.coverage

    @property
    def worth(self) -> float:
        """Return its strength with what its kind adds."""
        return self.strength + self.kind

    @property
    def score(self) -> float:
        """Return a measure by which units of one question are compared."""
        return self.worth + HIT_WEIGHT * self.unit.quote.hit.score


def cover_units(question: str, units: Sequence[AnswerUnit]) -> list[ScoredUnit]:
    """Return each unit with how much of the question it covers and what its kind adds."""
    asked, kind = asked_terms(question), find_asked_kind(question)
    terms = frozenset(asked)
    known: dict[str, frozenset[str]] = {}
    layers = [list(_read_layers(unit, terms, known)) for unit in units]
    rarity = weigh_terms(asked, [own for (own, _), *_ in layers])
    weights = {term: weight * (COMMON if term in _COMMON_TERMS else 1.0) for term, weight in rarity.items()}
    return [
        ScoredUnit(unit, _cover(weights, found), None, _weigh_kind(kind, unit, question))
        for unit, found in zip(units, layers, strict=True)
    ]


def _read_layers(
    unit: AnswerUnit, asked: AbstractSet[str], known: dict[str, frozenset[str]]
) -> Iterator[tuple[frozenset[str], float]]:
    """Yield the terms of a unit and of what stands around it, each with what they count."""

    def terms(text: str) -> frozenset[str]:
        if text not in known:
            known[text] = frozenset(analyze(text))
        return known[text]

    yield terms(select_words(unit.quote, asked)), 1.0
    yield terms(unit.above), ABOVE
    for near in (unit.before, unit.after, unit.topic):
        if near is not None:
            yield terms(near.text), NEAR
    yield terms(unit.quote.hit.section), SECTION
    yield terms(unit.quote.hit.title), TITLE


def _cover(weights: Mapping[str, float], layers: Sequence[tuple[AbstractSet[str], float]]) -> float:
    total = sum(weights.values())
    if not total:
        return 0.0
    covered = sum(
        weight * max((count for found, count in layers if term in found), default=0.0)
        for term, weight in weights.items()
    )
    return covered / total


def _weigh_kind(kind: AskedKind, unit: AnswerUnit, question: str) -> float:
    """Return the worth of a unit besides its words: it holds what is asked for, or opens an entry."""
    worth = 0.0
    if asks_for_default(question) and holds_kind("default", unit.text):
        worth += KIND_FOUND
    if unit.kind == "code" and kind not in ("steps", "command", "setting"):
        worth -= KIND_MISSED
    if _opens_entry(unit) and kind in ("definition", "setting", "command", "steps", "other"):
        worth += KIND_FOUND
    if kind in ("other", "yes-no", "default"):
        return worth
    if (kind in ("list", "steps") and unit.kind == "list") or holds_kind(kind, unit.text, question):
        return worth + KIND_FOUND
    return worth - KIND_MISSED if kind in STRICT else worth


def _opens_entry(unit: AnswerUnit) -> bool:
    """Return whether a unit says first what the term over it is."""
    return unit.kind == "entry" or (unit.term is not None and unit.topic is None and unit.kind == "sentence")


def read_in_context(unit: AnswerUnit, asked: AbstractSet[str]) -> str:
    """Return the text by which a model judges a unit: the term or sentence that it depends on, and its own words."""
    depends_on = unit.term or unit.lead or (unit.before if leans(unit.text) else None)
    lead = f"{depends_on.text[:_LONGEST_LEAD]}: " if depends_on else ""
    return strip_hidden(lead + select_words(unit.quote, asked)[:_LONGEST_READ])
