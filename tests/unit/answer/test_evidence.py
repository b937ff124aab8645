from __future__ import annotations

from collections.abc import Callable

import pytest

from ragstone.answer.extract import SentenceMatch, names_unknown
from ragstone.answer.quotes import Quote
from ragstone.core.types import Hit

MakeHit = Callable[..., Hit]


def quotes_of(*hits: Hit) -> list[Quote]:
    return [Quote(hit, 0, len(hit.text)) for hit in hits]


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
