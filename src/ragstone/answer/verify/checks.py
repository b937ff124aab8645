"""Explicit checks: what a sentence says for and against a claim without any model's opinion."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragstone.answer.verify.binding import misbound, scattered
from ragstone.answer.verify.clause import first_verb
from ragstone.answer.verify.dates import MOST as MOST_DATES
from ragstone.answer.verify.dates import compare_moment, date_spans, moments, on_other_days, timed_otherwise
from ragstone.answer.verify.exceptions import left_out
from ragstone.answer.verify.framing import at_certain_times, denied_as_a_whole, unstated
from ragstone.answer.verify.grammar import tokens
from ragstone.answer.verify.opposites import direction, opposites
from ragstone.answer.verify.polarity import denial_conflicts, extent, hedged, overreaches, swapped
from ragstone.answer.verify.quantities import quantities, tells_share, unbounded
from ragstone.answer.verify.quantity import Outcome, compare
from ragstone.answer.verify.restate import restated
from ragstone.answer.verify.roles import mixed_names, reversed_roles
from ragstone.answer.verify.split import clauses, split_claim
from ragstone.core.analyzer import analyze, analyze_query

_NAME = re.compile(r"\b(?:[A-Z][\w-]{0,40}|\w{0,20}\d\w{0,20}-?[A-Za-z]\w{0,20}|[a-z]{1,20}[A-Z]\w{0,40})")
_ENDS_SENTENCE = re.compile(r"(?:^|[.!?:]\s+|[\"“‘(])$")
_PRONOUN = re.compile(r"\b(?:it|they|he|she|this|these|its|their|his|her|them|that|which|who|both)\b", re.I)
ELSEWHERE = "it says it of something else"
MISBOUND = "it says another number of it"
TURNED = "it says it the other way round"
_TITLE_CASE = 0.5
"""Share of capitalised words from which capitals say nothing."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What the checks found when they read a claim beside a sentence."""

    conflicts: tuple[str, ...]
    """Where the two cannot both be true if they speak of the same thing."""
    gaps: tuple[str, ...]
    """What the claim says and the sentence does not."""
    voids: tuple[str, ...]
    """Why the sentence does not state the claim at all, whatever words they share."""
    turned: bool
    """Whether one speaks of more where the other speaks of less."""
    exact: bool
    """Whether the claim states quantities or dates, and the sentence states them all."""

    @property
    def failed(self) -> tuple[str, ...]:
        return (*self.conflicts, *self.voids, *self.gaps)


def check(claim: str, sentence: str, around: str = "", passage: str = "") -> Findings:
    """Read a claim beside a sentence.

    `around` are headings above it, which may hold its subject; `passage` is the text it stands in.
    """
    figures = [*_figures(claim, sentence), *_dates(claim, sentence)]
    said = restated(claim, sentence)
    nearest = _nearest(said, sentence)
    denied, opposed = denial_conflicts(said, nearest), opposites(said, nearest)
    left = left_out(claim, sentence)
    conflicts = [f"it says another {kind}" for kind, outcome in figures if outcome == "differs"]
    # Closed on Sundays says nothing against open on Mondays.
    elsewhen = denied != opposed and (
        conflicts == ["it says another date"] or (not conflicts and on_other_days(claim, sentence))
    )
    if elsewhen:
        conflicts.clear()
    if misbound(claim, sentence):
        conflicts.append(MISBOUND)
    if left == "denied":
        conflicts.append("it denies it of this one")
    elif denied != opposed and not elsewhen and not left:
        conflicts.append("it says the opposite" if opposed else "one of the two denies it")
    elif not denied and denied_as_a_whole(claim, sentence):
        conflicts.append("one of the two denies it")
    if turned_round(claim, nearest):
        conflicts.append(TURNED)
    gaps, voids = _gaps(claim, sentence, around), _voids(claim, said, sentence, around)
    if left:
        voids.append("it leaves it out")
    if elsewhen or on_other_days(claim, sentence):
        voids.append("it does not say it of that time")
    if denied and opposed:
        gaps.append("it says it in opposite words")
    for kind in dict.fromkeys(kind for kind, outcome in figures if outcome == "absent"):
        elsewhere = all(
            outcome == "same" for _, outcome in (*_figures(claim, passage), *_dates(claim, passage))
        )
        (gaps if elsewhere else voids).append(f"it does not say the {kind}")
    return Findings(
        tuple(dict.fromkeys(conflicts)),
        tuple(dict.fromkeys(gaps)),
        tuple(dict.fromkeys(voids)),
        direction(claim) * direction(nearest) < 0 and not denied,
        bool(figures) and all(outcome == "same" for _, outcome in figures),
    )


def turned_round(claim: str, sentence: str) -> bool:
    """Whether the two name who does what to whom, or what is more than what, the other way round."""
    return swapped(claim, sentence) or reversed_roles(claim, sentence)


def _gaps(claim: str, sentence: str, around: str) -> list[str]:
    """What the claim says beyond the sentence."""
    gaps = []
    if overreaches(claim, sentence) and not _of_fewer(sentence):
        gaps.append("it does not say it of all")
    if hedged(sentence) and not hedged(claim):
        gaps.append("it says only that it may be so")
    if unbounded(claim, sentence) or at_certain_times(claim, sentence):
        gaps.append("it says it within a limit")
    if _scattered(claim, sentence, around) is False:
        gaps.append("it says it in several clauses")
    gaps.extend(f"it does not name {name}" for name in missing_names(claim, f"{around}\n{sentence}"))
    return gaps


def _voids(claim: str, said: str, sentence: str, around: str) -> list[str]:
    """Why the sentence speaks of what the claim says without saying it; `said` has the sentence's own figures."""
    voids = [reason] if (reason := unstated(said, sentence)) else []
    if overreaches(claim, sentence) and _of_fewer(sentence):
        voids.append("it does not say it of all")
    if timed_otherwise(claim, sentence):
        voids.append("it does not say it of that time")
    if len(date_spans(claim)) >= MOST_DATES:
        voids.append("it has more dates than are read")
    if mixed_names(claim, sentence):
        voids.append("it says it of another")
    if _scattered(claim, sentence, around) or _crossed(claim, sentence):
        voids.append(ELSEWHERE)
    return voids


def _of_fewer(sentence: str) -> bool:
    return extent(sentence) is not None or tells_share(sentence)


def _scattered(claim: str, sentence: str, around: str) -> bool | None:
    return scattered(claim, sentence, names(claim), set(analyze(around)) if around.strip() else set())


def _crossed(claim: str, sentence: str) -> bool:
    """Whether a claim's subject and what it says of it come from different clauses: another did that."""
    verb, parts = first_verb(tokens(claim)), [set(analyze(part)) for part in split_claim(sentence)]
    if verb is None or len(parts) < 2 or _PRONOUN.search(sentence):
        return False
    subject = set(analyze(claim[: verb.token.start]))
    objects = set(analyze(claim[verb.token.end :])) - subject
    most = max(len(objects & part) for part in parts)
    holding = [part for part in parts if len(objects & part) == most]
    return most > 0 and any(subject & part for part in parts) and not any(subject & part for part in holding)


def _figures(claim: str, sentence: str) -> list[tuple[str, Outcome]]:
    stated = quantities(sentence)
    return [("number", compare(claimed, stated)) for claimed in quantities(claim)]


def _dates(claim: str, sentence: str) -> list[tuple[str, Outcome]]:
    return [("date", compare_moment(claimed, sentence)) for claimed in moments(claim)]


def _nearest(claim: str, sentence: str) -> str:
    """The clause that shares most terms with the claim, or the sentence where it needs more than one."""
    wanted = set(analyze_query(claim))
    return max(clauses(sentence)[::-1], key=lambda clause: len(wanted.intersection(analyze(clause))))


def names(text: str) -> list[str]:
    """Capitalised words, acronyms and identifiers; neither dates nor the word that begins a sentence."""
    words = text.split()
    dated = [span for span, _ in date_spans(text)]
    capitals = sum(word[:1].isupper() for word in words)
    if len(words) > 2 and capitals > _TITLE_CASE * len(words) + 1:
        return []
    return [
        match.group()
        for match in _NAME.finditer(text)
        if not (_ENDS_SENTENCE.search(text[: match.start()][-3:]) and match.group()[1:].islower())
        and len(match.group()) > 1
        and not any(start <= match.start() < end for start, end in dated)
    ]


def missing_names(claim: str, text: str) -> list[str]:
    """Names in a claim of which no part occurs in a text."""
    known = set(analyze(text))
    return [name for name in dict.fromkeys(names(claim)) if known and not known & set(analyze(name))]
