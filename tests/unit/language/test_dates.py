"""Days of the week, months and times of day: what fits, what excludes what, and what leaves it open."""

from __future__ import annotations

import pytest

from ragstone.language.dates import Moment, compare_moment, find_moments, is_on_other_days, is_timed_otherwise

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
        ("at 9:00 UTC", [Moment(minute=540, zone="UTC")]),
        ("at 9:00 GMT", [Moment(minute=540, zone="UTC")]),
        ("at quarter to nine", [Moment(minute=525, either=1245)]),
        ("at a quarter past nine", [Moment(minute=555, either=1275)]),
        ("half past 12", [Moment(minute=30, either=750)]),
        ("at ten to one", [Moment(minute=50, either=770)]),
        ("from ten to twelve boats", []),
        ("every day except Saturday and Sunday", [Moment(weekdays=WORKDAYS)] * 2),
        ("daily, Mondays excepted", [Moment(weekdays=frozenset(range(1, 7)))]),
        ("The sun sat on the march; you may wed", []),
    ],
)
def test_days_and_months_are_read(text: str, found: list[Moment]) -> None:
    assert find_moments(text) == found


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
        ("on Sunday", "every day except Saturday and Sunday", "differs"),
        ("on Wednesday", "Monday to Friday except Wednesday", "differs"),
        ("on Saturdays", "on Sundays", "absent"),
        ("on Saturday", "on Sunday", "differs"),
        ("at 9:00 CET", "at 9:00 UTC", "differs"),
        ("at 10:00 CET", "at 9:00 UTC", "absent"),
        ("at 9:00 CET", "at 9:00", "absent"),
        ("at 9:00", "at 9:00 CET", "same"),
        ("at quarter past nine", "at quarter to nine", "differs"),
        ("at quarter to nine", "at quarter to nine", "same"),
        ("at 20:45", "at quarter to nine", "absent"),
        ("in 1992", "from 1990 to 1995", "absent"),
        ("in 1999", "from 1990 to 1995", "differs"),
    ],
)
def test_times_are_compared(claim: str, source: str, outcome: str) -> None:
    (claimed,) = find_moments(claim)
    assert compare_moment(claimed, source) == outcome


def test_the_same_date_again_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Moment] = []
    fits = Moment.fits

    def counted(self: Moment, other: Moment) -> bool:
        calls.append(self)
        return fits(self, other)

    monkeypatch.setattr(Moment, "fits", counted)
    assert is_timed_otherwise("May 5 " * 330, "May 5 " * 160) is False
    assert len(calls) == 1


@pytest.mark.parametrize("text", ["Monday to " * 200, "in May " * 200, "between " * 250, "Mon-" * 400])
def test_many_dates_are_read_in_time_that_grows_with_their_length(text: str) -> None:
    assert len(find_moments(text)) <= 400


@pytest.mark.parametrize(
    ("claim", "source", "otherwise"),
    [
        ("It sails before 6 May.", "It sails after 6 May.", True),
        ("It sails before 6 May.", "It sails until 6 May.", False),
        ("6 May is the day.", "It sails since 6 May.", True),
        ("It sails before 6 May.", "It sails in June.", False),
    ],
)
def test_before_is_not_after(claim: str, source: str, otherwise: bool) -> None:
    assert is_timed_otherwise(claim, source) is otherwise


def test_habits_of_other_days_exclude_nothing() -> None:
    assert is_on_other_days("open on Mondays", "open on Sundays")
    assert not is_on_other_days("open on Mondays", "open on Mondays and Sundays")
    assert not is_on_other_days("open on Mondays", "open in June")


def test_times_meet_where_nothing_they_tell_differs() -> None:
    assert Moment(2024, 5).meets(Moment(2024, 5, 6))
    assert not Moment(2024, 5).meets(Moment(2024, 6))
    assert not Moment(2024).meets(Moment(minute=5))
