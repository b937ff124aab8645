from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ragstone.core.activity import LoggedSearch
from ragstone.evaluate.gaps import fence, knowledge_gaps, why_unmet

START = datetime(2026, 1, 1, tzinfo=UTC)


def _search(query: str, *, coverage: float = 0.0, results: int = 5, day: int = 0, missing: str = "") -> LoggedSearch:
    return LoggedSearch(
        START + timedelta(days=day),
        "default",
        query,
        "balanced",
        10.0,
        results,
        0.9 if results else 0.0,
        0.4 if results else None,
        coverage,
        tuple(missing.split()),
    )


@pytest.mark.parametrize(
    ("search", "judged", "reason"),
    [
        (_search("a b", coverage=1.0), {}, ""),
        (_search("a b", coverage=0.51), {}, ""),
        (_search("a b", coverage=0.5), {}, "little"),
        (_search("a b", results=0), {}, "nothing"),
        (_search("a b", coverage=1.0), {"a b": {"d": 0}}, "voted down"),
        (_search("A  B", coverage=0.0), {"a b": {"d": 1, "e": 0}}, ""),
    ],
)
def test_what_counts_as_not_found(search: LoggedSearch, judged: dict[str, dict[str, int]], reason: str) -> None:
    assert why_unmet(search, judged) == reason


def test_questions_about_one_thing_are_one_gap() -> None:
    searches = [
        _search("refund policy", day=3, missing="refund"),
        _search("Refund  policy", day=5, missing="Refund"),
        _search("policy for refunds", day=4, missing="refunds"),
        _search("parking permits", day=9, results=0),
        _search("opening hours", coverage=1.0),
    ]
    gaps = knowledge_gaps(searches, {})
    assert [gap.times for gap in gaps] == [3, 1]
    assert gaps[0].queries == ("refund policy", "Refund policy", "policy for refunds")
    assert (gaps[0].last, gaps[0].missing) == (START + timedelta(days=5), ("refund", "refunds"))
    assert (gaps[1].queries, gaps[1].reason) == (("parking permits",), "nothing was found")


def test_the_most_frequent_come_first_and_no_more_than_asked_for() -> None:
    searches = [_search(f"topic{n}") for n in range(30) for _ in range(n + 1)]
    gaps = knowledge_gaps(searches, {}, limit=3)
    assert [gap.queries for gap in gaps] == [("topic29",), ("topic28",), ("topic27",)]


def test_queries_without_a_word_are_gaps_too() -> None:
    [gap] = knowledge_gaps([_search("???"), _search("???")], {})
    assert (gap.queries, gap.times) == (("???",), 2)


def _similar(query: str, similarity: float) -> LoggedSearch:
    return replace(_search(query, coverage=1.0), similarity=similarity)


def test_a_best_passage_that_is_unusually_far_away_is_a_gap() -> None:
    usual = [_similar(f"stone{n}", 0.80 + n / 1000) for n in range(40)]
    [gap] = knowledge_gaps([*usual, _similar("zeppelins", 0.55)], {})
    assert (gap.queries, gap.reason) == (("zeppelins",), "the best passage is far from the question")


def test_a_few_searches_do_not_say_what_is_usual() -> None:
    assert knowledge_gaps([_similar("stone", 0.9), _similar("zeppelins", 0.1)], {}) == []


def test_searches_that_were_useful_say_what_is_near_enough() -> None:
    useful = [_similar(f"stone{n}", 0.6 + n / 100) for n in range(20)]
    labels = {one.query: {"d": 1} for one in useful}
    others = [_similar(f"zeppelin{n}", 0.5) for n in range(200)]
    assert fence([*useful, *others], labels) == pytest.approx(0.6095)
    assert sum(gap.times for gap in knowledge_gaps([*useful, *others], labels, limit=1000)) == 200


def test_missing_words_come_without_the_marks_of_the_sentence() -> None:
    [gap] = knowledge_gaps([_search("peru", missing="Peru? (peru) “1990.” .NET c++ ???")], {})
    assert gap.missing == ("peru", "1990", ".net", "c++", "???")
