"""A class of the Weaviate double: its objects by tenant, compared exactly, and its `where` conditions."""

from __future__ import annotations

import operator
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from tests.doubles.rest import Refused, check_fields
from tests.doubles.weaviate_graphql import Word

from ragstone.core.types import Json, Vector

NAME = re.compile(r"[A-Z][_0-9A-Za-z]{0,254}")
PROPERTY = re.compile(r"[_A-Za-z][_0-9A-Za-z]{0,230}")
KINDS = {
    "text": lambda value: isinstance(value, str),
    "text[]": lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "Equal": operator.eq,
    "NotEqual": operator.ne,
    "GreaterThan": operator.gt,
    "GreaterThanEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanEqual": operator.le,
}


@dataclass(frozen=True, slots=True)
class Stored:
    """An object, with the values that conditions are asked of."""

    id: str
    properties: Mapping[str, Json]
    vector: Vector
    values: Mapping[str, frozenset[Json]] = field(default_factory=dict)


Test = Callable[[Stored], bool]


class ClassDouble:
    """A class as it was defined, and what is in it."""

    def __init__(self, definition: Json) -> None:
        check_definition(definition)
        self.definition = definition
        self.name: str = definition["class"]
        self.many_tenants: bool = definition["multiTenancyConfig"]["enabled"]
        self.properties: dict[str, Json] = {one["name"]: one for one in definition["properties"]}
        self.objects: dict[str, dict[str, Stored]] = {} if self.many_tenants else {"": {}}

    def of(self, tenant: str) -> dict[str, Stored]:
        """The objects of a tenant, or all where tenants have none of their own."""
        if bool(tenant) != self.many_tenants:
            raise Refused(422, f"class {self.name} has multi-tenancy {'en' if self.many_tenants else 'dis'}abled")
        if tenant not in self.objects:
            raise Refused(422, f'tenant not found: "{tenant}"')
        return self.objects[tenant]

    def put(self, given: Json) -> None:
        check_fields(given, {"class", "id", "properties", "vector"}, {"tenant"})
        objects = self.of(given.get("tenant", ""))
        for name, value in given["properties"].items():
            if name not in self.properties:
                raise Refused(422, f"no such prop with name '{name}'")
            if not KINDS[self.properties[name]["dataType"][0]](value):
                raise Refused(422, f"invalid value of property '{name}'")
        vector = np.array(given["vector"], np.float32)
        there = next((len(one.vector) for some in self.objects.values() for one in some.values()), len(vector))
        if len(vector) != there:
            raise Refused(422, f"new node has a vector with length {len(vector)}. Existing nodes: {there}")
        one = str(uuid.UUID(given["id"]))
        objects[one] = Stored(one, given["properties"], vector, _values(given["properties"]))

    def nearest(self, found: Sequence[Stored], vector: Json) -> list[tuple[Stored, float]]:
        """Objects with their cosine distance, nearest first."""
        if not found:
            return []
        rows, query = np.stack([one.vector for one in found]), np.array(vector, np.float32)
        if rows.shape[1] != len(query):
            raise Refused(200, f"vector lengths don't match: {rows.shape[1]} vs {len(query)}")
        cosines = rows @ query / (np.linalg.norm(rows, axis=1) * np.linalg.norm(query))
        order = np.argsort(-cosines, kind="stable")
        return [(found[at], float(1 - cosines[at])) for at in order]

    def passing(self, where: Json, *, graphql: bool) -> Test:
        """What a condition asks of an object; the two interfaces differ in how they write it."""
        if not isinstance(where, dict) or isinstance(where.get("operator"), Word) != graphql:
            raise Refused(422, "malformed where: operator")
        if where["operator"] in ("And", "Or"):
            check_fields(where, {"operator", "operands"})
            tests = [self.passing(part, graphql=graphql) for part in where["operands"]]
            if not tests:
                raise Refused(422, "operands are empty")
            joined = all if where["operator"] == "And" else any
            return lambda one: joined(test(one) for test in tests)
        ((key, value),) = ((key, value) for key, value in where.items() if key not in ("operator", "path"))
        (name,) = where["path"]
        if not self.properties.get(name, {}).get("indexFilterable"):
            raise Refused(422, f"no such filterable prop with name '{name}' found in class '{self.name}'")
        if self.properties[name]["dataType"] == ["int"]:
            return _whole_numbers(name, str(where["operator"]), key, value)
        return _texts(name, str(where["operator"]), key, value, graphql=graphql)


def _whole_numbers(name: str, comparison: str, key: str, value: Json) -> Test:
    if key != "valueInt" or not isinstance(value, int) or comparison not in COMPARISONS:
        raise Refused(422, f"malformed condition on '{name}'")
    compare = COMPARISONS[comparison]
    return lambda one: any(compare(held, value) for held in one.values.get(name, ()))


def _texts(name: str, comparison: str, key: str, value: Json, *, graphql: bool) -> Test:
    several = comparison == "ContainsAny"
    wanted = "valueTextArray" if several and not graphql else "valueText"
    texts = value if isinstance(value, list) else [value]
    if key != wanted or isinstance(value, list) != several or not texts or not all(map(_is_text, texts)):
        raise Refused(422, f"malformed condition on '{name}'")
    # A text that is kept as a whole is trimmed all the same.
    given = frozenset(one.strip() for one in texts)
    if comparison in ("Equal", "ContainsAny"):
        return lambda one: not given.isdisjoint(one.values.get(name, ()))
    if comparison == "NotEqual":
        return lambda one: given.isdisjoint(one.values.get(name, ()))
    raise Refused(422, f"operator {comparison} is not one of this double")


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and not isinstance(value, Word)


def _values(properties: Mapping[str, Json]) -> dict[str, frozenset[Json]]:
    def trimmed(value: Json) -> Iterable[Json]:
        held = value if isinstance(value, list) else [value]
        return (one.strip() if isinstance(one, str) else one for one in held)

    return {name: frozenset(trimmed(value)) for name, value in properties.items()}


def check_definition(definition: Json) -> None:
    """Refuse a class that the real server would not make."""
    named = {"class", "vectorizer", "vectorIndexType", "vectorIndexConfig", "multiTenancyConfig", "properties"}
    check_fields(definition, named, {"description"})
    if not NAME.fullmatch(definition["class"]):
        raise Refused(422, f"'{definition['class']}' is not a valid class name")
    if definition["vectorizer"] != "none" or definition["vectorIndexConfig"] != {"distance": "cosine"}:
        raise Refused(422, "this double knows no vectorizer and no distance but cosine")
    for one in definition["properties"]:
        check_fields(one, {"name", "dataType"}, {"tokenization", "indexFilterable", "indexSearchable"})
        if not PROPERTY.fullmatch(one["name"]) or one["name"] in ("id", "_id", "_additional"):
            raise Refused(422, f"'{one['name']}' is not a valid property name")
        if one["dataType"][0] not in KINDS or ("tokenization" in one and one["dataType"] == ["int"]):
            raise Refused(422, f"property '{one['name']}': data type and tokenization do not fit")
