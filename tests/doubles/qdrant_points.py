"""What the Qdrant double keeps and how it searches: numpy rows, and filters as Qdrant's documentation words them."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tests.doubles.rest import Refused, check_fields

from ragstone.core.types import Json, Vector

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


DEFAULT = ""
"""The name of a vector that was given none."""
LARGEST = 2**32


class Collection:
    """One collection of cosine vectors, perhaps with a sparse one beside each. Its owner locks."""

    distance = "Cosine"

    def __init__(self, size: int, hnsw: dict[str, Json], dense: str = DEFAULT, sparse: str | None = None) -> None:
        self.size = size
        self.hnsw = hnsw
        self.dense = dense
        self.sparse = sparse
        self.indexes: dict[str, Json] = {}
        self.points: dict[str | int, tuple[Vector | None, dict[str, Json]]] = {}
        self.words: dict[str | int, dict[int, float]] = {}

    def put(self, raw: Json) -> None:
        """Store a point over the one of the same id, with all its vectors."""
        shape(raw, {"id": object, "vector": object}, {"payload": dict})
        given = {DEFAULT: raw["vector"]} if isinstance(raw["vector"], list) else raw["vector"]
        if not isinstance(given, dict) or not given.keys() <= {self.dense, self.sparse}:
            raise Refused(400, "Wrong input: Not existing vector name error")
        row = None
        if self.dense in given:
            row = np.asarray(self.checked(given[self.dense]), np.float32)
            row /= np.linalg.norm(row) or 1
        words = checked_words(given[self.sparse]) if self.sparse in given else None
        one = point_id(raw["id"])
        self.points[one] = (row, raw.get("payload", {}))
        self.words.pop(one, None)
        if words is not None:
            self.words[one] = words

    def remove(self, one: str | int) -> None:
        """Remove a point, if it is there."""
        self.points.pop(one, None)
        self.words.pop(one, None)

    def vectors(self, one: str | int) -> Json:
        """The vectors of a point as they are given back."""
        row, _ = self.points[one]
        if self.dense == DEFAULT and row is not None:
            return row.tolist()
        words = self.words.get(one)
        sparse = {"indices": list(words), "values": list(words.values())} if words is not None else None
        dense = {self.dense: row.tolist()} if row is not None else {}
        return dense | ({self.sparse: sparse} if sparse else {})

    def checked(self, vector: Json) -> list[float]:
        """Refuse a vector that does not fit."""
        if not isinstance(vector, list) or not all(isinstance(one, int | float) for one in vector):
            raise Refused(400, "a vector is a list of numbers")
        if len(vector) != self.size:
            raise Refused(400, f"Wrong input: Vector dimension error: expected dim: {self.size}, got {len(vector)}")
        return vector

    def passing(self, where: Json) -> list[str | int]:
        """The ids that pass a filter, in order."""
        check = _filter(where) if where is not None else _everything
        return sorted((one for one, (_, payload) in self.points.items() if check(one, payload)), key=str)

    def search(self, using: str, query: Json, where: Json, limit: int) -> list[tuple[str | int, float]]:
        """The best ids by the vector of a name."""
        if using not in (self.dense, self.sparse):
            raise Refused(400, f"Wrong input: Not existing vector name error: {using}")
        rank = self._by_word if using == self.sparse else self._nearest
        return sorted(rank(query, self.passing(where)), key=lambda pair: -pair[1])[:limit]

    def _nearest(self, vector: Json, ids: list[str | int]) -> list[tuple[str | int, float]]:
        """Ids with their cosine."""
        query = np.asarray(self.checked(vector), np.float32)
        query /= np.linalg.norm(query) or 1
        rows = [(one, self.points[one][0]) for one in ids]
        return [(one, float(row @ query)) for one, row in rows if row is not None]

    def _by_word(self, raw: Json, ids: list[str | int]) -> list[tuple[str | int, float]]:
        """Ids that share a word, with the sum of products; how rare a word is, is seen in all points."""
        asked = checked_words(raw)
        held = {number: sum(number in words for words in self.words.values()) for number in asked}
        total = len(self.words)
        rare = {number: math.log(1 + (total - many + 0.5) / (many + 0.5)) for number, many in held.items()}
        found = []
        for one in ids:
            words = self.words.get(one, {})
            if shared := asked.keys() & words.keys():
                found.append((one, sum(asked[number] * words[number] * rare[number] for number in shared)))
        return found


def checked_words(raw: Json) -> dict[int, float]:
    """Refuse a sparse vector that Qdrant would not take."""
    shape(raw, {"indices": list, "values": list})
    numbers, weights = raw["indices"], raw["values"]
    if len(set(numbers)) != len(numbers) or len(numbers) != len(weights) or not numbers:
        raise Refused(400, "Wrong input: indices must be unique and as many as values")
    if not all(isinstance(one, int) and 0 <= one < LARGEST for one in numbers):
        raise Refused(400, "Wrong input: an index is an unsigned number of 32 bits")
    if not all(isinstance(one, int | float) and math.isfinite(one) for one in weights):
        raise Refused(400, "Wrong input: a value is a number")
    return dict(zip(numbers, map(float, weights), strict=True))


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
