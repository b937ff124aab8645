"""Score units against a question, and say how likely the best of them answers it.

Both are sums of what `answer.features` tells, with the weights of `answer.weights`, which were fitted to questions on
real manuals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ragstone.answer.features import describe_units
from ragstone.answer.quotes import select_words
from ragstone.answer.sanitize import strip_hidden
from ragstone.answer.units import AnswerUnit
from ragstone.answer.weights import (
    ANSWERS,
    ANSWERS_BY_MEANING,
    ANSWERS_BY_WORDS,
    RANKING,
    RANKING_BY_MEANING,
    RANKING_BY_WORDS,
)
from ragstone.language.relevance import COVERAGE_WEIGHT

PLACES = {"own": 1.0, "above": 0.9, "near": 0.6, "section": 0.8, "title": 0.5}
"""The worth of a term in the unit, over it, next to it, in the section path or in the title."""
RERANKED = 1.0
"""The weight of a reranker's log odds beside what is fitted here, which are log odds too."""
_LEAST_SURE = 0.01
"""Rerankers differ in how sure they sound: nearer to 0 or 1 than this counts like this."""
READ_TOGETHER = 3
"""Units of the best ones of which one must be close to the question."""
WIDEST_MARGIN = 3.0
_LONGEST_READ, _LONGEST_LEAD = 500, 200
Weights = Mapping[str, float]
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
    """A unit and what speaks for it; what no model has told is None, and without a reranker `reranked` is 0."""

    unit: AnswerUnit
    features: Mapping[str, float]
    closeness: float | None = None
    reader_odds: float | None = None
    """The log odds that it answers, as the reader says."""
    reranked: float = 0.0

    @property
    def coverage(self) -> float:
        """Return how much of the question stands in the unit and around it."""
        return sum(self.features[name] * worth for name, worth in PLACES.items())

    @property
    def strength(self) -> float:
        """Return how near it is to the question, comparable across questions and embedding models."""
        return self.coverage if self.closeness is None else self.closeness + COVERAGE_WEIGHT * self.coverage

    @property
    def score(self) -> float:
        """Return a measure by which units of one question are compared."""
        told = {**self.features, "closeness": self.closeness or 0.0, "reader_odds": self.reader_odds or 0.0}
        return self.reranked + _sum(_choose_weights(self, RANKING, RANKING_BY_MEANING, RANKING_BY_WORDS), told)


def score_units(question: str, units: Sequence[AnswerUnit], shared: AbstractSet[str] = frozenset()) -> list[ScoredUnit]:
    """Return each unit with what speaks for it by words and kind."""
    described = describe_units(question, units, shared)
    return [ScoredUnit(unit, features) for unit, features in zip(units, described, strict=True)]


def weigh_relevance(relevance: float) -> float:
    """Return what the relevance that a reranker gives a unit, from 0 to 1, adds to its score."""
    sure = min(max(relevance, _LEAST_SURE), 1 - _LEAST_SURE)
    return RERANKED * math.log(sure / (1 - sure))


def estimate_chance(ranked: Sequence[ScoredUnit]) -> float:
    """Return how likely the best of the units answer the question, from 0 to 1; they are given best first."""
    if not ranked:
        return 0.0
    weights = _choose_weights(ranked[0], ANSWERS, ANSWERS_BY_MEANING, ANSWERS_BY_WORDS)
    return 1 / (1 + math.exp(-_sum(weights, describe_best(ranked))))


def describe_best(ranked: Sequence[ScoredUnit]) -> dict[str, float]:
    """Return the features of the best unit, and those of the choice."""
    best, together = ranked[0], ranked[:READ_TOGETHER]
    other = next((item for item in ranked if not are_of_one_entry(item.unit, best.unit)), None)
    features = {
        **best.features,
        "bias": 1.0,
        "margin": min(best.score - other.score, WIDEST_MARGIN) if other else WIDEST_MARGIN,
        "best_coverage": max(item.features["own"] + item.features["above"] for item in together),
        "mass": sum(share_chances(ranked)[:READ_TOGETHER]),
    }
    if best.closeness is not None:
        features["closeness"] = best.closeness
        features["best_closeness"] = max(item.closeness or 0.0 for item in together)
    if best.reader_odds is not None:
        features["reader_odds"] = best.reader_odds
        features["best_reader_odds"] = max(item.reader_odds or 0.0 for item in together)
    return features


def share_chances(ranked: Sequence[ScoredUnit]) -> list[float]:
    """Return how likely each unit is the right one if one of them is; they are given best first."""
    chances = [math.exp(item.score - ranked[0].score) for item in ranked]
    return [chance / sum(chances) for chance in chances]


def are_of_one_entry(unit: AnswerUnit, other: AnswerUnit) -> bool:
    """Return whether two units stand in one entry of a definition list, or in one paragraph."""
    if unit.quote.hit is not other.quote.hit:
        return False
    return unit.term.place == other.term.place if unit.term and other.term else unit.block == other.block


def _choose_weights(item: ScoredUnit, with_reader: Weights, by_meaning: Weights, by_words: Weights) -> Weights:
    """Return the weights that were fitted to as much as is known of a unit."""
    if item.closeness is None:
        return by_words
    return by_meaning if item.reader_odds is None else with_reader


def _sum(weights: Weights, features: Mapping[str, float]) -> float:
    return sum(weight * features[name] for name, weight in weights.items())


def read_in_context(unit: AnswerUnit, asked: AbstractSet[str]) -> str:
    """Return the text by which a model judges a unit: the term or sentence that it depends on, and its own words."""
    depends_on = unit.term or unit.lead or (unit.before if leans(unit.text) else None)
    lead = f"{depends_on.text[:_LONGEST_LEAD]}: " if depends_on else _find_question(unit)
    return strip_hidden(lead + select_words(unit.quote, asked)[:_LONGEST_READ])


def _find_question(unit: AnswerUnit) -> str:
    """Return the question that a unit is under, as the answers of a list of questions are; empty for any other."""
    heading = unit.heading.text if unit.heading else unit.quote.hit.section.rpartition(" > ")[2]
    return f"{heading[:_LONGEST_LEAD]} " if heading.endswith(("?", "？")) else ""
