"""Milvus expressions say of every payload what `matches` says, and nothing that a user wrote stands in them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.filters import And, Equals, Filter, In, Not, Or, Range, matches
from ragstone.core.vectors import RESERVED
from ragstone.stores.vectors.milvus.filters import (
    COMPARED,
    EXACT,
    MOST_VALUES,
    can_translate,
    expression,
    ranges_of,
    terms_of,
)
from ragstone.testing.suites.filter_cases import COMMON, filters, payloads, sample_payloads

SAFE = re.compile(
    r"""(?: array_contains(_any)? | terms | ranges | exists | and | or | not | id
          | "[0-9a-f]*" | -?\d+(\.\d+)?(e[+-]?\d+)? | [<>]=? | [!=]= | [()\[\],\s] )*""",
    re.VERBOSE,
)


def holds(where: Filter, payload: dict[str, Any]) -> bool:
    """What the expression comes to: but for one word it is Python as well."""
    spelt = re.sub(r'exists ranges\["(\w+)"\]', r'("\1" in ranges)', expression(where))
    names = {
        "id": "some",
        "terms": terms_of(payload),
        "ranges": ranges_of(payload),
        "array_contains": lambda terms, term: term in terms,
        "array_contains_any": lambda terms, some: not set(terms).isdisjoint(some),
    }
    return bool(eval(spelt, {}, names))


def check(where: Filter, payload: dict[str, Any]) -> None:
    assert SAFE.fullmatch(expression(where))
    assert holds(where, payload) == matches(where, payload)


@given(filters.filter(can_translate), payloads)
def test_a_filter_means_what_it_means_elsewhere(where: Filter, payload: dict[str, Any]) -> None:
    check(where, payload)


@pytest.mark.parametrize("name", COMMON)
def test_what_people_ask_for_is_said_of_every_kind_of_value(name: str) -> None:
    assert can_translate(COMMON[name])
    for payload in sample_payloads():
        check(COMMON[name], payload)


bounds = st.one_of(st.floats(-1e15, 1e15), st.integers(-EXACT + 1, EXACT - 1), st.sampled_from([-0.0, 5e-324]))
numbers = st.one_of(bounds, st.floats(allow_nan=False), st.integers(-(2**80), 2**80), st.just(10**400))


@given(bounds, numbers)
def test_numbers_are_compared_to_the_last_bit(bound: float, stored: float) -> None:
    for where in (Range("a", gt=bound), Range("a", gte=bound), Range("a", lt=bound), Range("a", lte=bound)):
        check(where, {"a": stored})
        check(Not(where), {"a": bound})


texts = st.one_of(
    st.text(max_size=20), st.text("ab", min_size=50, max_size=70), st.text("é\ud800\U0001f702", max_size=40)
)


@given(texts, texts)
def test_texts_are_compared_as_they_sort(bound: str, stored: str) -> None:
    for where in (Range("a", gt=bound), Range("a", gte=bound), Range("a", lt=bound), Range("a", lte=bound)):
        if can_translate(where):
            check(where, {"a": stored})
            check(where, {"a": bound + stored})
        else:
            assert len(bound.encode("utf-8", "surrogatepass")) >= COMPARED


@pytest.mark.parametrize(
    "where",
    [
        Range("a"),
        Range("a", gt=1, lt="x"),
        Range("a", gt=EXACT),
        Not(Range("a", lte=-EXACT)),
        Or((Equals("a", 1), Range("a", gt=1e300))),
        Range("a", gt="x" * COMPARED),
        Range("a", gte="é" * (COMPARED // 2)),
        In("a", tuple(range(MOST_VALUES + 1))),
        And((In("a", tuple(range(MOST_VALUES))), Equals("b", 1))),
        *(Not(Equals(name, "x")) for name in RESERVED),
    ],
)
def test_what_cannot_be_said_exactly_is_refused(where: Filter) -> None:
    assert not can_translate(where)


@pytest.mark.parametrize("where", [In("a", ()), Not(In("a", ())), And(()), Or(()), Not(Or(()))])
def test_nothing_and_everything_can_be_said(where: Filter) -> None:
    check(where, {})
    check(where, {"a": 1})


def test_own_fields_and_odd_values_are_no_terms() -> None:
    assert terms_of(dict.fromkeys(RESERVED, "x")) == []
    odd = {"a": None, "b": [], "c": math.nan, "d": {"e": 1}, "f": [None, [1], math.nan]}
    assert terms_of(odd) == []
    assert ranges_of(odd | {"g": True, "h": [1]}) == {}


def _all_equal(values: Iterable[Any]) -> bool:
    return len({terms_of({"a": value})[0] for value in values}) == 1


def test_equal_values_have_one_term_and_others_another() -> None:
    assert _all_equal([1, 1.0])
    assert _all_equal([0, 0.0, -0.0])
    assert _all_equal([2**62, float(2**62)])
    distinct = [1, True, "1", "true", 2, "", 0, False, 2**62 + 1, 2**62]
    assert len({terms_of({"a": value})[0] for value in distinct}) == len(distinct)
    assert terms_of({"a": "b"}) != terms_of({"b": "a"})


def test_hostile_names_and_texts_leave_no_trace() -> None:
    hostile = 'x" or id != "'
    where = Or((Equals(hostile, hostile), Range(hostile, gte=hostile), In(hostile, (hostile, "\x00", "\ud800"))))
    assert can_translate(where)
    check(where, {hostile: hostile})
    check(where, {hostile: "other"})
