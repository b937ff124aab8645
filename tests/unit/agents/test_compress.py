from __future__ import annotations

import pytest

from ragstone.agents.results import compress_text

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
