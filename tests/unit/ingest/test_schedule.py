from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.core.errors import SettingsError
from ragstone.ingest.jobs.schedule import next_run

MINUTE = timedelta(minutes=1)
NOON = datetime(2026, 3, 4, 12, 30, 15, 999, tzinfo=UTC)  # a Wednesday


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.req("R-ING-39")
@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("hourly", "2026-03-04T13:00"),
        ("daily", "2026-03-05T00:00"),
        ("weekly", "2026-03-09T00:00"),
        ("monthly", "2026-04-01T00:00"),
        ("30 12 * * *", "2026-03-05T12:30"),
        ("31 12 * * *", "2026-03-04T12:31"),
        ("*/20 * * * *", "2026-03-04T12:40"),
        ("5,10 9-17/4 * * *", "2026-03-04T13:05"),
        ("0 6 * * mon-fri", "2026-03-05T06:00"),
        ("0 6 * * SAT-SUN", "2026-03-07T06:00"),
        ("0 6 * * 7", "2026-03-08T06:00"),
        ("0 6 * * 0", "2026-03-08T06:00"),
        ("0 0 1 jan *", "2027-01-01T00:00"),
        ("0 0 31 * *", "2026-03-31T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("0 0 13 * fri", "2026-03-06T00:00"),
        ("0 0 5-31 * wed", "2026-03-05T00:00"),
        ("0 0 */2 * thu", "2026-03-05T00:00"),
        ("0 0 */2 * wed", "2026-03-11T00:00"),
    ],
)
def test_the_next_run_is_the_first_minute_that_fits(schedule: str, expected: str) -> None:
    assert next_run(schedule, NOON) == at(expected)


@pytest.mark.req("R-ING-39")
@pytest.mark.parametrize("schedule", ["manual", "on_demand", "as_needed"])
def test_what_runs_by_hand_never_runs_by_itself(schedule: str) -> None:
    assert next_run(schedule, NOON) is None


def test_the_29th_of_february_is_found_across_a_year_that_is_no_leap_year() -> None:
    assert next_run("0 0 29 2 *", at("2096-02-29T00:00")) == at("2104-02-29T00:00")


def test_a_day_that_comes_once_in_decades_is_found() -> None:
    assert next_run("0 0 */7 3 0", at("2027-01-01T00:00")) == at("2037-03-01T00:00")
    assert next_run("0 0 29 2 */7", at("2088-03-01T00:00")) == at("2128-02-29T00:00")


def test_times_are_utc_whatever_zone_is_asked_in() -> None:
    plus_five = timezone(timedelta(hours=5))
    assert next_run("daily", datetime(2026, 3, 4, 2, tzinfo=plus_five)) == at("2026-03-04T00:00")


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("60 * * * *", "the schedule's minute '60' is not between 0 and 59"),
        ("* 24 * * *", "the schedule's hour '24' is not between 0 and 23"),
        ("* * 0 * *", "the schedule's day of month '0' is not between 1 and 31"),
        ("* * * foo *", "the schedule's month 'foo' is neither a number nor a name"),
        ("* * * * 8", "the schedule's day of week '8' is not between 0 and 7"),
        ("* 5-3 * * *", "the schedule's hour '5-3' starts after it ends"),
        ("*/0 * * * *", "the schedule's minute '*/0' has a step that is not between 1 and 59"),
        ("*/60 * * * *", "the schedule's minute '*/60' has a step that is not between 1 and 59"),
        ("5/10 * * * *", "the schedule's minute '5/10' has a step but no range"),
        ("*-5 * * * *", "the schedule's minute '*-5' cannot be read"),
        (", * * * *", "the schedule's minute '' cannot be read"),
        ("-1 * * * *", "the schedule's minute '-1' cannot be read"),
        ("x * * * *", "the schedule's minute 'x' is not a number"),
        ("٣ * * * *", "the schedule's minute '٣' cannot be read"),
        ("1" * 600 + " * * * *", "the schedule's minute '11111111111111111111…' is too long"),
        ("* * * *", "the schedule '* * * *' is neither a known word nor five cron fields"),
        ("yearly", "the schedule 'yearly' is neither a known word nor five cron fields"),
        ("", "the schedule '' is neither a known word nor five cron fields"),
        ("0 0 30 feb *", "the schedule '0 0 30 feb *' never comes"),
        ("0 0 31 4,6,9,11 *", "the schedule '0 0 31 4,6,9,11 *' never comes"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_by_the_name_of_its_field(schedule: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        next_run(schedule, NOON)
    assert str(caught.value) == message
    assert caught.value.hint


def terms(first: int, last: int, whole: int = 0) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    """A field's text and the values it names, made side by side; a star goes up to `whole`."""
    number = st.integers(first, last)
    step = st.integers(1, last)
    single = number.map(lambda n: (f"{n}", {n}))
    span = st.tuples(number, number, step).map(
        lambda t: (f"{min(t[:2])}-{max(t[:2])}/{t[2]}", set(range(min(t[:2]), max(t[:2]) + 1, t[2])))
    )
    listed = st.lists(st.one_of(single, span), min_size=1, max_size=3).map(
        lambda parts: (",".join(text for text, _ in parts), frozenset().union(*(v for _, v in parts)))
    )
    every = st.one_of(st.just(1), step).map(
        lambda n: ("*" if n == 1 else f"*/{n}", frozenset(range(first, max(last, whole) + 1, n)))
    )
    return st.one_of(every, listed)


@settings(max_examples=60, deadline=None)
@given(
    fields=st.tuples(terms(0, 59), terms(0, 23), terms(1, 28, 31), terms(1, 12), terms(0, 6)),
    after=st.datetimes(datetime(2026, 1, 1), datetime(2029, 12, 31), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_the_next_run_agrees_with_trying_every_minute(
    fields: tuple[tuple[str, frozenset[int]], ...], after: datetime
) -> None:
    (minute, minutes), (hour, hours), (day, days), (month, months), (weekday, weekdays) = fields
    found = next_run(f"{minute} {hour} {day} {month} {weekday}", after)
    either = not day.startswith("*") and not weekday.startswith("*")

    def fits(moment: datetime) -> bool:
        in_month, in_week = moment.day in days, moment.isoweekday() % 7 in weekdays
        return (
            moment.minute in minutes
            and moment.hour in hours
            and moment.month in months
            and (in_month or in_week if either else in_month and in_week)
        )

    assert found is not None
    assert fits(found)
    moment = after.replace(second=0, microsecond=0) + MINUTE
    while moment < found:
        assert not fits(moment)
        # A day that fits in no minute is passed in one step: years of minutes are not needed to see it.
        whole_day = moment.hour == moment.minute == 0 and moment.date() < found.date()
        date_fits = any(
            fits(moment.replace(hour=h, minute=m)) for h in sorted(hours)[-1:] for m in sorted(minutes)[-1:]
        )
        moment += timedelta(days=1) if whole_day and not date_fits else MINUTE
