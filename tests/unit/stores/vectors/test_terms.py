"""Terms say of every payload what `matches` says."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ragstone.core.filters import Equals, Filter, In, Not, Range, matches
from ragstone.core.vectors import RESERVED
from ragstone.stores.vectors.terms import (
    EVERY,
    All,
    Condition,
    Has,
    Lacks,
    Some,
    can_say,
    condition,
    most_lacking,
    terms_of,
)
from ragstone.testing.suites.filter_cases import COMMON, filters, payloads, sample_payloads


def holds(wanted: Condition, terms: set[str]) -> bool:
    match wanted:
        case Has(some):
            return not terms.isdisjoint(some)
        case Lacks(some):
            return terms.isdisjoint(some)
        case All(parts):
            return all(holds(part, terms) for part in parts)
        case Some(parts):
            return any(holds(part, terms) for part in parts)


def check(where: Filter, payload: dict[str, Any]) -> None:
    assert holds(condition(where), set(terms_of(payload))) == matches(where, payload)


@given(filters.filter(can_say), payloads)
def test_a_filter_means_what_it_means_elsewhere(where: Filter, payload: dict[str, Any]) -> None:
    check(where, payload)


@pytest.mark.parametrize("name", [name for name, where in COMMON.items() if can_say(where)])
def test_what_people_ask_for_is_said_of_every_kind_of_value(name: str) -> None:
    for payload in sample_payloads():
        check(COMMON[name], payload)


finite = st.floats(allow_nan=False, allow_infinity=False)
bound = st.one_of(finite, st.integers(-(2**53) + 1, 2**53 - 1), st.sampled_from([0, -0.0, 5e-324, 1.5, -1.5]))


@given(bound, bound, st.one_of(finite, st.integers(-(2**63), 2**63 - 1), st.sampled_from([math.inf, 0.0, -0.0])))
def test_ranges_are_exact_to_the_last_bit(low: float, high: float, stored: float) -> None:
    for where in (
        Range("a", gte=low, lte=high),
        Range("a", gt=low, lt=high),
        Range("a", gt=low),
        Range("a", lte=high),
        Range("a", gt=stored if abs(stored) < 2**53 else low),
        Range("a", gte=low, lte=low),
    ):
        if can_say(where):
            check(where, {"a": stored})
            check(Not(where), {"a": stored})


@given(bound, bound)
def test_a_range_takes_few_terms(low: float, high: float) -> None:
    where = Range("a", gte=low, lte=high)
    assume(can_say(where) and low <= high)
    inside = condition(where)
    assert isinstance(inside, Has)
    assert len(inside.terms) <= 2 * 15 * 16
    assert len(terms_of({"a": low})) == 1 + 1 + 17


@pytest.mark.parametrize(
    "where",
    [
        Range("a", gte="x"),
        Range("a", gt=0, lt=2**53),
        Range("a", gt=-(2**53)),
        Not(Range("a", gt=1e300)),
        *(Equals(name, "x") for name in RESERVED),
    ],
)
def test_what_cannot_be_said_exactly_is_refused(where: Filter) -> None:
    assert not can_say(where)


def test_terms_are_short_ascii_that_trimming_cannot_change() -> None:
    hostile = {"a": " x ", "b": "é\x00\ud800", "c": "x" * 10_000, "d": ["\n", "🜂"], "e": -0.0}
    for term in terms_of(hostile):
        assert term.isascii()
        assert term.isprintable()
        assert term == term.strip()
        assert len(term) < 120


def test_long_texts_are_told_apart() -> None:
    one, other = "x" * 1000 + "a", "x" * 1000 + "b"
    check(Equals("a", one), {"a": one})
    check(Equals("a", one), {"a": other})


def test_own_fields_have_no_terms_and_every_point_has_one() -> None:
    assert terms_of(dict.fromkeys(RESERVED, "x")) == [EVERY]
    assert terms_of({"a": None, "b": [], "c": math.nan, "d": {"e": 1}, "f": [None, [1]]}) == [EVERY]


def test_none_of_no_values_is_everything() -> None:
    assert condition(In("a", ())) == Lacks((EVERY,))
    assert condition(Not(In("a", ()))) == Has((EVERY,))


def test_the_longest_negation_is_measured() -> None:
    assert most_lacking(condition(Not(In("a", (1, 2, 3))))) == 3
    assert most_lacking(condition(In("a", (1, 2, 3)))) == 0
