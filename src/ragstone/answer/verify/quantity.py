"""A quantity, and whether one states, leaves open or excludes another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from ragstone.answer.verify.changes import Move

Bound = Literal["is", "about", "over", "under", "at least", "at most"]
Outcome = Literal["same", "differs", "absent"]

_ABOUT = Fraction(1, 20)
"""How far "about 100" may be from what the source says."""
_CONVERTED = Fraction(1, 100)
"""How far a number may be off that was rounded when its unit was changed: 10 miles are 16 km."""


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
    size: Fraction = Fraction(1)
    """Of one unit, in the measure of `value`."""
    step: Fraction = Fraction(1)
    """What one more in the last digit given amounts to, in the measure of `written`."""
    move: Move = ""
    """Whether it tells how far something moved, or where to."""
    words: str = field(default="", compare=False)
    """It with its unit, as the text has it."""

    def fits(self, other: Quantity) -> bool:
        """Whether a source that states `other` states this."""
        if {self.move, other.move} == {"by", "to"} or not self._counted_alike(other):
            return False
        if self.dimension != other.dimension:
            # A bare number may be meant as the same measure, but then it must be the very same number.
            bare = not (self.dimension and other.dimension) and self.written == other.written
            return bare and replace(self, dimension=other.dimension, value=other.value).fits(other)
        if self.per is not None:
            return self._each().fits(other._each())
        if self.bound == other.bound or {self.bound, other.bound} <= {"is", "about"}:
            return self.value == other.value or self._rounds(other)
        return _within(self, other)

    def rivals(self, other: Quantity) -> bool:
        """Whether both measure the same kind of thing, so that one excludes the other."""
        alike = self.dimension == other.dimension and (
            self.dimension or (self.lead and self.lead == other.lead)
        )
        if not alike or (self.per is None) != (other.per is None) or {self.move, other.move} == {"by", "to"}:
            return False
        return not self.fits(other) and not self._may_be(other)

    def _counted_alike(self, other: Quantity) -> bool:
        """Whether both are rates by the same measure, or neither is one."""
        return (self.per and self.per[0]) == (other.per and other.per[0])

    def _each(self) -> Quantity:
        """The rate as a plain number."""
        by = self.per[1] if self.per else Fraction(1)
        return replace(self, value=self.value / by, size=self.size / by, per=None)

    def _rounds(self, other: Quantity) -> bool:
        """Whether it is a fair word for the other value: near it, and no digit of its own is wrong."""
        off = abs(self.value - other.value)
        if self.bound == "about":
            return off <= self._leeway(other)
        converted = self.bound == "is" and self.size != other.size
        return converted and off <= min(self.step * self.size / 2, _CONVERTED * self._larger(other))

    def _may_be(self, other: Quantity) -> bool:
        """Whether the two could be one measure told with fewer digits; neither states the other then."""
        if self.per != other.per:
            return False
        exact = [one for one in (self, other) if one.bound in ("is", "about")]
        if len(exact) == 1:
            return _allows(other if exact[0] is self else self, exact[0].value)
        if not exact:
            return False
        return abs(self.value - other.value) <= max(self._leeway(other), other._leeway(self))

    def _leeway(self, other: Quantity) -> Fraction:
        """Half of its last digit that is not a mere 0, but never much of it; none where it is told exactly."""
        if self.bound != "about" and self.size == other.size:
            return Fraction(0)
        last = self.step
        while self.written and (self.written / (10 * last)).denominator == 1:
            last *= 10
        most = _ABOUT if self.bound == "about" else 2 * _CONVERTED
        return min(last * self.size / 2, most * self._larger(other))

    def _larger(self, other: Quantity) -> Fraction:
        return max(abs(one.written) * one.size for one in (self, other))


def _allows(limit: Quantity, value: Fraction) -> bool:
    """Whether a number lies inside a bound: three hours are among "up to three hours"."""
    if limit.bound in ("over", "under"):
        return value > limit.value if limit.bound == "over" else value < limit.value
    return value >= limit.value if limit.bound == "at least" else value <= limit.value


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


def compare(claimed: Quantity, stated: Sequence[Quantity]) -> Outcome:
    """What a source's quantities say about one of the claim's."""
    if any(claimed.fits(quantity) for quantity in stated):
        return "same"
    return "differs" if any(claimed.rivals(quantity) for quantity in stated) else "absent"
