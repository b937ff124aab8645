"""Which filters go to Qdrant, and in which words. What they mean there is the conformance suite's to say."""

from __future__ import annotations

import pytest

from ragstone.core.filters import And, Equals, Filter, In, Not, Or, Range
from ragstone.stores.vectors.qdrant.filters import Condition, all_of, can_translate, translate


@pytest.mark.parametrize(
    "where",
    [
        Equals("text", "x"),
        Equals("ragstone_lists", "x"),
        Equals('a"b', "x"),
        Equals("", "x"),
        Equals("a", "\ud800"),
        Equals("a", 2**53),
        Equals("a", -(2.0**60)),
        Equals("a", float("nan")),
        In("a", ("x", 2**53)),
        Range("a"),
        Range("a", gt="2026"),
        Range("a", gt=True),
        Range("a", gt=0, lt=1e300),
        Not(Range("a", gt="x")),
        And((Equals("b", 1), Range("a", gt="x"))),
        Or((Equals("b", 1), Equals("space", "x"))),
    ],
)
def test_what_qdrant_would_answer_differently_is_refused(where: Filter) -> None:
    assert not can_translate(where)


@pytest.mark.parametrize(
    ("where", "condition"),
    [
        (Equals("a", "x"), {"should": [{"key": "a", "match": {"any": ["x"]}}]}),
        (Equals("a", 2.0), {"should": [{"key": "a", "match": {"any": [2]}}]}),
        (Equals("a", 0.5), {"should": [{"key": "a", "range": {"gte": 0.5, "lte": 0.5}}]}),
        (Equals("a", True), {"should": [{"key": "a", "match": {"value": True}}]}),
        (Equals("a.b", "x"), {"should": [{"key": '"a.b"', "match": {"any": ["x"]}}]}),
        (
            Range("a", gt=1, lte=2),
            {
                "must": [{"key": "a", "range": {"gt": 1.0, "lte": 2.0}}],
                "must_not": [{"key": "ragstone_lists", "match": {"value": "a"}}],
            },
        ),
        (Not(Equals("a", "x")), {"must_not": [{"should": [{"key": "a", "match": {"any": ["x"]}}]}]}),
        (In("a", ()), False),
        (Not(In("a", ())), True),
        (And((In("a", ()), Equals("a", 1))), False),
        (Or((Not(In("a", ())), Equals("a", 1))), True),
        (Or(()), False),
        (And(()), True),
    ],
)
def test_filters_in_qdrants_words(where: Filter, condition: Condition | bool) -> None:
    assert can_translate(where)
    assert translate(where) == condition


def test_conditions_that_all_hold_stand_side_by_side() -> None:
    one, two = {"key": "a", "match": {"value": "x"}}, {"must_not": [{"key": "b", "match": {"value": "y"}}]}
    assert all_of([{"must": [one]}, True, two]) == {"must": [one, two]}
    assert all_of([{"must": [one]}, False]) is False
    assert all_of([True]) is True
