"""Weaviate's classes, tenants and objects as Ragstone names and shapes them.

The properties of a class are the same whatever the metadata holds: a property for each metadata field would show one
tenant's field names to all others, and would refuse the first document whose field is of another kind.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence

import numpy as np

from ragstone.core.filters import Filter
from ragstone.core.ids import content_hash
from ragstone.core.types import Json
from ragstone.core.vectors import Isolation, Point, VectorPartition
from ragstone.stores.vectors.checks import unit
from ragstone.stores.vectors.rest import numbers
from ragstone.stores.vectors.terms import All, Condition, Has, Lacks, Some, can_say, condition, most_lacking, terms_of

PLAIN = re.compile(r"[a-z0-9]{1,64}")
IDS = uuid.UUID("6d0bd1c6-2c5c-5b0e-9a4c-52bd0f1a7a11")
SLOTS = 65_536
"""Points are dealt out by their id, so that all ids of a partition can be read a part at a time."""
DIMENSION = re.compile(r"(\d+) dimensions")


def plain(name: str) -> str:
    """Return the id as it is, or its hash where it holds what a class or a query cannot."""
    return name if PLAIN.fullmatch(name) else f"X{content_hash(name)[:40]}"


def class_name(partition: VectorPartition, isolation: Isolation) -> str:
    """Return the name of the class of a partition, or of its dimension where partitions share one."""
    if isolation == "collection":
        return f"Rs_{plain(partition.tenant_id)}_{plain(partition.space)}"
    return f"Rs_{isolation}_d{partition.dimension}"


def class_definition(partition: VectorPartition, isolation: Isolation) -> Json:
    return {
        "class": class_name(partition, isolation),
        "description": f"Ragstone: vectors of {partition.dimension} dimensions",
        "vectorizer": "none",
        "vectorIndexType": "hnsw",
        "vectorIndexConfig": {"distance": "cosine"},
        "multiTenancyConfig": {"enabled": isolation == "namespace"},
        "properties": [
            *(_text(name) for name in ("tenant_id", "space", "chunk_id", "document_id")),
            {"name": "chunk_index", "dataType": ["int"], "indexFilterable": True},
            {"name": "slot", "dataType": ["int"], "indexFilterable": True},
            _text("terms", kind="text[]"),
            _text("payload", filterable=False),
        ],
    }


def _text(name: str, *, kind: str = "text", filterable: bool = True) -> Json:
    # Not searchable, and as a whole: a term is equal or it is not.
    return {
        "name": name,
        "dataType": [kind],
        "tokenization": "field",
        "indexFilterable": filterable,
        "indexSearchable": False,
    }


def dimension_of(definition: Json) -> int | None:
    """Return the dimension that a class of ours was made for."""
    found = DIMENSION.search(str(definition.get("description") or ""))
    return int(found[1]) if found else None


def object_of(partition: VectorPartition, isolation: Isolation, point: Point) -> Json:
    """Return a point as Weaviate stores it. The id names the partition, so that equal chunk ids never meet."""
    number = uuid.uuid5(IDS, json.dumps([partition.tenant_id, partition.space, point.chunk_id]))
    properties: dict[str, Json] = {
        "tenant_id": plain(partition.tenant_id),
        "space": plain(partition.space),
        "chunk_id": point.chunk_id,
        "slot": number.int % SLOTS,
        "terms": terms_of(point.payload),
        "payload": json.dumps(dict(point.payload)),
    }
    if isinstance(document := point.payload.get("document_id"), str):
        properties["document_id"] = plain(document)
    if isinstance(index := point.payload.get("chunk_index"), int) and 0 <= index < 2**31:
        properties["chunk_index"] = int(index)
    made = {
        "class": class_name(partition, isolation),
        "id": str(number),
        "properties": properties,
        "vector": numbers(unit(point.vector, f"chunk {point.chunk_id}")),
    }
    return made | {"tenant": plain(partition.tenant_id)} if isolation == "namespace" else made


def point_of(row: Json) -> Point:
    """Return the point as it was given, with a vector of length one."""
    vector = np.array(row["_additional"]["vector"], np.float32)
    return Point(row["chunk_id"], unit(vector), json.loads(row["payload"]))


MAX_LACKING = 100
"""Each term that must be missing is a condition of its own, and the engine takes them one by one."""


def can_translate(where: Filter) -> bool:
    """Return whether the engine can apply the filter at an acceptable cost."""
    return can_say(where) and most_lacking(condition(where)) <= MAX_LACKING


def within(partition: VectorPartition, *more: Json) -> Json:
    """Return the condition of being in a partition and meeting all other conditions."""
    own = [equals("tenant_id", plain(partition.tenant_id)), equals("space", plain(partition.space))]
    return {"operator": "And", "operands": [*own, *more]}


def passing(where: Filter) -> Json:
    """Return the condition of a filter that `can_translate` takes."""
    return _clause(condition(where))


def one_of(name: str, values: Sequence[str]) -> Json:
    return {"path": [name], "operator": "ContainsAny", "valueTextArray": list(values)}


def between(name: str, low: int, high: int) -> list[Json]:
    """Return the conditions of lying from `low` to below `high`."""
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
            return _join("And", [{"path": ["terms"], "operator": "NotEqual", "valueText": term} for term in terms])
        case All(parts):
            return _join("And", [_clause(part) for part in parts])
        case Some(parts):
            return _join("Or", [_clause(part) for part in parts])


def _join(operator: str, clauses: list[Json]) -> Json:
    return clauses[0] if len(clauses) == 1 else {"operator": operator, "operands": clauses}
