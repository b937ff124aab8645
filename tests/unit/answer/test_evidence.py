from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ragstone.answer.extract import SentenceMatch, names_unknown
from ragstone.answer.quotes import Quote
from ragstone.core.types import Hit
from ragstone.language.relevance import asked_terms, closeness, measure_coverage

MakeHit = Callable[..., Hit]


def at_cosine(cosine: float) -> list[float]:
    return [cosine, float(np.sqrt(1 - cosine**2))]


@pytest.mark.parametrize("background", [0.05, 0.55, -0.2])
def test_closeness_means_the_same_whatever_unrelated_is_to_the_model(background: float) -> None:
    halfway = background + (1 - background) / 2
    question = np.array([1, 0], np.float32)
    sentences = np.array([at_cosine(1.0), at_cosine(halfway), at_cosine(background)], np.float32)
    unrelated = np.array([at_cosine(background), at_cosine(background), at_cosine(0.9)], np.float32)
    assert closeness(question, sentences, unrelated) == pytest.approx([1.0, 0.5, 0.0], abs=1e-6)


def test_a_model_that_finds_everything_alike_finds_nothing_close() -> None:
    same = np.array([[1, 0]], np.float32)
    assert closeness(same[0], same, same) == [0.0]


def quotes_of(*hits: Hit) -> list[Quote]:
    return [Quote(hit, 0, len(hit.text)) for hit in hits]


def coverage(question: str, quotes: list[Quote]) -> list[float]:
    headings = [quote.headings for quote in quotes]
    return measure_coverage(asked_terms(question), [quote.text for quote in quotes], headings)


def test_a_term_that_no_sentence_has_weighs_most(make_hit: MakeHit) -> None:
    quotes = quotes_of(make_hit("The pump runs.", "a"), make_hit("The pump stops.", "b"))
    assert coverage("pump", quotes) == [1.0, 1.0]
    common, missing = np.log(1 + 2 / 2.5), np.log(1 + 2 / 0.5)
    assert coverage("unicorn pump", quotes) == pytest.approx([common / (common + missing)] * 2)
    runs = np.log(1 + 2 / 1.5)
    assert coverage("Does the pump run?", quotes) == pytest.approx([1.0, common / (common + runs)])


def test_headings_count_as_said(make_hit: MakeHit) -> None:
    quotes = quotes_of(make_hit("It stops at once.", title="Pump", section="Limits > Heat"))
    assert coverage("pump heat", quotes) == [1.0]


def test_a_question_without_terms_is_not_covered(make_hit: MakeHit) -> None:
    assert coverage("??", quotes_of(make_hit("The pump runs."))) == [0.0]


@pytest.mark.parametrize(
    ("close", "covered", "unknown_name", "enough"),
    [
        (0.75, 0.0, False, True),
        (0.25, 1.0, False, True),
        (0.3, 0.8, False, False),
        (0.75, 0.4, True, False),
        (0.75, 0.5, True, True),
        (None, 0.6, False, True),
        (None, 0.59, False, False),
    ],
)
def test_what_is_enough(
    make_hit: MakeHit, close: float | None, covered: float, unknown_name: bool, enough: bool
) -> None:
    (quote,) = quotes_of(make_hit("The pump runs."))
    assert SentenceMatch(quote, close, covered).enough(unknown_name=unknown_name) is enough


@pytest.mark.parametrize(
    ("question", "unknown"),
    [
        ("How do I connect Pumpo to Slack?", True),
        ("How do I connect Pumpo to the fan?", False),
        ("Is Pumpo-X made by Acme Pumpo?", True),
        ("How Do I Connect The Slack Integration?", False),
        ("Slack works how?", False),
        ("Can I stop the fan?", False),
    ],
)
def test_names_that_no_hit_has(make_hit: MakeHit, question: str, unknown: bool) -> None:
    assert names_unknown(question, [make_hit("The fan of Pumpo connects.")]) is unknown
