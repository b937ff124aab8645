"""Free slots of a service: computed from its opening hours and what is booked, right across changes of the clock.

Hours are those of the clock on the wall, and a slot lasts its minutes whatever the clock does meanwhile: a window over
the hour that is left out in spring is an hour shorter that day, and one over the hour that comes twice an hour longer.
Moments are compared in UTC, since Python compares two times of one zone by what the clock shows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ragstone.core.errors import InputError
from ragstone.core.shop import Service, Slot, Window

Span = tuple[datetime, datetime]
"""A beginning and an end."""
MOST_DAYS = 92
"""Days that can be looked at at once."""
SECOND = timedelta(seconds=1)


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone of a name, or raise `InputError`."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # A name is a path to the library: one that leads elsewhere is a ValueError, and a folder an OSError.
        raise InputError(f"there is no time zone {name!r:.80}", hint="such as Europe/Berlin or UTC") from None


def check_days(first: date, last: date) -> None:
    """Refuse days that end before they begin, or that are too many to look at."""
    if not timedelta(0) <= last - first < timedelta(days=MOST_DAYS):
        raise InputError(f"{first} to {last} is not a time of 1 to {MOST_DAYS} days")
    if not date(1970, 1, 2) <= first <= last <= date(9998, 12, 30):
        raise InputError(f"{first} to {last} is too far away")


def list_slots(service: Service, first: date, last: date) -> list[Slot]:
    """Return all slots in windows of these days, booked or not, in order of time."""
    check_days(first, last)
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    found = (
        slot
        for day in days
        for window in service.windows
        if window.weekday == day.weekday()
        for slot in _slots_in(service, window, day)
    )
    return sorted(found, key=lambda slot: slot.starts_at.astimezone(UTC))


def keep_free(slots: Sequence[Slot], taken: Iterable[Span], moment: datetime) -> list[Slot]:
    """Return the slots that begin after a moment and meet none of the taken spans."""
    busy = _merge(taken)
    beginnings = [beginning for beginning, _ in busy]

    def is_free(slot: Slot) -> bool:
        start, end = slot.starts_at.astimezone(UTC), slot.ends_at.astimezone(UTC)
        before = bisect_left(beginnings, end)
        return start > moment and (before == 0 or busy[before - 1][1] <= start)

    return [slot for slot in slots if is_free(slot)]


def slot_at(service: Service, starts_at: datetime) -> Slot | None:
    """Return the slot of a service that begins at a moment; None when none does."""
    if not 1970 < starts_at.year < 9998:
        return None  # a clock of another zone may have no such year
    day = starts_at.astimezone(zone_of(service.timezone)).date()
    # A window that is open over midnight belongs to the day before.
    slots = list_slots(service, day - timedelta(days=1), day)
    wanted = starts_at.astimezone(UTC)
    return next((slot for slot in slots if slot.starts_at.astimezone(UTC) == wanted), None)


def _merge(taken: Iterable[Span]) -> list[Span]:
    """Return spans in order of time, those that touch as one."""
    merged: list[Span] = []
    for start, end in sorted((start.astimezone(UTC), end.astimezone(UTC)) for start, end in taken):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _slots_in(service: Service, window: Window, day: date) -> Iterator[Slot]:
    zone, length = zone_of(service.timezone), timedelta(minutes=service.minutes)
    closing = day if window.closes > window.opens else day + timedelta(days=1)
    start, end = _instant(day, window.opens, zone, fold=0), _instant(closing, window.closes, zone, fold=1)
    while start + length <= end:
        yield Slot(service.id, start.astimezone(zone), (start + length).astimezone(zone))
        start += length


def _instant(day: date, wall: time, zone: ZoneInfo, *, fold: int) -> datetime:
    """Return the moment in UTC at which the clock shows a time; where it does so twice, `fold` says which.

    A time that the clock leaves out is the moment at which it is put forward.
    """
    moment = datetime.combine(day, wall.replace(fold=fold), zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None, fold=0) == datetime.combine(day, wall):
        return moment
    early, late = sorted(datetime.combine(day, wall.replace(fold=n), zone).astimezone(UTC) for n in (0, 1))
    before = early.astimezone(zone).utcoffset()
    while late - early > SECOND:
        middle = early + (late - early) / 2
        if middle.astimezone(zone).utcoffset() == before:
            early = middle
        else:
            late = middle
    return late.replace(microsecond=0)
