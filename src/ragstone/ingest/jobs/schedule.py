"""Schedules of sources: a word such as `hourly`, or five cron fields, always in UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from ragstone.core.errors import SettingsError

BY_HAND = ("manual", "on_demand", "as_needed")
WORDS = {"hourly": "0 * * * *", "daily": "0 0 * * *", "weekly": "0 0 * * mon", "monthly": "0 0 1 * *"}
# Around 2100, which is no leap year, the 29th of February falls on the same weekday again only after forty years.
LOOK_AHEAD = timedelta(days=366 * 40)
_DAY = timedelta(days=1)
_TERM = re.compile(r"(\*|[0-9a-z]{1,3})(?:-([0-9a-z]{1,3}))?(?:/([0-9]{1,3}))?")
_MAX_FIELD = 500


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    first: int
    last: int
    words: tuple[str, ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    _Field("day of week", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)


@dataclass(frozen=True, slots=True)
class _Cron:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """Sunday is 0."""
    either_day: bool
    """Both kinds of day are restricted: then one match is enough, as in every cron."""

    def falls_on(self, day: date) -> bool:
        in_month = day.day in self.days
        in_week = day.isoweekday() % 7 in self.weekdays
        fits = in_month or in_week if self.either_day else in_month and in_week
        return day.month in self.months and fits


def next_run(schedule: str, after: datetime) -> datetime | None:
    """Return the first minute after `after` that the schedule names; None if it only runs by hand."""
    if schedule in BY_HAND:
        return None
    cron = _parse(schedule)
    earliest = after.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
    day, last = earliest.date(), earliest.date() + LOOK_AHEAD
    while day <= last:
        if cron.falls_on(day) and (moment := _first(cron, day, earliest)):
            return moment
        day += _DAY
    raise SettingsError(
        f"the schedule '{schedule}' never comes", hint="no year has such a day; check day of month and month"
    )


def _first(cron: _Cron, day: date, earliest: datetime) -> datetime | None:
    start = earliest.time() if day == earliest.date() else time()
    for hour in sorted(cron.hours):
        for minute in sorted(cron.minutes):
            if (hour, minute) >= (start.hour, start.minute):
                return datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
    return None


def _parse(schedule: str) -> _Cron:
    texts = WORDS.get(schedule, schedule).lower().split()
    if len(texts) != len(_FIELDS):
        words = ", ".join((*BY_HAND, *WORDS))
        raise SettingsError(
            f"the schedule '{schedule:.200}' is neither a known word nor five cron fields",
            hint=f"use one of {words}, or such as '30 6 * * mon-fri'",
        )
    minutes, hours, days, months, weekdays = (_values(text, field) for text, field in zip(texts, _FIELDS, strict=True))
    return _Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=frozenset(day % 7 for day in weekdays),
        either_day=not (texts[2].startswith("*") or texts[4].startswith("*")),
    )


def _values(text: str, field: _Field) -> frozenset[int]:
    if len(text) > _MAX_FIELD:
        raise _wrong(field, f"{text[:20]}…", "is too long")
    return frozenset(value for term in text.split(",") for value in _span(term, field))


def _span(term: str, field: _Field) -> range:
    match = _TERM.fullmatch(term)
    if not match:
        raise _wrong(field, term, "cannot be read")
    start, end, step = match.groups()
    if start == "*":
        if end:
            raise _wrong(field, term, "cannot be read")
        first, last = field.first, field.last
    else:
        first = _number(start, field)
        last = _number(end, field) if end else first
        if end == "sun":
            last = 7  # 'fri-sun' is meant as people say it
    if first > last:
        raise _wrong(field, term, "starts after it ends")
    if step is None:
        return range(first, last + 1)
    if start != "*" and not end:
        raise _wrong(field, term, "has a step but no range")
    if not 1 <= int(step) <= field.last:
        raise _wrong(field, term, f"has a step that is not between 1 and {field.last}")
    return range(first, last + 1, int(step))


def _number(text: str, field: _Field) -> int:
    if text in field.words:
        return field.words.index(text) + field.first
    if not text.isdecimal():
        raise _wrong(field, text, "is not a number" if not field.words else "is neither a number nor a name")
    if not field.first <= int(text) <= field.last:
        raise _wrong(field, text, f"is not between {field.first} and {field.last}")
    return int(text)


def _wrong(field: _Field, text: str, problem: str) -> SettingsError:
    return SettingsError(
        f"the schedule's {field.name} '{text:.40}' {problem}",
        hint="fields are minute, hour, day of month, month, day of week: '30 6 * * mon-fri'",
    )
