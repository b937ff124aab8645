from __future__ import annotations

from collections.abc import Callable

import pytest

from ragstone.answer.check import check_explicitly, find_near_sentences, find_objection, is_negated, is_opposed, numbers
from ragstone.core.types import Hit

SOURCE = "The pump stops at 80.0 degrees, but it does not stop the fan. Three of 1,200 pumps failed in 2024."


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("The pump stops at 80 degrees.", ""),
        ("Pumps stop when they reach 80 degrees.", ""),
        ("The fan is not stopped by the pump.", ""),
        ("3 of 1200 pumps failed.", ""),
        ("The pump stops at 90 degrees.", "its source does not give that number"),
        ("Four of the pumps failed.", "its source does not give that number"),
        ("The pump does not stop at 80 degrees.", "one says that this is so, the other that it is not"),
        ("It does stop the fan.", "one says that this is so, the other that it is not"),
        ("Marine biologists admire the pump because whales sing.", "the source does not say all of this"),
    ],
)
def test_support(sentence: str, reason: str) -> None:
    quotes = SOURCE.replace(" Three", "\nThree").split("\n")
    assert find_objection(sentence, quotes, SOURCE) == reason


def test_a_sentence_of_the_source_supports_itself_whatever_else_the_source_says(make_hit: Callable[..., Hit]) -> None:
    said = "Rose Velvet by Juniper Lane costs $38 and is in stock (24 left)."
    hit = make_hit(f"{said} Oriental Spice by Juniper Lane costs $42 and is in stock (18 left).")
    near = find_near_sentences(said, [hit], ())
    assert check_explicitly(said, [hit], near) == ""
    assert check_explicitly(said.replace("38", "42"), [hit], near)
    denied = make_hit("Nobody claims that the pump stops the fan.")
    part = "The pump stops the fan."
    assert check_explicitly(part, [denied], find_near_sentences(part, [denied], ()))


@pytest.mark.parametrize(
    ("sentence", "is_said"),
    [
        ("The Bilge Pump 4 has a warranty of 36 months.", True),
        ("The Bilge Pump 8 has a lead time of five weeks.", True),
        ("The Bilge Pump 4 costs £690.", True),
        ("The Bilge Pump 4 has a warranty of 36 days.", False),
        ("The Bilge Pump 8 has a lead time of 36 months.", False),
        ("The Bilge Pump 4 costs €690.", False),
        ("The Bilge Pump 4 costs £1140.", False),
        ("Product: Bilge Pump 4; Price (GBP): 690; Lead time (weeks): 3; Warranty (months): 36", True),
    ],
)
def test_a_figure_of_a_row_has_the_unit_of_its_column(
    make_hit: Callable[..., Hit], sentence: str, is_said: bool
) -> None:
    hit = make_hit(
        "| Product | Price (GBP) | Lead time (weeks) | Warranty (months) |\n|---|---|---|---|\n"
        "| Bilge Pump 4 | 690 | 3 | 36 |\n| Bilge Pump 8 | 1140 | 5 | 36 |"
    )
    assert (check_explicitly(sentence, [hit], find_near_sentences(sentence, [hit], ())) == "") is is_said


def test_the_opposite_is_not_supported() -> None:
    source = "Heat increases the pressure in the tank."
    assert find_objection("Heat increases tank pressure.", [source], source) == ""
    assert find_objection("Heat decreases tank pressure.", [source], source) == "its source says the opposite"


def test_both_sides_of_a_pair_are_no_opposite() -> None:
    assert is_opposed("Prices are higher.", "Prices are lower.")
    assert not is_opposed("Prices are higher.", "Prices are higher or lower.")
    assert not is_opposed("Prices changed.", "Prices are lower.")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,200.50 and -3 and 7%", {"1200.5", "-3", "7"}),
        ("one of two pumps", {"2"}),
        ("version v2 of B12", set()),
        ("on 2024-05-06", {"2024", "5", "6"}),
        ("80mg, .5, 007", {"80", "0.5", "7"}),
        ("", set()),
    ],
)
def test_numbers(text: str, found: set[str]) -> None:
    assert numbers(text) == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [("It stops.", False), ("It doesn’t stop.", True), ("It never fails.", False), ("No pump stops.", True)],
)
def test_negated(text: str, expected: bool) -> None:
    assert is_negated(text) is expected
