from __future__ import annotations

import pytest

from ragstone.language.measurements import drops_bound, speaks_of_share
from ragstone.language.negation import (
    Denial,
    add_opposites,
    are_opposites,
    differ_in_denial,
    direction,
    find_denials,
    find_extent,
    has_denial_conflict,
    is_hedged,
    is_swapped,
    overreaches,
)


@pytest.mark.parametrize(
    ("claim", "source", "conflicts"),
    [
        ("The pump does not stop.", "The pump stops.", True),
        ("A boat sails on Tuesdays.", "No boat sails on Tuesdays.", True),
        ("The pump does not stop.", "The pump never stops.", False),
        ("The pump does not stop.", "The fan has no cover, and the pump cannot stop.", False),
        ("The fan has a cover.", "The pump lacks oil, the fan has a cover.", False),
        ("It never fails to open.", "It opens.", False),
        ("No loss was not seen.", "No loss was seen.", True),
        ("The master was on the bridge.", "The master wasn’t on the bridge.", True),
    ],
)
def test_denials_are_compared_by_what_they_deny(claim: str, source: str, conflicts: bool) -> None:
    assert has_denial_conflict(claim, source) is conflicts


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Prices are higher.", "Prices are lower.", True),
        ("Prices are higher.", "Prices are higher or lower.", False),
        ("The slip is open.", "The slip is closed.", True),
        ("It is stable.", "It is unstable.", True),
        ("It is stable.", "It is green.", False),
    ],
)
def test_opposites(one: str, other: str, expected: bool) -> None:
    assert are_opposites(one, other) is expected


def test_directions() -> None:
    assert [direction(text) for text in ("It raises x.", "It reduces x.", "It raises and reduces x.", "x")] == [
        1,
        -1,
        0,
        0,
    ]


def test_a_comparison_the_other_way_round() -> None:
    assert is_swapped("MV Eider is longer than MV Auk.", "MV Auk is longer than MV Eider.")
    assert not is_swapped("MV Eider is longer than MV Auk.", "MV Eider is much longer than MV Auk.")
    assert not is_swapped("MV Eider is longer than MV Auk.", "MV Auk is older than MV Eider.")


@pytest.mark.parametrize(
    ("claim", "source", "expected"),
    [
        ("All ferries carry cars.", "Some ferries carry cars.", True),
        ("All ferries carry cars.", "Ferries carry cars.", True),
        ("All ferries carry cars.", "Every ferry carries cars.", False),
        ("Some ferries carry cars.", "All ferries carry cars.", False),
        ("Most ferries carry cars.", "Some ferries carry cars.", True),
    ],
)
def test_all_is_more_than_some(claim: str, source: str, expected: bool) -> None:
    assert overreaches(claim, source) is expected


def test_hedges() -> None:
    assert is_hedged("It may rain.")
    assert not is_hedged("It rains.")


def test_a_denial_without_words_behind_it_denies_those_before() -> None:
    assert find_denials("The pump stops: never.") == (Denial(("stop", "pump")),)


def test_a_denied_figure_is_denied_in_any_unit() -> None:
    assert find_denials("It does not weigh 5 kg.") == (Denial(("weigh",)),)


def test_opposites_of_terms_are_added() -> None:
    assert add_opposites({"open", "boat"}) == {"open", "close", "boat"}


def test_extents_are_read() -> None:
    assert [find_extent(text) for text in ("No boat.", "Every boat.", "Most boats.", "Some boats.", "A boat.")] == [
        "none",
        "all",
        "most",
        "some",
        None,
    ]


def test_shares_and_bounds_of_a_sentence() -> None:
    assert speaks_of_share("A third of the boats sail.")
    assert not speaks_of_share("Three boats sail.")
    assert drops_bound("Boats pay.", "Boats over 12 m pay.")
    assert not drops_bound("Boats over 12 m pay.", "Boats over 12 m pay.")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("It is used.", "It is *not* used.", True),
        ("It is used.", "It is _not_ used.", True),
        ("It is used.", "It isn’t used.", True),
        ("It is used.", "It is no longer used.", True),
        ("It is not used.", "It is never used.", False),
        ("It leaves archives out.", "It does not read archives.", False),
        ("The default is no.", "The value is no by default.", False),
        ("The default is no.", "There is no default.", True),
    ],
)
def test_texts_of_which_one_denies_something_are_told_apart(one: str, other: str, expected: bool) -> None:
    assert differ_in_denial(one, other) is differ_in_denial(other, one) is expected


@pytest.mark.parametrize(
    ("one", "other"),
    [("It allows it.", "It denies it."), ("See the next line.", "See the previous line."), ("Keep it.", "Discard it.")],
)
def test_words_of_manuals_that_are_opposites(one: str, other: str) -> None:
    assert are_opposites(one, other)
