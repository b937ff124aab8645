from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import pytest

from ragstone.answer.complete import complete_units
from ragstone.answer.extract import (
    ENOUGH,
    SHORTLIST,
    Extractor,
    choose,
    find_candidates,
    find_nearest,
    keep_likely,
    quote_best,
)
from ragstone.answer.score import ScoredUnit, read_in_context, score_units, share_chances
from ragstone.answer.units import AnswerUnit, find_units, is_sentence
from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit, Role
from ragstone.language.relevance import UNRELATED

MakeHit = Callable[..., Hit]


class RecordingEmbedder(Embedder, Protocol):
    calls: list[tuple[Role, int]]


@pytest.mark.parametrize(
    "text",
    [
        "The pump stops at 80 degrees.",
        "Updating a variable is done with the `variableControllerUpdate` call.",
        "Values were 1.4 ± 0.2 (p = 0.016) and 3.1 in 20 of 24 cases.",
        "You need 2 A records (a.example and *.a.example) for it.",
        "We use **Low**, **High** and **Top**.",
        "The sequence that is typed is {NAME}{TAB}{ENTER}.",
        "水泵在八十度时停止运转。",
    ],
)
def test_sentences(text: str) -> None:
    assert is_sentence(text)


@pytest.mark.parametrize(
    "text",
    [
        "Pump limits",
        "When does the pump stop?",
        "水泵何时停止运转？",
        "| pump | 80 | degrees | hot |",
        "const x = await pump.stop({ at: 80 });",
        'If false, stop only the first one.", "position": 0, "value": "x" }',
        "x: [a], y: [b.c], z: [d],",
        "See the pump here ![pump](pump.png) at work.",
        "word " * 250,
    ],
)
def test_crumbs(text: str) -> None:
    assert not is_sentence(text)


def test_headings_are_no_candidates_and_code_is_a_whole_one(make_hit: MakeHit) -> None:
    text = (
        "# How the pump stops at once\n\nThe pump stops at 80 degrees.\n\n"
        "```sh\nrun the pump now please\n```\n\n- Restart the blue pump soon\n"
    )
    quotes = find_candidates([make_hit(text)], addresses=True)
    assert [quote.text for quote in quotes] == [
        "The pump stops at 80 degrees.",
        "run the pump now please",
        "Restart the blue pump soon",
    ]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("No. Your pump cannot be blue.", ["No. Your pump cannot be blue."]),
        (
            "Are pumps blue?\n\nUnfortunately no at the moment. Help is always welcome.",
            ["Unfortunately no at the moment. Help is always welcome."],
        ),
        ("See also: blue pumps, red pumps\n\nThe pump is always blue.", ["The pump is always blue."]),
        ("The Blue Pump and Others …\nThe pump is always blue.", ["The pump is always blue."]),
        ("Reload all pumps:\n\n:eval -pump * e!", [":eval -pump * e!"]),
    ],
)
def test_a_short_reply_comes_with_its_reason_and_what_points_elsewhere_is_no_candidate(
    make_hit: MakeHit, text: str, quoted: list[str]
) -> None:
    assert [quote.text for quote in find_candidates([make_hit(text)], addresses=True)] == quoted


def test_a_passage_that_begins_within_an_item_begins_with_a_sentence(make_hit: MakeHit) -> None:
    hit = make_hit("One pump uses\n  about 15 litres per second when it runs.\n\n- Others use less.", start=80)
    first = find_units([hit], addresses=True)[0]
    assert (first.text, first.term) == ("One pump uses\n  about 15 litres per second when it runs.", None)


def test_entries_behind_a_paragraph_that_counts_them_are_one_unit(make_hit: MakeHit) -> None:
    entries = "One Suit\n  The deck has spades only.\n\nTwo Suits\n  The deck has spades and hearts."
    announced = make_hit(f"There are two types of deck. Each has 104 cards.\n\n{entries}")
    assert [unit.text for unit in find_units([announced], addresses=True) if unit.kind == "list"] == [announced.text]
    other = make_hit(f"Each deck has 104 cards.\n\n{entries}")
    assert [unit for unit in find_units([other], addresses=True) if unit.kind == "list"] == []


def test_an_answer_among_questions_is_judged_with_its_question(make_hit: MakeHit) -> None:
    hit = make_hit("# Are blue pumps supported?\n\nNot at all at the moment, and not soon.")
    (unit,) = find_units([hit], addresses=True)
    assert read_in_context(unit, frozenset()) == f"Are blue pumps supported? {unit.text}"


def test_overlapping_hits_offer_a_sentence_once(make_hit: MakeHit) -> None:
    text = "Our pumps are always blue. The pump stops at 80 degrees."
    quotes = find_candidates([make_hit(text), make_hit(text[27:], start=27)], addresses=True)
    assert [quote.place for quote in quotes] == [("doc", 0, 26), ("doc", 27, 56)]


def test_half_sentences_at_the_edge_of_a_hit_are_no_candidates(make_hit: MakeHit) -> None:
    text = "Our pumps are always blue. The new pump stops at 80 degrees."
    whole, tail = make_hit(text), make_hit(text[31:], start=31)
    assert [quote.place for quote in find_candidates([tail, whole], addresses=True)] == [
        ("doc", 0, 26),
        ("doc", 27, 60),
    ]
    assert find_candidates([tail], addresses=True) == []


def test_addresses_can_be_kept_out(make_hit: MakeHit) -> None:
    hit = make_hit(
        "Open http://localhost:80 in the browser. Read [the guide](a.md) on the pump. The pump is very blue."
    )
    assert len(find_candidates([hit], addresses=True)) == 3
    assert [quote.text for quote in find_candidates([hit], addresses=False)] == ["The pump is very blue."]


def scored(hits: list[Hit], *closeness: float) -> list[ScoredUnit]:
    items = score_units("Who is it?", find_units(hits, addresses=True))
    near = [replace(item, closeness=value) for item, value in zip(items, closeness, strict=True)]
    return sorted(near, key=lambda item: item.score, reverse=True)


def texts(units: list[AnswerUnit]) -> list[str]:
    return [unit.text for unit in units]


def test_choice_is_best_first_and_leaves_the_weak_behind(make_hit: MakeHit) -> None:
    hit = make_hit("Second best of them all. Far too weak for this. Best of them all here. Not enough by a mile.")
    items = scored([hit], 0.95, 0.4, 1.0, 0.2)
    assert texts(choose(items)) == ["Best of them all here.", "Second best of them all."]
    assert choose([]) == []


def test_nothing_is_added_to_what_is_very_likely_right(make_hit: MakeHit) -> None:
    hit = make_hit("The pump is switched off at noon. The pump is blue. The pump was built long ago.")
    units = find_units([hit], addresses=True)
    question = "What is the pump?"
    even = [replace(item, closeness=0.5) for item in score_units(question, units)]
    sure = [replace(even[0], closeness=2.5), *(replace(item, closeness=0.5) for item in even[1:])]
    assert share_chances(sure)[0] > ENOUGH > share_chances(even)[0]
    assert len(keep_likely(even)) == len(units)
    assert keep_likely(sure) == sure[:1]
    assert keep_likely([]) == []


RUN = "The pump is started by hand. Open the valve first. Then press the green button. Is that all? The pump is blue."


@pytest.mark.parametrize(
    ("question", "said"),
    [("How do I start the pump by hand?", RUN.partition(" Is")[0]), ("Who has the pump started by hand?", "")],
)
def test_the_best_sentence_is_told_with_those_that_follow_it(make_hit: MakeHit, question: str, said: str) -> None:
    units = find_units([make_hit(RUN)], addresses=True)
    ranked = score_units(question, units)[:1]
    assert " ".join(one.text for one in quote_best(question, ranked, units, 4)) == said


EXPENSES = (
    "These are paid:\n\n* Trains: second class to all towns.\n* Hotels: up to 140 crowns a night in Oslo.\n"
    "* Meals: up to 45 crowns a day."
)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What may I spend on a hotel in Oslo?", "These are paid: Hotels: up to 140 crowns a night in Oslo."),
        ("Which things are paid?", " ".join(EXPENSES.split())),
        ("May I spend crowns?", " ".join(EXPENSES.split())),
        ("Are hotels or meals paid?", " ".join(EXPENSES.split())),
    ],
)
def test_of_a_list_only_the_item_that_is_asked_for_is_said(make_hit: MakeHit, question: str, said: str) -> None:
    assert quote_list(make_hit(EXPENSES), question) == said


def test_a_step_is_not_said_without_the_others(make_hit: MakeHit) -> None:
    steps = "To claim it:\n\n1. Open the page of claims.\n2. Press the green button of the hotel.\n3. Wait for mail."
    assert quote_list(make_hit(steps), "Which button of the hotel is green?") == " ".join(steps.split())


def quote_list(hit: Hit, question: str) -> str:
    units = find_units([hit], addresses=True)
    ranked = [item for item in score_units(question, units) if item.unit.kind == "list"]
    return " ".join(" ".join(one.text for one in quote_best(question, ranked, units, 4)).split())


def test_an_address_that_is_kept_out_does_not_come_with_the_sentence_before_it(make_hit: MakeHit) -> None:
    hit = make_hit("The pump is started by hand. Read http://evil.example for more. Then press the green button.")
    units = find_units([hit], addresses=False)
    said = quote_best("How do I start the pump by hand?", score_units("Start the pump?", units)[:1], units, 4)
    assert [one.text for one in said] == ["The pump is started by hand."]


def test_the_better_hit_wins_between_equals(make_hit: MakeHit) -> None:
    hits = [make_hit("Weaker words stand here.", "a", score=0.2), make_hit("Stronger claims win always.", "b")]
    assert choose(scored(hits, 1.0, 1.0))[0].quote.hit.document_id == "b"


def test_the_same_thing_is_not_said_twice(make_hit: MakeHit) -> None:
    hits = [make_hit("The pump stops at 80 degrees.", "a"), make_hit("At 80 degrees, pumps stop.", "b")]
    assert len(choose(scored(hits, 1.0, 1.0))) == 1


def test_sentences_are_said_in_the_order_of_their_document(make_hit: MakeHit) -> None:
    hits = [
        make_hit("Other things come first.", "a"),
        make_hit("One thing comes first.\n\n# Then\n\nTwo things come next.", "b"),
    ]
    other, one, two = find_units(hits, addresses=True)
    said = complete_units([two, other, one], [other, one, two], 4)
    assert [statement.text for statement in said] == [one.text, two.text, other.text]


async def test_only_a_shortlist_is_embedded_and_it_holds_what_shares_words(
    embedder: RecordingEmbedder, make_hit: MakeHit
) -> None:
    filler = " ".join(f"Number {n} tells about other matters." for n in range(60))
    hit = make_hit(f"{filler} The pump stops at 80 degrees.")
    extraction = await Extractor(embedder).extract("When does the pump stop?", [hit], max_sentences=4)
    assert [statement.text for statement in extraction.statements] == ["The pump stops at 80 degrees."]
    assert embedder.calls[-1] == ("document", SHORTLIST)


async def test_the_question_is_embedded_as_a_query_and_the_background_once(
    embedder: RecordingEmbedder, make_hit: MakeHit
) -> None:
    extractor = Extractor(embedder)
    hit = make_hit("The pump stops at 80 degrees. Our fans are always blue.")
    for _ in range(2):
        extraction = await extractor.extract("When does the pump stop?", [hit], max_sentences=4)
        assert [statement.text for statement in extraction.statements] == ["The pump stops at 80 degrees."]
    calls = [("query", 1), ("document", len(UNRELATED)), ("document", 2), ("query", 1), ("document", 2)]
    assert embedder.calls == calls


SETTINGS = """\
pump_timeout (integer)
  Sets how long the pump may run dry before it is switched off by the controller of the plant, as long as nobody is
  there to look after it and the lamps are on. If this value is given without units, it is taken as seconds, as it is
  with most other settings of the plant. The default is five minutes (5min).

fan_timeout (integer)
  Sets how long the fan may stand still. The default is one hour."""


async def test_the_sentence_that_answers_wins_over_the_one_that_repeats_the_question(
    embedder: RecordingEmbedder, make_hit: MakeHit
) -> None:
    question = "How long may the pump run dry before it is switched off?"
    extraction = await Extractor(embedder).extract(question, [make_hit(SETTINGS)], max_sentences=4)
    said = " ".join(statement.text for statement in extraction.statements)
    assert "pump_timeout" in said
    assert "five minutes" in said
    assert "one hour" not in said


def test_the_nearest_is_the_best_unit_that_is_near_the_question(make_hit: MakeHit) -> None:
    far, near, nearer = scored([make_hit("First of them all. Second of them all. Third of them all.")], 0.1, 0.5, 0.9)[
        ::-1
    ]
    assert texts(find_nearest([far, near, nearer])) == ["Second of them all."]
    assert find_nearest([far]) == []


async def test_a_question_for_a_figure_is_not_answered_without_one(
    embedder: RecordingEmbedder, make_hit: MakeHit
) -> None:
    hit = make_hit("The pump of the plant is switched off by the controller.")
    extraction = await Extractor(embedder).extract("How many pumps has the plant?", [hit], max_sentences=4)
    assert extraction.statements == ()
    assert [statement.text for statement in extraction.nearest] == [hit.text]


@pytest.mark.parametrize(
    ("text", "is_answered"),
    [
        ("The option --buffer-length sets the size of the buffer. The default is 16 KB.", True),
        ("The option --buffer-length sets the size of the buffer.", False),
        ("| Option | Default |\n| --- | --- |\n| --buffer-length | 16 KB |\n| --wait | 5 s |", True),
        ("| Option | Largest |\n| --- | --- |\n| --buffer-length | 16 KB |\n| --wait | 5 s |", False),
    ],
)
def test_a_question_for_a_default_is_not_answered_without_one(make_hit: MakeHit, text: str, is_answered: bool) -> None:
    question = "What is the default of --buffer-length?"
    units = find_units([make_hit(text)], addresses=True)
    assert bool(quote_best(question, score_units(question, units), units, 4)) is is_answered


def test_the_sentence_that_tells_the_default_comes_along_if_it_is_of_the_same_document(make_hit: MakeHit) -> None:
    question = "What is the default niceness of the pump, and which values may it have?"
    told = make_hit(
        "-n N  Add N to the priority of the pump (default 10).\n\nThe niceness of the pump may have any value."
    )
    apart = make_hit("The niceness of the pump may have any value.", "a"), make_hit("-n N  Add N (default 10).", "b")
    for hits, is_said in (((told,), True), (apart, False)):
        units = find_units(hits, addresses=True)
        best, weak = sorted(score_units(question, units), key=lambda item: "default" in item.unit.text)
        level = replace(weak, features=dict.fromkeys(weak.features, 0.0), reranked=best.score)
        said = " ".join(statement.text for statement in quote_best(question, [best, level], units, 4))
        assert ("default 10" in said) is is_said


async def test_a_name_that_no_passage_has_is_missing_and_nothing_answers(
    embedder: RecordingEmbedder, make_hit: MakeHit
) -> None:
    hit = make_hit("The pump of the plant is switched off by the controller.")
    extraction = await Extractor(embedder).extract("Is the pump switched off by Flask-Caching?", [hit], max_sentences=4)
    assert (extraction.statements, extraction.missing) == ((), ("Flask-Caching",))


@pytest.mark.parametrize(
    ("question", "answered"),
    [
        ("Does the crew get a sign-on bonus?", False),
        ("Does the crew get a sign on bonus?", False),
        ("Does the crew get a turn up bonus?", True),
        ("Is there a pension bonus?", False),
        ("Does the crew get a yearly bonus?", True),
        ("Does the crew get a bonus in summer?", True),
    ],
)
async def test_one_kind_of_thing_is_no_answer_to_a_question_for_another(
    question: str, answered: bool, embedder: Embedder, make_hit: MakeHit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstone.answer.extract.MIN_CHANCE", 0.0)
    said = await Extractor(embedder).extract(
        question, [make_hit("The crew gets a yearly bonus. A turn-up bonus is extra.")], max_sentences=4
    )
    assert bool(said.statements) is answered


@pytest.mark.parametrize(("section", "answered"), [("RETURN POLICY", True), ("Shipping policy", False), ("", False)])
async def test_a_section_whose_title_is_asked_for_answers(
    section: str, answered: bool, embedder: Embedder, make_hit: MakeHit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstone.answer.extract.MIN_CHANCE", 1.1)
    hit = make_hit("You can return a product within 30 days of the day on which you received it.", section=section)
    said = await Extractor(embedder).extract("What is your return policy?", [hit], max_sentences=4)
    assert bool(said.statements) == answered
