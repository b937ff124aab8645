"""Filters in PostgreSQL's SQL mean what they mean in Python, and metadata comes back as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.conformance.postgres_server import EMPTY, server

from ragstone.core.documents import clean_metadata
from ragstone.core.filters import MAX_TERMS, MAX_VALUES, Filter, Scalar, matches, parse_filter
from ragstone.stores.ledger.postgres.dialect import condition
from ragstone.stores.ledger.postgres.session import PostgresConnection, adapt
from ragstone.testing.suites import filter_cases

SHOWN = (
    "FROM (SELECT ?::text AS id, ?::text AS title, ?::text AS modified_at, ?::jsonb AS metadata) d, "
    "(SELECT ?::int AS page, ?::int AS level) c"
)
NESTED = st.recursive(
    st.sampled_from([*filter_cases.SCALARS, None]),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("ak"), inner, max_size=2)),
    max_leaves=5,
)
STORABLE = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")


@pytest.fixture(scope="module")
def rows() -> Iterator[PostgresConnection]:
    with psycopg.connect(server(18).dsn(EMPTY), autocommit=True) as connection:
        found = connection.execute("SELECT 'halfvec'::regtype::oid::int").fetchone()
        assert found is not None
        adapt(connection, found[0])
        yield PostgresConnection(connection)


def selects(rows: PostgresConnection, where: Filter, metadata: Mapping[str, Any], **columns: Scalar | None) -> bool:
    """Whether a document of this metadata passes the filter's SQL."""
    shown = {"id": "d1", "title": "A title", "modified_at": None, "page": 3, "level": 0} | columns
    parameters: list[Any] = [
        *(shown[name] for name in ("id", "title", "modified_at")),
        rows.dialect.to_json(metadata),
        *(shown[name] for name in ("page", "level")),
    ]
    sql = condition(where, parameters)
    passed, undecided = rows.execute(
        f"SELECT {sql}, ({sql}) IS NULL {SHOWN}", (*parameters[6:], *parameters[6:], *parameters[:6])
    ).fetchone()
    assert not undecided
    return bool(passed)


def without_nul(value: Any) -> Any:
    """What PostgreSQL cannot keep is another character there: tested on its own."""
    match value:
        case str():
            return value.replace("\x00", "\ufffd")
        case list():
            return [without_nul(item) for item in value]
        case dict():
            return {key: without_nul(item) for key, item in value.items()}
    return value


@pytest.mark.req("R-STO-26")
@settings(deadline=None)
@given(where=filter_cases.filters, metadata=filter_cases.payloads)
def test_sql_and_python_agree(rows: PostgresConnection, where: Filter, metadata: dict[str, Any]) -> None:
    assume("\\x00" not in repr((where, metadata)))
    assert selects(rows, where, metadata) == matches(where, metadata)


@settings(deadline=None)
@given(where=filter_cases.filters, value=NESTED)
def test_lists_and_objects_inside_match_nothing_of_theirs(rows: PostgresConnection, where: Filter, value: Any) -> None:
    metadata = without_nul(clean_metadata({"a": value}))
    assume("\\x00" not in repr(where))
    assert selects(rows, where, metadata) == matches(where, metadata)


@pytest.mark.parametrize("metadata", filter_cases.sample_payloads())
def test_every_kind_of_value_against_every_common_filter(rows: PostgresConnection, metadata: dict[str, Any]) -> None:
    for name, where in filter_cases.COMMON.items():
        assert selects(rows, where, metadata) == matches(where, without_nul(metadata)), name


@settings(deadline=None)
@given(
    value=st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(-(2**63), 2**63 - 1),
            st.floats(allow_nan=False, allow_infinity=False),
            st.text(STORABLE, max_size=8),
        ),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(STORABLE), inner, max_size=2)),
        max_leaves=6,
    )
)
def test_what_is_stored_as_json_comes_back_as_it_was(rows: PostgresConnection, value: Any) -> None:
    (stored,) = rows.execute("SELECT ?::jsonb", (rows.dialect.to_json(value),)).fetchone()
    back = json.loads(stored)
    assert back == value
    assert kinds(back) == kinds(value)


def kinds(value: Any) -> Any:
    match value:
        case list():
            return [kinds(item) for item in value]
        case dict():
            return {key: kinds(item) for key, item in value.items()}
    return type(value)


@pytest.mark.parametrize(
    ("raw", "passes"),
    [
        ({"title": "A title"}, True),
        ({"title": "a title"}, False),
        ({"title": {"in": ["x", "A title", 3, True]}}, True),
        ({"title": {"gte": "A", "lt": "B"}}, True),
        ({"title": {"gte": 1}}, False),
        ({"document_id": "d1"}, True),
        ({"page": 3}, True),
        ({"page": 3.0}, True),
        ({"page": 3.5}, False),
        ({"page": "3"}, False),
        ({"page": True}, False),
        ({"page": {"in": [1, "x", 3]}}, True),
        ({"page": {"gte": 2, "lt": 4}}, True),
        ({"page": {"gt": 3}}, False),
        ({"page": {"gt": "2"}}, False),
        ({"page": {"in": []}}, False),
        ({"level": 0}, True),
        ({"level": {"gt": True}}, False),
        ({"modified_at": "2026-01-01"}, False),
        ({"modified_at": {"lt": "2026-01-01"}}, False),
        ({"not": {"modified_at": {"lt": "2026-01-01"}}}, True),
        ({"not": {"modified_at": "2026-01-01"}}, True),
    ],
)
def test_columns_are_filtered_by_their_own_type(rows: PostgresConnection, raw: dict[str, Any], passes: bool) -> None:
    where = parse_filter(raw)
    assert where is not None
    assert selects(rows, where, {}) is passes


def test_text_is_in_order_of_its_characters_whatever_the_locale(rows: PostgresConnection) -> None:
    names = ["a", "B", "a-b", "a_b", "ab", "é", "z", "\ufffd", "\U0001f600"]
    for low in names:
        for high in names:
            where = parse_filter({"name": {"lt": high}})
            assert where is not None
            assert selects(rows, where, {"name": low}) is (low < high)


def test_a_nul_and_half_a_surrogate_pair_are_found_as_what_they_became(rows: PostgresConnection) -> None:
    for stored, asked in (("a\x00b", "a\x00b"), ("a\x00b", "a\ufffdb"), ("a\ud800b", "a?b")):
        where = parse_filter({"name": asked})
        assert where is not None
        assert selects(rows, where, {"name": stored})


@pytest.mark.parametrize("field", ["tag", "title", "page"])
def test_the_longest_list_of_values_is_taken(rows: PostgresConnection, field: str) -> None:
    values = [f"v{n}" for n in range(MAX_VALUES - 1)]
    where = parse_filter({"or": [{field: {"in": [*values, last]}} for last in [*range(MAX_TERMS - 1), "hit"]]})
    assert where is not None
    assert selects(rows, where, {"tag": "hit"}, title="hit", page=7)
    assert not selects(rows, where, {"tag": "other"}, title="other", page=99)
