"""The filter grammar: what it takes, what it means, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.clock import canonical_text
from ragstone.core.errors import FilterError, InputError
from ragstone.core.filters import (
    MAX_DEPTH,
    MAX_TERMS,
    MAX_VALUES,
    And,
    Equals,
    Filter,
    In,
    Not,
    Or,
    Range,
    leaves_of,
    matches,
    parse_filter,
    replace_leaves,
)

DAY = "2026-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("raw", "parsed"),
    [
        (None, None),
        ({}, None),
        ({"source_type": "papers"}, Equals("source_type", "papers")),
        ({"year": {"eq": 2026}}, Equals("year", 2026)),
        ({"year": {"in": [2025, 2026]}}, In("year", (2025, 2026))),
        ({"year": [2025, 2026]}, In("year", (2025, 2026))),
        ({"year": {"in": []}}, In("year", ())),
        ({"n": {"gt": 1, "lte": 2.5}}, Range("n", gt=1, lte=2.5)),
        ({"date": {"gte": "2026-01-01"}}, Range("date", gte=DAY)),
        ({"date": date(2026, 1, 1)}, Equals("date", DAY)),
        ({"date": datetime(2026, 1, 1, tzinfo=UTC)}, Equals("date", DAY)),
        ({"a": 1, "b": True}, And((Equals("a", 1), Equals("b", True)))),
        ({"and": [{"a": 1}]}, And((Equals("a", 1),))),
        ({"or": [{"a": 1}, {"b": 2}]}, Or((Equals("a", 1), Equals("b", 2)))),
        ({"not": {"a": 1}}, Not(Equals("a", 1))),
        ({"a.b-c_D9": 1}, Equals("a.b-c_D9", 1)),
        ({"n": 2**63}, Equals("n", "9223372036854775808")),
        ({"n": 2**63 - 1}, Equals("n", 2**63 - 1)),
    ],
)
def test_the_json_form_is_read(raw: Any, parsed: Filter | None) -> None:
    assert parse_filter(raw) == parsed


@pytest.mark.parametrize(
    "raw",
    [
        "source_type = 'papers'",
        ["a"],
        42,
        {"and": []},
        {"and": {"a": 1}},
        {"or": "x"},
        {"or": [{}]},
        {"not": []},
        {"not": {}},
        {"and": [None]},
        {"a": None},
        {"a": {}},
        {"a": {"like": "x%"}},
        {"a": {"$gt": 1}},
        {"a": {"eq": 1, "gt": 2}},
        {"a": {"eq": [1]}},
        {"a": {"in": "abc"}},
        {"a": {"in": [None]}},
        {"a": {"in": [[1]]}},
        {"a": {"gt": None}},
        {"a": {"gt": 1, "lt": "z"}},
        {"a": {"gt": 2**64}},
        {"a": {"gt": 2**64, "lt": 5}},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": {"lt": float("-inf")}},
        {"a": b"bytes"},
        {"a": {"in": list(range(MAX_VALUES + 1))}},
        {"": 1},
        {"1a": 1},
        {"a b": 1},
        {'a" OR 1=1 --': 1},
        {"a'": 1},
        {"a]": 1},
        {"x" * 65: 1},
        {7: 1},
        {"a": {1: 2}},
    ],
)
def test_anything_else_is_refused(raw: Any) -> None:
    with pytest.raises(FilterError) as raised:
        parse_filter(raw)
    assert isinstance(raised.value, InputError)
    assert raised.value.code == "invalid_filter"
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    "nest", [lambda term: {"not": term}, lambda term: {"and": [term]}, lambda term: {"or": [term]}]
)
def test_depth_is_bounded(nest: Callable[[Any], Any]) -> None:
    deep: dict[str, Any] = {"a": 1}
    for _ in range(MAX_DEPTH - 1):
        deep = nest(deep)
    assert parse_filter(deep) is not None
    with pytest.raises(FilterError, match=f"at most {MAX_DEPTH} deep"):
        parse_filter(nest(deep))


@pytest.mark.parametrize("kept", [-(2**63), 2**63 - 1, 0, 1.5])
def test_a_number_that_fits_stays_a_number(kept: float) -> None:
    assert parse_filter({"a": kept}) == Equals("a", kept)


@pytest.mark.parametrize("large", [-(2**63) - 1, 2**63])
def test_a_number_that_no_store_can_hold_becomes_text(large: int) -> None:
    assert parse_filter({"a": large}) == Equals("a", str(large))


def test_the_number_of_terms_is_bounded() -> None:
    terms = [{"a": n} for n in range(MAX_TERMS)]
    assert parse_filter({"or": terms}) is not None
    with pytest.raises(FilterError, match=f"at most {MAX_TERMS} terms"):
        parse_filter({"or": [{"not": {"a": 0}}, *terms]})


@pytest.mark.parametrize(
    ("raw", "fields", "passes"),
    [
        (None, {}, True),
        ({"a": "x"}, {"a": "x"}, True),
        ({"a": "x"}, {"a": "X"}, False),
        ({"a": "x"}, {}, False),
        ({"a": "x"}, {"a": None}, False),
        ({"a": "x"}, {"a": ["y", "x"]}, True),
        ({"a": "x"}, {"a": [["x"]]}, False),
        ({"a": "x"}, {"a": {"x": "x"}}, False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": True}, {"a": True}, True),
        ({"a": False}, {"a": True}, False),
        ({"a": [1, "x"]}, {"a": "x"}, True),
        ({"a": []}, {"a": "x"}, False),
        ({"a": {"gt": 1}}, {"a": 2}, True),
        ({"a": {"gt": 1}}, {"a": 1}, False),
        ({"a": {"gte": 1, "lt": 3}}, {"a": 3}, False),
        ({"a": {"lte": 3}}, {"a": 3}, True),
        ({"a": {"lt": 3}}, {"a": "2"}, False),
        ({"a": {"lt": 3}}, {"a": True}, False),
        ({"a": {"lt": 3}}, {"a": [1]}, False),
        ({"a": {"lt": 3}}, {}, False),
        ({"a": {"gte": "b"}}, {"a": "c"}, True),
        ({"a": {"gte": "b"}}, {"a": 5}, False),
        ({"not": {"a": 1}}, {}, True),
        ({"and": [{"a": 1}, {"b": 2}]}, {"a": 1, "b": 3}, False),
        ({"or": [{"a": 1}, {"b": 2}]}, {"a": 0, "b": 2}, True),
        ({"date": {"gte": "2026-01-01", "lt": "2026-02-01"}}, {"date": "2026-01-31T23:59:59+00:00"}, True),
        ({"date": {"gte": "2026-01-01", "lt": "2026-02-01"}}, {"date": "2026-02-01T00:00:00+00:00"}, False),
    ],
)
def test_what_a_filter_means(raw: Any, fields: dict[str, Any], passes: bool) -> None:
    assert matches(parse_filter(raw), fields) is passes


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2026-01-01", DAY),
        ("2026-01-01T01:00:00+01:00", DAY),
        ("2026-01-01 00:00:00.999", DAY),
        ("2026-13-01", "2026-13-01"),
        ("2026-01-01 or so", "2026-01-01 or so"),
        ("2026", "2026"),
        ("1.2.3-4-56", "1.2.3-4-56"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
        ("9999-12-31T23:59:59-01:00", "9999-12-31T23:59:59-01:00"),
        ("", ""),
    ],
)
def test_dates_take_one_form(text: str, canonical: str) -> None:
    assert canonical_text(text) == canonical


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["and", "or", "not", "in", "eq", "gt", "a", ""]), inner, max_size=3)
        ),
        max_leaves=20,
    )
)
def test_no_json_value_does_anything_but_parse_or_be_refused(raw: Any) -> None:
    try:
        parsed = parse_filter(raw)
    except FilterError:
        return
    assert matches(parsed, {"a": "x"}) in (True, False)


def test_conditions_are_listed_and_replaced_at_every_depth() -> None:
    where = parse_filter({"and": [{"a": 1}, {"or": [{"b": 2}, {"not": {"c": [3, 4]}}]}]})
    assert where is not None
    assert [leaf.field for leaf in leaves_of(where)] == ["a", "b", "c"]
    changed = replace_leaves(where, lambda leaf: Equals(f"{leaf.field}2", True))
    assert changed == And((Equals("a2", True), Or((Equals("b2", True), Not(Equals("c2", True))))))
