"""Dates and times of day in a text, whichever way they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragstone.answer.verify.units import unit_of

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_OTHERS = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS if name != "may")
_MONTH = rf"(?i:{_OTHERS}|sept)|May"
"""A small "may" is a verb."""
_YEAR = r"(?:1[5-9]|20|21)\d{2}"
_HALF = r"[.]?[mM]\b\.?"
_DATE = re.compile(
    rf"\b(?P<iy>{_YEAR})-(?P<im>\d{{2}})-(?P<id>\d{{2}})\b"
    rf"|\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<m1>{_MONTH})\b\.?(?:,?\s(?P<y1>{_YEAR})\b)?"
    rf"|\b(?P<m2>{_MONTH})\b\.?\s(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s(?P<y2>{_YEAR})\b)?"
    rf"|\b(?P<m3>{_MONTH})\b\.?,?\s(?P<y3>{_YEAR})\b"
    rf"|\b(?P<h1>[01]?\d|2[0-3])(?::(?P<n1>[0-5]\d)(?:\s?(?P<p1>[apAP]){_HALF})?"
    rf"|\.(?P<n3>[0-5]\d)\s?(?P<p3>[apAP]){_HALF})(?![\d:])"
    rf"|\b(?P<h2>1[0-2]|[1-9])\s?(?P<p2>[apAP]){_HALF}"
    rf"|(?<![\w.,-])(?P<y4>{_YEAR})(?![\w%°]|[.,]\d|-\d)(?!\s(?:people|\w{{1,20}}s)\b)",
)
_SIDES = {"before": "before", "until": "before", "till": "before", "after": "after", "since": "after"}
_NEXT_WORD = re.compile(r"\s([^\W\d_]{1,20})")


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or a time of day as far as it is told; None where it is not."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    minute: int | None = None
    """Since midnight."""

    def fits(self, other: Moment) -> bool:
        """Whether a source that states `other` states this: all that is told here is told there."""
        pairs = zip(self._told(), other._told(), strict=True)
        return all(mine is None or mine == theirs for mine, theirs in pairs)

    def rivals(self, other: Moment) -> bool:
        """Whether both tell the same kind of thing and differ in it."""
        pairs = list(zip(self._told(), other._told(), strict=True))
        return any(mine is not None and theirs is not None and mine != theirs for mine, theirs in pairs)

    def _told(self) -> tuple[int | None, ...]:
        return (self.year, self.month, self.day, self.minute)


def date_spans(text: str) -> list[tuple[tuple[int, int], Moment]]:
    """Where dates and times stand in a text, and what they tell."""
    return [
        (match.span(), moment) for match in _DATE.finditer(text) if (moment := _moment(match)) is not None
    ]


def moments(text: str) -> list[Moment]:
    """The dates and times of a text, in order."""
    return [moment for _, moment in date_spans(text)]


def timed_otherwise(claim: str, sentence: str) -> bool:
    """Whether a date of the claim stands in the sentence, but with another word of "before" and "after"."""
    stated = [(moment, _side(sentence, span[0])) for span, moment in date_spans(sentence)]
    for span, moment in date_spans(claim):
        sides = {side for other, side in stated if moment.fits(other)}
        if sides and _side(claim, span[0]) not in sides:
            return True
    return False


def _side(text: str, start: int) -> str:
    words = text[max(0, start - 12) : start].split()
    return _SIDES.get(words[-1].lower(), "") if words else ""


def _moment(match: re.Match[str]) -> Moment | None:
    part = match.groupdict()
    if part["iy"]:
        return Moment(int(part["iy"]), int(part["im"]), int(part["id"]))
    if part["m1"] or part["m2"]:
        which = "1" if part["m1"] else "2"
        year, month, day = part[f"y{which}"], part[f"m{which}"], int(part[f"d{which}"])
        return Moment(int(year) if year else None, _month(month), day) if 1 <= day <= 31 else None
    if part["m3"]:
        return Moment(int(part["y3"]), _month(part["m3"]))
    if part["y4"]:
        after = _NEXT_WORD.match(match.string, match.end())
        measured = after is not None and unit_of(after[1]) is not None
        return None if measured else Moment(int(part["y4"]))
    return _time(part)


def _time(part: dict[str, str | None]) -> Moment:
    """A time of day; "8.40" without a.m. or p.m. would be a price or a measure."""
    hour = int(part["h1"] or part["h2"] or 0)
    half, minute = part["p1"] or part["p2"] or part["p3"], int(part["n1"] or part["n3"] or 0)
    return Moment(
        minute=(hour % 12 + 12 * (half.lower() == "p")) * 60 + minute if half else hour * 60 + minute
    )


def _month(name: str) -> int:
    return next(n for n, month in enumerate(_MONTHS, 1) if month.startswith(name[:3].lower()))
