"""Judges a sentence beside a claim by two probabilities: that it says the claim, and that it says the opposite.

Without an entailment model they come from two small logistic models over what was read: one for a sentence that
bears on the claim at all, one for a sentence that then speaks against it. The weights were fitted on the
training claims of SciFact with their cited abstracts, together with sentences of those abstracts and false twins
of them; `python -m bench claims-fit` fits them again and prints them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragstone.answer.verify.objections import OTHER_FIGURE, ObjectionKind, has_kind, keep_kinds
from ragstone.answer.verify.reading import Reading
from ragstone.core.answers import Stance
from ragstone.core.model_types import Entailment

BEARS = 0.5
"""Probability from which a sentence takes a stance."""
VOID = 0.45
"""Most support by a sentence that speaks of a claim without stating it: too little for a stance."""
LITERAL = 0.6
"""Share of neighbouring terms in common from which a sentence begins to be a quotation."""

BEARING_WEIGHTS = (-3.91, 5.08, 4.27, -0.83, -0.96)
"""Constant, closeness, coverage, a name is missing, a number or date is missing."""
AGAINST_WEIGHTS = (-0.88, -2.97, 3.03, 1.38, 2.73, 1.45)
"""Constant, a quotation without conflict, denies, says the opposite, another number or date, turned direction."""
_NAME_IS_MISSING = 3
_FIGURE_MISSING = {ObjectionKind.NUMBER_MISSING, ObjectionKind.DATE_MISSING}
_DENIAL = {ObjectionKind.DENIED, ObjectionKind.EXCEPTION_DENIED}
_REVERSAL = {ObjectionKind.OPPOSITE, ObjectionKind.TURNED_ROUND}
_OTHER_FIGURE = OTHER_FIGURE | {ObjectionKind.NUMBER_OF_ANOTHER}


@dataclass(frozen=True, slots=True)
class Judgement:
    """A sentence with the probabilities that it supports and that it refutes a claim."""

    reading: Reading
    support: float
    refutation: float

    @property
    def stance(self) -> Stance:
        if self.support + self.refutation < BEARS:
            return "unknown"
        return "supported" if self.support >= self.refutation else "refuted"

    @property
    def weight(self) -> float:
        """Return how much it says either way."""
        return max(self.support, self.refutation)


def bearing_features(reading: Reading) -> list[float]:
    """Return the features of a sentence that bears on a claim."""
    gaps = reading.findings.gaps
    return [
        1.0,
        reading.closeness,
        reading.coverage,
        float(has_kind(gaps, {ObjectionKind.NAME_MISSING})),
        float(has_kind(gaps, _FIGURE_MISSING)),
    ]


def against_features(reading: Reading) -> list[float]:
    """Return the features of a sentence that speaks against the claim it bears on."""
    found = reading.findings
    quoted = max(0.0, (reading.literal - LITERAL) / (1 - LITERAL))
    return [
        1.0,
        0.0 if found.conflicts or found.turned else quoted,
        float(has_kind(found.conflicts, _DENIAL)),
        float(has_kind(found.conflicts, _REVERSAL)),
        float(has_kind(found.conflicts, _OTHER_FIGURE)),
        float(found.turned),
    ]


def judge_by_checks(reading: Reading) -> Judgement:
    """Judge a sentence by the explicit checks and the embedding model."""
    features = bearing_features(reading)
    bears = _probability(BEARING_WEIGHTS, features)
    against = _probability(AGAINST_WEIGHTS, against_features(reading))
    # Another number said of something else refutes nothing.
    elsewhere = features[_NAME_IS_MISSING] and reading.findings.conflicts
    support, refutation = bears * (1 - against), 0.0 if elsewhere else bears * against
    if reading.findings.voids and refutation <= support:
        return Judgement(reading, min(support, VOID), 0.0)
    return Judgement(reading, support, refutation)


def judge_by_figures(reading: Reading, *, differs: bool) -> Judgement:
    """Judge a sentence that is not in English: other figures may refute a claim, nothing supports it."""
    conflicts = keep_kinds(reading.findings.conflicts, OTHER_FIGURE) if differs else ()
    readable = replace(reading.findings, conflicts=conflicts, voids=(), turned=False)
    judged = judge_by_checks(replace(reading, findings=readable))
    return replace(judged, support=0.0, refutation=judged.refutation if differs else 0.0)


def judge_by_entailment(reading: Reading, entailment: Entailment) -> Judgement:
    """Judge a sentence by the word of an entailment model or an LLM."""
    score = min(max(entailment.score, 0.0), 1.0)
    support = score if entailment.relation == "entails" else 0.0
    return Judgement(reading, support, score if entailment.relation == "contradicts" else 0.0)


def _probability(weights: Sequence[float], features: Sequence[float]) -> float:
    logit = sum(weight * feature for weight, feature in zip(weights, features, strict=True))
    return 1 / (1 + math.exp(-max(min(logit, 60.0), -60.0)))
