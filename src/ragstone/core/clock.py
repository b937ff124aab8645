"""Time: one canonical text form, so that stored dates sort and compare as text."""

from __future__ import annotations

from datetime import UTC, date, datetime


def now() -> datetime:
    """The current moment, in UTC."""
    return datetime.now(UTC)


def canonical(moment: datetime | date) -> str:
    """`2026-01-31T09:00:00+00:00`: UTC, whole seconds, always the same width."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def parse_moment(text: str) -> datetime | None:
    """Read an ISO 8601 date or time, in UTC; None when the text is not one."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        # Overflow: the first or last hours of the calendar, in a zone where UTC has none.
        return None
