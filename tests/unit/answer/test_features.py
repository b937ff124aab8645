"""What speaks for a unit as the answer to a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from ragstone.answer.features import describe_units
from ragstone.answer.units import find_units
from ragstone.answer.weights import (
    ANSWERS,
    ANSWERS_BY_MEANING,
    ANSWERS_BY_WORDS,
    RANKING,
    RANKING_BY_MEANING,
    RANKING_BY_WORDS,
)
from ragstone.core.types import Hit
from ragstone.language.terms import reading

MakeHit = Callable[..., Hit]
Weights = Mapping[str, float]


def describe(hit: Hit, question: str, shared: frozenset[str] = frozenset()) -> list[dict[str, float]]:
    return describe_units(question, find_units([hit], addresses=True), shared)


def test_each_word_of_the_question_counts_once_for_the_nearest_place_that_has_it(make_hit: MakeHit) -> None:
    hit = make_hit("The pump is very blue. The valve is quite old.", title="Plant", section="Boilers")
    [first, _] = describe(hit, "Which pump, valve, boiler or plant smells?")
    places = [first[name] for name in ("own", "near", "section", "title", "lacking")]
    assert all(value > 0 for value in places)
    assert sum(places) == pytest.approx(1)


def test_words_that_mean_the_same_count_apart(make_hit: MakeHit) -> None:
    [unit] = describe(make_hit("Files are deleted by it at once."), "Does it remove files?")
    assert (unit["alike"] > 0, unit["lacking"]) == (True, 0.0)


def test_words_of_the_conversation_count_little(make_hit: MakeHit) -> None:
    hit, question = make_hit("The pump is very blue."), "How old is the valve of the pump?"
    assert describe(hit, question, frozenset(["pump"]))[0]["own"] < describe(hit, question)[0]["own"]


def test_reaching_somebody_counts_little(make_hit: MakeHit) -> None:
    features = describe(make_hit("Write to the master at harbour@example.org."), "How can I reach the master?")
    assert features[0]["own"] > features[0]["lacking"]
    assert features[0]["held"] == 1.0


def test_what_is_asked_for_is_held_or_missed(make_hit: MakeHit) -> None:
    question = "How many fans has the pump?"
    [held] = describe(make_hit("The pump has 3 fans."), question)
    [missed] = describe(make_hit("The pump has some fans."), question)
    assert (held["held"], held["counted"], missed["missed"], missed["uncounted"]) == (1, 1, 1, 1)


def test_another_setting_of_a_similar_name_is_another_one(make_hit: MakeHit) -> None:
    hit = make_hit("fan_limit (integer)\n  Limits the fan to some turns.")
    assert describe(hit, "What does fan_speed do?")[0]["other_identifier"] == 1
    assert describe(hit, "What does fan_limit do?")[0]["other_identifier"] == 0


@pytest.mark.parametrize(
    ("ranking", "answers", "of_unit", "of_best"),
    [
        (RANKING, ANSWERS, {"closeness", "reader_odds"}, {"best_closeness", "best_reader_odds"}),
        (RANKING_BY_MEANING, ANSWERS_BY_MEANING, {"closeness"}, {"best_closeness"}),
        (RANKING_BY_WORDS, ANSWERS_BY_WORDS, set(), set()),
    ],
)
def test_weights_are_of_what_is_known_of_a_unit(
    ranking: Weights, answers: Weights, of_unit: set[str], of_best: set[str], make_hit: MakeHit
) -> None:
    [unit] = describe(make_hit("The pump has 3 fans."), "How many fans has the pump?")
    told = {"closeness", "reader_odds", "best_closeness", "best_reader_odds"}
    assert set(ranking) <= set(unit) | of_unit
    assert set(ranking) & told == of_unit
    assert set(answers) <= set(unit) | {"bias", "margin", "best_coverage", "mass"} | told
    assert set(answers) & told == of_unit | of_best


@pytest.mark.parametrize(
    ("question", "text", "defines"),
    [
        ("What is Massif in Valgrind?", "Massif is a heap profiler for programs.", 1),
        ("What is ReplayGain, which beets has a plugin for?", "It supports ReplayGain, a technique for playback.", 1),
        ("What does the reference ID mean?", "The reference ID (REFID) is a value of 32 bits.", 1),
        ("What is Massif in Valgrind?", "To use Massif, you must name it on the command line.", 0),
        ("How old is Massif?", "Massif is a heap profiler for programs.", 0),
    ],
)
def test_a_sentence_that_says_what_something_is_defines_it(
    make_hit: MakeHit, question: str, text: str, defines: int
) -> None:
    assert describe(make_hit(text), question)[0]["defines"] == defines


def test_a_question_in_another_language_does_not_ask_whether(make_hit: MakeHit) -> None:
    """ "Was" begins no question of yes or no in German, and "Not" denies nothing."""
    with reading("de"):
        [unit] = describe(make_hit("Die Häuser sind in großer Not."), "Was ist die Kaution?")
    assert unit["settles"] == 0
