"""Dates, days of the week and times of day in a text, whichever way they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import islice, pairwise

from ragstone.language.numbers import SMALL_NUMBERS, number
from ragstone.language.quantities import Outcome
from ragstone.language.units import unit_of

MOST = 60
"""Dates and times of one text that are read."""
REMEMBERED = 512
"""Texts whose reading is kept: a claim is read beside many sentences, a sentence by many checks."""
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_OTHERS = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS if name != "may")
_MONTH = rf"(?i:{_OTHERS}|sept)|May"
"""A small "may" is a verb."""
_PLAIN_MONTH = "|".join(name for name in _MONTHS if name not in ("march", "may", "august"))
_LED = "|".join(
    f"(?<={word} )" for word in ("in", "In", "of", "by", "since", "until", "during", "early", "late", "mid")
)
"""Words before a month that may be taken for something else."""
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY = r"(?i:mon|tues|wednes|thurs|fri|satur|sun)(?i:days?)|Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat(?=\W)|Sun(?=\W)"
_LONE_DAY = r"(?i:(?:mon|tues|wednes|thurs|fri|satur|sun)days?)|Mon\b|Tues?\b|Wed\b|Thurs?\b|Fri\b"
_TO = r"\s?(?:to|through|until|till|–|-)\s?"
_YEAR = r"(?:1[5-9]|20|21)\d{2}"
_HOURS = "|".join((*SMALL_NUMBERS[12:0:-1], "1[0-2]", "[1-9]"))
_PART_NAMES = {"five": 5, "ten": 10, "quarter": 15, "twenty": 20, "twenty-five": 25, "half": 30}
_PARTS = "|".join(name for name in sorted(_PART_NAMES, key=len, reverse=True) if name not in ("quarter", "half"))
_ZONE = re.compile(r"\s?\(?(UTC|GMT|[CEW]ES?T|CET|EEST|WEST|[ECMP][SD]T|BST|IST|JST|MSK|A[CEW][SD]T)\b")
_ZERO_ZONE = "UTC"
_HALF = r"[.]?[mM]\b\.?"
_DATE = re.compile(
    # What no date begins with is passed over at once: of all readers of a text, this one takes longest.
    r"(?<!\w)(?=\d|(?i:[abdfhjmnoqstw]))(?:"
    rf"\b(?P<iy>{_YEAR})-(?P<im>\d{{2}})-(?P<id>\d{{2}})\b"
    rf"|\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<m1>{_MONTH})\b\.?(?:,?\s(?P<y1>{_YEAR})\b)?"
    rf"|\b(?P<m2>{_MONTH})\b\.?\s(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s(?P<y2>{_YEAR})\b)?"
    rf"|\b(?P<m3>{_MONTH})\b\.?,?\s(?:of\s)?(?P<y3>{_YEAR})\b"
    rf"|\b(?P<h1>[01]?\d|2[0-3])(?::(?P<n1>[0-5]\d)(?:\s?(?P<p1>[apAP]){_HALF})?"
    rf"|\.(?P<n3>[0-5]\d)\s?(?P<p3>[apAP]){_HALF})(?![\d:])"
    rf"|\b(?P<h2>1[0-2]|[1-9])\s?(?P<p2>[apAP]){_HALF}"
    rf"|(?<![\w.,-])(?P<y4>{_YEAR})(?![\w%°]|[.,]\d|-\d)(?!\s(?:people|\w{{1,20}}s)\b)"
    rf"|\b(?:(?P<wa>{_DAY}){_TO}(?P<wb>{_DAY})\b|between (?P<wc>{_DAY}) and (?P<wd>{_DAY})\b|(?P<w>{_LONE_DAY})"
    r"|(?P<week>(?i:week(?:days?|ends?))))\b"
    rf"|\b(?:(?P<ma>{_MONTH}){_TO}(?P<mb>{_MONTH})|between (?P<mc>{_MONTH}) and (?P<md>{_MONTH})"
    rf"|(?P<m4>(?i:{_PLAIN_MONTH}))|(?:{_LED})(?P<m5>{_MONTH}))\b(?!\s?\d)"
    r"|\b(?P<turn>(?i:noon|midnight))\b"
    rf"|\b(?P<part>(?i:(?:a )?quarter|half|{_PARTS}))(?i: minutes)? (?P<side>(?i:past|to)) (?P<hour>(?i:{_HOURS}))\b)"
)
_ALWAYS = re.compile(r"\b(?:every day|each day|daily|all week|seven days a week)\b", re.I)
_EXCEPT = re.compile(
    r"\b(?:except|excepting|excluding|other than|apart from|but not|with the exception of)(?: for)?(?: on)?\s$", re.I
)
_AND = re.compile(r"(?:,|,?\s(?:and|or|nor))\s(?:on\s)?", re.I)
_EXCEPTED = re.compile(r"\sexcepted\b", re.I)
_SIDES = {"before": "before", "until": "before", "till": "before", "after": "after", "since": "after"}
_NEXT_WORD = re.compile(r"\s([^\W\d_]{1,20})")


@dataclass(frozen=True)
class Moment:
    """A date or a time of day as far as it is told; None where it is not."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    minute: int | None = None
    """Since midnight."""
    either: int | None = None
    """The same time in the other half of the day, where a text does not say which half it means."""
    months: frozenset[int] = frozenset()
    """Those of a span such as June to August, or a month without a day or a year."""
    weekdays: frozenset[int] = frozenset()
    """Monday is 0."""
    zone: str = ""
    habit: bool = field(default=False, compare=False)
    """True for a day on which things are done repeatedly: on Saturdays."""

    @cached_property
    def parts(self) -> tuple[frozenset[int], ...]:
        """Return its year, month, day, minute and days of the week, empty where it does not tell them."""
        kinds = ((self.year,), (self.month,), (self.day,), (self.minute, self.either))
        year, month, day, minute = (frozenset(part for part in kind if part is not None) for kind in kinds)
        return (year, month | self.months, day, minute, self.weekdays)

    def fits(self, other: Moment) -> bool:
        """Return whether a source that states `other` states this: it tells all that this tells."""
        if (self.zone and self.zone != other.zone) or (self.minute is not None and self.either != other.either):
            return False
        return all(mine <= theirs for mine, theirs in zip(self.parts, other.parts, strict=True))

    def rivals(self, other: Moment) -> bool:
        """Return whether both tell the same kind of thing and differ in it."""
        if self.zone and other.zone and self.zone != other.zone:
            return self.minute == other.minute
        if self.on_other_days(other):
            return False
        pairs = zip(self.parts, other.parts, strict=True)
        return any(mine and theirs and mine.isdisjoint(theirs) for mine, theirs in pairs)

    def meets(self, other: Moment) -> bool:
        """Return whether both may be the same time: they tell the same kind of thing and nothing that differs."""
        pairs = [(mine, theirs) for mine, theirs in zip(self.parts, other.parts, strict=True) if mine and theirs]
        return bool(pairs) and all(mine & theirs for mine, theirs in pairs)

    def on_other_days(self, other: Moment) -> bool:
        """Return whether both tell habits of different days, which do not exclude each other."""
        return self.habit and other.habit and self.weekdays.isdisjoint(other.weekdays)


def compare_moment(claimed: Moment, sentence: str) -> Outcome:
    """Return how a date of the claim compares with the dates of a source."""
    stated = find_moments(sentence)
    if any(claimed.fits(moment) for moment in stated):
        return "same"
    if claimed.weekdays and not any(moment.weekdays for moment in stated) and _ALWAYS.search(sentence):
        return "same"
    if not any(claimed.rivals(moment) for moment in stated):
        return "absent"
    return "absent" if _is_during(claimed, sentence) else "differs"


def _is_during(claimed: Moment, sentence: str) -> bool:
    """Return whether a time or a year lies between two that the source joins by "to" or "until"."""
    for (span, first), (following, last) in pairwise(date_spans(sentence)):
        if re.fullmatch(rf"{_TO}|\sand\s", sentence[span[1] : following[0]]):
            ends = zip(claimed.parts, first.parts, last.parts, strict=True)
            if any(mine and low and high and max(low) < min(mine) <= max(mine) < min(high) for mine, low, high in ends):
                return True
    return False


Dated = tuple[tuple[int, int], Moment]
"""Its place in the text, and its moment."""


@lru_cache(REMEMBERED)
def date_spans(text: str) -> tuple[Dated, ...]:
    """Return the spans of dates and times in a text, with their moments."""
    found = ((match.span(), _moment(match)) for match in _DATE.finditer(text))
    read = islice(((span, moment) for span, moment in found if moment is not None), MOST)
    return tuple(_drop_exceptions(text, list(read)))


def _drop_exceptions(text: str, found: list[Dated]) -> list[Dated]:
    """Take "except Saturday and Sunday" out of the other days of the week, or out of all of them."""
    excepted: list[int] = []
    for place, ((start, end), moment) in enumerate(found):
        carried = place - 1 in excepted and _AND.fullmatch(text[found[place - 1][0][1] : start])
        marked = _EXCEPT.search(text[max(0, start - 30) : start]) or _EXCEPTED.match(text, end)
        if moment.weekdays and (marked or carried):
            excepted.append(place)
    if not excepted:
        return found
    without = frozenset[int]().union(*(found[place][1].weekdays for place in excepted))
    kept = [moment.weekdays for place, (_, moment) in enumerate(found) if place not in excepted]
    rest = (frozenset[int]().union(*kept) or frozenset(range(7))) - without
    return [
        (span, replace(moment, weekdays=rest if place in excepted else moment.weekdays - without, habit=False))
        for place, (span, moment) in enumerate(found)
    ]


def find_moments(text: str) -> list[Moment]:
    """Return the dates and times of a text, in order."""
    return [moment for _, moment in date_spans(text)]


def is_timed_otherwise(claim: str, sentence: str) -> bool:
    """Return whether a date of the claim stands in the sentence, but with another word of "before" and "after"."""
    stated = _find_sided(sentence)
    for moment, mine in _find_sided(claim):
        sides = {side for other, side in stated if moment.fits(other)}
        if sides and mine not in sides:
            return True
    return False


def is_on_other_days(claim: str, sentence: str) -> bool:
    """Return whether the claim tells a habit of days and the sentence tells habits of other days only."""
    stated = [moment for moment in find_moments(sentence) if moment.weekdays]
    return any(bool(stated) and all(moment.on_other_days(other) for other in stated) for moment in find_moments(claim))


def _find_sided(text: str) -> list[tuple[Moment, str]]:
    """Return the moments of a text with their "before" or "after", each once."""
    return list(dict.fromkeys((moment, _side(text, span[0])) for span, moment in date_spans(text)))


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
    if part["w"] or part["wa"] or part["wc"] or part["week"]:
        return Moment(weekdays=_weekdays(part), habit=bool(part["w"] and part["w"].endswith(("s", "S"))))
    if months := [_month(name) for key in ("m4", "m5", "ma", "mb", "mc", "md") if (name := part[key])]:
        return Moment(months=_cycle(months[0], months[-1], 12, first=1))
    if part["turn"]:
        return Moment(minute=720 if part["turn"].lower() == "noon" else 0)
    if part["y4"]:
        after = _NEXT_WORD.match(match.string, match.end())
        measured = after is not None and unit_of(after[1]) is not None
        return None if measured else Moment(int(part["y4"]))
    if part["part"]:
        return _spoken_time(match)
    zone = _ZONE.match(match.string, match.end())
    return replace(_time(part), zone=zone[1].replace("GMT", _ZERO_ZONE) if zone else "")


def _spoken_time(match: re.Match[str]) -> Moment | None:
    """Return a time such as "quarter to nine"; "ten to twelve" is one only where "at" stands before it."""
    part, hour = match["part"].lower().removeprefix("a "), match["hour"].lower()
    before = match["side"].lower() == "to"
    if before and part != "quarter" and not match.string[: match.start()].lower().endswith(("at ", "minutes ")):
        return None
    full = int(number(hour))
    minute = (full * 60 + _PART_NAMES[part] * (-1 if before else 1)) % 720
    return Moment(minute=minute, either=minute + 720)


def _time(part: dict[str, str | None]) -> Moment:
    """Return a time of day; "8.40" without a.m. or p.m. would be a price or a measure."""
    hour = int(part["h1"] or part["h2"] or 0)
    half, minute = part["p1"] or part["p2"] or part["p3"], int(part["n1"] or part["n3"] or 0)
    return Moment(minute=(hour % 12 + 12 * (half.lower() == "p")) * 60 + minute if half else hour * 60 + minute)


def _weekdays(part: dict[str, str | None]) -> frozenset[int]:
    if part["week"]:
        return frozenset(range(5) if "day" in part["week"].lower() else (5, 6))
    days = [_day(name) for key in ("w", "wa", "wb", "wc", "wd") if (name := part[key])]
    return _cycle(days[0], days[-1], 7)


def _day(name: str) -> int:
    return next(n for n, day in enumerate(_DAYS) if day.startswith(name[:3].lower()))


def _cycle(start: int, end: int, length: int, first: int = 0) -> frozenset[int]:
    """Return all from one to another, over the turn of the week or the year where the other comes before."""
    return frozenset((start - first + n) % length + first for n in range((end - start) % length + 1))


def _month(name: str) -> int:
    return next(n for n, month in enumerate(_MONTHS, 1) if month.startswith(name[:3].lower()))
