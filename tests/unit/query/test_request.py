"""A query is cleaned before anything sees it."""

from __future__ import annotations

from typing import get_args

import pytest

from ragstone.core.errors import InputError
from ragstone.core.remedies import Action, Remedy
from ragstone.query.context import Asked, checked_choice, checked_count, checked_query
from ragstone.serve.cli import options
from ragstone.settings.retrieval import Transform


@pytest.mark.parametrize(
    ("raw", "clean"),
    [("  words \n", "words"), ("a\x00b", "a b"), ("a\ud800b", "a?b"), ("x" * 20, "x" * 20), ("ü 日本", "ü 日本")],
)
def test_a_query_is_cleaned(raw: str, clean: str) -> None:
    assert checked_query(raw, 20) == clean


@pytest.mark.parametrize("raw", ["", " \t\n", "\x00"])
def test_an_empty_query_is_refused(raw: str) -> None:
    with pytest.raises(InputError, match="the query is empty") as raised:
        checked_query(raw, 20)
    assert raised.value.remedy == Remedy(Action.SEARCH, query="opening hours")


def test_a_query_that_is_too_long_is_refused() -> None:
    with pytest.raises(InputError, match="21 characters; at most 20"):
        checked_query("x" * 21, 20)


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_a_count_in_range_is_kept(count: int) -> None:
    assert checked_count("k", count) == count


@pytest.mark.parametrize("count", [-1, 0, 1001])
def test_a_count_out_of_range_is_refused(count: int) -> None:
    with pytest.raises(InputError, match=f"k is {count}; it must be from 1 to 1000"):
        checked_count("k", count)


def test_a_choice_is_one_of_a_few_words() -> None:
    assert checked_choice("mode", "fast", ("fast", "slow")) == "fast"
    with pytest.raises(InputError, match="mode is 'quick'; it must be one of: fast, slow"):
        checked_choice("mode", "quick", ("fast", "slow"))


def test_the_command_line_offers_every_strategy() -> None:
    assert get_args(options.Strategy) == (*get_args(Transform), "none")


@pytest.mark.parametrize(
    ("what", "action"),
    [("query", Action.SEARCH), ("question", Action.ASK), ("topic", Action.RESEARCH), ("claim", Action.VERIFY)],
)
def test_what_is_empty_is_named(what: Asked, action: Action) -> None:
    with pytest.raises(InputError, match=f"the {what} is empty") as raised:
        checked_query(" ", 20, what)
    assert raised.value.remedy is not None
    assert raised.value.remedy.action == action


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(InputError, match="the question is no text but NoneType"):
        checked_query(None, 20, "question")
