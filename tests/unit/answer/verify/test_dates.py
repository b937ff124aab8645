"""Days of the week, months and times of day: what fits, what excludes what, and what leaves it open."""

from __future__ import annotations

import pytest

from ragstone.answer.verify.checks import check, names
from ragstone.answer.verify.dates import Moment, compare_moment, moments

MONDAY, WORKDAYS, SUMMER = frozenset({0}), frozenset(range(5)), frozenset({6, 7, 8})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("on Monday", [Moment(weekdays=MONDAY)]),
        ("on mondays", [Moment(weekdays=MONDAY)]),
        ("Mon.", [Moment(weekdays=MONDAY)]),
        ("on Mondays and Sundays", [Moment(weekdays=MONDAY), Moment(weekdays=frozenset({6}))]),
        ("Monday to Friday", [Moment(weekdays=WORKDAYS)]),
        ("Mon–Fri", [Moment(weekdays=WORKDAYS)]),
        ("between Monday and Friday", [Moment(weekdays=WORKDAYS)]),
        ("on weekdays", [Moment(weekdays=WORKDAYS)]),
        ("Saturday to Monday", [Moment(weekdays=frozenset({5, 6, 0}))]),
        ("at the weekend", [Moment(weekdays=frozenset({5, 6}))]),
        ("every day except Sundays", [Moment(weekdays=frozenset(range(6)))]),
        ("in June", [Moment(months=frozenset({6}))]),
        ("in May", [Moment(months=frozenset({5}))]),
        ("from June to August", [Moment(months=SUMMER)]),
        ("between June and August", [Moment(months=SUMMER)]),
        ("November to January", [Moment(months=frozenset({11, 12, 1}))]),
        ("at noon", [Moment(minute=720)]),
        ("at midnight", [Moment(minute=0)]),
        ("The sun sat on the march; you may wed", []),
    ],
)
def test_days_and_months_are_read(text: str, found: list[Moment]) -> None:
    assert moments(text) == found


@pytest.mark.parametrize(
    ("claim", "source", "outcome"),
    [
        ("on Monday", "on Monday in the hall", "same"),
        ("on Tuesday", "on Monday in the hall", "differs"),
        ("on Tuesday", "Monday to Friday", "same"),
        ("on Sunday", "Monday to Friday", "differs"),
        ("Monday to Friday", "on Monday", "absent"),
        ("on Tuesday", "every day", "same"),
        ("on Tuesday", "every day except Tuesday", "differs"),
        ("on Tuesday", "in the hall", "absent"),
        ("in July", "in June", "differs"),
        ("in July", "from June to August", "same"),
        ("in July", "on 4 July 2024", "same"),
        ("in July", "on 4 June 2024", "differs"),
        ("at 17:00", "at 9:00", "differs"),
        ("at 5 pm", "at 17:00", "same"),
        ("at 12:00", "at noon", "same"),
        ("at 12:00", "from 9:00 to 17:00", "absent"),
        ("in 1992", "from 1990 to 1995", "absent"),
        ("in 1999", "from 1990 to 1995", "differs"),
    ],
)
def test_times_are_compared(claim: str, source: str, outcome: str) -> None:
    (claimed,) = moments(claim)
    assert compare_moment(claimed, source) == outcome


def test_a_day_is_no_name() -> None:
    assert names("The council of Sula meets on Monday in June.") == ["Sula"]


def test_another_day_of_the_opposite_is_no_conflict() -> None:
    found = check("The slip is open on Mondays.", "The slip is closed on Sundays.")
    assert (found.conflicts, found.voids) == ((), ("it does not say it of that time",))
    assert check("The slip is open on Mondays.", "The slip is open on Sundays.").conflicts == (
        "it says another date",
    )


@pytest.mark.parametrize("text", ["Monday to " * 200, "in May " * 200, "between " * 250, "Mon-" * 400])
def test_many_dates_are_read_in_time_that_grows_with_their_length(text: str) -> None:
    assert len(moments(text)) <= 400
