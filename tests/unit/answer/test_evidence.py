from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ragstone.answer.missing import drop_unnamed, find_missing_names, find_missing_nouns, mentions
from ragstone.answer.score import estimate_chance, score_units
from ragstone.answer.units import find_units
from ragstone.core.types import Hit

MakeHit = Callable[..., Hit]


def chance(hit: Hit, question: str, closeness: float | None) -> float:
    items = score_units(question, find_units([hit], addresses=True))
    near = [replace(item, closeness=closeness) for item in items]
    return estimate_chance(sorted(near, key=lambda item: item.score, reverse=True))


@pytest.mark.parametrize("closeness", [None, 0.7])
def test_a_text_that_has_what_is_asked_for_is_the_likelier_answer(make_hit: MakeHit, closeness: float | None) -> None:
    hit = make_hit("The pump has 3 fans.")
    asked = chance(hit, "How many fans has the pump?", closeness)
    assert 0 < chance(hit, "How many valves has the boiler?", closeness) < asked < 1
    assert chance(make_hit("The pump has some fans."), "How many fans has the pump?", closeness) < asked


def test_what_is_near_in_meaning_is_the_likelier_answer(make_hit: MakeHit) -> None:
    hit, question = make_hit("The pump has fans."), "Has the pump a ventilator?"
    assert chance(hit, question, 0.2) < chance(hit, question, 0.8)


@pytest.mark.parametrize("closeness", [None, 0.7])
def test_a_hit_of_a_small_kb_answers_as_well_as_one_of_a_large_kb(make_hit: MakeHit, closeness: float | None) -> None:
    # Fused scores say how far a hit stands out: the only hit of a kb has 0.5, the best of thousands nearly 1.
    of_small, of_large = (replace(make_hit("The pump has 3 fans."), score=score) for score in (0.5, 0.98))
    question = "How many fans has the pump?"
    assert chance(of_small, question, closeness) == pytest.approx(chance(of_large, question, closeness))


def test_nothing_answers_nothing() -> None:
    assert estimate_chance([]) == 0.0


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("How do I connect Pumpo to Slack?", ("Slack",)),
        ("How do I connect Pumpo to the fan?", ()),
        ("Is Pumpo-X made by Acme Pumpo?", ("Pumpo-X", "Acme Pumpo")),
        ("How Do I Connect The Slack Integration?", ()),
        ("Slack works how?", ()),
        ("Can I stop the fan?", ()),
        ("When was Linus Torvalds born?", ("Linus Torvalds",)),
        ("What does fan_speed do?", ()),
        ("What does fan_limit do?", ("fan_limit",)),
        ("Is FanSpeed a setting?", ()),
        ("Who painted the Night Fan?", ("Night Fan",)),
    ],
)
def test_names_that_no_hit_has(make_hit: MakeHit, question: str, missing: tuple[str, ...]) -> None:
    assert find_missing_names(question, [make_hit("The fan of Pumpo connects; see fan_speed.")]) == missing


@pytest.mark.parametrize(
    ("question", "text", "missing"),
    [
        ("What does the Pumpo 12 cost?", "The Pumpo 4 and 8 cost 12 pounds, for 12 months.", ("Pumpo 12",)),
        ("What does the Pumpo 12 cost?", "The Pumpo 1200 costs 12.", ("Pumpo 12",)),
        ("What does the Pumpo 8 cost?", "The Pumpo 4 and 8 cost 12 pounds.", ()),
        ("What does the Pumpo 8 cost?", "There is the Pumpo-8.", ()),
        ("Is the Pumpo 12 or the Pumpo 8 larger?", "There is the Pumpo 8.", ("Pumpo 12",)),
        ("Does it run on Pumpo 3.13?", "It runs on Pumpo 3.9 to 3.12.", ("Pumpo 3.13",)),
        ("Does it run on Pumpo 3.11?", "It runs on Pumpo 3.9 to 3.12.", ()),
        ("Does it run on Pumpo 3.13?", "It runs on Pumpo 3.9 or newer.", ()),
        ("What does Article 12 say?", "Article 3 gives 12 days.", ("Article 12",)),
        ("What does Article 12 say?", "12. Liability is limited.", ()),
        ("What did Pumpo 12 months ago?", "Pumpo slept.", ()),
        ("What did Pumpo on May 12?", "Pumpo slept in May.", ()),
    ],
)
def test_a_name_with_a_number_is_one_name(
    make_hit: MakeHit, question: str, text: str, missing: tuple[str, ...]
) -> None:
    assert find_missing_names(question, [make_hit(text)]) == missing


@pytest.mark.parametrize(
    ("name", "mentioned"),
    [
        ("Ada Lovelace", True),
        ("Pumpo", True),
        ("Pumpo 8", True),
        ("Pumpo 12", False),
        ("email", True),
        ("Wi-Fi", True),
        ("fax", False),
    ],
)
def test_what_mentions_a_name(make_hit: MakeHit, name: str, mentioned: bool) -> None:
    hit = make_hit("Mrs Lovelace sent the Pumpo 8 an e-mail on the 12th, by wifi.")
    assert mentions(hit, name) is mentioned


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("Which port does Pumpo use?", [0, 1]),
        ("Which port is used?", [0, 1, 2]),
        ("Which port does Slack use?", [0, 1, 2]),
        ("Does Pumpo use the port of Fanny?", [0, 1, 2]),
        ("Which port does Fanny use?", [0, 1, 2]),
    ],
)
def test_passages_that_lack_the_name_most_have_are_left_out(make_hit: MakeHit, question: str, kept: list[int]) -> None:
    hits = [make_hit("Pumpo has a fan."), make_hit("See the pages on Pumpo."), make_hit("The port of Fanny is 80.")]
    assert drop_unnamed(question, hits) == [hits[number] for number in kept]


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("How do I turn on slackbot's pooling?", ("slackbot",)),
        ("How do I bake sourdough bread?", ("sourdough", "bread")),
        ("How do I connect the fans?", ()),
        ("Which fan is larger, and how often does it start?", ()),
    ],
)
def test_words_in_lower_case_that_no_hit_has(make_hit: MakeHit, question: str, missing: tuple[str, ...]) -> None:
    assert find_missing_nouns(question, [make_hit("The fan of Pumpo connects; see fan_speed.")]) == missing
