from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import mysql, oracle, postgresql

from ragstone.core.documents import clean_metadata
from ragstone.ingest.sources.database.rows import (
    RowQuery,
    as_metadata,
    as_text,
    find_furthest,
    from_cursor,
    step_back,
    to_cursor,
)

MOMENT = datetime(2026, 3, 4, 5, 6, 7, 890, tzinfo=UTC)
UID = UUID("12345678123456781234567812345678")


@pytest.mark.parametrize(
    ("value", "text", "metadata"),
    [
        ("words", "words", "words"),
        (None, "", None),
        (b"bytes", "", None),
        (memoryview(b"bytes"), "", None),
        (True, "true", True),
        (7, "7", 7),
        (0.5, "0.5", 0.5),
        (float("nan"), "nan", None),
        (float("inf"), "inf", None),
        (Decimal("19.90"), "19.90", 19.9),
        (Decimal("3.00"), "3.00", 3),
        (Decimal("0.1234567890123456789"), "0.1234567890123456789", "0.1234567890123456789"),
        (Decimal("1E+400"), "1E+400", "1E+400"),
        (Decimal("NaN"), "NaN", "NaN"),
        (MOMENT, "2026-03-04 05:06:07.000890+00:00", MOMENT),
        (date(2026, 3, 4), "2026-03-04", date(2026, 3, 4)),
        (time(5, 6), "05:06:00", "05:06:00"),
        (timedelta(hours=1), "1:00:00", "1:00:00"),
        (UID, str(UID), str(UID)),
        ({"a": ["ü"]}, '{"a": ["ü"]}', {"a": ["ü"]}),
        (object, "<class 'object'>", None),
    ],
)
def test_values_become_text_and_metadata(value: Any, text: str, metadata: Any) -> None:
    assert as_text(value) == text
    assert as_metadata(value) == metadata
    clean_metadata({"field": as_metadata(value)})


@given(
    st.one_of(
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])),
        st.datetimes(timezones=st.sampled_from([None, UTC])),
        st.dates(),
        st.decimals(allow_nan=False, allow_infinity=False),
    )
)
def test_a_cursor_comes_back_from_json_as_it_was(value: Any) -> None:
    back = from_cursor(json.loads(json.dumps(to_cursor(value, "changed"))))
    assert (back, type(back)) == (value, type(value))


QUERY = RowQuery("SELECT id, body::text, 'a:b' FROM t -- all", ("id", "Changed"), ("id",), "Changed")


def sql(statement: Any, dialect: Any) -> str:
    return " ".join(str(statement.compile(dialect=dialect.dialect())).split())


def test_a_page_is_the_same_question_in_postgresql() -> None:
    inner = "( SELECT id, body::text, 'a:b' FROM t -- all ) AS source_rows"
    start = f'SELECT source_rows.id, source_rows."Changed" FROM {inner} WHERE source_rows."Changed" IS NOT NULL'
    known = f"{start} AND source_rows.id IS NOT NULL"
    order = 'ORDER BY source_rows."Changed", source_rows.id LIMIT %(param_1)s::INTEGER'
    assert sql(QUERY.page(None, None, 5), postgresql) == f"{known} {order}"
    assert (
        sql(QUERY.page(MOMENT, None, 5), postgresql)
        == f'{known} AND source_rows."Changed" >= %(Changed_1)s::TIMESTAMP WITH TIME ZONE {order}'
    )
    behind = (
        'source_rows."Changed" > %(Changed_1)s::TIMESTAMP WITH TIME ZONE OR '
        'source_rows."Changed" = %(Changed_2)s::TIMESTAMP WITH TIME ZONE AND source_rows.id > %(id_1)s::INTEGER'
    )
    assert sql(QUERY.page(None, (MOMENT, 7), 5), postgresql) == f"{known} AND ({behind}) {order}"


def test_a_page_can_be_asked_of_other_databases() -> None:
    assert sql(QUERY.page(None, (MOMENT, 7), 5), mysql).endswith(
        "ORDER BY source_rows.`Changed`, source_rows.id LIMIT %s"
    )
    assert "FETCH FIRST" in sql(QUERY.page(None, None, 5), oracle)


def test_rows_without_a_place_are_counted_in_the_database() -> None:
    assert sql(QUERY.count_unplaced(), postgresql) == (
        "SELECT count(*) AS count_1 FROM ( SELECT id, body::text, 'a:b' FROM t -- all ) AS source_rows "
        'WHERE source_rows."Changed" IS NULL OR source_rows.id IS NULL'
    )


@pytest.mark.parametrize(
    ("reached", "begins"),
    [
        (MOMENT, MOMENT - timedelta(minutes=10)),
        (MOMENT.replace(tzinfo=None), MOMENT.replace(tzinfo=None) - timedelta(minutes=10)),
        (date(2026, 1, 1), date(2025, 12, 31)),
        (datetime.min.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)),
        (date.min, date.min),
        (7, 7),
        ("2026-01-01", "2026-01-01"),
        (None, None),
    ],
)
def test_a_run_begins_a_little_before_the_time_that_was_reached(reached: Any, begins: Any) -> None:
    assert step_back(reached) == begins


@pytest.mark.parametrize(
    ("kept", "reached", "furthest"),
    [
        (MOMENT, MOMENT - timedelta(1), MOMENT),
        (MOMENT, MOMENT + timedelta(1), MOMENT + timedelta(1)),
        (date(2026, 1, 2), date(2026, 1, 1), date(2026, 1, 2)),
        ("b", "B", "B"),
        (None, MOMENT, MOMENT),
        (MOMENT, MOMENT.replace(tzinfo=None), MOMENT.replace(tzinfo=None)),
        (date(2026, 1, 2), MOMENT, MOMENT),
        (MOMENT, 7, 7),
    ],
)
def test_of_times_the_later_is_kept(kept: Any, reached: Any, furthest: Any) -> None:
    assert find_furthest(kept, reached) == furthest
