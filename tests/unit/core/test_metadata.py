"""Metadata that may enter the ledger."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.documents import MAX_BYTES, clean_metadata
from ragstone.core.errors import InputError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=10,
)


def test_plain_json_stays_as_it_is() -> None:
    raw = {"text": "x", "n": 1, "f": 0.5, "yes": True, "none": None, "list": [1, "a"], "nested": {"k": [{}]}}
    assert clean_metadata(raw) == raw


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (date(2026, 1, 31), "2026-01-31T00:00:00+00:00"),
        (datetime(2026, 1, 31, 9, tzinfo=UTC), "2026-01-31T09:00:00+00:00"),
        ("2026-01-31", "2026-01-31T00:00:00+00:00"),
        (("a", "b"), ["a", "b"]),
        ("lone \ud800 surrogate", "lone ? surrogate"),
        (2**63, "9223372036854775808"),
        (-(2**63), -(2**63)),
        ([date(2026, 1, 31)], ["2026-01-31T00:00:00+00:00"]),
        ({"when": date(2026, 1, 31)}, {"when": "2026-01-31T00:00:00+00:00"}),
    ],
)
def test_values_take_their_stored_form(value: Any, stored: Any) -> None:
    assert clean_metadata({"key": value}) == {"key": stored}


@pytest.mark.parametrize(
    "raw",
    [
        {"key": float("nan")},
        {"key": float("inf")},
        {"key": float("-inf")},
        {"key": b"bytes"},
        {"key": {1, 2}},
        {"key": object()},
        {"key": [object()]},
        {"": 1},
        {"a b": 1},
        {7: 1},
        {"key": {"a'b": 1}},
        {"k" * 65: 1},
    ],
)
def test_what_is_not_json_or_has_no_name_is_refused(raw: dict[Any, Any]) -> None:
    with pytest.raises(InputError):
        clean_metadata(raw)


def test_the_size_is_bounded() -> None:
    assert clean_metadata({"key": "x" * (MAX_BYTES - 11)})
    with pytest.raises(InputError, match="larger than 64 KiB"):
        clean_metadata({"key": "x" * MAX_BYTES})


def test_the_depth_is_bounded() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(InputError, match="deep"):
        clean_metadata({"key": deep})


@given(st.dictionaries(st.sampled_from(["a", "b.c", "d-e"]), VALUES, max_size=3))
def test_cleaning_is_done_after_one_time(raw: dict[str, Any]) -> None:
    once = clean_metadata(raw)
    assert clean_metadata(once) == once
    assert json.loads(json.dumps(once)) == once
