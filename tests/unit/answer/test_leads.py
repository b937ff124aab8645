from __future__ import annotations

from collections.abc import Callable

import pytest

from ragstone.answer.extract import Extractor, add_leads, find_candidates, read_in_context
from ragstone.answer.quotes import Quote
from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit

MakeHit = Callable[..., Hit]
FIRST = "The booking call holds places for fifteen minutes."
LEANING = "After that they are released unless the booking has been paid."


def quotes_of(*hits: Hit) -> list[Quote]:
    return find_candidates(hits, addresses=True)


def led(chosen: list[Quote], quotes: list[Quote], max_sentences: int = 4) -> list[str]:
    return [quote.text for quote in add_leads(chosen, quotes, max_sentences)]


@pytest.mark.parametrize(
    "leaning",
    [
        LEANING,
        "They are released unless the booking has been paid.",
        "It is paid by card or in cash.",
        "This keeps the places free for others.",
        "Otherwise the places are given to others.",
        "Because of this the places are free again.",
        "Both are printed on the ticket you get.",
    ],
)
@pytest.mark.parametrize("gap", [" ", "\n", "  \n"])
def test_a_sentence_that_leans_on_the_one_before_brings_it_along(make_hit: MakeHit, leaning: str, gap: str) -> None:
    quotes = quotes_of(make_hit(f"{FIRST}{gap}{leaning}"))
    assert led([quotes[1]], quotes) == [leaning, FIRST]


@pytest.mark.parametrize(
    "independent",
    [
        "Places are released unless the booking has been paid.",
        "Italian visitors pay in the same way.",
        "After nine o'clock the office is closed.",
        "Thousands of places are released every day.",
    ],
)
def test_a_sentence_that_stands_by_itself_brings_nothing(make_hit: MakeHit, independent: str) -> None:
    quotes = quotes_of(make_hit(f"{FIRST} {independent}"))
    assert led([quotes[1]], quotes) == [independent]


def test_the_first_sentence_has_none_before_it(make_hit: MakeHit) -> None:
    quotes = quotes_of(make_hit(f"{LEANING} {FIRST}"))
    assert led([quotes[0]], quotes) == [LEANING]


def test_a_lead_that_is_said_anyway_is_said_once(make_hit: MakeHit) -> None:
    quotes = quotes_of(make_hit(f"{FIRST} {LEANING}"))
    assert led([quotes[1], quotes[0]], quotes) == [LEANING, FIRST]


def test_there_are_never_more_than_max_sentences(make_hit: MakeHit) -> None:
    quotes = quotes_of(make_hit(f"{FIRST} {LEANING}"), make_hit("Dogs travel for two crowns.", "dogs"))
    assert led([quotes[1], quotes[2]], quotes, max_sentences=2) == [LEANING, "Dogs travel for two crowns."]
    assert led([quotes[1]], quotes, max_sentences=1) == [LEANING]


@pytest.mark.parametrize("gap", ["\n\n\n\n", "\n\n## Payment of places\n\n", "\n\n| a | b | c | d |\n\n"])
def test_a_lead_does_not_come_from_another_paragraph(make_hit: MakeHit, gap: str) -> None:
    quotes = quotes_of(make_hit(f"{FIRST}{gap}{LEANING}"))
    assert led([quotes[1]], quotes) == [LEANING]


def test_a_blank_line_keeps_a_lead_away(make_hit: MakeHit) -> None:
    quotes = quotes_of(make_hit(f"{FIRST}\n\n{LEANING}"))
    assert led([quotes[1]], quotes) == [LEANING]


def test_a_lead_does_not_come_from_another_hit(make_hit: MakeHit) -> None:
    quotes = quotes_of(make_hit(FIRST), make_hit(LEANING, start=len(FIRST) + 1))
    assert led([quotes[1]], quotes) == [LEANING]


def test_a_sentence_left_out_between_the_two_keeps_them_apart(make_hit: MakeHit) -> None:
    quotes = quotes_of(make_hit(f"{FIRST} Is that fair? {LEANING}"))
    assert [quote.text for quote in quotes] == [FIRST, LEANING]
    assert led([quotes[1]], quotes) == [LEANING]


async def test_an_answer_tells_the_lead_first(make_hit: MakeHit, embedder: Embedder) -> None:
    question = "Are places released unless the booking has been paid?"
    extraction = await Extractor(embedder).extract(question, [make_hit(f"{FIRST} {LEANING}")], max_sentences=4)
    assert [statement.text for statement in extraction.statements] == [FIRST, LEANING]
    for statement in extraction.statements:
        assert statement.text == statement.quotes[0].text


@pytest.mark.parametrize(
    "facts",
    [
        {"title": "Where the small boat leaves"},
        {"section": "Where the small boat leaves"},
        {"section": "Timetable > Where the small boat leaves"},
        {"section": "Where the small boat leaves > In winter"},
    ],
)
def test_a_heading_without_marks_is_not_quoted(make_hit: MakeHit, facts: dict[str, str]) -> None:
    hit = make_hit("Where the small boat leaves\n\nThe small boat leaves from the east pier.", **facts)
    assert [quote.text for quote in quotes_of(hit)] == ["The small boat leaves from the east pier."]


def test_a_sentence_that_only_contains_the_title_is_quoted(make_hit: MakeHit) -> None:
    hit = make_hit("The small boat leaves from the east pier.", title="The small boat", section="")
    assert [quote.text for quote in quotes_of(hit)] == ["The small boat leaves from the east pier."]


@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("Who owns the Eider?", ["", "The Eider sails to Sula. ", ""]),
        ("How many seats does the Eider have?", ["", "", "The Eider sails to Sula. "]),
        ("Where does the Eider sail?", ["", "", ""]),
    ],
)
def test_a_sentence_is_read_with_the_one_it_leans_on_where_it_adds_what_is_asked(
    make_hit: MakeHit, question: str, read: list[str]
) -> None:
    quotes = quotes_of(make_hit("The Eider sails to Sula. It is owned by the island. It has ninety seats."))
    assert read_in_context(question, quotes) == [
        before + quote.text for before, quote in zip(read, quotes, strict=True)
    ]


def test_a_sentence_of_another_paragraph_is_read_by_itself(make_hit: MakeHit) -> None:
    quotes = quotes_of(make_hit("The Eider sails to Sula.\n\nIt is owned by the island."))
    assert read_in_context("Who owns the Eider?", quotes) == [quote.text for quote in quotes]
    assert read_in_context("Who owns the Eider?", []) == []
