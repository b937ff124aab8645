"""Queries made of a kb's own text, and two Spaces compared by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ragstone.core.search import SearchResult
from ragstone.core.types import Hit
from ragstone.evaluate.golden import known_items
from ragstone.evaluate.metrics import Interval
from ragstone.evaluate.spaces import SpaceComparison, compare_spaces, label_of, labels

LONG = "One short. The harbour opens at six in the morning and closes long after the last ferry has left. End."


class Answers:
    """Gives each query the documents that it was told to, and the same ones to all others."""

    def __init__(
        self, answers: Mapping[str, Sequence[str]], rest: Sequence[str] = (), degraded: tuple[str, ...] = ()
    ) -> None:
        self._answers = answers
        self._rest = rest
        self._degraded = degraded

    async def retrieve(self, query: str, k: int) -> SearchResult:
        found = self._answers.get(query, self._rest)[:k]
        hits = tuple(Hit(f"c-{one}", one, "", one, "", None, "", 1.0, {}, {"dataset_id": one}, 0, 0) for one in found)
        return SearchResult(query, query, "fast", hits, (), self._degraded, 0.0)


def test_titles_and_sentences_are_asked_for_in_turn() -> None:
    dataset = known_items([("a", "A title of four", LONG), ("b", "Another title of four", LONG)])
    assert dataset is not None
    assert [query.text for query in dataset.queries] == [
        "The harbour opens at six in the morning and closes long after",
        "Another title of four",
    ]
    assert dataset.grades == {"q0": {"a": 1}, "q1": {"b": 1}}


def test_what_several_documents_say_any_of_them_answers() -> None:
    dataset = known_items([("a", "", LONG), ("b", "short", LONG)])
    assert dataset is not None
    assert dataset.grades == {"q0": {"a": 1, "b": 1}}
    assert labels(dataset) == {"a", "b"}


@pytest.mark.parametrize("text", ["", "x", "word " * 3, "\x00", "\ud800"])
def test_nothing_can_be_asked_of_too_little(text: str) -> None:
    assert known_items([("a", "title", text)]) is None


def test_a_document_is_known_by_the_name_that_the_judgements_use() -> None:
    assert label_of(["id", "d7", "uri"], frozenset({"d7", "uri"})) == "d7"
    assert label_of(["id", "d7", "uri"], frozenset({"other"})) == "id"


async def test_both_answer_the_same_queries() -> None:
    dataset = known_items([("a", "", LONG), ("b", "Another title of four", "")])
    assert dataset is not None
    first, second = (query.text for query in dataset.queries)
    old = Answers({first: ["a"], second: ["a", "b"]}, ["a", "b"])
    new = Answers({first: ["a"], second: ["b"]}, ["b"])
    seen: list[tuple[int, int]] = []
    found = await compare_spaces(old, new, dataset, lambda done, total: seen.append((done, total)))
    assert (found.before["mrr@10"], found.after["mrr@10"], found.interval.difference) == (0.75, 1.0, 0.25)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [one.common for one in found.agreements] == [1, 1, 1]
    assert not found.is_worse


@pytest.mark.parametrize(
    ("difference", "high", "problems", "worse"),
    [
        (0.1, 0.2, (), False),
        (-0.01, 0.01, (), False),
        (-0.02, 0.0, (), False),
        (-0.01, -0.001, (), True),
        (-0.021, 0.1, (), True),
        (0.1, 0.2, ("dense: no weights",), True),
    ],
)
def test_what_is_surely_or_much_worse_or_was_not_searched_is_worse(
    difference: float, high: float, problems: tuple[str, ...], worse: bool
) -> None:
    interval = Interval(difference, difference - 0.1, high, 0.95)
    assert SpaceComparison("x", 9, {}, {}, interval, (), problems).is_worse is worse


async def test_an_old_model_that_cannot_be_had_does_not_stop_the_move() -> None:
    dataset = known_items([("a", "", LONG)])
    assert dataset is not None
    found = await compare_spaces(Answers({}, degraded=("dense: no weights",)), Answers({}, ["a"]), dataset)
    assert (found.remarks, found.problems, found.is_worse) == (("dense: no weights",), (), False)
