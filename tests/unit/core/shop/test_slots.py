"""Slots of a service: by its windows, around what is booked, and right when the clock is changed."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.core.errors import InputError
from ragstone.core.shop import Service, Window
from ragstone.core.shop.slots import MOST_DAYS, keep_free, list_slots, slot_at
from ragstone.core.shop.windows import parse_windows

BERLIN = ZoneInfo("Europe/Berlin")
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def make(windows: str, minutes: int = 60, timezone: str = "Europe/Berlin") -> Service:
    return Service("massage", "Massage", minutes=minutes, windows=parse_windows(windows), timezone=timezone)


def starts(service: Service, day: date, last: date | None = None) -> list[str]:
    return [f"{slot.starts_at:%d %H:%M %z}" for slot in list_slots(service, day, last or day)]


def test_slots_fill_the_windows_of_their_weekday() -> None:
    service = make("mon 09:00-12:00, 13:00-14:30; tue 10:00-11:00")
    assert starts(service, date(2026, 6, 1)) == ["01 09:00 +0200", "01 10:00 +0200", "01 11:00 +0200", "01 13:00 +0200"]
    assert starts(service, date(2026, 6, 2)) == ["02 10:00 +0200"]
    assert starts(service, date(2026, 6, 3)) == []


@pytest.mark.req("R-CSA-08")
def test_what_is_booked_is_not_free_and_neither_is_what_has_begun() -> None:
    slots = list_slots(make("mon 09:00-12:00"), date(2026, 6, 1), date(2026, 6, 1))
    nine, ten, eleven = (slot.starts_at for slot in slots)
    taken = [(ten + timedelta(minutes=30), ten + timedelta(minutes=45))]
    assert [slot.starts_at for slot in keep_free(slots, taken, LONG_AGO)] == [nine, eleven]
    assert [slot.starts_at for slot in keep_free(slots, [(nine, ten)], LONG_AGO)] == [ten, eleven]
    assert [slot.starts_at for slot in keep_free(slots, [], ten)] == [eleven]


def test_when_the_clock_is_put_forward_a_window_over_that_hour_is_shorter() -> None:
    night = make("sun 00:00-06:00")
    assert starts(night, date(2026, 3, 29)) == [
        *("29 00:00 +0100", "29 01:00 +0100", "29 03:00 +0200", "29 04:00 +0200", "29 05:00 +0200")
    ]
    assert starts(make("sun 02:30-05:00"), date(2026, 3, 29)) == ["29 03:00 +0200", "29 04:00 +0200"]
    assert starts(make("sun 00:30-02:30", 30), date(2026, 3, 29)) == [
        "29 00:30 +0100",
        "29 01:00 +0100",
        "29 01:30 +0100",
    ]


def test_when_the_clock_is_put_back_the_hour_that_comes_twice_has_two_slots() -> None:
    night = make("sun 01:00-04:00")
    found = list_slots(night, date(2026, 10, 25), date(2026, 10, 25))
    assert [f"{slot.starts_at:%H:%M %z}" for slot in found] == [
        *("01:00 +0200", "02:00 +0200", "02:00 +0100", "03:00 +0100")
    ]
    assert {slot.ends_at.astimezone(UTC) - slot.starts_at.astimezone(UTC) for slot in found} == {timedelta(hours=1)}
    second = found[2]
    assert slot_at(night, second.starts_at.astimezone(UTC)) == second
    left = keep_free(found, [(second.starts_at, second.ends_at)], LONG_AGO)
    assert [f"{slot.starts_at:%H:%M %z}" for slot in left] == ["01:00 +0200", "02:00 +0200", "03:00 +0100"]


@pytest.mark.parametrize("day", [date(2026, 3, 28), date(2026, 3, 30), date(2026, 10, 24), date(2026, 10, 26)])
def test_shop_hours_are_those_of_the_wall_on_both_sides_of_a_change(day: date) -> None:
    slots = list_slots(make("mon-sun 09:00-11:00"), day, day)
    assert [slot.starts_at.time() for slot in slots] == [time(9), time(10)]


def test_a_window_may_be_open_over_midnight() -> None:
    service = make("sat 22:00-01:00")
    assert starts(service, date(2026, 6, 6)) == ["06 22:00 +0200", "06 23:00 +0200", "07 00:00 +0200"]
    after_midnight = datetime(2026, 6, 7, 0, 0, tzinfo=BERLIN)
    found = slot_at(service, after_midnight)
    assert found is not None
    assert found.ends_at == datetime(2026, 6, 7, 1, 0, tzinfo=BERLIN)
    assert slot_at(service, after_midnight + timedelta(minutes=10)) is None


@pytest.mark.parametrize(
    ("first", "days"), [(date(2026, 6, 1), -1), (date(2026, 6, 1), MOST_DAYS), (date(9999, 12, 31), 0)]
)
def test_days_that_cannot_be_looked_at_are_refused(first: date, days: int) -> None:
    with pytest.raises(InputError):
        list_slots(make("mon 09:00-12:00"), first, first + timedelta(days=days))


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "../../etc/passwd", "/etc/passwd", "Europe", "", "\0", "x" * 5000])
def test_a_zone_that_there_is_not_is_refused(zone: str) -> None:
    with pytest.raises(InputError, match="no time zone"):
        list_slots(make("mon 09:00-12:00", timezone=zone), date(2026, 6, 1), date(2026, 6, 1))


ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu", "UTC"]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    zone=st.sampled_from(ZONES),
    day=st.dates(date(2025, 1, 1), date(2027, 12, 31)),
    opens=st.times(),
    closes=st.times(),
    minutes=st.integers(5, 240),
)
def test_slots_never_meet_and_each_can_be_booked(zone: str, day: date, opens: time, closes: time, minutes: int) -> None:
    hours = [moment.replace(second=0, microsecond=0) for moment in (opens, closes)]
    windows = tuple(Window(weekday, *hours) for weekday in ((day.weekday() + n) % 7 for n in range(2)))
    service = Service("s", "S", minutes=minutes, windows=windows, timezone=zone)
    slots = list_slots(service, day, day)
    spans = [(slot.starts_at.astimezone(UTC), slot.ends_at.astimezone(UTC)) for slot in slots]
    assert all(end - start == timedelta(minutes=minutes) for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    for slot in (*slots[:2], *slots[-2:]):
        assert slot_at(service, slot.starts_at) == slot
        assert slot not in keep_free(slots, [(slot.starts_at, slot.ends_at)], LONG_AGO)
