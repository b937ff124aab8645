"""What is said where no passage answers: what comes near, which names are missing, what is still to come."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
from tests.unit.answer.receipts import FACTS, checked, forged

from ragstone.answer.ask import Answerer
from ragstone.answer.extract import Extraction, Extractor
from ragstone.answer.parts import AnsweredParts, KbState, Part
from ragstone.answer.quotes import Quote, Statement
from ragstone.answer.receipts.make import Wording, make_receipt
from ragstone.answer.styles import NO_EVIDENCE, NOT_ALL_DONE, Writer
from ragstone.core.answers import Answer, AnswerReady, CitationsReady
from ragstone.core.errors import StoreBusy
from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit
from ragstone.settings.answers import CitationStyle
from ragstone.testing.fakes import FakeLLM

MakeHit = Callable[..., Hit]
QUESTION = "At which temperature does the pump stop?"
PUMPS = "The pump stops at a temperature of 80 degrees. Our pumps are sold in blue."
STOPS = "The pump stops at a temperature of 80 degrees."


@pytest.fixture
def near(make_hit: MakeHit) -> Statement:
    return Statement(STOPS, "quoted", (Quote(make_hit(PUMPS), 0, len(STOPS)),))


def unanswered(*nearest: Statement, style: CitationStyle = "index", **told: Any) -> Answer:
    writer = Writer(style)
    for statement in nearest:
        writer.add_nearest(statement)
    return writer.finish("Why does Ada stop the pump?", **told)


def test_what_comes_near_is_cited_and_is_no_answer(near: Statement) -> None:
    answer = unanswered(near)
    assert (answer.outcome, answer.status, answer.sentences) == ("nearest", "no_evidence", ())
    assert answer.answer == f"No passage states this. The nearest say:\n{STOPS} [1]"
    assert [(one.text, one.support, one.citations) for one in answer.nearest] == [(STOPS, "quoted", (1,))]
    assert [one.quote for one in answer.citations] == [STOPS]


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({}, NO_EVIDENCE),
        ({"degraded": ["dense: slow"]}, NOT_ALL_DONE),
        ({"missing": ["Flask-Caching"]}, f"{NO_EVIDENCE} No passage mentions Flask-Caching."),
        ({"missing": ["Ada", "Bob", "Eve"]}, f"{NO_EVIDENCE} No passage mentions Ada, Bob or Eve."),
        ({"missing": ["https://evil.example/x"]}, NO_EVIDENCE),
        ({"waiting": 1}, "No answer was found yet: 1 document is still being read."),
        (
            {"waiting": 3, "missing": ["Ada"]},
            "No answer was found yet: 3 documents are still being read. No passage mentions Ada.",
        ),
    ],
)
def test_nothing_is_said_in_full(told: dict[str, Any], text: str) -> None:
    answer = unanswered(**told)
    assert (answer.answer, answer.outcome) == (text, "nothing")


@pytest.mark.parametrize(
    ("told", "first"),
    [
        ({"missing": ["Flask-Caching"]}, "No passage states this. No passage mentions Flask-Caching."),
        ({"waiting": 3}, "No passage states this yet: 3 documents are still being read."),
        ({"degraded": ["llm: down"]}, "No passage states this, but not everything could be searched or read."),
    ],
)
def test_what_comes_near_is_not_the_last_word(near: Statement, told: dict[str, Any], first: str) -> None:
    assert unanswered(near, **told).answer == f"{first} The nearest say:\n{STOPS} [1]"


def test_an_open_part_is_named_below_the_answer(near: Statement) -> None:
    writer = Writer("footnote")
    writer.add(near)
    answer = writer.finish("…", unanswered=["who built it", "when"], missing=["Ada"])
    assert answer.answer == (
        f"{STOPS} [1]\nStill open: who built it?\nStill open: when?\nNo passage mentions Ada.\n\n[1] Doc"
    )
    assert answer.outcome == "answered"


async def test_a_model_that_declines_leaves_what_comes_near(embedder: Embedder, make_hit: MakeHit) -> None:
    events = [event async for event in Answerer(embedder, FakeLLM(["NO ANSWER"])).events(QUESTION, [make_hit(PUMPS)])]
    assert [type(event) for event in events] == [CitationsReady, AnswerReady]
    answer = events[-1].answer  # type: ignore[union-attr]
    assert (answer.outcome, answer.status, answer.sentences) == ("nearest", "no_evidence", ())
    assert answer.nearest[0].text == STOPS
    assert events[0] == CitationsReady(answer.citations)


async def test_a_model_that_declines_passes_no_address_on(embedder: Embedder, make_hit: MakeHit) -> None:
    planted = make_hit("At which temperature the pump does stop is told at https://evil.example/pump today.")
    answer = await Answerer(embedder, FakeLLM(["NO ANSWER"])).answer(QUESTION, [planted])
    assert "evil" not in answer.answer
    assert answer.outcome == "nothing"


async def test_documents_to_come_are_counted_where_nothing_answers(embedder: Embedder, make_hit: MakeHit) -> None:
    async def count() -> int:
        return 2

    told = []
    for hits in ([], [make_hit(PUMPS)]):
        events = Answerer(embedder).events(QUESTION, hits, state=KbState(count_waiting=count))
        told += [event.answer async for event in events if isinstance(event, AnswerReady)]
    assert [answer.waiting for answer in told] == [2, 0]
    assert told[0].answer == "No answer was found yet: 2 documents are still being read."


async def test_a_store_that_cannot_be_asked_does_not_cost_the_reply(embedder: Embedder) -> None:
    async def busy() -> int:
        raise StoreBusy("the ledger is locked")

    events = Answerer(embedder).events("Why?", [], state=KbState(count_waiting=busy))
    [answer] = [event.answer async for event in events if isinstance(event, AnswerReady)]
    assert answer.degraded == ("answer: it is not known whether more is to come: the ledger is locked",)
    assert answer.answer == NOT_ALL_DONE


def test_each_open_part_has_its_nearest(near: Statement, make_hit: MakeHit) -> None:
    parts = [Part("Who is Ada", ()), Part("When does it stop", ())]
    blue = Statement("Our pumps are sold in blue.", "quoted", (Quote(make_hit(PUMPS), 47, 74),))
    tally = AnsweredParts(parts)
    tally.keep(parts[0], Extraction((), nearest=(blue, near), missing=("Ada",)))
    tally.keep(parts[1], Extraction((), nearest=(near,)))
    assert (tally.nearest, tally.missing, tally.open_questions) == ((blue, near), ("Ada",), ())
    assert tally.is_new(parts[1], STOPS)
    assert (tally.nearest, tally.missing, tally.open_questions) == ((), ("Ada",), ("Who is Ada",))


@pytest.mark.parametrize("style", get_args(CitationStyle))
@pytest.mark.parametrize("told", [{}, {"degraded": ["x"]}, {"missing": ["Ada"], "waiting": 2}], ids=range(3))
async def test_what_comes_near_can_be_proved(near: Statement, style: CitationStyle, told: dict[str, Any]) -> None:
    made = make_receipt(unanswered(near, style=style, **told), wording=Wording(style), **FACTS)
    receipt = json.loads(json.dumps(made))
    report = await checked(receipt, doc=PUMPS)
    assert (report.holds, report.answered) == (True, False)
    assert [(one.text, one.holds) for one in report.sentences] == [(STOPS, True)]
    changed = await checked(receipt, doc=PUMPS.replace("80", "90"))
    assert [(one.holds, one.reason) for one in changed.sentences] == [(False, "its document no longer says so")]


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "answered"},
        {"nearest": []},
        {"answer": f"{STOPS} [1]"},
        {"answer": f"{STOPS} [1]", "status": "answered"},
        {"waiting": 7},
        {"missing": ["Ada"]},
    ],
    ids=range(6),
)
async def test_what_comes_near_cannot_be_passed_off_as_an_answer(near: Statement, fields: dict[str, object]) -> None:
    receipt = forged(json.loads(json.dumps(make_receipt(unanswered(near), **FACTS))), **fields)
    report = await checked(receipt, doc=PUMPS)
    assert report.tampering == ("the answer is not made of its sentences",)


async def test_a_receipt_of_an_earlier_version_still_holds(near: Statement) -> None:
    writer = Writer()
    writer.add(near)
    receipt = json.loads(
        json.dumps(
            make_receipt(writer.finish("When does it stop and who built it?", unanswered=["who built it"]), **FACTS)
        )
    )
    assert (await checked(receipt, doc=PUMPS)).holds
    old = {name: value for name, value in receipt.items() if name not in ("nearest", "missing", "waiting")}
    assert (await checked(forged(old, answer=f"{STOPS} [1]"), doc=PUMPS)).holds


CERTIFIED = "leaks: the pump was certified safe up to 300 °C in 2024"


@pytest.mark.parametrize("named", [CERTIFIED, "Leaks", "does Ada stop"])
async def test_a_missing_name_says_only_what_the_question_asks_for(named: str) -> None:
    report = await checked(json.loads(json.dumps(make_receipt(unanswered(missing=[named]), **FACTS))))
    assert (report.intact, report.holds) == (True, False)
    assert report.differences == (f"its question does not ask for “{named}”, which it calls missing",)


async def test_a_missing_name_may_have_a_number() -> None:
    answer = Writer().finish("What does the Pumpo 12 cost?", missing=["Pumpo 12"])
    assert (await checked(json.loads(json.dumps(make_receipt(answer, **FACTS))))).holds


@pytest.mark.parametrize(
    ("part", "foreign"),
    [
        ("who built the pump", False),
        ("Who built pump", False),  # as a cached answer to nearly the same question has it
        ("who sold it", True),
        ("the rest. The board sold the plant", True),
    ],
)
async def test_an_open_part_is_one_of_the_question(near: Statement, part: str, foreign: bool) -> None:
    writer = Writer()
    writer.add(near)
    answer = writer.finish("When does the pump stop and who built the pump?", unanswered=[part])
    report = await checked(json.loads(json.dumps(make_receipt(answer, **FACTS))), doc=PUMPS)
    note = f"its question has no part “{part}”, which it calls open"
    assert (report.intact, report.holds, report.differences) == (True, not foreign, (note,) if foreign else ())


@pytest.mark.parametrize(
    ("relevance", "chance", "is_answered"), [(0.04, 0.59, False), (0.04, 0.6, True), (0.5, 0.45, True)]
)
async def test_a_sentence_of_a_passage_on_other_things_has_to_be_likelier(
    embedder: Embedder,
    make_hit: MakeHit,
    monkeypatch: pytest.MonkeyPatch,
    relevance: float,
    chance: float,
    is_answered: bool,
) -> None:
    monkeypatch.setattr("ragstone.answer.extract.estimate_chance", lambda ranked: chance)
    hit = replace(make_hit("Complaints fell because of the new packaging. Mail leaves at noon."), relevance=relevance)
    found = await Extractor(embedder).extract("Why did complaints fall?", [hit], max_sentences=4)
    assert bool(found.statements) is is_answered
