"""Judge each sentence for or against a claim, and combine the judgements into a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragstone.answer.verify.fit import read_sentence
from ragstone.answer.verify.objections import OTHER_FIGURE, ObjectionKind, has_kind, keep_kinds
from ragstone.answer.verify.reading import SentenceReading
from ragstone.core.answers import ClaimPart, Evidence, Stance, Status, Verdict, source_of
from ragstone.core.model_types import Entailment
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze

BEARS = 0.5
"""Probability from which a sentence takes a stance."""
_QUOTED, _RESTATED, _CONTRADICTED = 0.95, 0.8, 0.85
"""Support by a sentence that says a claim in its words or in other words, refutation by one that says otherwise."""
_SUBJECT, _PREDICATE, _TOLD = 0.75, 0.6, 0.75
"""Shares of what a claim is about, of what it says of it and of all, from which a sentence states it in other words."""
_REPEATS, _IN_ORDER, _FEWEST, _CLOSE = 0.6, 0.85, 2, 0.85
_ABOUT = 0.6
"""Closeness from which a sentence speaks of the same in other words."""
_HOLDS = 0.5
_SAME_WORDS = 0.85
_AS_NEAR = 0.85
"""Share of the nearest sentence's nearness from which another has a say."""
_SAME_SENTENCE = 0.7
"""Share of a claim's words in the order of a sentence from which it repeats that sentence with another name."""
_IN_PART = 0.35
"""Share of a claim's words in the order of a sentence under which the two speak of different things."""
_SAME_MATTER = 0.66
"""Share of a claim's words from which a sentence that says otherwise is about the same."""
VOID = 0.45
"""Most support by a sentence that speaks of a claim without stating it: too little for a stance."""
LITERAL = 0.6
"""Share of neighbouring terms in common from which a sentence begins to be a quotation."""

BEARING_WEIGHTS = (-3.91, 5.08, 4.27, -0.83, -0.96)
"""Constant, closeness, coverage, a name is missing, a number or date is missing."""
AGAINST_WEIGHTS = (-0.88, -2.97, 3.03, 1.38, 2.73, 1.45)
"""Constant, a quotation without conflict, denies, says the opposite, another number or date, turned direction."""
_DENYING = frozenset((ObjectionKind.DENIED, ObjectionKind.OPPOSITE))
_FIGURE_MISSING = {ObjectionKind.NUMBER_MISSING, ObjectionKind.DATE_MISSING}
_NOT_STATED = {
    *(ObjectionKind.OF_ANOTHER, ObjectionKind.OF_SOMETHING_ELSE, ObjectionKind.NOT_A_FACT, ObjectionKind.LEFT_OUT),
    ObjectionKind.CONDITIONAL,
}
_DENIAL = {ObjectionKind.DENIED, ObjectionKind.EXCEPTION_DENIED}
_REVERSAL = {ObjectionKind.OPPOSITE, ObjectionKind.TURNED_ROUND}
_OTHER_FIGURE = OTHER_FIGURE | {ObjectionKind.NUMBER_OF_ANOTHER}


@dataclass(frozen=True, slots=True)
class SentenceJudgement:
    """A sentence with the probabilities that it supports and that it refutes a claim."""

    reading: SentenceReading
    support: float
    refutation: float

    @property
    def stance(self) -> Stance:
        if self.support + self.refutation < BEARS:
            return "unknown"
        return "supported" if self.support >= self.refutation else "refuted"

    @property
    def nearness(self) -> float:
        """Return how much of the claim the sentence repeats, in order and in any order."""
        return self.reading.shares.own + self.reading.shares.repeated

    @property
    def is_of_other_term(self) -> bool:
        """Return whether it says of another term what the claim says: both may have it in common."""
        return self.reading.rival is not None and self.reading.rival.is_term

    @property
    def weight(self) -> float:
        """Return how much it says either way."""
        return max(self.support, self.refutation)


def bearing_features(reading: SentenceReading) -> list[float]:
    """Return the features of a sentence that bears on a claim."""
    gaps = reading.findings.gaps
    return [
        1.0,
        reading.closeness,
        reading.coverage,
        float(has_kind(gaps, {ObjectionKind.NAME_MISSING})),
        float(has_kind(gaps, _FIGURE_MISSING)),
    ]


def against_features(reading: SentenceReading) -> list[float]:
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


def judge_by_checks(reading: SentenceReading) -> SentenceJudgement:
    """Judge a sentence by the explicit checks and the embedding model."""
    bears = _probability(BEARING_WEIGHTS, bearing_features(reading))
    against = _probability(AGAINST_WEIGHTS, against_features(reading))
    if reading.quote.head is None:
        return SentenceJudgement(reading, *_weigh_objections(reading, bears * (1 - against)))
    if reading.rival is not None and _says_otherwise(reading):
        return SentenceJudgement(reading, 0.0, _CONTRADICTED)
    # The cells of a row have no order, and are read with the names of their columns.
    unnamed = has_kind(reading.findings.gaps, {ObjectionKind.NAME_MISSING})
    is_silent = unnamed or reading.shares.predicate == 0
    support, refutation = bears * (1 - against), 0.0 if is_silent else bears * against
    if reading.shares.subject == reading.shares.told == 1 and _has_other_figure(reading):
        return SentenceJudgement(reading, 0.0, _CONTRADICTED)
    if (unnamed or reading.findings.voids) and refutation <= support:
        return SentenceJudgement(reading, min(support, VOID), 0.0)
    if not reading.findings.conflicts and not reading.objections and _holds(reading):
        return SentenceJudgement(reading, max(support, _RESTATED), 0.0)
    return SentenceJudgement(reading, support, refutation)


def _has_other_figure(reading: SentenceReading) -> bool:
    """Return whether a row says all that a claim says with another figure."""
    found = reading.findings
    return has_kind(found.conflicts, OTHER_FIGURE) and not found.gaps and not found.voids and not found.turned


def _weigh_objections(reading: SentenceReading, support: float) -> tuple[float, float]:
    """Return support and refutation by a sentence, given what keeps the claim from resting on it."""
    findings = reading.findings
    missing = has_kind((*findings.gaps, *findings.voids), _FIGURE_MISSING | _NOT_STATED)
    missing = missing or _lacks_name(reading)
    if not reading.objections and not findings.conflicts and not missing and not reading.rival and _holds(reading):
        sure = reading.shares.told == 1 and reading.shares.is_verbatim
        return (_QUOTED if sure else _RESTATED), 0.0
    if _says_otherwise(reading):
        return 0.0, _CONTRADICTED
    return min(support, VOID), 0.0


def _lacks_name(reading: SentenceReading) -> bool:
    """Return whether a name is missing that is not what the sentence points back to."""
    quote = reading.quote
    names = [gap.detail for gap in reading.findings.gaps if gap.kind is ObjectionKind.NAME_MISSING]
    if not names or not read_sentence(quote.text).points_back:
        return bool(names)
    before = set(analyze(quote.hit.text[: quote.start]))
    return any(before.isdisjoint(analyze(name)) for name in names)


def _holds(reading: SentenceReading) -> bool:
    """Return whether a sentence says what a claim says, of what the claim is about."""
    shares = reading.shares
    if shares.subject < _SUBJECT or shares.counted < _FEWEST or not shares.names_all or reading.findings.turned:
        return False
    if shares.repeated >= _REPEATS:
        # It repeats the sentence: what it has beside that was added, and what it says must be the sentence's own.
        return shares.told == 1 and shares.predicate >= _HOLDS
    if shares.told < _TOLD:
        return False
    means_same = reading.closeness >= _CLOSE and shares.repeated < _HOLDS and shares.predicate > 0
    return shares.predicate >= _PREDICATE or shares.states_default or means_same


def _says_otherwise(reading: SentenceReading) -> bool:
    """Return whether a sentence is about the same as the claim and contradicts it."""
    found, shares = reading.objections, reading.shares
    missing = [objection.detail for objection in found if objection.kind is ObjectionKind.NAME_MISSING]
    if reading.rival is not None and reading.rival.is_term:
        said = shares.predicate >= _HOLDS and (shares.told >= _TOLD or shares.repeated >= _REPEATS)
        return said and not reading.is_opposed and not has_kind(reading.findings.voids, _NOT_STATED)
    if reading.rival is not None:
        # Whatever name it lacks has to be the one in whose place it has another.
        named = not missing or any(name in reading.rival.claimed for name in missing)
        # Where it has another in the place of what the claim is about, it says all the rest of that one.
        return named and (shares.subject >= _HOLDS or (bool(missing) and shares.predicate == 1))
    if missing:
        # Another name in the same place of the same sentence.
        return has_kind(found, {ObjectionKind.OTHER_WORD}) and shares.repeated >= _SAME_SENTENCE
    if not shares.names_all:
        return False
    if has_kind(reading.findings.conflicts, {ObjectionKind.NUMBER_OF_ANOTHER}) and shares.own == shares.told == 1:
        return shares.repeated >= _REPEATS
    if has_kind(found, _FIGURE_MISSING) and has_kind(reading.findings.conflicts, OTHER_FIGURE):
        leans = shares.told == 1 and shares.own >= _HOLDS and reading.closeness >= _ABOUT
        near = leans or max(shares.own, shares.repeated) >= _SAME_MATTER
        return near and shares.subject >= _SUBJECT and shares.repeated >= _IN_PART
    return not shares.states_default and _denies(reading)


def _denies(reading: SentenceReading) -> bool:
    """Return whether a sentence denies a claim, says the opposite of it or tells another order, of the same."""
    found, shares = reading.objections, reading.shares
    if shares.own < _SAME_MATTER or shares.subject < _HOLDS or shares.repeated < _IN_PART:
        return False
    if has_kind(found, {ObjectionKind.WITHOUT_LIMIT}):
        return False
    if has_kind(found, _DENYING):
        told = shares.predicate >= _HOLDS and shares.has_verb
        near = shares.own >= _SAME_WORDS and reading.closeness >= _ABOUT and told
        same = shares.repeated >= _HOLDS or near
        opposite = shares.repeated >= _SAME_WORDS and has_kind(found, {ObjectionKind.OPPOSITE})
        return same and (reading.is_opposed or opposite)
    if shares.repeated >= _SAME_WORDS and has_kind(found, {ObjectionKind.OPPOSITE_WORDS}) and reading.is_opposed:
        return True
    if reading.is_turned_round and shares.told == 1 and shares.own >= _TOLD:
        return True
    return shares.repeated >= _REPEATS and has_kind(found, {ObjectionKind.OTHER_ORDER})


def judge_by_figures(reading: SentenceReading, *, differs: bool) -> SentenceJudgement:
    """Judge a sentence that is not in English: other figures may refute a claim, nothing supports it."""
    conflicts = keep_kinds(reading.findings.conflicts, OTHER_FIGURE) if differs else ()
    readable = replace(reading.findings, conflicts=conflicts, voids=(), turned=False)
    judged = judge_by_checks(replace(reading, findings=readable))
    return replace(judged, support=0.0, refutation=judged.refutation if differs else 0.0)


def judge_by_entailment(reading: SentenceReading, entailment: Entailment) -> SentenceJudgement:
    """Judge a sentence by the word of an entailment model or an LLM."""
    score = min(max(entailment.score, 0.0), 1.0)
    support = score if entailment.relation == "entails" else 0.0
    return SentenceJudgement(reading, support, score if entailment.relation == "contradicts" else 0.0)


def _probability(weights: Sequence[float], features: Sequence[float]) -> float:
    logit = sum(weight * feature for weight, feature in zip(weights, features, strict=True))
    return 1 / (1 + math.exp(-max(min(logit, 60.0), -60.0)))


VERIFIED, LIKELY = 0.9, 0.7
"""Support above which a claim is verified or likely."""
MOST_EVIDENCE = 3
_SAME_TEXT = 0.8
"""Share of common terms from which two passages are copies of one text."""
_WORST_FIRST: tuple[Stance, ...] = ("refuted", "mixed", "unknown", "supported")
_STATUSES: tuple[Status, ...] = ("UNVERIFIED", "LIKELY", "VERIFIED")


@dataclass(frozen=True, slots=True)
class JudgedPart:
    """One statement of a claim and the judgements on it."""

    text: str
    judgements: tuple[SentenceJudgement, ...]

    @property
    def support(self) -> float:
        return max((judgement.support for judgement in self.judgements), default=0.0)

    @property
    def stance(self) -> Stance:
        stances = {judgement.stance for judgement in self._nearest()} - {"unknown"}
        if len(stances) > 1:
            return "mixed"
        if stances == {"supported"} and self.support <= LIKELY:
            return "unknown"
        return stances.pop() if stances else "unknown"

    @property
    def is_stated_whole(self) -> bool:
        """Return whether a sentence says all of it in its own order, whatever its parts may be."""
        stating = [judgement.reading for judgement in self.judgements if judgement.support > LIKELY]
        said = any(
            reading.quote.head is not None or (reading.shares.told == 1 and reading.shares.repeated >= _IN_ORDER)
            for reading in stating
        )
        return self.status == "VERIFIED" or (self.status == "LIKELY" and said)

    @property
    def is_denied_whole(self) -> bool:
        """Return whether a sentence that has all of it, nearly in its own order, says otherwise."""
        denying = (judgement.reading.shares for judgement in self.judgements if judgement.stance == "refuted")
        said = any(shares.told == 1 and shares.repeated >= _SAME_TEXT for shares in denying)
        return said and self.stance == "refuted"

    def _nearest(self) -> list[SentenceJudgement]:
        """Return the judgements by the sentences that are nearest to the claim: others may be about something else."""
        nearest = max((judgement.nearness for judgement in self.judgements), default=0.0)
        is_said = self.support > LIKELY
        near = [
            judgement
            for judgement in self.judgements
            if judgement.nearness >= _AS_NEAR * nearest or judgement.reading.shares.gives_default
        ]
        # Where a document states a claim word for word, a similar sentence of it is about something else.
        stating = {judgement.reading.quote.hit.document_id for judgement in near if judgement.support > VERIFIED}
        return [
            judgement
            for judgement in near
            if judgement.stance != "refuted"
            or (judgement.reading.quote.hit.document_id not in stating and not (is_said and judgement.is_of_other_term))
        ]

    @property
    def status(self) -> Status:
        """Return the status: sources that disagree prove nothing, and a failed check prevents VERIFIED."""
        if self.stance != "supported":
            return "UNVERIFIED"
        sound = [judgement.support for judgement in self.judgements if not judgement.reading.findings.reasons]
        if max(sound, default=0.0) > VERIFIED:
            return "VERIFIED"
        return "LIKELY" if self.support > LIKELY else "UNVERIFIED"


def build_verdict(claim: str, parts: Sequence[JudgedPart], checker: str, degraded: Sequence[str]) -> Verdict:
    """Return the verdict; a compound claim is as good as its weakest part."""
    return Verdict(
        claim=claim,
        status=min((part.status for part in parts), key=_STATUSES.index),
        stance=min((part.stance for part in parts), key=_WORST_FIRST.index),
        support=round(min(part.support for part in parts), 4),
        evidence=tuple(_build_evidence(judgement) for judgement in _choose_evidence(parts)),
        parts=tuple(ClaimPart(part.text, part.status, part.stance, round(part.support, 4)) for part in parts),
        sources=min(count_independent(_supporting_hits(part)) for part in parts),
        checker=checker,
        degraded=tuple(dict.fromkeys(degraded)),
    )


def _supporting_hits(part: JudgedPart) -> list[Hit]:
    return [judgement.reading.quote.hit for judgement in part.judgements if judgement.stance == "supported"]


def count_independent(hits: Iterable[Hit]) -> int:
    """Return the number of independent sources: one document, one address or copies of one text count once."""
    counted: list[tuple[Hit, set[str]]] = []
    for hit in hits:
        terms = set(analyze(hit.text))
        if not any(_is_same_source(hit, terms, other, known) for other, known in counted):
            counted.append((hit, terms))
    return len(counted)


def _is_same_source(hit: Hit, terms: set[str], other: Hit, known: set[str]) -> bool:
    if hit.document_id == other.document_id or hit.uri == other.uri:
        return True
    return len(terms & known) >= _SAME_TEXT * max(len(terms | known), 1)


def _choose_evidence(parts: Sequence[JudgedPart]) -> list[SentenceJudgement]:
    """Return the best evidence of each part, of each stance where sources disagree, then the next best."""
    firsts, rest = [], []
    for part in parts:
        ranked = sorted(part.judgements, key=lambda judgement: -judgement.weight)
        heads = {judgement.stance: judgement for judgement in reversed(ranked)}
        first = [judgement for judgement in ranked[:1] if judgement.stance == "unknown"] or [
            judgement for stance, judgement in heads.items() if stance != "unknown"
        ]
        firsts += first
        rest += [judgement for judgement in ranked if judgement not in first]
    by_weight = sorted(firsts, key=lambda judgement: -judgement.weight) + sorted(
        rest, key=lambda judgement: -judgement.weight
    )
    places = {judgement.reading.quote.place: judgement for judgement in reversed(by_weight)}
    distinct = [judgement for judgement in by_weight if places[judgement.reading.quote.place] is judgement]
    return distinct[:MOST_EVIDENCE]


def _find_reasons(judgement: SentenceJudgement) -> tuple[str, ...]:
    """Return what speaks against resting the claim on a sentence, or only what it says instead."""
    reading = judgement.reading
    if judgement.stance != "refuted":
        return reading.findings.reasons
    if reading.rival:
        return (f"it says “{reading.rival.stated}”, not “{reading.rival.claimed}”",)
    found = reading.findings.reasons or tuple(objection.text for objection in reading.objections)
    return tuple(dict.fromkeys(found))


def _build_evidence(judgement: SentenceJudgement) -> Evidence:
    quote = judgement.reading.quote
    hit = quote.hit
    document_id, start, end = quote.place
    return Evidence(
        text=quote.text,
        source=source_of(hit),
        relevance=hit.score,
        stance=judgement.stance,
        support=round(judgement.support, 4),
        refutation=round(judgement.refutation, 4),
        failed=_find_reasons(judgement),
        document_id=document_id,
        chunk_id=hit.chunk_id,
        title=hit.title,
        uri=hit.uri,
        page=quote.page,
        section=hit.section,
        start=start,
        end=end,
    )
