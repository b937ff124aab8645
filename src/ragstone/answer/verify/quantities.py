"""The quantities a text states: numbers with their unit, what they count, and how exact they are meant to be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from ragstone.answer.verify.dates import date_spans
from ragstone.answer.verify.units import PREFIXES, unit_of
from ragstone.core.analyzer import FUNCTION_WORDS, analyze

Bound = Literal["is", "about", "over", "under", "at least", "at most"]
Outcome = Literal["same", "differs", "absent"]

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
)
_SMALL = {word: value for value, word in enumerate(f"{_ONES} seventeen eighteen nineteen".split())}
_DECADES = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_TENS = {word: 10 * n for n, word in enumerate(_DECADES, 2)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SHARES = {"half": Fraction(1, 2), "third": Fraction(1, 3), "quarter": Fraction(1, 4)}
_WORDS = "|".join([*_SMALL, *_TENS])
_NUMBER = re.compile(
    r"(?P<sign>(?<![\w.)])[-−])?(?<![\w.,])(?<![^\W\d_][-/])(?P<digits>\d{1,18}(?:,\d{3}){0,6}(?:\.\d{1,18})?)"
    rf"|(?<![\w-])(?P<word>(?:{'|'.join(_TENS)})-(?:{_WORDS})|{_WORDS})\b"
    r"|(?<![\w-])(?:(?:a|one)[ -])?(?P<share>half|third|quarter)\b(?! (?:time|party|person|world|day))",
    re.I,
)
_AFTER = re.compile(
    r"[ \u00a0-]?(?P<scale>hundred|thousand|million|billion|trillion)?\b[ \u00a0-]?"
    r"(?P<unit>°[CF]?|[%‰]|per ?cent|[^\W\d_]{1,20})?",
    re.I,
)
_A_UNIT = re.compile(r" (?:of )?an? ([^\W\d_]{1,20})", re.I)
_PER = re.compile(r"\s?(?:/\s?|per (?!cent)|every |each |an? (?=[^\W\d_]))([^\W\d_]{1,20})", re.I)
_BOUNDS: tuple[tuple[Bound, str], ...] = (
    ("at least", r"at least|no (?:less|fewer) than|minimum of|from|≥|>="),
    ("at most", r"at most|no more than|not more than|up to|maximum of|≤|<="),
    ("over", r"more than|greater than|over|above|exceed(?:s|ed|ing)?|longer than|higher than|>"),
    ("under", r"less than|fewer than|under|below|shorter than|lower than|<"),
    ("about", r"about|approximately|around|roughly|nearly|almost|some|circa|ca\.|~"),
)
_BEFORE = re.compile("|".join(f"(?P<b{n}>{words})" for n, (_, words) in enumerate(_BOUNDS)), re.I)
_NOT_COUNTED = frozenset(
    f"{FUNCTION_WORDS} per between until who also out off more less fewer other further".split()
)
_REACH = 24
_ABOUT = Fraction(1, 20)
"""How far "about 100" may be from what the source says."""
MOST = 60
"""Quantities looked at in one text."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, in the smallest shared measure of its kind."""

    value: Fraction
    written: Fraction
    """The number before its unit is taken into account."""
    dimension: str
    """What it measures, or the stem of the word it counts; empty when it stands alone."""
    lead: str
    """What stands before it: the stem of one word ("channel 12"), or the two words that lead to it."""
    bound: Bound
    per: tuple[str, Fraction] | None = None
    """What it is counted by: the hour in "5 mg per hour"."""

    def fits(self, other: Quantity) -> bool:
        """Whether a source that states `other` states this."""
        if self.dimension != other.dimension:
            # A bare number may be meant as the same measure, but then it must be the very same number.
            return not (self.dimension and other.dimension) and self.written == other.written
        if self.per is not None:
            if other.per is None or self.per[0] != other.per[0]:
                return False
            return replace(self, value=self.value / self.per[1], per=None).fits(
                replace(other, value=other.value / other.per[1], per=None)
            )
        if self.bound == other.bound or {self.bound, other.bound} <= {"is", "about"}:
            return self.value == other.value or (self.bound == "about" and self._rounds(other))
        return _within(self, other)

    def _rounds(self, other: Quantity) -> bool:
        """Whether "about 600" is a fair word for the other value: near it, and no digit of its own is wrong."""
        last = Fraction(1)
        while self.value and (self.value / (10 * last)).denominator == 1:
            last *= 10
        return abs(self.value - other.value) <= min(last / 2, _ABOUT * abs(other.value))

    def rivals(self, other: Quantity) -> bool:
        """Whether both measure the same kind of thing, so that one excludes the other."""
        alike = self.dimension == other.dimension and (
            self.dimension or (self.lead and self.lead == other.lead)
        )
        return bool(alike) and not self.fits(other)


def _within(claim: Quantity, source: Quantity) -> bool:
    """Whether what the source allows lies inside what the claim allows."""
    if claim.bound == "over":
        return source.value > claim.value or (source.bound == "over" and source.value >= claim.value)
    if claim.bound == "at least":
        return source.bound in ("is", "at least", "over") and source.value >= claim.value
    if claim.bound == "under":
        return source.value < claim.value or (source.bound == "under" and source.value <= claim.value)
    if claim.bound == "at most":
        return source.bound in ("is", "at most", "under") and source.value <= claim.value
    return False


def quantities(text: str) -> list[Quantity]:
    """The quantities of a text in order; dates and times are not among them."""
    return [quantity for _, quantity in quantity_spans(text)]


def quantity_spans(text: str) -> list[tuple[tuple[int, int], Quantity]]:
    """Where the numbers of a text stand, and what they tell."""
    dated = [span for span, _ in date_spans(text)]
    found: list[tuple[tuple[int, int], Quantity]] = []
    for match in _NUMBER.finditer(text):
        if len(found) == MOST:
            break
        if any(start <= match.start() < end for start, end in dated) or _is_loose_one(match):
            continue
        found.append((match.span(), _quantity(text, match)))
    return found


def _is_loose_one(match: re.Match[str]) -> bool:
    """A lone "one" is rarely meant as a number."""
    return (match["word"] or "").lower() == "one"


def _quantity(text: str, match: re.Match[str]) -> Quantity:
    value = _value(match)
    after = _AFTER.match(text, match.end())
    unit = after["unit"] if after and after["unit"] else ""
    if after and after["scale"]:
        value *= _SCALES[after["scale"].lower()]
    before = text[max(0, match.start() - _REACH) : match.start()].rstrip()
    known = unit_of(unit.replace(" ", "").lower() if unit.lower().startswith("per") else unit)
    if known is None and before[-1:] in PREFIXES:
        known = unit_of(before[-1:])
    if match["share"]:
        known = _part_of(text, match.end()) or ("share", Fraction(1))
    dimension, scale = known or (_counted(unit), Fraction(1))
    per = _per(text, after.end() if after else match.end())
    return Quantity(value * scale, value, dimension, _lead(before), _bound(before), per)


def _per(text: str, end: int) -> tuple[str, Fraction] | None:
    """What follows "per", a slash or "a", where that is a measure; after "per" anything may count."""
    match = _PER.match(text, end)
    if match is None:
        return None
    known = unit_of(match[1])
    if known is not None or not match.group().lstrip().lower().startswith("per "):
        return known
    return _counted(match[1]), Fraction(1)


def _part_of(text: str, end: int) -> tuple[str, Fraction] | None:
    """The unit in "half an hour"; a share of anything else is a share."""
    whole = _A_UNIT.match(text, end)
    return unit_of(whole[1]) if whole else None


def _value(match: re.Match[str]) -> Fraction:
    if match["share"]:
        return _SHARES[match["share"].lower()]
    if match["word"]:
        return Fraction(
            sum(_SMALL.get(part, _TENS.get(part, 0)) for part in match["word"].lower().split("-"))
        )
    value = Fraction(match["digits"].replace(",", ""))
    return -value if match["sign"] else value


def _counted(word: str) -> str:
    """The stem of the noun behind a number; function words count nothing."""
    if not word or word.lower() in _NOT_COUNTED:
        return ""
    stems = analyze(word)
    return stems[0] if stems else ""


def _lead(before: str) -> str:
    words = before.lower().split()[-2:]
    return (_counted(words[-1]) or " ".join(words)) if words else ""


def _bound(before: str) -> Bound:
    """How the words right before a number qualify it."""
    last: Bound = "is"
    for match in _BEFORE.finditer(before):
        if len(before) - match.end() <= 1 + sum(before.endswith(sign) for sign in PREFIXES):
            last = _BOUNDS[int(str(match.lastgroup)[1:])][0]
    return last


def compare(claimed: Quantity, stated: Sequence[Quantity]) -> Outcome:
    """What a source's quantities say about one of the claim's."""
    if any(claimed.fits(quantity) for quantity in stated):
        return "same"
    return "differs" if any(claimed.rivals(quantity) for quantity in stated) else "absent"


def tells_share(text: str) -> bool:
    """Whether a text speaks of a part of something."""
    return any(one.dimension == "share" and one.value < 1 for one in quantities(text))


def unbounded(claim: str, sentence: str) -> bool:
    """Whether a sentence is about what lies over or under a number, and the claim leaves that out."""
    limits = [one for one in quantities(sentence) if one.bound in ("over", "under")]
    kept = quantities(claim)
    return any(not any(mine.written == limit.written for mine in kept) for limit in limits)
