"""Chunks in Qdrant: their physical ids, and payloads that people can read and the engine can filter.

A payload keeps every field as it was given where the engine holds it exactly. What it would change or cannot hold is
written a second time as JSON, so that reading gives back the same; the filterable copy is then the nearest value that
answers every accepted filter in the same way.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ragstone.core.errors import InputError, StoreCorrupt
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Json
from ragstone.core.vectors import Point, VectorPartition, Words

LISTS = "ragstone_lists"
"""Names the fields that hold a list: a range never matches those, whatever is in them."""
GIVEN = "ragstone_given"
"""The fields, as JSON, that the engine would not give back as they were."""
OWN = frozenset({"tenant_id", "space", "chunk_id", LISTS, GIVEN})
DENSE, WORDS = "dense", "words"
"""The names of a point's two vectors, in a collection that holds words."""
EXACT = 2**53
"""From here on a number may lose digits: the engine compares them as 64-bit floats."""

_NAMESPACE = uuid.UUID("7d6a3c52-64c8-5b0f-9b0e-3f1f4d3f1c7a")
_PLAIN = re.compile(r"[0-9A-Za-z-]{1,100}")


class QdrantPoint(NamedTuple):
    """A point in the engine's own words."""

    id: str
    vector: list[float]
    """Empty when there is none."""
    payload: dict[str, Json]
    words: Words | None = None


def collection_of(partition: VectorPartition) -> str:
    """Return the name of the collection that belongs to this partition alone."""
    if _PLAIN.fullmatch(partition.tenant_id) and _PLAIN.fullmatch(partition.space):
        return f"rs_{partition.tenant_id}_{partition.space}"
    # Without a second underscore: no pair of plain ids can have this name.
    digest = hashlib.sha256(json.dumps([partition.tenant_id, partition.space]).encode()).hexdigest()
    return f"rs_h{digest[:32]}"


def physical_id(partition: VectorPartition, chunk_id: str) -> str:
    """Return an id that no other tenant or space can name."""
    return str(uuid.uuid5(_NAMESPACE, json.dumps([partition.tenant_id, partition.space, chunk_id])))


def to_stored(partition: VectorPartition, point: Point) -> QdrantPoint:
    """Return a point as it is sent to the engine."""
    if not np.isfinite(point.vector).all():
        raise InputError(f"the vector of chunk {point.chunk_id} holds numbers that are not finite")
    payload: dict[str, Json] = {}
    given: dict[str, Json] = {}
    for name, value in point.payload.items():
        kept = _filterable(value)
        if name in OWN or not _is_text(name) or not _comes_back(kept, value):
            given[name] = value
        if name not in OWN and _is_text(name) and (kept is not None or value is None):
            payload[name] = kept
    lists = [name for name, value in payload.items() if isinstance(value, list)]
    payload |= {"tenant_id": partition.tenant_id, "space": partition.space, "chunk_id": point.chunk_id}
    payload |= {LISTS: lists} if lists else {}
    payload |= {GIVEN: json.dumps(given)} if given else {}
    vector: list[float] = np.asarray(point.vector, np.float32).tolist()
    return QdrantPoint(physical_id(partition, point.chunk_id), vector, payload, point.words)


def belongs(partition: VectorPartition, payload: Mapping[str, Json]) -> bool:
    """Return whether a payload is of this partition: ids cannot collide, and this is checked all the same."""
    return payload.get("tenant_id") == partition.tenant_id and payload.get("space") == partition.space


def chunk_id_of(payload: Mapping[str, Json] | None) -> str | None:
    """Return the chunk id of a payload; None for a point that Ragstone did not write."""
    name = (payload or {}).get("chunk_id")
    return name if isinstance(name, str) else None


def to_point(stored: QdrantPoint) -> Point:
    """Return a point as it was given."""
    payload = {name: value for name, value in stored.payload.items() if name not in OWN}
    try:
        payload |= json.loads(stored.payload.get(GIVEN, "{}"))
        chunk_id = stored.payload["chunk_id"]
    except (ValueError, TypeError, KeyError) as error:
        raise StoreCorrupt(
            f"the payload of point {stored.id} in Qdrant was changed by someone else",
            hint="a repair writes the point again",
            remedy=Remedy(Action.REPAIR_STORES),
        ) from error
    return Point(chunk_id, np.array(stored.vector, np.float32), payload, stored.words)


def from_record(record: Any) -> QdrantPoint:
    """Return a point as an engine gives it back, with one vector alone or with several by name."""
    vector, words = record.vector or [], None
    if isinstance(vector, Mapping):
        sparse = vector.get(WORDS)
        words = Words(sparse.indices, sparse.values) if sparse else None
        vector = list(vector.get(DENSE, ()))
    return QdrantPoint(str(record.id), vector, record.payload or {}, words)


def vectors_by_name(point: QdrantPoint, sparse: Callable[[Words], Any]) -> dict[str, Any]:
    """Return those of the two vectors that the point has; it may have none."""
    dense: dict[str, Any] = {DENSE: point.vector} if point.vector else {}
    return dense | ({WORDS: sparse(point.words)} if point.words and point.words.numbers else {})


def _filterable(value: Json) -> Json:
    """Return the value as the engine can compare it; None for one that no filter can match."""
    if isinstance(value, list | tuple):
        items = (None if isinstance(item, list | tuple) else _filterable(item) for item in value)
        return [item for item in items if item is not None]
    if isinstance(value, str):
        return value if _is_text(value) else None
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        # Only its place among smaller numbers matters: no accepted filter names one as large.
        return math.copysign(sys.float_info.max, 1 if value > 0 else -1)
    if isinstance(value, float):
        return _comparable(value)
    return value if isinstance(value, int) else None


def _comparable(value: float) -> float | None:
    if math.isnan(value):
        return None
    if math.isinf(value):
        return math.copysign(sys.float_info.max, value)
    # The engine tells 1.0 from 1; a filter does not.
    return int(value) if value.is_integer() and abs(value) < EXACT else value


def _comes_back(kept: Json, value: Json) -> bool:
    """Return whether the engine gives the same value back. Floats may lose their last bit on the way through JSON."""
    if isinstance(value, list):
        return len(kept) == len(value) and all(map(_comes_back, kept, value))
    return kept is value and not isinstance(value, float)


def _is_text(value: object) -> bool:
    """Return whether this is text that can be sent: a lone surrogate is no character in any encoding."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
