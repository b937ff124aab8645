"""Points and filters in Chroma's words.

Chroma compares a number with every number column after casting it, so that 0.5 finds a stored 0: all numbers are
stored as floats, and only such as a float holds exactly are looked for. A list has to be of one type there: its items
are stored as texts that name their type. A field that is not there passes `$ne`, `$nin` and `$not_contains`, just as
it passes `not` here; but nothing in Chroma says "not in this range".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ragstone.core.filters import BOUNDS, And, Equals, Filter, In, Not, Or, Range, Scalar
from ragstone.core.types import Json
from ragstone.core.vectors import RESERVED, Point, VectorPartition
from ragstone.stores.vectors.checks import count_values, names_reserved

Where = dict[str, Any]
PAYLOAD = "ragstone:payload"
"""The payload as it was given, as JSON; the colon keeps it apart from every metadata key."""
EXACT = 2**53
MOST_VALUES = 32
"""Chroma looks into lists for one value at a time; the ledger is faster than it from about here on."""


def metadata_of(partition: VectorPartition, point: Point) -> dict[str, Any]:
    """Return the metadata of a vector: the whole payload, and each field that a filter may name."""
    fields = {
        name: stored
        for name, value in point.payload.items()
        if name not in RESERVED and (stored := _to_stored(value)) is not None
    }
    own = {"tenant_id": partition.tenant_id, "space": partition.space, "chunk_id": point.chunk_id}
    return fields | own | {PAYLOAD: json.dumps(dict(point.payload))}


def payload_of(metadata: Mapping[str, Any]) -> Mapping[str, Json]:
    """Return the payload that `metadata_of` stored."""
    payload: Mapping[str, Json] = json.loads(metadata[PAYLOAD])
    return payload


def belongs_to(partition: VectorPartition) -> Where:
    """Return the condition that keeps a call within a partition of a shared collection."""
    return {"$and": [{"tenant_id": partition.tenant_id}, {"space": partition.space}]}


def can_translate(where: Filter) -> bool:
    """Return whether Chroma applies the filter with exactly our meaning."""
    return not names_reserved(where) and _is_exact(where, negated=False) and count_values(where) <= MOST_VALUES


def translate(where: Filter, *, negated: bool = False) -> Where | bool:
    """Return the filter for Chroma, which has no `not`; True or False when all or none can pass."""
    match where:
        case Equals(field, value):
            return _one_of(field, (value,), negated)
        case In(field, values):
            return _one_of(field, values, negated)
        case Range(field=field):
            bounds = {name: getattr(where, name) for name in BOUNDS}
            return join_conditions("$and", ({field: {f"${n}": float(b)}} for n, b in bounds.items() if b is not None))
        case Not(term):
            return translate(term, negated=not negated)
        case And(terms) | Or(terms):
            operator = "$and" if isinstance(where, And) != negated else "$or"
            return join_conditions(operator, (translate(term, negated=negated) for term in terms))


def join_conditions(operator: str, conditions: Iterable[Where | bool]) -> Where | bool:
    """Join conditions: Chroma takes neither constants nor an operator with a single operand."""
    decides = operator == "$or"
    parts: list[Where] = []
    for condition in conditions:
        if condition is decides:
            return decides
        if not isinstance(condition, bool):
            parts.append(condition)
    if not parts:
        return not decides
    return parts[0] if len(parts) == 1 else {operator: parts}


def _one_of(field: str, values: tuple[Scalar, ...], negated: bool) -> Where | bool:
    groups: dict[type, list[Any]] = {}
    for value in values:
        stored = _to_stored(value)
        groups.setdefault(type(stored), []).append(stored)
    alone = "$nin" if negated else "$in"
    listed = "$not_contains" if negated else "$contains"
    return join_conditions(
        "$and" if negated else "$or",
        [{field: {alone: group}} for group in groups.values()]
        + [{field: {listed: item}} for item in dict.fromkeys(map(_item, values))],
    )


def _to_stored(value: Json) -> str | float | bool | list[str] | None:
    """Return a value as Chroma keeps it; None for what no filter can match."""
    match value:
        case bool() | str():
            return value
        case int() | float():
            return float(value)
        case list() | tuple():
            return [_item(item) for item in value if isinstance(item, str | int | float)] or None
    return None


def _item(value: Scalar) -> str:
    """Return an item of a list as text: the same for 1 and 1.0, another for "1" and for true."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)


def _is_exact(where: Filter, *, negated: bool) -> bool:
    match where:
        case Equals(_, value):
            return _is_plain(value)
        case In(_, values):
            return all(map(_is_plain, values))
        case Range():
            bounds = [getattr(where, name) for name in BOUNDS]
            return not negated and all(bound is None or _is_bound(bound) for bound in bounds)
        case Not(term):
            return _is_exact(term, negated=not negated)
        case And(terms) | Or(terms):
            return all(_is_exact(term, negated=negated) for term in terms)


def _is_plain(value: Scalar) -> bool:
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return isinstance(value, bool) or abs(value) < EXACT


def _is_bound(value: Scalar) -> bool:
    return not isinstance(value, str | bool) and abs(value) < EXACT
