from __future__ import annotations

import pytest

from ragstone.agents.results import compress_text, pack_value

LONG = "Ropes are coiled. " * 40 + "The pump stops at 80 degrees. " + "Sails are furled. " * 40


def test_a_short_passage_stays_as_it_is() -> None:
    assert compress_text("Short. Text.", "pump", limit=12) == "Short. Text."


@pytest.mark.req("R-TOL-34", "R-REL-20")
def test_of_a_long_one_the_sentences_that_matter_stay_word_for_word() -> None:
    short = compress_text(LONG, "when does the pump stop", limit=80)
    assert short == "Ropes are coiled. Ropes are coiled. … The pump stops at 80 degrees. …"


def test_one_endless_sentence_is_cut() -> None:
    assert compress_text("word " * 1000, "word", limit=20) == "word word word word …"


@pytest.mark.parametrize("limit", [40, 100, 500])
def test_it_is_never_longer_than_allowed(limit: int) -> None:
    assert len(compress_text(LONG, "pump", limit)) <= limit + 2


def test_up_to_2000_characters_are_passed_on_whole() -> None:
    assert len(compress_text("a" * 2000, "pump")) == 2000
    assert compress_text("a" * 2001, "pump") == "a" * 2000 + " …"


def test_an_answer_that_is_no_list_of_passages_stays_as_it_is_in_a_message() -> None:
    assert pack_value({"error": {"code": "call_refused"}}) == {"error": {"code": "call_refused"}}
