"""Filters in Qdrant's own words: the JSON of its REST interface, which the other two engines are given as well.

What Qdrant would answer differently is refused. It compares numbers as 64-bit floats and has no order of texts, so
large numbers and ranges of texts are left to the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ragstone.core.filters import FIELD, And, Equals, Filter, In, Not, Or, Range, Scalar, leaves_of
from ragstone.core.types import Json
from ragstone.core.vectors import RESERVED
from ragstone.stores.vectors.qdrant.points import EXACT, LISTS, OWN

Condition = dict[str, Json]
"""A condition, or a filter of `must`, `should` and `must_not` that may stand in its place."""


def can_translate(where: Filter) -> bool:
    """Return whether `translate` gives a condition with exactly the meaning of `core.filters.matches`."""
    return all(_can_name(leaf.field) and _can_say(leaf) for leaf in leaves_of(where))


def _can_say(leaf: Equals | In | Range) -> bool:
    match leaf:
        case Equals(_, value):
            return _can_compare(value)
        case In(_, values):
            return all(map(_can_compare, values))
        case Range():
            bounds = _bounds(leaf).values()
            return bool(bounds) and all(_is_number(bound) and _can_compare(bound) for bound in bounds)


def translate(where: Filter) -> Condition | bool:
    """Return the condition for a filter that `can_translate` accepts; True or False when all points answer alike."""
    match where:
        case Equals(field, value):
            return _one_of(field, (value,))
        case In(field, values):
            return _one_of(field, values)
        case Range():
            return _within(where)
        case And(terms):
            return all_of(map(translate, terms))
        case Or(terms):
            return _any_of(map(translate, terms))
        case Not(term):
            inner = translate(term)
            return not inner if isinstance(inner, bool) else {"must_not": [inner]}


def all_of(parts: Iterable[Condition | bool]) -> Condition | bool:
    """Join conditions that must all hold. An empty list would mean nothing to Qdrant, so it becomes True."""
    conditions: list[Condition] = []
    for part in parts:
        if part is False:
            return False
        if part is not True:
            conditions += part["must"] if part.keys() == {"must"} else [part]
    return {"must": conditions} if conditions else True


def equals(field: str, value: str) -> Condition:
    """Return the condition that a field has this text."""
    return {"key": field, "match": {"value": value}}


def within(ids: Sequence[str] | None, where: Condition | None) -> Condition:
    """Return the condition of being among the named points, or any, and passing another condition."""
    named: list[Condition] = [] if ids is None else [{"has_id": list(ids)}]
    return {"must": [*named, *([] if where is None else where["must"])]}


def _any_of(parts: Iterable[Condition | bool]) -> Condition | bool:
    conditions: list[Condition] = []
    for part in parts:
        if part is True:
            return True
        if part is not False:
            conditions.append(part)
    return {"should": conditions} if conditions else False


def _one_of(field: str, values: Sequence[Scalar]) -> Condition | bool:
    key = _path(field)
    texts = [value for value in values if isinstance(value, str)]
    whole = [int(value) for value in values if _is_number(value) and float(value).is_integer()]
    broken = [float(value) for value in values if _is_number(value) and not float(value).is_integer()]
    truths = [value for value in values if isinstance(value, bool)]
    return _any_of(
        [
            *({"key": key, "match": {"any": same}} for same in (texts, whole) if same),
            *({"key": key, "match": {"value": truth}} for truth in truths),
            # A match takes no broken numbers, but a range of one number is the same.
            *({"key": key, "range": {"gte": number, "lte": number}} for number in broken),
        ]
    )


def _within(where: Range) -> Condition:
    bounds = {name: float(bound) for name, bound in _bounds(where).items()}
    return {
        "must": [{"key": _path(where.field), "range": bounds}],
        # A range of Qdrant's looks into lists; ours is about single values.
        "must_not": [equals(LISTS, where.field)],
    }


def _bounds(where: Range) -> dict[str, Any]:
    named = {"gt": where.gt, "gte": where.gte, "lt": where.lt, "lte": where.lte}
    return {name: bound for name, bound in named.items() if bound is not None}


def _path(field: str) -> str:
    """Return a field as a JSON path: a dot in a name would otherwise lead into an object."""
    return f'"{field}"' if "." in field else field


def _can_name(field: str) -> bool:
    return FIELD.fullmatch(field) is not None and field not in RESERVED and field not in OWN


def _can_compare(value: Scalar) -> bool:
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return isinstance(value, bool) or abs(value) < EXACT


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
