"""Dates of a claim beside those of a sentence."""

from __future__ import annotations

import pytest

from ragstone.answer.verify.checks import check, find_names
from ragstone.answer.verify.objections import Objection, ObjectionKind
from ragstone.language.dates import MOST, find_moments


def test_a_day_is_no_name() -> None:
    assert find_names("The council of Sula meets on Monday in June.") == ["Sula"]


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The slip is open on Mondays.", "The slip is closed on Sundays."),
        ("The slip is open on Mondays.", "The slip is open on Sundays."),
        ("The shop closes at 2 pm on Saturdays.", "The shop is closed on Sundays."),
    ],
)
def test_habits_of_other_days_neither_refute_nor_support(claim: str, source: str) -> None:
    found = check(claim, source, passage=f"{source} {claim}")
    assert found.conflicts == ()
    assert Objection(ObjectionKind.OTHER_TIME) in found.voids


def test_another_day_is_a_conflict_unless_it_is_the_opposite() -> None:
    found = check("The slip is open on Monday.", "The slip is closed on Sunday.")
    assert (found.conflicts, found.voids) == ((), (Objection(ObjectionKind.OTHER_TIME),))
    assert check("The slip is open on Monday.", "The slip is open on Sunday.").conflicts == (
        Objection(ObjectionKind.OTHER_DATE),
    )


def test_dates_beyond_those_that_are_read_state_nothing() -> None:
    assert len(find_moments("May 5 " * 300)) == MOST
    claim = "The boat sails on " + ", ".join(f"{day} May" for day in [*range(1, 31)] * 3)
    assert Objection(ObjectionKind.TOO_MANY_DATES) in check(claim, claim).voids
