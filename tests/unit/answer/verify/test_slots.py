from __future__ import annotations

import pytest

from ragstone.answer.verify.frame import lay_along
from ragstone.answer.verify.objections import Rival
from ragstone.answer.verify.slots import find_opposed, find_other_figure, find_rival


@pytest.mark.parametrize(
    ("claim", "sentence", "rival"),
    [
        (
            "The mill was led by Professor Ada Brink.",
            "The mill, led by Professor Tom Vass, burnt down.",
            Rival("Ada Brink", "Tom Vass"),
        ),
        ("The fair took place in Molde.", "The fair took place in Bergen in 1900.", Rival("Molde", "Bergen")),
        (
            "It was written at the University of Oslo.",
            "It was written at the University of Lund.",
            Rival("Oslo", "Lund"),
        ),
        ("Acme was merged into Borealis.", "Borealis (later merged into Acme) sold it.", Rival("Borealis", "Acme")),
    ],
)
def test_another_name_behind_the_same_words_is_a_rival(claim: str, sentence: str, rival: Rival) -> None:
    assert find_rival(claim, sentence, "", verbatim=False) == rival


def test_a_plain_word_has_a_rival_only_in_the_same_sentence() -> None:
    claim, sentence = "By default, the pump stores logs in files.", "By default, the pump stores logs in your database."
    assert find_rival(claim, sentence, "", verbatim=True) == Rival("files", "database")
    assert find_rival(claim, sentence, "", verbatim=False) is None


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("The code was contributed by Acme.", "Acme contributed code written by Anna Berg."),
        ("The boat was built in Molde.", "The boat was built in Molde and sold in Bergen."),
        ("The boat was sold in Molde.", "The boat was built in Bergen."),
        ("The red boat with two masts and a cabin was built in Molde.", "It was built in Bergen."),
    ],
)
def test_what_is_said_of_something_else_is_no_rival(claim: str, sentence: str) -> None:
    assert find_rival(claim, sentence, "", verbatim=False) is None


def test_a_word_that_only_moved_is_no_rival() -> None:
    sentence = "Rows are skipped before starting to count the boats."
    assert find_rival("Rows are skipped before the boats are counted.", sentence, "", verbatim=True) is None


def test_the_clause_about_the_subject_decides() -> None:
    sentence = "Red tags are meant for release while blue tags are meant for private or temporary labels."
    assert find_rival("Red tags are meant for private use.", sentence, "", verbatim=True) == Rival("private", "release")
    assert find_rival("Blue tags are meant for private use.", sentence, "", verbatim=True) is None


@pytest.mark.parametrize(
    ("claim", "sentence", "rival"),
    [
        ("The daemon listens on port 9148.", "A daemon that listens on port aka 9418.", Rival("9148", "9418")),
        ("The lid is 3 cm wide.", "The lid is 5 cm wide and weighs 2 kg.", None),
        ("The lid is 3 cm wide.", "The lid is 5 cm wide.", Rival("3 cm", "5 cm")),
        ("The lid is 3 cm wide.", "The lid weighs 2 kg.", None),
        ("The lid is at most 3 cm wide.", "The lid is 5 cm wide.", None),
        ("It opened in 1990.", "It opened in 1991.", None),
    ],
)
def test_the_one_figure_in_which_both_differ_is_a_rival(claim: str, sentence: str, rival: Rival | None) -> None:
    assert find_other_figure(claim, sentence) == rival


@pytest.mark.parametrize(
    ("claim", "sentence", "rival"),
    [
        ("Raising it decreases the time.", "Raising it increases the time.", Rival("decreases", "increases")),
        ("All pumps leak in winter.", "Some pumps leak in winter.", Rival("All", "Some")),
        ("Red pumps leak in winter.", "Blue pumps leak in winter.", None),
        ("Pumps leak in winter.", "Pumps leak in winter.", None),
    ],
)
def test_the_opposite_in_the_same_place_is_a_rival(claim: str, sentence: str, rival: Rival | None) -> None:
    frame = lay_along(claim, [sentence])
    assert frame is not None
    assert find_opposed(frame) == rival
