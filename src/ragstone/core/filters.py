"""Filters over document and chunk metadata: a small typed tree, one grammar for every store.

JSON form, as users write it:

    {"source_type": "papers"}                          equals
    {"year": {"in": [2025, 2026]}}                     one of
    {"date": {"gte": "2026-01-01", "lt": "2026-02-01"}} range; dates compare as dates
    {"and": [...]}, {"or": [...]}, {"not": {...}}       combinations; several keys in one object mean `and`

Depth, number of terms, operators and field names are bounded here, so a store only ever sees a safe tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from ragstone.core.clock import canonical, canonical_text
from ragstone.core.errors import FilterError

MAX_DEPTH = 4
MAX_TERMS = 20
MAX_VALUES = 1000
FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
BOUNDS = ("gt", "gte", "lt", "lte")
Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Equals:
    field: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class In:
    field: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Range:
    field: str
    gt: Scalar | None = None
    gte: Scalar | None = None
    lt: Scalar | None = None
    lte: Scalar | None = None


@dataclass(frozen=True, slots=True)
class And:
    terms: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    terms: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    term: Filter


Leaf = Equals | In | Range
Filter = Leaf | And | Or | Not


def parse_filter(raw: object) -> Filter | None:
    """Read the JSON form; None for an empty one. Anything outside the grammar is a `FilterError`."""
    if raw is None or raw == {}:
        return None
    parsed = _parse(raw, depth=1)
    if sum(1 for _ in leaves_of(parsed)) > MAX_TERMS:
        raise FilterError(f"a filter may have at most {MAX_TERMS} terms")
    return parsed


def matches(where: Filter | None, fields: Mapping[str, Any]) -> bool:
    """Return whether metadata passes a filter: what every store's translation is tested against."""
    match where:
        case None:
            return True
        case Equals(field, value):
            return _same(fields.get(field), value)
        case In(field, values):
            return any(_same(fields.get(field), value) for value in values)
        case Range():
            return _within(where, fields.get(where.field))
        case And(terms):
            return all(matches(term, fields) for term in terms)
        case Or(terms):
            return any(matches(term, fields) for term in terms)
        case Not(term):
            return not matches(term, fields)


def _parse(raw: object, depth: int) -> Filter:
    if depth > MAX_DEPTH:
        raise FilterError(f"a filter may be nested at most {MAX_DEPTH} deep")
    if not isinstance(raw, Mapping) or not raw:
        raise FilterError(f"a filter is an object such as {{'source_type': 'papers'}}, not {raw!r:.80}")
    terms = tuple(_term(key, value, depth) for key, value in raw.items())
    return terms[0] if len(terms) == 1 else And(terms)


def _term(key: object, value: object, depth: int) -> Filter:
    if key in ("and", "or"):
        if not isinstance(value, list) or not value:
            raise FilterError(f"'{key}' takes a list of filters")
        terms = tuple(_parse(item, depth + 1) for item in value)
        return And(terms) if key == "and" else Or(terms)
    if key == "not":
        return Not(_parse(value, depth + 1))
    if not isinstance(key, str) or not FIELD.fullmatch(key):
        raise FilterError(
            f"{key!r:.80} is not a field name", hint="letters, digits, '_', '.' and '-', starting with a letter"
        )
    if isinstance(value, Mapping):
        return _operator(key, value)
    if isinstance(value, list):
        return _one_of(key, value)
    return Equals(key, _scalar(key, value))


def _operator(field: str, operators: Mapping[Any, Any]) -> Filter:
    if set(operators) == {"eq"}:
        return Equals(field, _scalar(field, operators["eq"]))
    if set(operators) == {"in"}:
        return _one_of(field, operators["in"])
    unknown = [name for name in operators if name not in BOUNDS]
    if unknown or not operators:
        name = unknown[0] if unknown else "{}"
        raise FilterError(f"unknown operator {name!r:.40} for '{field}'", hint="use eq, in, gt, gte, lt or lte")
    bounds = {name: _scalar(field, bound) for name, bound in operators.items()}
    if any(isinstance(operators[name], int) and isinstance(bound, str) for name, bound in bounds.items()):
        raise FilterError(f"the bounds of '{field}' must fit in 64 bits")
    kinds = {isinstance(bound, str) for bound in bounds.values()}
    if len(kinds) > 1:
        raise FilterError(f"the bounds of '{field}' must be all numbers or all text")
    return Range(field, **bounds)


def _one_of(field: str, values: object) -> In:
    if not isinstance(values, list) or len(values) > MAX_VALUES:
        raise FilterError(f"'in' for '{field}' takes a list of at most {MAX_VALUES} values")
    return In(field, tuple(_scalar(field, value) for value in values))


def _scalar(field: str, value: object) -> Scalar:
    if isinstance(value, datetime | date):
        return canonical(value)
    if isinstance(value, str):
        return canonical_text(value)
    if isinstance(value, bool | int | float):
        if value != value or value in (float("inf"), float("-inf")):
            raise FilterError(f"the value of '{field}' must be a finite number")
        return canonical_number(value)
    raise FilterError(f"the value of '{field}' must be text, a number, true or false, not {value!r:.60}")


def canonical_number(value: float) -> Scalar:
    """Return an integer that does not fit 64 bits as text, since no store keeps all its digits as a number."""
    return str(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def leaves_of(where: Filter) -> Iterator[Leaf]:
    """Yield the conditions on single fields that a filter is made of."""
    match where:
        case And(terms) | Or(terms):
            for term in terms:
                yield from leaves_of(term)
        case Not(term):
            yield from leaves_of(term)
        case _:
            yield where


def replace_leaves(where: Filter, change: Callable[[Leaf], Filter]) -> Filter:
    """Return a filter whose conditions on single fields are those that `change` gives for them."""
    match where:
        case And(terms):
            return And(tuple(replace_leaves(term, change) for term in terms))
        case Or(terms):
            return Or(tuple(replace_leaves(term, change) for term in terms))
        case Not(term):
            return Not(replace_leaves(term, change))
        case _:
            return change(where)


def _same(stored: Any, wanted: Scalar) -> bool:
    if isinstance(stored, list | tuple):
        return any(_equal(item, wanted) for item in stored)
    return _equal(stored, wanted)


def _equal(stored: Any, wanted: Scalar) -> bool:
    if isinstance(stored, bool) or isinstance(wanted, bool):
        return stored is wanted
    if isinstance(stored, str) and isinstance(wanted, str):
        return stored == wanted
    return isinstance(stored, int | float) and isinstance(wanted, int | float) and stored == wanted


def _within(bounds: Range, stored: Any) -> bool:
    text = any(isinstance(bound, str) for bound in (bounds.gt, bounds.gte, bounds.lt, bounds.lte))
    if isinstance(stored, bool) or not isinstance(stored, str if text else int | float):
        return False
    # `parse_filter` made sure that all bounds are of one kind, which the union type cannot say.
    above: Any = bounds.gt
    from_: Any = bounds.gte
    below: Any = bounds.lt
    upto: Any = bounds.lte
    return (
        (above is None or stored > above)
        and (from_ is None or stored >= from_)
        and (below is None or stored < below)
        and (upto is None or stored <= upto)
    )
