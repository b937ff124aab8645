"""A namespace of the Pinecone double: a log of writes that are found a while later, and its query language."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from tests.doubles.rest import Refused, RestDouble, check_fields
from tests.doubles.web import Reply, Request, json_reply

from ragstone.core.types import Json, Vector

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


API_VERSION = "2026-07"
PAGE = 100


class PineconeDouble:
    """The control plane, and a data plane for each index that was made."""

    def __init__(self, *, api_key: str = "pinecone-key", lag: int = 0, log_numbers: bool = True) -> None:
        self.api_key = api_key
        self.lag = lag
        self.log_numbers = log_numbers
        """Whether answers carry the numbers of the log, as those of serverless indexes do."""
        self.indexes: dict[str, IndexDouble] = {}
        self.starting = 0
        """How many times a new index is described as not ready."""
        self.control = RestDouble(self._answer)
        self._stack = ExitStack()

    def __enter__(self) -> PineconeDouble:
        self._stack.enter_context(self.control)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        """The address to configure."""
        return f"http://{self.control.host}"

    def make(self, name: str, dimension: int, *, metric: str = "cosine", deployment: str = "managed") -> None:
        """An index that is there already."""
        field = {"type": "dense_vector", "dimension": dimension, "metric": metric}
        description = {
            "name": name,
            "deletion_protection": "disabled",
            "schema": {"fields": {"_values": field}},
            "deployment": {"deployment_type": deployment, "cloud": "aws", "region": "us-east-1"},
        }
        self.indexes[name] = IndexDouble(self, description)
        self._stack.enter_context(self.indexes[name].data)

    def _answer(self, request: Request) -> Reply:
        return answered(lambda: self._route(request))

    def _route(self, request: Request) -> Reply:
        check_headers(request, self.api_key)
        match request.method, request.path.split("/")[1:]:
            case "POST", ["indexes"]:
                return self._create(body_of(request))
            case "GET", ["indexes", name]:
                if name not in self.indexes:
                    raise Refused(404, f"Resource {name} not found")
                self.starting -= 1
                return json_reply(self.indexes[name].described(ready=self.starting < 0))
        raise Refused(404, "no such route")

    def _create(self, body: Json) -> Reply:
        check_fields(body, {"name", "schema", "deployment"}, {"deletion_protection", "tags", "read_capacity"})
        field = body["schema"]["fields"]["_values"]
        check_fields(field, {"type", "dimension"}, {"metric"})
        check_fields(body["deployment"], {"deployment_type", "cloud", "region"})
        if body["name"] in self.indexes:
            raise Refused(409, f"Resource {body['name']} already exists")
        if not 1 <= field["dimension"] <= 20_000:
            raise Refused(400, "dimension must be between 1 and 20000")
        self.make(body["name"], field["dimension"], metric=field.get("metric", "cosine"))
        return json_reply(self.indexes[body["name"]].described(ready=False), 201)


class IndexDouble:
    """The data plane of one index."""

    def __init__(self, service: PineconeDouble, description: Mapping[str, Json]) -> None:
        self._service = service
        self._description = description
        self.dimension: int = description["schema"]["fields"]["_values"]["dimension"]
        self.namespaces: dict[str, Namespace] = {}
        self.data = RestDouble(self._answer)

    def described(self, *, ready: bool) -> Json:
        """As the control plane tells it; an index that is not ready has no address."""
        state = "Ready" if ready else "Initializing"
        host = self.data.host if ready else None
        return dict(self._description) | {"host": host, "status": {"ready": ready, "state": state}}

    def _answer(self, request: Request) -> Reply:
        return answered(lambda: self._route(request))

    def _route(self, request: Request) -> Reply:
        check_headers(request, self._service.api_key)
        match request.method, request.path:
            case "POST", "/vectors/upsert":
                return self._upsert(body_of(request))
            case "POST", "/vectors/delete":
                return self._delete(body_of(request))
            case "POST", "/query":
                return self._query(body_of(request))
            case "GET", "/vectors/fetch":
                return self._fetch(request.query)
            case "GET", "/vectors/list":
                return self._list(request.query)
        raise Refused(404, "no such route")

    def _upsert(self, body: Json) -> Reply:
        check_fields(body, {"vectors"}, {"namespace"})
        vectors = body["vectors"]
        if not 1 <= len(vectors) <= 1000:
            raise Refused(400, "between 1 and 1000 vectors may be upserted")
        for vector in vectors:
            self._check_vector(vector)
        namespace = self._namespace(body, make=True)
        return self._written({"upsertedCount": len(vectors)}, namespace.put(vectors))

    def _check_vector(self, vector: Json) -> None:
        check_fields(vector, {"id", "values"}, {"metadata"})
        if not 1 <= len(vector["id"]) <= 512 or not vector["id"].isascii():
            raise Refused(400, "an id has 1 to 512 ASCII characters")
        if len(vector["values"]) != self.dimension:
            raise Refused(400, f"Vector dimension {len(vector['values'])} does not match {self.dimension}")
        if not np.any(vector["values"]):
            raise Refused(400, "Dense vectors must contain at least one non-zero value")
        metadata = vector.get("metadata", {})
        if len(json.dumps(metadata, ensure_ascii=False).encode()) > 40 * 1024:
            raise Refused(400, "Metadata size exceeds the limit of 40960 bytes per vector")
        for name, value in metadata.items():
            texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
            if name.startswith("$") or not (texts or isinstance(value, str | bool | int | float)):
                raise Refused(400, f"Metadata value of '{name}' must be a text, number, boolean or list of texts")

    def _delete(self, body: Json) -> Reply:
        check_fields(body, {"ids"}, {"namespace"})
        if not 1 <= len(body["ids"]) <= 1000:
            raise Refused(400, "between 1 and 1000 ids may be deleted")
        return self._written({}, self._namespace(body).remove(body["ids"]))

    def _query(self, body: Json) -> Reply:
        fields = {"namespace", "filter", "includeValues", "includeMetadata"}
        check_fields(body, {"vector", "topK"}, fields)
        if not 1 <= body["topK"] <= 10_000:
            raise Refused(400, "topK must be between 1 and 10000")
        if len(body["vector"]) != self.dimension:
            raise Refused(400, f"Vector dimension {len(body['vector'])} does not match {self.dimension}")
        namespace = self._namespace(body)
        found = namespace.nearest(body["vector"], body["topK"], body.get("filter"))
        headers = {"x-pinecone-max-indexed-lsn": str(namespace.shown)} if self._service.log_numbers else {}
        return _with_headers({"matches": found, "namespace": body.get("namespace", "")}, headers)

    def _fetch(self, query: Mapping[str, str]) -> Reply:
        known = self._namespace(query).look()
        ids = query["ids"].split(",")
        if len(ids) > 1000:
            raise Refused(400, "at most 1000 ids may be fetched")
        return json_reply({"vectors": {one: known[one] for one in ids if one in known}})

    def _list(self, query: Mapping[str, str]) -> Reply:
        check_fields(query, {"namespace"}, {"prefix", "limit", "paginationToken"})
        limit = int(query.get("limit", PAGE))
        if not 1 <= limit <= PAGE:
            raise Refused(400, "limit must be between 1 and 100")
        known = sorted(one for one in self._namespace(query).look() if one.startswith(query.get("prefix", "")))
        rest = [one for one in known if one > query.get("paginationToken", "")]
        body: dict[str, Any] = {"vectors": [{"id": one} for one in rest[:limit]]}
        if len(rest) > limit:
            body["pagination"] = {"next": rest[limit - 1]}
        return json_reply(body)

    def _namespace(self, given: Mapping[str, Json], *, make: bool = False) -> Namespace:
        name = given.get("namespace", "__default__")
        if name not in self.namespaces:
            if not make:
                raise Refused(404, "Namespace not found")
            self.namespaces[name] = Namespace(self._service.lag)
        return self.namespaces[name]

    def _written(self, body: Json, number: int) -> Reply:
        headers = {"x-pinecone-request-lsn": str(number)} if self._service.log_numbers else {}
        return _with_headers(body, headers)


def answered(handle: Callable[[], Reply]) -> Reply:
    """The reply, or the refusal as Pinecone words it."""
    try:
        return handle()
    except Refused as refusal:
        return json_reply({"code": 3, "message": str(refusal), "details": []}, refusal.status)


def check_headers(request: Request, api_key: str) -> None:
    """Refuse a request without the key, the version or, for a body, its type."""
    if request.headers.get("api-key") != api_key:
        raise Refused(401, f"Invalid API key {request.headers.get('api-key')}")
    if request.headers.get("x-pinecone-api-version") != API_VERSION:
        raise Refused(400, "unknown X-Pinecone-Api-Version")
    if request.body and request.headers.get("content-type") != "application/json":
        raise Refused(415, "content-type must be application/json")
    if len(request.body) > 2 * 1024 * 1024:
        raise Refused(400, "Request size exceeds the limit of 2MB")


def body_of(request: Request) -> Json:
    """The JSON body, read as strictly as the real service does: NaN and lone surrogates are none."""
    try:
        body = json.loads(request.body, parse_constant=_no_number)
        json.dumps(body, ensure_ascii=False).encode()
    except ValueError:
        raise Refused(400, "malformed JSON") from None
    return body


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _with_headers(body: Json, headers: Mapping[str, str]) -> Reply:
    made = json_reply(body)
    return Reply(made.body, made.status, dict(made.headers) | dict(headers))
