"""Opening hours as people write them: `mon-fri 09:00-12:00, 13:00-17:00; sat 10:00-14:00`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import time

from ragstone.core.errors import InputError
from ragstone.core.shop import Window

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MOST_WINDOWS = 100
LONGEST = 2000
"""Characters of written hours."""
WEEK = 7 * 24 * 60
HINT = "write them as: mon-fri 09:00-12:00, 13:00-17:00; sat 10:00-14:00"
_PART = re.compile(r"(?P<from>[a-z]{3})[a-z]*(?:\s*[-–]\s*(?P<to>[a-z]{3})[a-z]*)?\s+(?P<hours>[0-9:,\s–-]+)")
_HOURS = re.compile(r"(\d{1,2}):(\d\d)\s*[-–]\s*(\d{1,2}):(\d\d)")


def parse_windows(text: str) -> tuple[Window, ...]:
    """Return written hours as windows in order of the week, or raise `InputError`."""
    if len(text) > LONGEST:
        raise InputError(f"the hours have {len(text)} characters; at most {LONGEST} fit", hint=HINT)
    found = [window for part in text.casefold().split(";") if part.strip() for window in _parse_part(part.strip())]
    return check_windows(found)


def format_windows(windows: Iterable[Window]) -> str:
    """Return windows as `parse_windows` reads them."""
    return "; ".join(
        f"{DAYS[window.weekday]} {window.opens:%H:%M}-{window.closes:%H:%M}" for window in sorted(windows, key=_key)
    )


def check_windows(windows: Sequence[Window]) -> tuple[Window, ...]:
    """Return windows in order of the week; `InputError` when there are too many, or two overlap."""
    if len(windows) > MOST_WINDOWS:
        raise InputError(f"{len(windows)} opening hours are more than the {MOST_WINDOWS} that fit")
    ordered = sorted(windows, key=_key)
    for window in ordered:
        if not 0 <= window.weekday <= 6:
            raise InputError(f"{window.weekday} is not a weekday", hint="0 is Monday and 6 is Sunday")
        if any(moment.second or moment.microsecond or moment.tzinfo for moment in (window.opens, window.closes)):
            raise InputError("opening hours are whole minutes without a time zone")
    spans = [_span(window) for window in ordered]
    following = [*spans[1:], *((start + WEEK, end + WEEK) for start, end in spans[:1])]
    for window, (_, end), (start, _) in zip(ordered, spans, following, strict=True):
        if end > start:
            raise InputError(f"the hours from {format_windows([window])} overlap with the next ones", hint=HINT)
    return tuple(ordered)


def _parse_part(part: str) -> list[Window]:
    match = _PART.fullmatch(part)
    if match is None or match["from"] not in DAYS or (match["to"] or "mon") not in DAYS:
        raise InputError(f"{part!r:.80} are no opening hours", hint=HINT)
    first = DAYS.index(match["from"])
    last = DAYS.index(match["to"]) if match["to"] else first
    days = [day % 7 for day in range(first, last + 1 if last >= first else last + 8)]
    hours = [_parse_hours(piece.strip(), part) for piece in match["hours"].split(",")]
    return [Window(day, opens, closes) for day in days for opens, closes in hours]


def _parse_hours(piece: str, part: str) -> tuple[time, time]:
    match = _HOURS.fullmatch(piece)
    if match is None:
        raise InputError(f"{part!r:.80} are no opening hours", hint=HINT)
    opens_hour, opens_minute, closes_hour, closes_minute = map(int, match.groups())
    if (closes_hour, closes_minute) == (24, 0):
        closes_hour = 0
    try:
        return time(opens_hour, opens_minute), time(closes_hour, closes_minute)
    except ValueError as error:
        raise InputError(f"{part!r:.80} are no opening hours: {error}", hint=HINT) from error


def _key(window: Window) -> tuple[int, time]:
    return window.weekday, window.opens


def _span(window: Window) -> tuple[int, int]:
    """Return the minutes of the week at which a window opens and closes."""
    opens, closes = (moment.hour * 60 + moment.minute for moment in (window.opens, window.closes))
    start = window.weekday * 24 * 60 + opens
    return start, start + ((closes - opens) % (24 * 60) or 24 * 60)
