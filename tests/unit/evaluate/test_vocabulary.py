from __future__ import annotations

import pytest

from ragstone.evaluate.vocabulary import learnt_terms

USEFUL = {
    "laptop battery swollen": ["A notebook whose accumulator is bloated must not be charged."],
    "laptop screen broken": ["The notebook display is replaced under warranty."],
    "printer out of paper": ["Fill the tray of the printer with paper."],
    "opening hours": ["The office opens at nine."],
    "parking permit": ["Permits are given out at the gate."],
}


@pytest.mark.req("R-TOL-36")
def test_what_useful_passages_of_several_queries_say_instead() -> None:
    assert learnt_terms(USEFUL) == {"laptop": ["notebook"]}


def test_one_query_alone_teaches_nothing() -> None:
    assert learnt_terms({query: USEFUL[query] for query in list(USEFUL)[1:]}) == {}
    assert learnt_terms({}) == {}


def test_what_every_passage_says_means_nothing() -> None:
    everywhere = {query: [f"{texts[0]} Notebook."] for query, texts in USEFUL.items()}
    assert learnt_terms(everywhere) == {}
