"""What the Qdrant double keeps and how it searches: numpy rows, and filters as Qdrant's documentation words them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ragstone.core.types import Json, Vector
from ragstone.testing.rest_double import Refused, check_fields

CLAUSES = ("must", "should", "must_not")
BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": lambda value, bound: value > bound,
    "gte": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "lte": lambda value, bound: value <= bound,
}


def shape(body: Json, required: Mapping[str, type], optional: Mapping[str, type] | None = None) -> None:
    """Refuse a body with a field too few, too many or of another kind than documented."""
    known = {**required, **(optional or {})}
    check_fields(body, required.keys(), known.keys())
    for name in body:
        # JSON has one kind of number, but true is none.
        kind = (int, float) if known[name] is float else known[name]
        if not isinstance(body[name], kind) or (isinstance(body[name], bool) and kind not in (bool, object)):
            raise Refused(400, f"field `{name}` must be {known[name].__name__}, not {body[name]!r:.80}")


def point_id(raw: Json) -> str | int:
    """An id as Qdrant keeps it: an unsigned number or a UUID in any spelling."""
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < 2**64:
        return raw
    try:
        return str(uuid.UUID(raw))
    except (ValueError, AttributeError, TypeError):
        raise Refused(400, f"value {raw!r:.80} is not a valid point ID") from None


class Collection:
    """One collection of cosine vectors. Its owner locks."""

    distance = "Cosine"

    def __init__(self, size: int, hnsw: dict[str, Json]) -> None:
        self.size = size
        self.hnsw = hnsw
        self.indexes: dict[str, Json] = {}
        self.points: dict[str | int, tuple[Vector, dict[str, Json]]] = {}

    def put(self, raw: Json) -> None:
        """Store a point over the one of the same id."""
        shape(raw, {"id": object, "vector": list}, {"payload": dict})
        row = np.asarray(self.checked(raw["vector"]), np.float32)
        length = np.linalg.norm(row)
        self.points[point_id(raw["id"])] = (row / length if length else row, raw.get("payload", {}))

    def checked(self, vector: Json) -> list[float]:
        """Refuse a vector that does not fit."""
        if not isinstance(vector, list) or not all(isinstance(one, int | float) for one in vector):
            raise Refused(400, "a vector is a list of numbers")
        if len(vector) != self.size:
            raise Refused(
                400, f"Wrong input: Vector dimension error: expected dim: {self.size}, got {len(vector)}"
            )
        return vector

    def passing(self, where: Json) -> list[str | int]:
        """The ids that pass a filter, in order."""
        check = _filter(where) if where is not None else _everything
        return sorted((one for one, (_, payload) in self.points.items() if check(one, payload)), key=str)

    def nearest(self, vector: Json, where: Json, limit: int) -> list[tuple[str | int, float]]:
        """The best ids with their cosine."""
        query = np.asarray(self.checked(vector), np.float32)
        query /= np.linalg.norm(query) or 1
        ids = self.passing(where)
        scores = [float(self.points[one][0] @ query) for one in ids]
        return sorted(zip(ids, scores, strict=True), key=lambda pair: -pair[1])[:limit]


Check = Callable[[str | int, Mapping[str, Json]], bool]


def _everything(_: str | int, __: Mapping[str, Json]) -> bool:
    return True


def _filter(raw: Json) -> Check:
    shape(raw, {}, dict.fromkeys(CLAUSES, list))
    must, should, must_not = ([_condition(one) for one in raw.get(clause, [])] for clause in CLAUSES)

    def check(one: str | int, payload: Mapping[str, Json]) -> bool:
        return (
            all(part(one, payload) for part in must)
            and not any(part(one, payload) for part in must_not)
            and (not should or any(part(one, payload) for part in should))
        )

    return check


def _condition(raw: Json) -> Check:
    if not isinstance(raw, dict):
        raise Refused(400, "a condition is an object")
    if "has_id" in raw:
        shape(raw, {"has_id": list})
        ids = {point_id(one) for one in raw["has_id"]}
        return lambda one, _: one in ids
    if "key" not in raw:
        return _filter(raw)
    shape(raw, {"key": str}, {"match": dict, "range": dict})
    if ("match" in raw) == ("range" in raw):
        raise Refused(400, "a field condition has a match or a range")
    accepts = _match(raw["match"]) if "match" in raw else _range(raw["range"])
    path = _path(raw["key"])
    return lambda _, payload: any(map(accepts, _values(payload, path)))


def _match(raw: Json) -> Callable[[Json], bool]:
    shape(raw, {}, {"value": object, "any": list})
    wanted = [raw["value"]] if "value" in raw else raw.get("any", [])
    kinds = {type(one) for one in wanted}
    if len(raw) != 1 or len(kinds) > 1 or not kinds <= ({str, int, bool} if "value" in raw else {str, int}):
        raise Refused(400, f"a match of {raw!r:.80} is not documented")
    return lambda value: any(type(value) is type(one) and value == one for one in wanted)


def _range(raw: Json) -> Callable[[Json], bool]:
    shape(raw, {}, dict.fromkeys(BOUNDS, float))
    return lambda value: (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and all(BOUNDS[name](float(value), float(bound)) for name, bound in raw.items())
    )


def _path(key: str) -> list[str]:
    if len(key) > 2 and key[0] == key[-1] == '"' and '"' not in key[1:-1]:
        return [key[1:-1]]
    parts = key.split(".")
    if not all(part.replace("_", "a").replace("-", "a").isalnum() for part in parts):
        raise Refused(400, f"{key!r:.80} is not a JSON path")
    return parts


def _values(payload: Json, path: list[str]) -> list[Json]:
    for part in path:
        if not isinstance(payload, dict) or part not in payload:
            return []
        payload = payload[part]
    return payload if isinstance(payload, list) else [payload]
