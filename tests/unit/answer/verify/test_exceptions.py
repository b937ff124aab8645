"""What a sentence excepts is not said of the exception, and what it says of the others is not said of all."""

from __future__ import annotations

import pytest

from ragstone.answer.check import find_objection
from ragstone.answer.verify.checks import check
from ragstone.answer.verify.objections import Objection, ObjectionKind

ROOMS = "All rooms except Room 4 have heating."
WEEK = "The shop is open Monday to Friday except Wednesday."
DAILY = "The shop is open daily but closed on Mondays."
DENIED = [
    (ROOMS, "Room 4 has heating."),
    (WEEK, "The shop is open on Wednesday."),
    (WEEK, "The shop is open on Wed."),
    ("The shop is open every day except Saturday and Sunday.", "The shop is open on Sunday."),
    ("The shop is open every day except Friday, Saturday and Sunday.", "The shop is open on Sunday."),
    ("The shop is open daily, Mondays excepted.", "The shop is open on Mondays."),
    ("The shop is open all year except on 25 December.", "The shop is open on 25 December."),
    (DAILY, "The shop is open on Mondays."),
    ("Everyone but Anna passed.", "Anna passed."),
    ("Except Anna, everyone passed.", "Anna passed."),
    ("All except Anna, Paul and Mia passed.", "Mia passed."),
    ("All staff save the porter have keys.", "The porter has keys."),
    ("All guests with the exception of Mr Hale paid.", "Mr Hale paid."),
]
LEFT_OUT = [
    ("All islands besides Sula have a school.", "Sula has a school."),
    ("The club chose Anna instead of Paul.", "The club chose Paul."),
    ("The ferry uses diesel rather than gas.", "The ferry uses gas."),
    ("All guests with the exception of Mr Hale paid.", "Hale paid."),
    (ROOMS, "All rooms have heating."),
    (ROOMS, "Room 4 has no heating."),
    ("No room except Room 4 has heating.", "Room 4 has heating."),
    (WEEK, "The shop is closed on Wednesday."),
]
SAID = [
    (ROOMS, ROOMS),
    (WEEK, "The shop is open on Tuesday."),
    (DAILY, "The shop is closed on Mondays."),
    ("The club chose Anna instead of Paul.", "The club chose Anna."),
    ("The ferry uses diesel rather than gas.", "The ferry uses diesel."),
    ("Besides Anna, Paul passed.", "Paul passed."),
    ("All pumps stop but the fan runs.", "The fan runs."),
    ("The shop is open every day except Sunday and the cafe is open on Mondays.", "The cafe is open on Mondays."),
]


@pytest.mark.parametrize(("source", "claim"), DENIED)
def test_what_is_said_of_the_others_is_denied_of_an_exception(source: str, claim: str) -> None:
    assert Objection(ObjectionKind.EXCEPTION_DENIED) in check(claim, source, passage=source).conflicts
    assert find_objection(claim, [source], source)


@pytest.mark.parametrize(("source", "claim"), LEFT_OUT)
def test_an_exception_never_supports_and_refutes_only_what_is_plain(source: str, claim: str) -> None:
    found = check(claim, source, passage=source)
    assert found.conflicts == ()
    assert Objection(ObjectionKind.LEFT_OUT) in found.voids
    assert find_objection(claim, [source], source)


@pytest.mark.parametrize(("source", "claim"), SAID)
def test_what_is_said_beside_an_exception_stands(source: str, claim: str) -> None:
    assert check(claim, source, passage=source).reasons == ()
    assert find_objection(claim, [source], source) == ""


@pytest.mark.parametrize("text", ["except " * 280, "all but " * 250, "a, " * 600 + "excepted", "besides a and " * 140])
def test_many_exceptions_are_read_in_time_that_grows_with_their_length(text: str) -> None:
    assert not check("The lift stops.", text).turned
