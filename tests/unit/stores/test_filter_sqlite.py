"""Filters in SQL mean what they mean in Python."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.documents import clean_metadata
from ragstone.core.filters import MAX_TERMS, MAX_VALUES, Filter, Scalar, matches, parse_filter
from ragstone.stores.sql.filters import condition

FIELDS = ["a", "b.c", "d-e", "_f"]
BOUNDS = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0.5, -0.5, 1.0, 2.0, 0.1, 1e300, -1e-300, 2.0**53, 2.0**63]),
)
NUMBERS = st.one_of(BOUNDS, st.integers(-(2**70), 2**70))
TEXTS = st.one_of(
    st.sampled_from(["", "x", "X", "1", "true", "2026-01-01", "2026-01-01T00:00:00+00:00", "' OR 1=1 --"]),
    st.text(max_size=4),
)
SCALARS = st.one_of(TEXTS, NUMBERS, st.booleans())
VALUES = st.recursive(
    st.one_of(SCALARS, st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "k"]), inner, max_size=2)
    ),
    max_leaves=5,
)
METADATA = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4)
NAMES = st.sampled_from([*FIELDS, "missing"])
LEAVES = st.one_of(
    st.builds(lambda field, value: {field: value}, NAMES, SCALARS),
    st.builds(lambda field, values: {field: {"in": values}}, NAMES, st.lists(SCALARS, max_size=4)),
    st.builds(
        lambda field, bounds: {field: bounds},
        NAMES,
        st.one_of(
            st.dictionaries(st.sampled_from(["gt", "gte", "lt", "lte"]), bound, min_size=1, max_size=2)
            for bound in (TEXTS, st.one_of(BOUNDS, st.booleans()))
        ),
    ),
)


def _combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda terms: {"and": terms}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda terms: {"or": terms}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda term: {"not": term}, inner),
    )


FILTERS = st.one_of(LEAVES, _combined(LEAVES), _combined(_combined(LEAVES)), _combined(_combined(_combined(LEAVES))))


def selects(where: Filter, metadata: Mapping[str, Any], **columns: Scalar | None) -> bool:
    """Whether a document of this metadata passes the filter's SQL."""
    with_defaults = {"id": "d1", "title": "A title", "modified_at": None, "page": 3, "level": 0} | columns
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE TABLE d (id TEXT, title TEXT, modified_at TEXT, metadata TEXT)")
        connection.execute("CREATE TABLE c (page INTEGER, level INTEGER)")
        connection.execute(
            "INSERT INTO d VALUES (?, ?, ?, ?)",
            (*(with_defaults[name] for name in ("id", "title", "modified_at")), json.dumps(metadata)),
        )
        connection.execute("INSERT INTO c VALUES (?, ?)", (with_defaults["page"], with_defaults["level"]))
        parameters: list[Scalar] = []
        sql = f"SELECT count(*) FROM d, c WHERE {condition(where, parameters)}"
        return bool(connection.execute(sql, parameters).fetchone()[0])
    finally:
        connection.close()


@pytest.mark.req("R-STO-26")
@given(raw=FILTERS, metadata=METADATA)
def test_sql_and_python_agree(raw: dict[str, Any], metadata: dict[str, Any]) -> None:
    where = parse_filter(raw)
    assert where is not None
    cleaned = clean_metadata(metadata)
    assert selects(where, cleaned) == matches(where, cleaned)


@pytest.mark.parametrize(
    ("raw", "passes"),
    [
        ({"title": "A title"}, True),
        ({"title": "a title"}, False),
        ({"title": {"in": ["x", "A title"]}}, True),
        ({"document_id": "d1"}, True),
        ({"page": 3}, True),
        ({"page": "3"}, False),
        ({"page": True}, False),
        ({"page": {"gte": 2, "lt": 4}}, True),
        ({"page": {"gt": 3}}, False),
        ({"level": 0}, True),
        ({"modified_at": "2026-01-01"}, False),
        ({"modified_at": {"lt": "2026-01-01"}}, False),
        ({"not": {"modified_at": {"lt": "2026-01-01"}}}, True),
    ],
)
def test_columns_are_filtered_by_their_own_type(raw: dict[str, Any], passes: bool) -> None:
    where = parse_filter(raw)
    assert where is not None
    assert selects(where, {}) is passes


@pytest.mark.req("R-STO-26")
@pytest.mark.parametrize(
    ("bounds", "passes"),
    [
        ({"gte": "2026-01-01", "lt": "2026-02-01"}, True),
        ({"gte": "2026-01-15T11:00:00+01:00", "lte": "2026-01-15T10:00:00Z"}, True),
        ({"gt": "2026-01-15T10:00:00Z"}, False),
        ({"lt": "2026-01-15"}, False),
    ],
)
def test_dates_compare_as_moments(bounds: dict[str, str], passes: bool) -> None:
    where = parse_filter({"date": bounds})
    assert where is not None
    metadata = clean_metadata({"date": "2026-01-15T10:00:00+00:00"})
    assert selects(where, metadata) is passes
    column = parse_filter({"modified_at": bounds})
    assert column is not None
    assert selects(column, {}, modified_at="2026-01-15T10:00:00+00:00") is passes


@pytest.mark.parametrize("field", ["tag", "title", "page"])
def test_the_longest_list_of_values_is_taken(field: str) -> None:
    values = [f"v{n}" for n in range(MAX_VALUES - 1)]
    where = parse_filter({"or": [{field: {"in": [*values, last]}} for last in [*range(MAX_TERMS - 1), "hit"]]})
    assert where is not None
    assert selects(where, {"tag": "hit"}, title="hit", page=7)
    assert not selects(where, {"tag": "other"}, title="other", page=99)
