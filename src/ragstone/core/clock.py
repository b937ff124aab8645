"""Moments, days and the monotonic clock of the host."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ragstone.core.ids import opaque_id


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def canonical(moment: datetime | date) -> str:
    """`2026-01-31T09:00:00+00:00`: UTC, whole seconds, always the same width."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def parse_mail_date(text: str) -> datetime | None:
    """Return a date as mail and HTTP write it, in UTC; None when it cannot be read."""
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def parse_moment(text: str) -> datetime | None:
    """Read an ISO 8601 date or time, in UTC; None when the text is not one."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        # Overflow: the first or last hours of the calendar, in a zone where UTC has none.
        return None


class ReadTime(NamedTuple):
    """The time at which a document was read at its source: of two versions, the later read wins."""

    boot: str = ""
    """Times of different boots cannot be compared."""
    seconds: float = 0.0

    def precedes(self, other: ReadTime) -> bool:
        """Return whether this read is known to be the earlier one."""
        return self.boot == other.boot and self.seconds < other.seconds


def current_read_time() -> ReadTime:
    return ReadTime(boot_id(), host_seconds())


def host_seconds() -> float:
    """Return seconds of a clock that all processes of this host share and that cannot be set."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@cache
def boot_id() -> str:
    """Return the id of the boot that `host_seconds` counts from; one per process where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return opaque_id()


def canonical_text(value: str) -> str:
    """Return a date in its canonical form, so that it compares as text; any other text as it is."""
    if len(value) >= len("2026-01-01") and value[:4].isdigit() and value[4] == "-":
        moment = parse_moment(value)
        if moment is not None:
            return canonical(moment)
    return value
