"""Payloads and filters to try a provider's filter translation with, and Hypothesis strategies for more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from ragstone.core.documents import clean_metadata
from ragstone.core.filters import BOUNDS, Filter, parse_filter
from ragstone.core.types import Json

FIELDS = ("a", "b.c", "d-e", "_f")
TEXTS = ("", "x", "X", "xy", "1", "1.0", "true", "null", "2026-01-01", "' OR 1=1 --", '"]} or', "%_\\", "é\x00")
NUMBERS = (0, 1, -1, 2, 1.0, 0.5, -0.5, 0.1, 1e300, -1e-300, 2**53, 2**53 + 1, 2**62 + 1, -(2**63))
SCALARS = (*TEXTS, *NUMBERS, True, False)
LISTS: tuple[list[Json], ...] = ([], ["x"], ["x", "1"], [1], [1, 2], [0.5, 2], [True], ["x", 1, True], [None])


def _parse(raw: Json) -> Filter:
    where = parse_filter(raw)
    assert where is not None
    return where


COMMON: Mapping[str, Filter] = {
    name: _parse(raw)
    for name, raw in {
        "text": {"a": "x"},
        "whole number": {"a": 1},
        "broken number": {"a": 0.5},
        "true": {"a": True},
        "false": {"a": False},
        "one of texts": {"a": {"in": ["x", "1"]}},
        "one of numbers": {"a": {"in": [1, 2]}},
        "one of a mixture": {"a": {"in": ["x", 1, True]}},
        "one of none": {"a": {"in": []}},
        "range of numbers": {"a": {"gte": 0, "lt": 2}},
        "range of texts": {"a": {"gte": "2026-01-01", "lt": "2026-02-01"}},
        "and": {"a": "x", "b.c": 1},
        "or": {"or": [{"a": "x"}, {"b.c": {"gt": 0.5}}]},
        "not": {"not": {"a": "x"}},
        "not of a range": {"not": {"a": {"gt": 0}}},
        "nested": {"and": [{"not": {"or": [{"a": "x"}, {"b.c": 1}]}}, {"d-e": True}]},
    }.items()
}
"""Filters that people use, by name. A provider says which of these its engine cannot do; it does all others itself."""


def sample_payloads() -> list[dict[str, Json]]:
    """Return every kind of value in one field, beside other kinds in the next, and fields that are not there."""
    values: list[Json] = [*SCALARS, *LISTS, None]
    payloads: list[dict[str, Json]] = [
        {"a": value, "b.c": values[at - 7], "d-e": values[at - 19]} for at, value in enumerate(values)
    ]
    return [dict(clean_metadata(payload)) for payload in ({}, {"_f": "x"}, *payloads)]


_numbers = st.one_of(
    st.sampled_from(NUMBERS), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
)
_texts = st.one_of(st.sampled_from(TEXTS), st.text(max_size=4))
_scalars = st.one_of(_texts, _numbers, st.booleans())
_values = st.one_of(_scalars, st.none(), st.lists(st.one_of(_scalars, st.none()), max_size=3))
payloads: st.SearchStrategy[dict[str, Json]] = st.dictionaries(st.sampled_from(FIELDS), _values, max_size=4).map(
    lambda raw: dict(clean_metadata(raw))
)
"""Flat payloads, as they leave the ledger."""

_names = st.sampled_from((*FIELDS, "missing"))
_bounds = st.one_of(
    st.dictionaries(st.sampled_from(BOUNDS), _texts, min_size=1, max_size=2),
    st.dictionaries(st.sampled_from(BOUNDS), _numbers, min_size=1, max_size=2),
)
_leaves: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda field, value: {field: value}, _names, _scalars),
    st.builds(lambda field, values: {field: {"in": values}}, _names, st.lists(_scalars, max_size=4)),
    st.builds(lambda field, bounds: {field: bounds}, _names, _bounds),
)


def _combine(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda terms: {"and": terms}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda terms: {"or": terms}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda term: {"not": term}, inner),
    )


filters: st.SearchStrategy[Filter] = st.one_of(_leaves, _combine(_leaves), _combine(_combine(_leaves))).map(_parse)
"""Filters of every operator and combination, as they leave `parse_filter`."""
