"""Filters as sets of terms, for engines whose own fields are too few or too loose for `core.filters.matches`.

Every point carries the terms of its payload in one list of short ASCII texts, and a filter becomes a condition that
asks for nothing but "has one of these" and "has none of these". So text is never taken for a number nor 1 for true,
a list matches by its items, a missing field has no term, and a tenant's field names never enter a shared schema.

    ["year",2026]           the field, or an item of its list, equals the value
    ["year","#","c09fa8"]   the field is a number that starts so when it is written to sort as text
    []                      of every point
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ragstone.core.filters import BOUNDS, And, Equals, Filter, In, Not, Or, Range, Scalar, leaves_of
from ragstone.core.ids import content_hash
from ragstone.core.types import Json
from ragstone.core.vectors import RESERVED
from ragstone.stores.vectors.checks import names_reserved

EVERY = "[]"
LONGEST_TEXT = 200
EXACT = 2**53
"""Whole numbers from here on are rounded when they are sorted, so that no range may start or end there."""
DIGITS = 16


@dataclass(frozen=True, slots=True)
class Has:
    """At least one of these terms."""

    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lacks:
    """None of these terms."""

    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Condition, ...]


Condition = Has | Lacks | All | Some


def terms_of(payload: Mapping[str, Json]) -> list[str]:
    """Return the terms a point can be found by; Ragstone's own fields are no metadata."""
    found = [EVERY]
    for field, value in payload.items():
        if field in RESERVED:
            continue
        if isinstance(value, list | tuple):
            found += [_equal(field, item) for item in value if _is_scalar(item)]
        elif _is_scalar(value):
            found.append(_equal(field, value))
            if not isinstance(value, str | bool):
                digits = f"{_sortable(value):0{DIGITS}x}"
                found += [_number(field, digits[:length]) for length in range(DIGITS + 1)]
    return list(dict.fromkeys(found))


def can_say(where: Filter) -> bool:
    """Return whether terms express the filter exactly: all but ranges of text or of huge numbers."""
    return not names_reserved(where) and all(_is_exact(leaf) for leaf in leaves_of(where) if isinstance(leaf, Range))


def condition(where: Filter, *, negated: bool = False) -> Condition:
    """Return the filter over terms. Negations are carried down to the terms, since few engines negate anything else."""
    match where:
        case Equals(field, value):
            return _having([_equal(field, value)], negated)
        case In(field, values):
            return _having([_equal(field, value) for value in values], negated)
        case Range():
            return _outside(where) if negated else _inside(where)
        case Not(term):
            return condition(term, negated=not negated)
        case And(terms) | Or(terms):
            parts = tuple(condition(term, negated=negated) for term in terms)
            return All(parts) if isinstance(where, And) != negated else Some(parts)


def most_lacking(wanted: Condition) -> int:
    """Return the length of the longest "none of these", which some engines must spell out term by term."""
    match wanted:
        case Has():
            return 0
        case Lacks(terms):
            return len(terms)
        case All(parts) | Some(parts):
            return max(map(most_lacking, parts), default=0)


def _having(terms: list[str], negated: bool) -> Condition:
    if not terms:
        terms, negated = [EVERY], not negated
    unique = tuple(dict.fromkeys(terms))
    return Lacks(unique) if negated else Has(unique)


def _inside(where: Range) -> Condition:
    return _having(_between(where.field, *_limits(where)), negated=False)


def _outside(where: Range) -> Condition:
    low, high = _limits(where)
    if low > high:
        return Has((EVERY,))
    others = _between(where.field, LOWEST, low - 1) + _between(where.field, high + 1, HIGHEST)
    return Some((Lacks((_number(where.field, ""),)), _having(others, negated=False)))


def _equal(field: str, value: Scalar) -> str:
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return _write_term(field, "sha256", content_hash(value))
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**64:
        value = int(value)
    return _write_term(field, value)


def _number(field: str, digits: str) -> str:
    return _write_term(field, "#", digits)


def _write_term(*parts: Scalar) -> str:
    # ASCII and closed by a bracket: nothing that an engine trims, folds or decodes can change it.
    return json.dumps(parts, separators=(",", ":"))


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and value == value


def _sortable(number: float) -> int:
    """Return the number's 64 bits, turned so that they sort as the numbers do."""
    try:
        whole = float(number) + 0.0  # there is one zero
    except OverflowError:
        whole = math.inf if number > 0 else -math.inf
    (bits,) = struct.unpack(">Q", struct.pack(">d", whole))
    return int(bits ^ (2**64 - 1) if bits >> 63 else bits | 2**63)


LOWEST = _sortable(-math.inf)
HIGHEST = _sortable(math.inf)


def _between(field: str, low: int, high: int) -> list[str]:
    return [_number(field, digits) for digits in _prefixes(low, high)]


def _prefixes(low: int, high: int) -> Iterator[str]:
    """Yield the fewest prefixes such that all numbers from `low` to `high`, and no others, have one of them."""
    for length in range(DIGITS, 0, -1):
        while low <= high and (low % 16 or length == 1):
            yield f"{low:0{length}x}"
            low += 1
        while low <= high and high % 16 != 15:
            yield f"{high:0{length}x}"
            high -= 1
        if low > high:
            return
        low, high = low // 16, high // 16


def _limits(where: Range) -> tuple[int, int]:
    low, high = LOWEST, HIGHEST
    if where.gt is not None:
        low = max(low, _sortable(float(where.gt)) + 1)
    if where.gte is not None:
        low = max(low, _sortable(float(where.gte)))
    if where.lt is not None:
        high = min(high, _sortable(float(where.lt)) - 1)
    if where.lte is not None:
        high = min(high, _sortable(float(where.lte)))
    return low, high


def _is_exact(where: Range) -> bool:
    bounds = [getattr(where, name) for name in BOUNDS]
    return all(bound is None or (not isinstance(bound, str) and abs(bound) < EXACT) for bound in bounds)
