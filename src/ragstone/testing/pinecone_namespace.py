"""A namespace of the Pinecone double: a log of writes that are found a while later, and its query language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ragstone.core.types import Json, Vector
from ragstone.testing.rest_double import Refused

Test = Callable[[Mapping[str, Json]], bool]


class Namespace:
    """Records by id. Each write has the next number in the log; reads see it when `lag` reads have gone by."""

    def __init__(self, lag: int) -> None:
        self._lag = lag
        self._records: dict[str, Json] = {}
        self._rows: dict[str, Vector] = {}
        self._waiting: list[tuple[int, dict[str, Json]]] = []
        self._last = 0
        self.shown = 0
        """The number of the last write that reads see."""

    def put(self, records: Sequence[Json]) -> int:
        return self._write({record["id"]: record for record in records})

    def remove(self, ids: Sequence[str]) -> int:
        return self._write(dict.fromkeys(ids))

    def look(self) -> dict[str, Json]:
        """What a read sees; every look lets the log get on."""
        self._waiting = [(left - 1, write) for left, write in self._waiting]
        while self._waiting and self._waiting[0][0] < 0:
            self._apply(self._waiting.pop(0)[1])
        return self._records

    def nearest(self, vector: Sequence[float], k: int, where: Json) -> list[Json]:
        known, passes = self.look(), passing(where)
        passed = [one for one, record in known.items() if passes(record["metadata"])]
        if not passed:
            return []
        rows = np.stack([self._rows[one] for one in passed])
        query = np.array(vector, np.float32)
        scores = rows @ query / (np.linalg.norm(rows, axis=1) * np.linalg.norm(query))
        order = np.argsort(-scores, kind="stable")[:k]
        return [{"id": passed[at], "score": float(scores[at])} for at in order]

    def _write(self, write: dict[str, Json]) -> int:
        self._last += 1
        self._waiting.append((self._lag, write))
        return self._last

    def _apply(self, write: dict[str, Json]) -> None:
        self.shown += 1
        for one, record in write.items():
            if record is None:
                self._records.pop(one, None)
            else:
                self._records[one] = record
                self._rows[one] = np.array(record["values"], np.float32)


def passing(where: Json) -> Test:
    """What a filter asks of a record's metadata; a malformed filter is refused whatever there is to find."""
    if where is None:
        return lambda _: True
    if not isinstance(where, dict) or not where:
        raise Refused(400, "a filter is an object that is not empty")
    tests = [_clause(name, wanted) for name, wanted in where.items()]
    return lambda metadata: all(test(metadata) for test in tests)


def _clause(name: str, wanted: Json) -> Test:
    if name in ("$and", "$or"):
        if not isinstance(wanted, list) or not wanted:
            raise Refused(400, f"{name} takes a list of filters")
        tests, joined = [passing(part) for part in wanted], all if name == "$and" else any
        return lambda metadata: joined(test(metadata) for test in tests)
    if name.startswith("$") or not isinstance(wanted, dict) or len(wanted) != 1:
        raise Refused(400, f"malformed filter on {name}")
    ((operator, value),) = wanted.items()
    if operator == "$eq" and isinstance(value, str):
        return lambda metadata: value in _held(metadata, name)
    if operator not in ("$in", "$nin") or not isinstance(value, list) or not 1 <= len(value) <= 10_000:
        raise Refused(400, f"malformed {operator}")
    if not all(isinstance(one, str) for one in value):
        raise Refused(400, f"{operator} takes texts here")
    given = frozenset(value)
    if operator == "$in":
        return lambda metadata: not given.isdisjoint(_held(metadata, name))
    # A record without the field does not pass.
    return lambda metadata: name in metadata and given.isdisjoint(_held(metadata, name))


def _held(metadata: Mapping[str, Json], name: str) -> Sequence[Json]:
    stored = metadata.get(name, [])
    return stored if isinstance(stored, list) else [stored]
