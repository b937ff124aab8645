"""Rows of tables as answers: quoted as they stand, said with the names of their columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.answer.receipts import FACTS, checked, forged, live

from ragstone.answer.ask import Answerer, Judge
from ragstone.answer.contradict import find_contradictions
from ragstone.answer.extract import Extractor, find_candidates
from ragstone.answer.features import describe_units
from ragstone.answer.pack import pack
from ragstone.answer.quotes import Statement, render_row, rows, select_for_question, select_words
from ragstone.answer.receipts.check import LiveDocument
from ragstone.answer.receipts.make import make_receipt
from ragstone.answer.units import find_units
from ragstone.core.answers import Answer
from ragstone.core.model_types import WordTokenizer
from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit, TableHead
from ragstone.language.analyzer import analyze_query
from ragstone.testing.fakes import FakeLLM

MakeHit = Callable[..., Hit]

HEAD = "| Region | Revenue Q2 | Revenue Q3 | Employees |"
RULE = "| --- | --- | --- | --- |"
NORTH = "| North | 3.9 million | 4.2 million | 120 |"
SOUTH = "| South | 2.1 million | 2.4 million | 80 |"
WEST = "| West | 5.5 million | 5.8 million | 210 |"
TABLE = "\n".join(("Results of the regions", "", HEAD, RULE, NORTH, SOUTH, WEST))
Q3 = "What was the revenue of North in Q3?"


def said_for(question: str, *hits: Hit) -> list[str]:
    """The candidates that are left for a question."""
    terms = frozenset(analyze_query(question))
    return [quote.text for quote in select_for_question(find_candidates(hits, addresses=True), question, terms)]


async def answered(embedder: Embedder, question: str, *hits: Hit) -> Answer:
    return await Answerer(embedder).answer(question, hits)


async def test_a_row_answers_with_the_names_of_its_columns(embedder: Embedder, make_hit: MakeHit) -> None:
    answer = await answered(embedder, Q3, make_hit(TABLE, start=50))
    assert answer.answer == ("Region: North; Revenue Q2: 3.9 million; Revenue Q3: 4.2 million; Employees: 120 [1][2]")
    (sentence,) = answer.sentences
    assert (sentence.text, sentence.support, sentence.citations) == (NORTH, "quoted", (1, 2))
    assert [cited.quote for cited in answer.citations] == [NORTH, HEAD]
    for cited in answer.citations:
        assert TABLE[cited.start - 50 : cited.end - 50] == cited.quote


async def test_a_row_of_a_table_whose_columns_have_no_names_answers_and_cites_itself_alone(
    embedder: Embedder, make_hit: MakeHit
) -> None:
    table = "Keys\n\n|  |  |\n| --- | --- |\n| F1 | Shows the help screen |\n| F9 | Loads the saved game again |"
    answer = await answered(embedder, "What does F1 do?", make_hit(table))
    assert answer.answer == "F1; Shows the help screen [1]"
    assert [cited.quote for cited in answer.citations] == ["| F1 | Shows the help screen |"]
    assert (await answered(embedder, "Which key loads the saved game?", make_hit(table))).answer.startswith("F9; Loads")


def test_neither_what_names_the_columns_nor_the_rule_is_a_candidate(make_hit: MakeHit) -> None:
    quotes = find_candidates([make_hit(TABLE)], addresses=True)
    assert [quote.text for quote in quotes if quote.text.startswith("|")] == [NORTH, SOUTH, WEST]
    assert {quote.head.text for quote in quotes if quote.head} == {HEAD}


def test_a_row_that_names_what_the_title_names_is_no_better_than_the_one_that_is_asked_for(make_hit: MakeHit) -> None:
    rows_of = "| columns per table | 1,600 | |\n| columns per index | 32 | can be increased by recompiling Pump |"
    hit = replace(make_hit(f"| Item | Limit | Comment |\n| --- | --- | --- |\n{rows_of}"), title="Limits of Pump")
    assert said_for("What is the most columns of a Pump table?", hit) == ["| columns per table | 1,600 | |"]
    assert len(said_for("Which columns has Pump?", hit)) == 2


@pytest.mark.parametrize(
    "text",
    [
        f"{NORTH}\n{SOUTH}",
        f"{HEAD}\n{RULE}\n\n{NORTH}",
        f"```\n{HEAD}\n{RULE}\n{NORTH}\n```",
        f"{HEAD}\n{RULE}\n| North | | | |",
        f"{HEAD}\n{RULE}\n| North | 3.9 million | 4.",
        f"{HEAD}\n{RULE}\n| North | ![x](http://x.example/y.png) | 4.2 million | 120 |",
    ],
    ids=["no names", "another table", "code", "one cell", "cut off", "image"],
)
def test_such_rows_are_no_candidates(make_hit: MakeHit, text: str) -> None:
    assert find_candidates([make_hit(text)], addresses=True) == []


@pytest.mark.parametrize(
    ("question", "found"),
    [
        (Q3, [NORTH]),
        ("How many employees does West have?", [WEST]),
        ("What was the revenue of North and South?", [NORTH, SOUTH]),
        ("Which region has 80 employees?", [SOUTH]),
        ("Does West have 120 employees?", [WEST]),
        ("Which region has the highest revenue?", []),
        ("What was the revenue of Atlantis in Q3?", []),
        ("What was the revenue of North in Q4?", []),
        ("What was the revenue of North in 2022?", []),
        ("What is the sum of all?", []),
    ],
)
def test_the_rows_that_a_question_singles_out(make_hit: MakeHit, question: str, found: list[str]) -> None:
    assert said_for(question, make_hit(TABLE[24:], start=24)) == found


def test_an_identifier_must_be_there_as_a_whole(make_hit: MakeHit) -> None:
    stock = make_hit("| SKU | Stock |\n|---|---|\n| AX-100 | 4 |\n| AX-200 | 5 |")
    assert said_for("How many AX-200 are in stock?", stock) == ["| AX-200 | 5 |"]
    assert said_for("How many AX-900 are in stock?", stock) == []
    assert len(said_for("How many AX-100 and AX-200 are in stock?", stock)) == 2


ROOMS = "| Place | Seats |\n| --- | --- |\n| Room 5 | 30 |\n| Room 12 | 80 |\n| Hall | 5 |"


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("How many seats does Room 5 have?", ["| Room 5 | 30 |"]),
        ("How many seats does room 12 have?", ["| Room 12 | 80 |"]),
        ("How many seats do rooms 5 and 12 have?", ["| Room 5 | 30 |", "| Room 12 | 80 |"]),
        ("How many seats does Room 7 have?", []),
        ("How many seats does the room have?", ["| Room 5 | 30 |", "| Room 12 | 80 |"]),
        ("Which room has 80 seats?", ["| Room 12 | 80 |"]),
    ],
)
def test_a_row_of_another_number_is_not_asked_for(make_hit: MakeHit, question: str, found: list[str]) -> None:
    assert said_for(question, make_hit(ROOMS)) == found


def test_the_only_row_of_a_table_is_about_what_its_headings_name(make_hit: MakeHit) -> None:
    text = "| Weight | Height |\n|---|---|\n| 12 kg | 40 cm |"
    question = "What is the weight of the Kestrel pump?"
    assert said_for(question, make_hit(text, title="The Kestrel pump")) == ["| 12 kg | 40 cm |"]
    assert said_for(question, make_hit(text)) == []


def test_a_row_is_judged_by_the_columns_that_are_asked_for(make_hit: MakeHit) -> None:
    first, *_ = (quote for quote in find_candidates([make_hit(TABLE)], addresses=True) if quote.head)
    terms = frozenset(analyze_query(Q3))
    assert select_words(first, terms) == "Results of the regions; Region: North; Revenue Q3: 4.2 million"
    whole = "Region: North; Revenue Q2: 3.9 million; Revenue Q3: 4.2 million; Employees: 120"
    assert select_words(first, frozenset(["cost"])) == f"Results of the regions; {whole}"


async def test_a_later_part_of_a_table_knows_the_names_of_its_columns(embedder: Embedder, make_hit: MakeHit) -> None:
    hit = make_hit(f"{SOUTH}\n{WEST}", start=500, table_head=TableHead(100, 2, f"Results\n{HEAD}\n{RULE}"))
    answer = await answered(embedder, "What was the revenue of West in Q3?", hit)
    assert answer.answer.startswith("Region: West; Revenue Q2: 5.5 million; Revenue Q3: 5.8 million;")
    assert [(one.quote, one.start, one.page) for one in answer.citations] == [
        (WEST, 500 + len(SOUTH) + 1, None),
        (HEAD, 108, 2),
    ]


def test_the_end_of_a_row_that_was_cut_is_none(make_hit: MakeHit) -> None:
    hit = make_hit(f"million | 4.2 million | 120 |\n{SOUTH}", start=9, table_head=TableHead(0, 1, f"{HEAD}\n{RULE}"))
    assert [row.text for row in rows(hit).values() if row] == [SOUTH]


def test_a_model_is_given_the_names_of_the_columns_too(make_hit: MakeHit) -> None:
    (passage,) = pack([make_hit(SOUTH, table_head=TableHead(0, 1, HEAD))], 500, WordTokenizer())
    assert f">\n{HEAD}\n{SOUTH}\n</passage>" in passage.rendered


def test_what_is_shown_of_a_row() -> None:
    assert render_row(r"| a \| b | | c | d", "| One | Two | |") == "One: a | b; c; d"
    long = render_row(f"| {'word ' * 400}| 7 |", "| Text | Count |")
    assert long.endswith("word…; Count: 7")
    assert len(long) < 330


async def test_a_row_of_more_than_a_thousand_characters_answers(embedder: Embedder, make_hit: MakeHit) -> None:
    names = " | ".join(["Code", *(f"Column{number}" for number in range(60)), "Weight"])
    filler = " | ".join(f"some words that fill column {number}" for number in range(60))
    row = f"| K-77 | {filler} | 12 kg |"
    text = f"| {names} |\n|{'---|' * 62}\n| K-78 | {filler} | 13 kg |\n{row}"
    answer = await answered(embedder, "What is the weight of K-77?", make_hit(text))
    assert len(row) > 1000
    assert [one.text for one in answer.sentences] == [row]


async def test_rows_of_a_table_do_not_speak_against_each_other(make_hit: MakeHit) -> None:
    hit = make_hit("| Pump | Limit |\n|---|---|\n| blue pump outside | 80 |\n| blue pump inside | 90 |")
    first, _ = find_candidates([hit], addresses=True)
    assert first.head
    statement = Statement(first.text, "quoted", (first, first.head))
    assert await find_contradictions([statement], [hit], Judge().relations) == []


async def receipt_for(embedder: Embedder, *hits: Hit) -> dict[str, Any]:
    return make_receipt(await answered(embedder, Q3, *hits), **FACTS)


async def test_the_receipt_of_a_row_holds(embedder: Embedder, make_hit: MakeHit) -> None:
    made = await receipt_for(embedder, make_hit(TABLE))
    assert (await checked(made, doc=TABLE)).holds
    changed = await checked(made, doc=TABLE.replace("Revenue Q3", "Costs Q3"))
    assert changed.sentences[0].reason == "its document no longer says so"


async def test_so_does_that_of_a_row_whose_columns_are_named_in_another_chunk(
    embedder: Embedder, make_hit: MakeHit
) -> None:
    text = f"{HEAD}\n{RULE}\n{SOUTH}\n{NORTH}"
    cut = text.index(NORTH)
    kept = {"table_head": [0, None, f"{HEAD}\n{RULE}"]}
    made = await receipt_for(embedder, make_hit(NORTH, start=cut, table_head=TableHead(0, None, f"{HEAD}\n{RULE}")))
    chunks = [live("doc", text[:cut]), live("doc", NORTH, cut, 1, metadata=kept)]
    assert (await checked(made, doc=LiveDocument(text, chunks))).holds


async def test_a_row_under_names_that_are_not_its_columns_proves_nothing(embedder: Embedder, make_hit: MakeHit) -> None:
    made = await receipt_for(embedder, make_hit(TABLE))
    row, head = made["citations"]
    start = TABLE.index(SOUTH)
    other = head | {"quote": SOUTH, "start": start, "end": start + len(SOUTH)}
    report = await checked(forged(made, citations=[row, other]), doc=TABLE)
    assert report.sentences[0].reason == "its words are not those of its quote"
    alone = forged(made, sentences=[made["sentences"][0] | {"citations": [1]}])
    assert (await checked(alone, doc=TABLE)).sentences[0].reason == "its words are not those of its quote"


async def test_a_question_that_names_something_unknown_is_not_answered_by_a_row(
    embedder: Embedder, make_hit: MakeHit
) -> None:
    question = "What was the revenue of North in Q3 under Robertson?"
    assert (await Extractor(embedder).extract(question, [make_hit(TABLE)], max_sentences=5)).statements == ()


@pytest.mark.parametrize(
    ("reply", "supported"),
    [
        ("The revenue of North in Q3 was 4.2 million [1].", True),
        ("West has 210 employees and North has 120 employees [1].", True),
        ("The regions had between 80 and 210 employees [1].", True),
        ("West has 120 employees [1].", False),
        ("The revenue of North in Q3 was 3.9 million [1].", False),
    ],
)
async def test_a_model_may_not_say_the_figure_of_another_row_or_column(
    embedder: Embedder, make_hit: MakeHit, reply: str, supported: bool
) -> None:
    answer = await Answerer(embedder, FakeLLM([reply])).answer(Q3, [make_hit(TABLE)])
    assert ("supported" in [one.support for one in answer.sentences]) is supported


SERVICES = "\n".join(
    (
        "| Service | Port | Owner | Paid days |",
        "| --- | --- | --- | --- |",
        "| gateway | 8443 | Platform | 2 |",
        "| billing | 9300 | Finance systems | 3 |",
    )
)


@pytest.mark.parametrize(
    ("question", "row", "held"),
    [
        ("Who owns billing?", "| billing", True),
        ("Who runs the gateway?", "| gateway", True),
        ("How many days has the gateway?", "| gateway", True),
        ("How long does the gateway take?", "| gateway", True),
        ("Since when is there a gateway?", "| gateway", False),
    ],
)
def test_a_cell_is_what_the_name_of_its_column_calls_it(make_hit: MakeHit, question: str, row: str, held: bool) -> None:
    units = find_units([make_hit(SERVICES)], addresses=True)
    [features] = [
        found for unit, found in zip(units, describe_units(question, units), strict=True) if unit.text.startswith(row)
    ]
    assert (features["held"], features["missed"], features["uncounted"]) == (held, not held, 0)


def test_a_word_for_somebody_is_like_the_verb_that_it_derives_from(make_hit: MakeHit) -> None:
    units = find_units([make_hit(SERVICES)], addresses=True)
    assert all(found["alike"] > 0 for found in describe_units("Who owns billing?", units))


PRICES = "\n".join(
    (
        "| Product | Price | Warranty |",
        "| --- | --- | --- |",
        "| Blue pump | 120 | 2 years |",
        "| Red pump | 90 | 3 years |",
        "| Valve for pumps 4 and 8 | 20 | 1 year |",
    )
)


@pytest.mark.parametrize(
    ("question", "is_answered"),
    [
        ("What is the price of the red pump?", True),
        ("Which pump is the cheapest?", False),
        ("Which pump has the longest warranty?", False),
        ("Do pumps 4 and 8 have the same warranty?", False),
    ],
)
async def test_rows_that_would_have_to_be_compared_are_no_answer(
    embedder: Embedder, make_hit: MakeHit, question: str, is_answered: bool
) -> None:
    answer = await answered(embedder, question, make_hit(PRICES, title="Prices"))
    assert (answer.outcome == "answered") is is_answered


async def test_the_one_row_that_tells_an_extreme_answers(embedder: Embedder, make_hit: MakeHit) -> None:
    table = "| Item | Value |\n| --- | --- |\n| Longest name | 60 letters |\n| Longest path | 200 letters |"
    answer = await answered(embedder, "What is the longest name?", make_hit(table, title="Limits"))
    assert answer.answer.startswith("Item: Longest name; Value: 60 letters [1]")
