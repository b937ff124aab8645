from __future__ import annotations

import pytest

from ragstone.answer.verify.frame import lay_along
from ragstone.answer.verify.shares import Context, Shares, measure_shares


def measure(claim: str, sentence: str, entry: str = "", titles: str = "", said: str = "") -> Shares:
    frame = lay_along(said or claim, [sentence])
    return measure_shares(claim, said or claim, sentence, frame, Context(titles, entry))


@pytest.mark.parametrize(
    ("claim", "sentence", "verbatim"),
    [
        ("The pump stops at noon.", "The pump stops at noon.", True),
        ("The pump stops at noon.", "Note: the pump stops at noon, and the lamp goes on.", True),
        ("The pump stops at noon.", "The pump (a Borealis K7) stops at noon.", True),
        ("The pump stops at noon.", "The pump almost stops at noon.", False),
        ("The red pump stops at noon.", "The pump stops at noon.", False),
        ("Wax is 24 hours ahead of tar.", "Wax is 24 hours behind tar.", False),
    ],
)
def test_word_for_word_means_that_no_telling_word_is_put_in_or_left_out(
    claim: str, sentence: str, verbatim: bool
) -> None:
    assert measure(claim, sentence).is_verbatim is verbatim


def test_what_a_claim_is_about_may_stand_above_and_what_it_says_may_not() -> None:
    shares = measure("max_wait stops the pump.", "Stops the pump.", "max_wait")
    assert (shares.subject, shares.predicate, shares.own, shares.told) == (1, 1, 1, 1)
    shares = measure("max_wait stops the pump.", "Cools the pump.", "max_wait\nWhat stops")
    assert (shares.subject, shares.predicate) == (1, 0.5)


def test_options_that_differ_by_case_are_others() -> None:
    assert measure("The option -d deletes the log.", "Deletes the log.", "-d").names_all
    assert not measure("The option -d deletes the log.", "Deletes the log.", "-D").names_all


def test_a_noun_for_the_kind_of_a_name_need_not_be_told() -> None:
    assert measure("The option max_wait is slow.", "It is slow.", "max_wait").subject == 1
    assert measure("The brake max_wait is slow.", "It is slow.", "max_wait").subject == 0.5


def test_figures_count_in_any_unit() -> None:
    said = "It waits 120 seconds."
    assert measure("It waits 2 minutes.", "It waits 120 seconds.", said=said).counted == 2
    assert measure("It waits 5 minutes.", "It waits 120 seconds.").counted == 1


def test_words_of_titles_count_neither_for_nor_against_closeness() -> None:
    assert measure("The K7 pump waits.", "It waits.", titles="K7 pump").close == 1
    assert measure("The K7 pump waits.", "It stops.", titles="K7 pump").close == 0


def test_a_row_need_not_have_the_verb_of_a_claim() -> None:
    claim, row = "Django 2.2 runs on Python 3.5.", "Django: 2.2, Python: 3.5"
    assert measure_shares(claim, claim, row, None, Context(), is_row=True).told == 1
    assert measure_shares(claim, claim, row, None, Context()).told < 1


def test_an_entry_need_not_say_of_what_kind_its_term_is() -> None:
    assert measure("The brake notice FLAT_TYRE means that a tyre is flat.", "FLAT_TYRE: A tyre is flat.").told == 1
    assert measure("The brake notice FLAT_TYRE means that a tyre is worn.", "FLAT_TYRE: A tyre is flat.").told < 1
