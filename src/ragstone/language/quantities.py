"""Quantities as values: amounts with units, ranges and changes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from ragstone.language.numbers import scale_of

Move = Literal["", "by", "to", "every", "unsure"]

_STEP = (
    r"about|around|approximately|roughly|nearly|almost|some|only|just|over|under|(?:no )?(?:more|less) than|at least"
    r"|at most|up to|as (?:much|many|little|few) as|[a-z]{2,14}ly|an?|the|another|a further|~"
)
_MOVER = (
    r"rose|ris(?:es?|en|ing)|rais(?:e[sd]?|ing)|fell|fall(?:s|en|ing)?|drop(?:s|ped|ping)?"
    r"|(?:in|de)creas(?:e[sd]?|ing)|climb(?:s|ed|ing)?|gr[eo]w(?:s|n|ing|th)?|shr[aiu]nk(?:s|ing)?"
    r"|reduc(?:e[sd]?|ing|tion)|lower(?:s|ed|ing)|warm(?:s|ed|ing)|cool(?:s|ed|ing)|heat(?:s|ed)"
    r"|declin(?:e[sd]?|ing)|jump(?:s|ed)?|s[aiu]nk(?:s|ing)?|gain(?:s|ed)?|los(?:es?|t)|chang(?:e[sd]?|ing)"
    r"|expand(?:s|ed)?|exten(?:ds?|ded|sion)|cuts?|went|g(?:o|oes|one)|trim(?:s|med|ming)?|slash(?:es|ed|ing)?"
    r"|(?:short|length|wid)en(?:s|ed|ing)?|narrow(?:s|ed|ing)|enlarg(?:e[sd]?|ing)|boost(?:s|ed|ing)?"
    r"|scal(?:e[sd]?|ing)|swell(?:s|ed|ing)?|swollen|plunge[sd]?|soar(?:s|ed|ing)?|halv(?:e[sd]?|ing)"
)
_GAP = (
    r"differ(?:s|ed|ences?|ing)?|toleran(?:ces?|t)|var(?:y|ies|ied|ying|iations?)|deviat(?:e[sd]?|ions?)"
    r"|fluctuat(?:e[sd]?|ions?|ing)|sw[iu]ngs?|swung|margins?|accura(?:te|cy)|within|warmer|cooler|colder|hotter"
    r"|errors?|uncertaint(?:y|ies)|precis(?:e|ion)|increments?|steps?|offsets?|gradients?|spread"
)
_BY = re.compile(
    rf"(?:\b(?:by|within|every|each|accurate to|(?:{_MOVER}|{_GAP}) of"
    rf"|(?:difference|tolerance)\b[^,]{{0,50}} (?:is|was|are|were)"
    rf"|(?:{_MOVER})|plus or minus)|±|\+/[-−–])(?: (?:{_STEP})){{0,3}}$",
    re.I,
)
_AT = re.compile(
    r"\b(?:(?P<to>(?<!up )(?<!accurate )to)|from|at|below|above|past|beyond|between|reach(?:es|ed|ing)?"
    r"|temperatures? of)"
    rf"(?: (?:{_STEP}|new|record|high|low|peak|total|of)){{0,4}}$",
    re.I,
)
_MOVES = re.compile(rf"\b(?:{_MOVER})\b", re.I)
_MAY_BE = re.compile(rf"\b(?:{_MOVER}|{_GAP}|range[sd]?)\b", re.I)
_FURTHER = re.compile(
    r"[ -](?:warmer|cooler|colder|hotter|higher|lower|more|less|above|below|apart|either"
    r"|too|in excess|of (?:warming|cooling)"
    r"|(?:temperature )?(?:rise|fall|drop|increase|decrease|difference|change|tolerance|swing|variation|gap|margin))\b",
    re.I,
)
_STOP = re.compile(r"[.;!?]\s")
_WINDOW, _REACH = 80, 40
"""Characters before and behind a number that may tell a change."""


def find_move(text: str, start: int, end: int) -> Move:
    """Return the kind of change a number tells; "unsure" if the words around it speak of a change elsewhere."""
    return _find_move(clause_before(text, start), text[end : end + _REACH])


@lru_cache(1024)
def _find_move(before: str, after: str) -> Move:
    at = _AT.search(before)
    if at is None and _BY.search(before):
        return "by"
    if _FURTHER.match(after):
        return "by"
    if at is not None:
        return "to" if at["to"] and _MOVES.search(before) else ""
    return "unsure" if _MAY_BE.search(before) else ""


def has_move(text: str, start: int) -> bool:
    """Return whether something before a number is said to rise or to fall."""
    return _MOVES.search(clause_before(text, start)) is not None


def clause_before(text: str, start: int) -> str:
    """Return the words that lead to a number, as far as one sentence goes."""
    return _STOP.split(text[max(0, start - _WINDOW) : start])[-1].rstrip()


Bound = Literal["is", "about", "over", "under", "at least", "at most"]
Outcome = Literal["same", "differs", "absent"]

_ABOUT = Fraction(1, 20)
"""Share by which "about 100" may differ from the source."""
_ABOUT_AS_FLOAT = float(_ABOUT)
_OTHER_MOVES = {("by", "to"), ("to", "by")}
_CONVERTED = Fraction(1, 100)
"""Share by which a number may differ that was rounded in another unit: 10 miles are 16 km."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, in the smallest shared measure of its kind."""

    value: Fraction
    written: Fraction
    """The number before its unit is taken into account."""
    dimension: str
    """The dimension it measures, or the stem of the word it counts; empty when it stands alone."""
    lead: str
    """The words before it: the stem of one word ("channel 12"), or the two words that lead to it."""
    bound: Bound
    per: tuple[str, Fraction] | None = None
    """The unit it is counted by: the hour in "5 mg per hour"."""
    size: Fraction = Fraction(1)
    """Of one unit, in the measure of `value`."""
    step: Fraction = Fraction(1)
    """Value of one more in the last digit given, in the measure of `written`."""
    move: Move = ""
    """Set if it tells how far something moved, where to, or in what time it comes again."""
    words: str = field(default="", compare=False)
    """It with its unit, as the text has it."""
    _rough: float = field(init=False, repr=False, compare=False)
    """The value as a float."""
    _reach: float = field(init=False, repr=False, compare=False)
    """The largest difference that rounding could explain."""

    def __post_init__(self) -> None:
        # Fractions take ten times as long to compare, and most of the numbers compared are far apart.
        object.__setattr__(self, "_rough", _to_float(self.value))
        object.__setattr__(self, "_reach", 1.01 * _ABOUT_AS_FLOAT * abs(_to_float(self.written) * _to_float(self.size)))

    @property
    def is_period(self) -> bool:
        """Return whether it tells in what time something comes again: two hours in "every two hours"."""
        return self.move == "every"

    def fits(self, other: Quantity) -> bool:
        """Return whether a source that states `other` states this."""
        if self.is_period and other.per == (self.dimension, self.value):
            return True
        if self.moves_otherwise(other) or not self._counted_alike(other):
            return False
        if self.dimension != other.dimension:
            # A bare number may be meant as the same measure, but then it must be the very same number.
            bare = not (self.dimension and other.dimension) and self.written == other.written
            if self.written == 1 and (self.is_period or other.is_period):
                return False  # "every hour" has no number
            return bare and replace(self, dimension=other.dimension, value=other.value).fits(other)
        if self.per is not None:
            return self._each().fits(other._each())
        if self.bound == other.bound or {self.bound, other.bound} <= {"is", "about"}:
            return not self._is_far_from(other) and (self.value == other.value or self._rounds(other))
        return _within(self, other)

    def moves_otherwise(self, other: Quantity) -> bool:
        """Return whether one tells how far something moved, and the other where to."""
        return (self.move, other.move) in _OTHER_MOVES

    def bare(self) -> Quantity:
        """Return the number as it is written, without its unit and what it counts."""
        return replace(self, dimension="", value=self.written, size=Fraction(1))

    def rivals(self, other: Quantity) -> bool:
        """Return whether both measure the same kind of thing, so that one excludes the other."""
        if {self.dimension, other.dimension} == CYCLES and self.is_period == other.is_period:
            return self.per == other.per and not self.moves_otherwise(other) and not _may_be_as_long(self, other)
        alike = self.dimension == other.dimension and (self.dimension or (self.lead and self.lead == other.lead))
        if not alike or (self.per is None) != (other.per is None) or self.moves_otherwise(other):
            return False
        return not self.fits(other) and not self._may_be(other)

    def _counted_alike(self, other: Quantity) -> bool:
        """Return whether both are rates by the same measure, or neither is one."""
        return (self.per and self.per[0]) == (other.per and other.per[0])

    def _each(self) -> Quantity:
        """Return the rate as a plain number."""
        by = self.per[1] if self.per else Fraction(1)
        return replace(self, value=self.value / by, size=self.size / by, per=None)

    def _rounds(self, other: Quantity) -> bool:
        """Return whether it is a fair word for the other value: near it, and no digit of its own is wrong."""
        if self.bound == "about":
            return abs(self.value - other.value) <= self._leeway(other)
        if self.bound != "is" or self.size == other.size:
            return False
        return abs(self.value - other.value) <= min(self.step * self.size / 2, _CONVERTED * self._larger(other))

    def _may_be(self, other: Quantity) -> bool:
        """Return whether the two could be one measure told with fewer digits; neither states the other then."""
        if self.per != other.per:
            return False
        exact = [quantity for quantity in (self, other) if quantity.bound in ("is", "about")]
        if len(exact) == 1:
            return _allows(other if exact[0] is self else self, exact[0].value)
        if not exact or self._is_far_from(other):
            return False
        return abs(self.value - other.value) <= max(self._leeway(other), other._leeway(self))

    def _is_far_from(self, other: Quantity) -> bool:
        """Return whether no rounding allows the difference."""
        return abs(self._rough - other._rough) > max(self._reach, other._reach)

    def _leeway(self, other: Quantity) -> Fraction:
        """Return half of its last digit that is not 0, within limits; 0 for an exact number."""
        if self.bound != "about" and self.size == other.size:
            return Fraction(0)
        last = self.step
        while self.written and (self.written / (10 * last)).denominator == 1:
            last *= 10
        most = _ABOUT if self.bound == "about" else 2 * _CONVERTED
        return min(last * self.size / 2, most * self._larger(other))

    def _larger(self, other: Quantity) -> Fraction:
        return max(abs(quantity.written) * quantity.size for quantity in (self, other))


CYCLES = frozenset(("time in s", "calendar in months"))
"""Dimensions of times: a month has no fixed number of days."""
_DAYS_OF_MONTH = (28, 31)


def _may_be_as_long(one: Quantity, other: Quantity) -> bool:
    """Return whether some days may be some months: four weeks are about a month."""
    days, months = (one, other) if one.dimension == "time in s" else (other, one)
    shortest, longest = (months.value * count * 86400 for count in _DAYS_OF_MONTH)
    return shortest <= days.value <= longest or not {one.bound, other.bound} <= {"is", "about"}


def _to_float(number: Fraction) -> float:
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf


def _allows(limit: Quantity, value: Fraction) -> bool:
    """Return whether a number lies inside a bound: three hours are among "up to three hours"."""
    if limit.bound in ("over", "under"):
        return value > limit.value if limit.bound == "over" else value < limit.value
    return value >= limit.value if limit.bound == "at least" else value <= limit.value


def _within(claim: Quantity, source: Quantity) -> bool:
    """Return whether what the source allows lies inside what the claim allows."""
    if claim.bound == "over":
        return source.value > claim.value or (source.bound == "over" and source.value >= claim.value)
    if claim.bound == "at least":
        return source.bound in ("is", "at least", "over") and source.value >= claim.value
    if claim.bound == "under":
        return source.value < claim.value or (source.bound == "under" and source.value <= claim.value)
    if claim.bound == "at most":
        return source.bound in ("is", "at most", "under") and source.value <= claim.value
    return False


def keep_comparable(claimed: Quantity, stated: Sequence[Quantity]) -> Sequence[Quantity]:
    """Return the periods of a source for a period, where it has some: "within an hour" is not "every hour"."""
    return [quantity for quantity in stated if claimed.is_period and quantity.is_period] or stated


def compare(claimed: Quantity, stated: Sequence[Quantity]) -> Outcome:
    """Return what a source's quantities say about one of the claim's."""
    stated = keep_comparable(claimed, stated)
    if any(claimed.fits(quantity) for quantity in stated):
        return "same"
    return "differs" if any(claimed.rivals(quantity) for quantity in stated) else "absent"


Span = tuple[tuple[int, int], Quantity]
Spans = tuple[Span, ...]
_SCALED_WORDS = re.compile(r"(?:hundred|thousand|million)$", re.I)
_THOUSANDS = re.compile(r"\b(?:thousand|million|billion|trillion)\b", re.I)
_ASIDE = re.compile(r"^ \([^()\d]{1,30}\)")
"""Behind the first number of a range: "between 1 (highest) and 9"."""
_ENDS = re.compile(r"[.;,)]?(?:\s|$)(?![^\W\d_])")
"""Behind a number that counts nothing."""
_RANGE = re.compile(r"\s?[-–—‐‑]\s?| to | and ")


def join_quantities(text: str, found: list[Span]) -> Spans:
    """Return one quantity of the two in "1 hour 30 minutes" and "two hundred and fifty"; two bounds of "5–10 days"."""
    whole: list[Span] = []
    for span, quantity in found:
        if whole:
            (start, end), before = whole[-1]
            between = text[start + len(before.words) : span[0]]
            if _goes_on(before, quantity, between):
                words = text[start : span[0] + len(quantity.words)]
                whole[-1] = (start, span[1]), replace(_sum(before, quantity), words=words)
                continue
            low = before if before.dimension else _in_measure_of(quantity, before)
            if _is_range(low, quantity, between, text[:start]):
                whole[-1] = (start, end), replace(low, bound="at least")
                quantity = replace(quantity, bound="at most")
            elif not quantity.dimension and _ENDS.match(text, span[1]):
                quantity = _take_unit([other for _, other in whole], quantity)
        whole.append((span, quantity))
    return tuple(whole)


def _goes_on(before: Quantity, after: Quantity, between: str) -> bool:
    """Return whether a number is the rest of the one before it."""
    if between not in (" ", " and ") or before.per or after.is_period or after.bound not in ("is", before.bound):
        return False
    if not before.dimension and _SCALED_WORDS.search(before.words):
        return 0 < after.written < scale_of(before.words.split()[-1]) * _scale(before, after)
    smaller = after.dimension == before.dimension and 0 <= after.value < before.size
    return smaller and after.dimension in ("time in s", "length in m") and after.bound == before.bound != "about"


def _sum(before: Quantity, after: Quantity) -> Quantity:
    if before.dimension:
        whole = replace(before, value=before.value + after.value, size=after.size, step=after.step, per=after.per)
        return replace(whole, written=whole.value / after.size)
    more = before.written * _scale(before, after)
    written = more + after.written
    return replace(after, written=written, value=after.value + more * after.size, lead=before.lead, bound=before.bound)


def _scale(before: Quantity, after: Quantity) -> int:
    """Return what is counted in "two hundred and fifty thousand" are the thousands."""
    scaled = _THOUSANDS.search(after.words) if before.words.lower().endswith("hundred") else None
    return scale_of(scaled[0]) if scaled else 1


def _in_measure_of(measured: Quantity, bare: Quantity) -> Quantity:
    """Return a number without a unit in that of the number behind it."""
    value = measured.value - (measured.written - bare.written) * measured.size
    return replace(bare, value=value, dimension=measured.dimension, size=measured.size, per=measured.per)


def _take_unit(before: Sequence[Quantity], bare: Quantity) -> Quantity:
    """Return a number in the unit of the last one that the same word leads to: "A allows 10 kg; B allows 20"."""
    same = (other for other in reversed(before) if other.dimension and bare.lead and other.lead == bare.lead)
    measured = next(same, None)
    return _in_measure_of(measured, bare) if measured else bare


def _is_range(low: Quantity, high: Quantity, between: str, before: str) -> bool:
    """Return whether two numbers are the ends of what something may be, not where it came from and went."""
    between = _ASIDE.sub("", between)
    if _RANGE.fullmatch(between) is None or high.bound != "is" or low.bound not in ("is", "about", "at least"):
        return False
    if low.dimension != high.dimension or low.value >= high.value:
        return False
    lead = before[-9:].rstrip().lower()
    if between == " and ":
        return lead.endswith("between")
    return between != " to " or not (lead.endswith("from") and has_move(before, len(before)))
