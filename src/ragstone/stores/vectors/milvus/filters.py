"""Filters as Milvus expressions, over two fields that every row carries for them.

`terms` holds a digest for each field and value of the payload, `ranges` what may lie between bounds: numbers as
64-bit floats, texts as the hexadecimal digits of their first bytes, which sort as the texts do. So an expression is
made of digests, digits and our own words, nothing that a user wrote stands in it, and what it means does not hang
on how a version of Milvus compares values of two kinds.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping

from ragstone.core.filters import BOUNDS, And, Equals, Filter, In, Not, Or, Range, Scalar, leaves_of
from ragstone.core.types import Json
from ragstone.core.vectors import RESERVED
from ragstone.stores.vectors.checks import count_values, names_reserved

EVERYTHING = 'id != ""'
NOTHING = 'id == ""'
EXACT = 2**53
"""Whole numbers from here on lose digits as floats, so that no bound may lie there."""
COMPARED = 64
"""The bytes of a text that are kept for comparing: enough for any bound that is shorter."""
MOST_VALUES = 2000
"""A filter that names more values is quicker answered by the ledger than parsed by the server."""
SYMBOLS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def terms_of(payload: Mapping[str, Json]) -> list[str]:
    """Return the terms a row can be found by: each field with its value, or with each item of its list."""
    found: dict[str, None] = {}
    for field, value in payload.items():
        if field not in RESERVED:
            items = value if isinstance(value, list | tuple) else (value,)
            found |= dict.fromkeys(_term(field, item) for item in items if _is_scalar(item))
    return list(found)


def ranges_of(payload: Mapping[str, Json]) -> dict[str, float | str]:
    """Return the values a row can be compared by. Lists and truth values lie between no bounds."""
    found: dict[str, float | str] = {}
    for field, value in payload.items():
        if field not in RESERVED and _is_scalar(value) and not isinstance(value, bool):
            found[_name(field, value)] = _sortable(value) if isinstance(value, str) else _number(value)
    return found


def can_translate(where: Filter) -> bool:
    """Return whether `expression` has exactly the meaning of `core.filters.matches`."""
    ranges = (leaf for leaf in leaves_of(where) if isinstance(leaf, Range))
    return not names_reserved(where) and all(map(_can_compare, ranges)) and count_values(where) <= MOST_VALUES


def expression(where: Filter) -> str:
    """Return the filter as a Milvus expression. Each part is two-valued by itself, so that it may be negated."""
    match where:
        case Equals(field, value):
            return f'array_contains(terms, "{_term(field, value)}")'
        case In(field, values):
            return _one_of([_term(field, value) for value in values])
        case Range():
            return _within(where)
        case And(terms):
            return _join(" and ", terms, EVERYTHING)
        case Or(terms):
            return _join(" or ", terms, NOTHING)
        case Not(term):
            return f"(not ({expression(term)}))"


def _join(word: str, terms: Iterable[Filter], otherwise: str) -> str:
    parts = [f"({expression(term)})" for term in terms]
    return f"({word.join(parts)})" if parts else otherwise


def _one_of(terms: Iterable[str]) -> str:
    listed = ", ".join(f'"{term}"' for term in dict.fromkeys(terms))
    return f"array_contains_any(terms, [{listed}])" if listed else NOTHING


def _within(where: Range) -> str:
    bounds = [(SYMBOLS[name], getattr(where, name)) for name in BOUNDS if getattr(where, name) is not None]
    compared = f'ranges["{_name(where.field, bounds[0][1])}"]'
    tests = [f"({compared} {symbol} {_literal(bound)})" for symbol, bound in bounds]
    # Versions differ on what a missing key compares to; that it is missing they agree on.
    return f"((exists {compared}) and {' and '.join(tests)})"


def _literal(bound: Scalar) -> str:
    return f'"{_sortable(bound)}"' if isinstance(bound, str) else repr(float(bound))


def _term(field: str, value: Scalar) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _digest(field, value)


def _name(field: str, value: Scalar) -> str:
    return _digest(field, "text" if isinstance(value, str) else "number")


def _digest(*parts: Scalar) -> str:
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=12).hexdigest()


def _sortable(text: str) -> str:
    return text.encode("utf-8", "surrogatepass")[:COMPARED].hex()


def _number(value: float) -> float:
    """Return a float; a number larger than any float becomes the largest, which is beyond every bound as well."""
    largest = sys.float_info.max
    return float(max(-largest, min(largest, value)))


def _is_scalar(value: Json) -> bool:
    return isinstance(value, str | int | float) and value == value


def _can_compare(where: Range) -> bool:
    bounds = [bound for name in BOUNDS if (bound := getattr(where, name)) is not None]
    texts = [isinstance(bound, str) for bound in bounds]
    return bool(bounds) and all(texts) == any(texts) and all(map(_can_bound, bounds))


def _can_bound(bound: Scalar) -> bool:
    if isinstance(bound, str):
        return len(bound.encode("utf-8", "surrogatepass")) < COMPARED
    return abs(bound) < EXACT
