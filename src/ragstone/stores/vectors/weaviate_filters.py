"""Conditions in Weaviate's `where` language, as its REST interface takes them."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.core.filters import Filter
from ragstone.core.types import Json
from ragstone.core.vectors import Place
from ragstone.stores.vectors.terms import All, Condition, Has, Lacks, Some, can_say, condition, most_lacking
from ragstone.stores.vectors.weaviate_schema import plain

MAX_LACKING = 100
"""Each term that must be missing is a condition of its own, and the engine takes them one by one."""


def can_translate(where: Filter) -> bool:
    """Whether the engine can apply it, at a bearable cost."""
    return can_say(where) and most_lacking(condition(where)) <= MAX_LACKING


def within(place: Place, *more: Json) -> Json:
    """The points of a place that also meet all other conditions."""
    own = [equals("tenant_id", plain(place.tenant_id)), equals("space", plain(place.space))]
    return {"operator": "And", "operands": [*own, *more]}


def passing(where: Filter) -> Json:
    """The condition of a filter that `can_translate` takes."""
    return _clause(condition(where))


def one_of(name: str, values: Sequence[str]) -> Json:
    return {"path": [name], "operator": "ContainsAny", "valueTextArray": list(values)}


def between(name: str, low: int, high: int) -> list[Json]:
    """From `low` to below `high`."""
    return [
        {"path": [name], "operator": "GreaterThanEqual", "valueInt": low},
        {"path": [name], "operator": "LessThan", "valueInt": high},
    ]


def equals(name: str, value: str) -> Json:
    return {"path": [name], "operator": "Equal", "valueText": value}


def _clause(wanted: Condition) -> Json:
    match wanted:
        case Has(terms):
            return one_of("terms", terms)
        case Lacks(terms):
            # The engine answers NotEqual by all that Equal does not find, so points without the term count.
            return _joined(
                "And", [{"path": ["terms"], "operator": "NotEqual", "valueText": term} for term in terms]
            )
        case All(parts):
            return _joined("And", [_clause(part) for part in parts])
        case Some(parts):
            return _joined("Or", [_clause(part) for part in parts])


def _joined(operator: str, clauses: list[Json]) -> Json:
    return clauses[0] if len(clauses) == 1 else {"operator": operator, "operands": clauses}
