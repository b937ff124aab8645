"""A cell's value → what a person sees in it."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time, timedelta

_NUMBER = re.compile(r"(?P<thousands>#,##)?(?P<whole>0+)(?:\.(?P<decimals>0+))?(?P<percent>%)?")
_SIGN_OF_LOCALE = re.compile(r"\[\$([^\]-]*)[^\]]*\]")
_UNSEEN = re.compile(r"\[[^\]]*\]|\"|\\|_.|\*.")
_CURRENCY = "$€£¥"
_LONGEST_FORMAT = 200
_MOST_DIGITS = 30
_MOST_AMOUNT = 1e15


def shown(value: object, number_format: str = "General") -> str:
    """Dates in ISO form, numbers with the digits and the sign their format gives them, anything else as it is."""
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case datetime():
            return _moment(value)
        case date():
            return value.isoformat()
        case time():
            return value.isoformat("minutes" if not value.second else "seconds")
        case timedelta():
            return _duration(value)
        case int() | float():
            return _number(value, number_format)
    return str(value)


def _moment(value: datetime) -> str:
    if (value.hour, value.minute, value.second) == (0, 0, 0):
        return value.date().isoformat()
    return value.isoformat(" ", "minutes" if not value.second else "seconds")


def _duration(value: timedelta) -> str:
    seconds = round(value.total_seconds())
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _number(value: float, number_format: str) -> str:
    if not math.isfinite(value):
        return str(value)
    # Positive and negative numbers may have formats of their own; the first one is enough for the digits.
    wanted = _UNSEEN.sub("", _SIGN_OF_LOCALE.sub(r"\1", number_format[:_LONGEST_FORMAT].split(";", 1)[0]))
    found = _NUMBER.search(wanted)
    if found is None or "E" in wanted or abs(value) >= _MOST_AMOUNT:
        # Fifteen digits are what a spreadsheet keeps; more would show 0.1 + 0.2 as nobody sees it.
        return f"{value:.15g}"
    amount = abs(value) * 100 if found["percent"] else abs(value)
    decimals = min(len(found["decimals"] or ""), _MOST_DIGITS)
    width = (
        0
        if found["thousands"]
        else min(len(found["whole"]), _MOST_DIGITS) + (decimals + 1 if decimals else 0)
    )
    digits = f"{amount:0{width}{',' if found['thousands'] else ''}.{decimals}f}{found['percent'] or ''}"
    minus = "-" if value < 0 and digits.strip("0.%") else ""
    sign = next((mark for mark in _CURRENCY if mark in wanted), "")
    if not sign or wanted.find(sign) < found.start():
        return f"{minus}{sign}{digits}"
    return f"{minus}{digits} {sign}"
