from __future__ import annotations

from collections.abc import Callable

import pytest

from ragstone.answer.extract import is_enough
from ragstone.answer.missing import find_missing_names, find_missing_nouns
from ragstone.answer.quotes import Quote
from ragstone.answer.score import ScoredUnit
from ragstone.answer.units import AnswerUnit
from ragstone.core.types import Hit

MakeHit = Callable[..., Hit]


@pytest.mark.parametrize(
    ("close", "covered", "only_shared", "enough"),
    [
        (0.7, 0.0, False, True),
        (0.2, 1.0, False, True),
        (0.3, 0.7, False, False),
        (0.7, 0.4, True, False),
        (0.7, 0.5, True, True),
        (None, 0.6, False, True),
        (None, 0.59, False, False),
    ],
)
def test_what_is_enough(
    make_hit: MakeHit, close: float | None, covered: float, only_shared: bool, enough: bool
) -> None:
    hit = make_hit("The pump runs.")
    unit = AnswerUnit(Quote(hit, 0, len(hit.text)), "sentence", 0)
    assert is_enough(ScoredUnit(unit, covered, close), only_shared=only_shared) is enough


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
