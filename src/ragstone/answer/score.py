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
from ragstone.language.asked import STRICT, AskedKind, find_asked_kind, holds_kind
from ragstone.language.relevance import COVERAGE_WEIGHT, asked_terms, weigh_terms

ABOVE, NEAR, SECTION, TITLE = 0.9, 0.6, 0.8, 0.5
"""The worth of a term that stands over the unit, next to it, in the section path or in the title; 1 is in it."""
KIND_FOUND, KIND_MISSED = 0.1, 0.15
HIT_WEIGHT = 0.25
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
            return self.coverage + self.kind
        return self.closeness + COVERAGE_WEIGHT * self.coverage + self.kind

    @property
    def score(self) -> float:
        return self.strength + HIT_WEIGHT * self.unit.quote.hit.score


def cover_units(question: str, units: Sequence[AnswerUnit]) -> list[ScoredUnit]:
    """Return each unit with how much of the question it covers and what its kind adds."""
    asked, kind = asked_terms(question), find_asked_kind(question)
    known: dict[str, frozenset[str]] = {}
    layers = [list(_read_layers(unit, frozenset(asked), known)) for unit in units]
    weights = weigh_terms(asked, [own for (own, _), *_ in layers])
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
    if kind in ("other", "yes-no"):
        return 0.0
    if kind == "list" and unit.kind == "list":
        return KIND_FOUND
    if kind in ("steps", "command") and unit.kind == "code":
        return KIND_FOUND
    if kind == "setting" and unit.term is not None:
        return KIND_FOUND
    if holds_kind(kind, unit.text, question):
        return KIND_FOUND
    return -KIND_MISSED if kind in STRICT else 0.0


def read_in_context(unit: AnswerUnit, asked: AbstractSet[str]) -> str:
    """Return the text by which a model judges a unit: the term or sentence that it depends on, and its own words."""
    depends_on = unit.term or unit.lead or (unit.before if leans(unit.text) else None)
    lead = f"{depends_on.text[:_LONGEST_LEAD]}: " if depends_on else ""
    return strip_hidden(lead + select_words(unit.quote, asked)[:_LONGEST_READ])
