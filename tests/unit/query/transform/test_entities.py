from __future__ import annotations

import pytest

from ragstone.query.transform.entities import other_names

ROLES = "Takaro uses Role Based Access Control (RBAC) everywhere. Each role has permissions."
CSMM = "Users of CSMM (Catalysm Server Monitor Manager) can move their data."
SARS = "The severe acute respiratory syndrome (SARS) spread in 2003."


@pytest.mark.req("R-QRY-10")
def test_an_acronym_is_spelt_out_as_the_kb_does() -> None:
    found = other_names("RBAC for players", [ROLES])
    assert found.words == ("Role Based Access Control",)
    assert found.meaning == ("Role Based Access Control for players",)


@pytest.mark.req("R-QRY-10")
def test_a_phrase_gets_the_acronym_the_kb_gives_it() -> None:
    found = other_names("role based access control for players", [ROLES])
    assert (found.words, found.meaning) == (("RBAC",), ())


def test_the_long_form_may_stand_in_the_brackets() -> None:
    assert other_names("moving from CSMM", [CSMM]).words == ("Catalysm Server Monitor Manager",)


def test_the_article_before_a_long_form_is_not_part_of_it() -> None:
    assert other_names("SARS outbreak", [SARS]).words == ("severe acute respiratory syndrome",)


def test_small_words_inside_a_long_form_have_no_letter() -> None:
    text = "The Department of Energy (DOE) and the rate of return (ROR)."
    assert other_names("DOE budget", [text]).words == ("Department of Energy",)
    assert other_names("ROR", [text]).words == ("rate of return",)


def test_the_long_form_given_most_often_comes_first() -> None:
    passages = ["Point Of Sale (POS)", "Part Of Speech (POS)", "the part of speech (POS) tag"]
    assert other_names("POS tagger", passages).words == ("Part Of Speech", "Point Of Sale")


@pytest.mark.req("R-QRY-10")
def test_a_name_is_given_as_fully_as_two_passages_give_it() -> None:
    passages = ["Here Arthur Dent lies.", "In front of Arthur Dent stood Ford Prefect.", "Ford drove on."]
    assert other_names("where does Dent lie", passages).words == ("Arthur Dent",)
    assert other_names("where is Ford", passages).words == ()


@pytest.mark.parametrize(
    ("query", "passages"),
    [
        ("RBAC", []),
        ("RBAC", ["RBAC is used (see below). Something else (ABC) entirely."]),
        ("players and roles", [ROLES]),
        ("Role Based Access Control (RBAC)", [ROLES]),
        ("it", ["Information Technology (IT)"]),
        ("FB page", ["This is the end of foo. Bar (FB) is next."]),
        ("FB page", [r"foo\1 bar (FB)"]),
    ],
)
def test_nothing_is_made_up(query: str, passages: list[str]) -> None:
    assert other_names(query, passages).words == ()


@pytest.mark.parametrize("piece", ["(AB) ", "A (", "Ab ", "A-B (a ", "word " * 9 + "(WW) ", "\x00\ud800"])
def test_hostile_passages_take_no_time(piece: str) -> None:
    assert len(other_names("AB Ab word", [piece * (400_000 // len(piece))] * 10).words) <= 4
