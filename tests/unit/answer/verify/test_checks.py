from __future__ import annotations

import pytest

from ragstone.answer.verify.checks import check, find_missing_names, find_names, is_numbered_otherwise
from ragstone.answer.verify.objections import Objection, ObjectionKind
from ragstone.answer.verify.split import split_claim


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The MV Tarrant sails to Sula.", ["MV", "Tarrant", "Sula"]),
        ("Sheep sail.", []),
        ("It lowers IL-6 and mTOR.", ["IL-6", "mTOR"]),
        ("All Words Are Capitals Here", []),
    ],
)
def test_names(text: str, found: list[str]) -> None:
    assert find_names(text) == found


def test_a_name_may_stand_in_the_heading() -> None:
    assert find_missing_names("The boat to Sula leaves.", "It leaves.") == ["Sula"]
    assert check("The boat to Sula leaves.", "The boat leaves.", "Sula").reasons == ()


@pytest.mark.parametrize(
    ("claim", "source", "failed"),
    [
        ("The fare is 5 crowns.", "The fare is 5.00 crowns.", ()),
        ("The fare is 6 crowns.", "The fare is 5.00 crowns.", ("it says another number",)),
        ("The fare is 6 crowns.", "The fare is high.", ("it does not give that number",)),
        ("It opened on 3 May 1974.", "It opened on 4 May 1974.", ("it says another date",)),
        ("The slip is open.", "The slip is closed.", ("it says the opposite",)),
        ("The slip is not open.", "The slip is open.", ("one says that this is so, the other that it is not",)),
        ("The slip is not open.", "The slip is closed.", ("the source says this in opposite words",)),
        ("The slip is open.", "The slip may be open.", ("it says only that it may be so",)),
        ("Tickets expire in May.", "Tickets may be changed; they expire in May.", ()),
        ("All slips are open.", "Some slips are open.", ("the source does not say this about all of them",)),
        ("The slip is open.", "The slip is open, but the quay is not open.", ()),
    ],
)
def test_checks_say_what_failed(claim: str, source: str, failed: tuple[str, ...]) -> None:
    assert check(claim, source).reasons == failed


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The lift carries 1500 kg.", "The lift does not carry 1.5 tonnes."),
        ("The lift does not carry 1500 kg.", "The lift carries 1.5 tonnes."),
        ("The train leaves at 5:30 pm.", "The train does not leave at 17:30."),
        ("The tunnel is 16.1 km long.", "The tunnel is not 10 miles long."),
    ],
)
def test_a_denial_is_one_in_any_unit(claim: str, source: str) -> None:
    assert check(claim, source).conflicts == (Objection(ObjectionKind.DENIED),)


def test_a_denial_of_something_else_is_none_in_any_unit() -> None:
    source = "The lift carries 1.5 tonnes and does not carry dogs."
    assert check("The lift carries 1500 kg.", source).reasons == ()


ROUND = "The captain checks the oil and the mate checks the ropes."


def test_what_another_does_is_not_said_of_the_first() -> None:
    assert Objection(ObjectionKind.OF_SOMETHING_ELSE) in check("The captain checks the ropes.", ROUND).voids
    assert check("The mate checks the ropes.", ROUND).reasons == ()
    both = "The captain checks the oil and checks the ropes."
    assert check("The captain checks the ropes.", both).reasons == ()


@pytest.mark.parametrize(
    ("claim", "parts"),
    [
        ("Salt and pepper are sold.", ["Salt and pepper are sold."]),
        ("The slip is open; the quay is shut.", ["The slip is open", "the quay is shut."]),
        ("The slip is open but the quay is shut.", ["The slip is open", "the quay is shut."]),
        ("The boat leaves at eight and arrives at nine.", ["The boat leaves at eight", "The boat arrives at nine."]),
        ("It is run not by the board but by the councils.", ["It is run not by the board but by the councils."]),
        ("a is b; c is d; e is f; g is h; i is j", ["a is b", "c is d", "e is f", "g is h; i is j"]),
        ("", [""]),
    ],
)
def test_a_compound_claim_is_split(claim: str, parts: list[str]) -> None:
    assert split_claim(claim) == parts


@pytest.mark.parametrize(
    "text", ["not " * 20_000, "a" * 100_000, "more than " * 10_000, "1-" * 50_000, "\x00\ud800" * 999]
)
def test_hostile_text_is_read_in_time_that_grows_with_its_length(text: str) -> None:
    assert check("The boat is longer than 5 m.", text[:2000]).reasons != ()


@pytest.mark.parametrize(
    ("claim", "sentence", "differs"),
    [
        ("Borealis 8 has a crane.", "Borealis 7 has a crane.", True),
        ("Borealis 8 has a crane.", "Borealis 7 and 8 have a crane.", False),
        ("Borealis 8 has a crane.", "Borealis 8.0 has a crane.", False),
        ("Borealis 8 has a crane.", "Borealis 7 or later has a crane.", False),
        ("It was sold in March 1990.", "It was sold in March 1989.", False),
    ],
)
def test_a_number_behind_a_name_tells_it_from_others(claim: str, sentence: str, differs: bool) -> None:
    assert is_numbered_otherwise(claim, sentence) is differs
