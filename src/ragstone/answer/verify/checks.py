"""Explicit checks: what a sentence says for and against a claim without any model's opinion."""

from __future__ import annotations

import re
from itertools import islice
from typing import Literal

from ragstone.answer.verify.binding import has_mixed_names, has_reversed_roles, is_misbound, is_scattered
from ragstone.answer.verify.conditions import find_exception, find_framing, is_at_certain_times, is_denied_as_a_whole
from ragstone.answer.verify.defaults import spell_default
from ragstone.answer.verify.objections import Findings, Objection, ObjectionKind
from ragstone.answer.verify.roles import is_compared_otherwise
from ragstone.answer.verify.split import split_claim, split_clauses
from ragstone.language.analyzer import STOP_WORDS, analyze, analyze_query
from ragstone.language.dates import MOST as MOST_DATES
from ragstone.language.dates import compare_moment, date_spans, find_moments, is_on_other_days, is_timed_otherwise
from ragstone.language.grammar import first_verb, tokenize
from ragstone.language.measurements import drop_told_rate, drops_bound, find_quantities, speaks_of_share, tells_period
from ragstone.language.negation import (
    are_opposites,
    direction,
    drops_hedge,
    find_extent,
    has_denial_conflict,
    is_swapped,
    overreaches,
    restate,
)
from ragstone.language.quantities import Outcome, compare

_NAME = re.compile(r"\b(?:[A-Z][\w-]{0,40}|\w{0,20}\d\w{0,20}-?[A-Za-z]\w{0,20}|[a-z]{1,20}[A-Z]\w{0,40})")
_ENDS_SENTENCE = re.compile(r"(?:^|[.!?:]\s+|[\"“‘(])$")
_PRONOUN = re.compile(r"\b(?:it|they|he|she|this|these|its|their|his|her|them|that|which|who|both)\b", re.I)
_VERSION = re.compile(r"\d{1,6}(?:\.\d{1,6}){0,4}")
_NUMBERED = re.compile(
    rf"(?<![\w.-])(?P<name>[A-Z][\w+-]{{1,30}}|[a-z]{{1,20}}[A-Z]\w{{0,30}}) "
    rf"(?P<numbers>v?{_VERSION.pattern}(?:(?:, | and | or |/)v?{_VERSION.pattern}){{0,5}})"
    r"(?![\w%°-]|\.\d|,\d| ?[–-]| (?:to|through|or (?:later|newer|above|higher)|and (?:later|newer|above|higher))\b)"
)
"""A name with the numbers that tell it from others of that name."""
_MOST_NUMBERED = 20
_TITLE_CASE = 0.5
"""Share of capitalised words from which capitals say nothing."""
_Figure = Literal["number", "date"]
_OTHER = {"number": ObjectionKind.OTHER_NUMBER, "date": ObjectionKind.OTHER_DATE}
_MISSING = {"number": ObjectionKind.NUMBER_MISSING, "date": ObjectionKind.DATE_MISSING}


def check(claim: str, sentence: str, around: str = "", passage: str = "") -> Findings:
    """Read a claim beside a sentence.

    `around` are headings above it, which may hold its subject; `passage` is the text it stands in.
    """
    sentence = spell_default(claim, sentence)
    figures = [*_compare_figures(claim, sentence), *_compare_dates(claim, sentence)]
    said = restate(claim, sentence)
    nearest = _nearest_clause(said, sentence)
    denied = has_denial_conflict(said, nearest)
    opposed = are_opposites(said, nearest) or is_compared_otherwise(claim, sentence)
    left = find_exception(claim, sentence)
    conflicts = [_OTHER[figure] for figure, outcome in figures if outcome == "differs"]
    # Closed on Sundays says nothing against open on Mondays.
    elsewhen = denied != opposed and (
        conflicts == [ObjectionKind.OTHER_DATE] or (not conflicts and is_on_other_days(claim, sentence))
    )
    if elsewhen:
        conflicts.clear()
    if is_numbered_otherwise(claim, sentence) and ObjectionKind.OTHER_NUMBER not in conflicts:
        conflicts.append(ObjectionKind.OTHER_NUMBER)
    if is_misbound(claim, sentence):
        conflicts.append(ObjectionKind.NUMBER_OF_ANOTHER)
    if left == "denied":
        conflicts.append(ObjectionKind.EXCEPTION_DENIED)
    elif denied != opposed and not elsewhen and not left:
        conflicts.append(ObjectionKind.OPPOSITE if opposed else ObjectionKind.DENIED)
    elif not denied and is_denied_as_a_whole(claim, sentence):
        conflicts.append(ObjectionKind.DENIED)
    if is_turned_round(claim, nearest):
        conflicts.append(ObjectionKind.TURNED_ROUND)
    gaps, voids = _find_gaps(claim, sentence, around), _find_voids(claim, said, sentence, around)
    if left:
        voids.append(Objection(ObjectionKind.LEFT_OUT))
    if elsewhen or is_on_other_days(claim, sentence):
        voids.append(Objection(ObjectionKind.OTHER_TIME))
    if denied and opposed:
        gaps.append(Objection(ObjectionKind.OPPOSITE_WORDS))
    for figure in dict.fromkeys(figure for figure, outcome in figures if outcome == "absent"):
        elsewhere = all(
            outcome == "same" for _, outcome in (*_compare_figures(claim, passage), *_compare_dates(claim, passage))
        )
        (gaps if elsewhere else voids).append(Objection(_MISSING[figure]))
    return Findings(
        tuple(Objection(kind) for kind in dict.fromkeys(conflicts)),
        tuple(dict.fromkeys(gaps)),
        tuple(dict.fromkeys(voids)),
        direction(claim) * direction(nearest) < 0 and not denied,
    )


def is_numbered_otherwise(claim: str, sentence: str) -> bool:
    """Return whether a sentence has a name of a claim with other numbers only: Debian 9 where it says Debian 8."""
    mine, theirs = _read_numbered(claim), _read_numbered(sentence)
    return any(
        name in theirs and not any(_is_same_number(one, other) for one in numbers for other in theirs[name])
        for name, numbers in mine.items()
    )


def _read_numbered(text: str) -> dict[str, set[str]]:
    """Return the names of a text that have a number behind them, with their numbers."""
    dated = [span for span, _ in date_spans(text)]
    found: dict[str, set[str]] = {}
    for match in islice(_NUMBERED.finditer(text), _MOST_NUMBERED):
        name = match["name"]
        if name.lower() not in STOP_WORDS and not any(start <= match.end() - 1 < end for start, end in dated):
            found.setdefault(name.lower(), set()).update(_VERSION.findall(match["numbers"]))
    return found


def find_numbered(text: str) -> list[str]:
    """Return the names of a text with the one number behind each: Debian 9."""
    found = (match.group() for match in islice(_NUMBERED.finditer(text), _MOST_NUMBERED))
    return [name for name in found if len(_VERSION.findall(name.split(" ", 1)[1])) == 1]


def _is_same_number(one: str, other: str) -> bool:
    """Return whether two versions may be one: 8 is 8.0, and 1.11 is of 1."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def is_turned_round(claim: str, sentence: str) -> bool:
    """Return whether the two name who does what to whom, or what is more than what, the other way round."""
    return is_swapped(claim, sentence) or has_reversed_roles(claim, sentence)


def _find_gaps(claim: str, sentence: str, around: str) -> list[Objection]:
    """Return what the claim says beyond the sentence."""
    kinds = []
    if overreaches(claim, sentence) and not _of_fewer(sentence):
        kinds.append(ObjectionKind.NOT_OF_ALL)
    if drops_hedge(claim, sentence):
        kinds.append(ObjectionKind.HEDGED)
    if drops_bound(claim, sentence) or is_at_certain_times(claim, sentence):
        kinds.append(ObjectionKind.LIMITED)
    missing = find_missing_names(claim, f"{around}\n{sentence}")
    return [*(Objection(kind) for kind in kinds), *(Objection(ObjectionKind.NAME_MISSING, name) for name in missing)]


def _find_voids(claim: str, said: str, sentence: str, around: str) -> list[Objection]:
    """Return why the sentence mentions the claim without stating it; `said` has the sentence's own figures."""
    framing = find_framing(said, sentence)
    kinds = []
    if overreaches(claim, sentence) and _of_fewer(sentence):
        kinds.append(ObjectionKind.NOT_OF_ALL)
    if is_timed_otherwise(claim, sentence):
        kinds.append(ObjectionKind.OTHER_TIME)
    if len(date_spans(claim)) >= MOST_DATES:
        kinds.append(ObjectionKind.TOO_MANY_DATES)
    if has_mixed_names(claim, sentence):
        kinds.append(ObjectionKind.OF_ANOTHER)
    # A claim of several statements takes its words from as many clauses.
    is_one = len(split_claim(claim)) == 1
    if is_one and (_is_scattered(claim, sentence, around) or _is_crossed(claim, sentence)):
        kinds.append(ObjectionKind.OF_SOMETHING_ELSE)
    return [*([framing] if framing else []), *(Objection(kind) for kind in kinds)]


def _of_fewer(sentence: str) -> bool:
    return find_extent(sentence) is not None or speaks_of_share(sentence)


def _is_scattered(claim: str, sentence: str, around: str) -> bool:
    return is_scattered(claim, sentence, find_names(claim), set(analyze(around)) if around.strip() else set())


def _is_crossed(claim: str, sentence: str) -> bool:
    """Return whether a claim's subject and what it says of it come from different clauses: another did that."""
    verb, parts = first_verb(tokenize(claim)), [set(analyze(part)) for part in split_claim(sentence)]
    if verb is None or len(parts) < 2 or _PRONOUN.search(sentence):
        return False
    subject = set(analyze(claim[: verb.token.start]))
    objects = set(analyze(claim[verb.token.end :])) - subject
    most = max(len(objects & part) for part in parts)
    holding = [part for part in parts if len(objects & part) == most]
    return most > 0 and any(subject & part for part in parts) and not any(subject & part for part in holding)


def _compare_figures(claim: str, sentence: str) -> list[tuple[_Figure, Outcome]]:
    stated = find_quantities(sentence)
    said = [drop_told_rate(claimed, sentence) for claimed in find_quantities(claim)]
    told = [(claimed, compare(claimed, stated)) for claimed in said]
    return [
        ("number", "same" if outcome == "absent" and tells_period(sentence, claimed) else outcome)
        for claimed, outcome in told
    ]


def _compare_dates(claim: str, sentence: str) -> list[tuple[_Figure, Outcome]]:
    claimed = find_moments(claim)
    told = [compare_moment(moment, sentence) for moment in claimed]
    # A sentence that gives one of two dates may leave the other to the next one.
    left = "same" in told and len(find_moments(sentence)) < len(claimed)
    return [("date", "absent" if left and outcome == "differs" else outcome) for outcome in told]


def _nearest_clause(claim: str, sentence: str) -> str:
    """Return the clause that shares most terms with the claim, or the sentence where it needs more than one."""
    wanted = set(analyze_query(claim))
    return max(split_clauses(sentence)[::-1], key=lambda clause: len(wanted.intersection(analyze(clause))))


def find_names(text: str) -> list[str]:
    """Return capitalised words, acronyms and identifiers; neither dates nor the word that begins a sentence."""
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


def find_missing_names(claim: str, text: str) -> list[str]:
    """Return names in a claim of which no part occurs in a text."""
    known = set(analyze(text))
    return [name for name in dict.fromkeys(find_names(claim)) if known and not known & set(analyze(name))]
