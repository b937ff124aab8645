"""Judgements of sentences become a verdict on a claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragstone.answer.verify.judging import Judgement
from ragstone.core.answers import ClaimPart, Evidence, Stance, Status, Verdict, source_of
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze

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
    judgements: tuple[Judgement, ...]

    @property
    def support(self) -> float:
        return max((one.support for one in self.judgements), default=0.0)

    @property
    def stance(self) -> Stance:
        stances = {one.stance for one in self.judgements} - {"unknown"}
        if len(stances) > 1:
            return "mixed"
        return stances.pop() if stances else "unknown"

    @property
    def status(self) -> Status:
        """Sources that disagree establish nothing; a failed check keeps a claim from being verified."""
        if self.stance != "supported":
            return "UNVERIFIED"
        sound = [one.support for one in self.judgements if not one.reading.findings.failed]
        if max(sound, default=0.0) > VERIFIED:
            return "VERIFIED"
        return "LIKELY" if self.support > LIKELY else "UNVERIFIED"


def verdict(claim: str, parts: Sequence[JudgedPart], checker: str, degraded: Sequence[str]) -> Verdict:
    """A compound claim is as good as its weakest part."""
    return Verdict(
        claim=claim,
        status=min((part.status for part in parts), key=_STATUSES.index),
        stance=min((part.stance for part in parts), key=_WORST_FIRST.index),
        support=round(min(part.support for part in parts), 4),
        evidence=tuple(_evidence(one) for one in _chosen(parts)),
        parts=tuple(ClaimPart(part.text, part.status, part.stance, round(part.support, 4)) for part in parts),
        sources=min(independent(_supporting(part)) for part in parts),
        checker=checker,
        degraded=tuple(dict.fromkeys(degraded)),
    )


def _supporting(part: JudgedPart) -> list[Hit]:
    return [one.reading.quote.hit for one in part.judgements if one.stance == "supported"]


def independent(hits: Iterable[Hit]) -> int:
    """How many sources passages come from: one document or address, or copies of one text, are one source."""
    counted: list[tuple[Hit, set[str]]] = []
    for hit in hits:
        terms = set(analyze(hit.text))
        if not any(_same_source(hit, terms, other, known) for other, known in counted):
            counted.append((hit, terms))
    return len(counted)


def _same_source(hit: Hit, terms: set[str], other: Hit, known: set[str]) -> bool:
    if hit.document_id == other.document_id or hit.uri == other.uri:
        return True
    return len(terms & known) >= _SAME_TEXT * max(len(terms | known), 1)


def _chosen(parts: Sequence[JudgedPart]) -> list[Judgement]:
    """The best evidence of each part, of each stance where sources disagree, then the next best."""
    firsts, rest = [], []
    for part in parts:
        ranked = sorted(part.judgements, key=lambda one: -one.weight)
        heads = {one.stance: one for one in reversed(ranked)}
        first = [one for one in ranked[:1] if one.stance == "unknown"] or [
            one for stance, one in heads.items() if stance != "unknown"
        ]
        firsts += first
        rest += [one for one in ranked if one not in first]
    by_weight = sorted(firsts, key=lambda one: -one.weight) + sorted(rest, key=lambda one: -one.weight)
    places = {one.reading.quote.place: one for one in reversed(by_weight)}
    distinct = [one for one in by_weight if places[one.reading.quote.place] is one]
    return distinct[:MOST_EVIDENCE]


def _evidence(one: Judgement) -> Evidence:
    quote = one.reading.quote
    hit = quote.hit
    document_id, start, end = quote.place
    return Evidence(
        text=quote.text,
        source=source_of(hit),
        relevance=hit.score,
        stance=one.stance,
        support=round(one.support, 4),
        refutation=round(one.refutation, 4),
        failed=one.reading.findings.failed,
        document_id=document_id,
        chunk_id=hit.chunk_id,
        title=hit.title,
        uri=hit.uri,
        page=quote.page,
        section=hit.section,
        start=start,
        end=end,
    )
