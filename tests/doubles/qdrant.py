"""A stand-in for a Qdrant server on loopback: its REST protocol over real HTTP, strict about every request.

It knows the endpoints that the adapter uses, in the shapes of Qdrant's documentation. A request with a field too much,
without the key or without `wait=true` where the next search counts on it, is refused and kept in `violations`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from tests.doubles.qdrant_points import DEFAULT, Collection, point_id, shape
from tests.doubles.rest import Refused, RestDouble
from tests.doubles.web import Reply, Request, json_reply

from ragstone.core.types import Json

VERSION = "1.17.0"
NAME = re.compile(r'[^<>:"/\\|?*\x00\x1f]{1,255}')


def error_reply(message: str, status: int, **headers: str) -> Reply:
    """An error as Qdrant words it."""
    return json_reply({"status": {"error": message}, "time": 0.0}, status, **headers)


class QdrantDouble:
    """Serves while it is entered. `faults` come first, one per request; what it refused is in `violations`."""

    def __init__(self, api_key: str | None = None, address: str = "127.0.0.1") -> None:
        self.api_key = api_key
        self.violations: list[str] = []
        self.collections: dict[str, Collection] = {}
        self._service = RestDouble(self.answer, address)
        self.faults = self._service.faults
        self.requests = self._service.requests

    def __enter__(self) -> QdrantDouble:
        self._service.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._service.__exit__()

    @property
    def url(self) -> str:
        """The address to configure."""
        return f"http://{self._service.host}"

    @property
    def connections(self) -> int:
        """How often somebody has connected."""
        return self._service.connections

    def answer(self, request: Request) -> Reply:
        """What a request gets that came in whichever way."""
        try:
            return self._routed(request)
        except Refused as refusal:
            if refusal.status == 400:
                self.violations.append(f"{request.method} {request.path}: {refusal}")
            return error_reply(str(refusal), refusal.status)

    def _routed(self, request: Request) -> Reply:
        if request.path == "/" and request.method == "GET":
            return json_reply({"title": "qdrant - vector search engine", "version": VERSION})
        if self.api_key is not None and request.headers.get("api-key") != self.api_key:
            return Reply(b"Invalid API key or JWT", 401)
        _, root, *rest = map(unquote, request.path.split("/"))
        body = json.loads(request.body) if request.body else None
        if root != "collections":
            raise Refused(404, "Not found")
        if not rest:
            names = [{"name": name} for name in sorted(self.collections)]
            return _ok({"collections": names})
        name, action = rest[0], "/".join(rest[1:])
        if (request.method, action) == ("PUT", ""):
            return self._create(name, body)
        if (request.method, action) == ("DELETE", ""):
            return _ok(self.collections.pop(name, None) is not None)
        if name not in self.collections:
            raise Refused(404, f"Not found: Collection `{name}` doesn't exist!")
        handler = ROUTES.get((request.method, action))
        if handler is None:
            raise Refused(400, "no documented endpoint")
        if handler in (_index, _upsert, _delete) and request.query.get("wait") != "true":
            raise Refused(400, "a write must wait")
        return _ok(handler(self.collections[name], body))

    def _create(self, name: str, body: Json) -> Reply:
        shape(body, {"vectors": dict}, {"hnsw_config": dict, "sparse_vectors": dict})
        sparse = body.get("sparse_vectors", {})
        dense, *others = [DEFAULT] if "size" in body["vectors"] else list(body["vectors"])
        if others or len(sparse) > 1:
            raise Refused(400, "the double knows one vector and one sparse vector")
        params = body["vectors"].get(dense, body["vectors"])
        shape(params, {"size": int, "distance": str})
        for one in sparse.values():
            shape(one, {"modifier": str})
            if one["modifier"] != "idf":
                raise Refused(400, "the double knows the modifier idf only")
        shape(body.get("hnsw_config", {}), {}, {"m": int, "ef_construct": int, "payload_m": int})
        if not NAME.fullmatch(name) or not 1 <= params["size"] <= 65_536:
            raise Refused(400, "the name or the size of the collection is not valid")
        if params["distance"] != "Cosine":
            raise Refused(400, "the double knows the cosine only")
        if name in self.collections:
            raise Refused(409, f"Wrong input: Collection `{name}` already exists!")
        hnsw = body.get("hnsw_config", {})
        self.collections[name] = Collection(params["size"], hnsw, dense, next(iter(sparse), None))
        return _ok(True)


def _ok(result: Json) -> Reply:
    return json_reply({"result": result, "status": "ok", "time": 0.0})


def _info(collection: Collection, _: Json) -> Json:
    vectors: Json = {"size": collection.size, "distance": collection.distance}
    if collection.dense:
        vectors = {collection.dense: vectors}
    sparse = {"sparse_vectors": {collection.sparse: {"modifier": "idf"}}} if collection.sparse else {}
    hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000, "max_indexing_threads": 0}
    optimizer = {
        "deleted_threshold": 0.2,
        "vacuum_min_vector_number": 1000,
        "default_segment_number": 0,
        "flush_interval_sec": 5,
    }
    return {
        "status": "green",
        "optimizer_status": "ok",
        "points_count": len(collection.points),
        "segments_count": 1,
        "config": {
            "params": {"vectors": vectors, "shard_number": 1, "on_disk_payload": True} | sparse,
            "hnsw_config": hnsw | collection.hnsw,
            "optimizer_config": optimizer,
            "wal_config": {"wal_capacity_mb": 32, "wal_segments_ahead": 0},
        },
        "payload_schema": {},
    }


def _index(collection: Collection, body: Json) -> Json:
    shape(body, {"field_name": str, "field_schema": dict})
    shape(body["field_schema"], {"type": str}, {"is_tenant": bool})
    collection.indexes[body["field_name"]] = body["field_schema"]
    return _done()


def _upsert(collection: Collection, body: Json) -> Json:
    shape(body, {"points": list})
    for raw in body["points"]:
        collection.put(raw)
    return _done()


def _delete(collection: Collection, body: Json) -> Json:
    shape(body, {}, {"points": list, "filter": dict})
    if len(body) != 1:
        raise Refused(400, "points or a filter say what to delete")
    chosen = collection.passing(body["filter"]) if "filter" in body else map(point_id, body["points"])
    for one in list(chosen):
        collection.remove(one)
    return _done()


def _query(collection: Collection, body: Json) -> Json:
    selection: dict[str, type] = {"with_payload": list, "with_vector": bool}
    shape(body, {"query": dict, "limit": int}, {"filter": dict, "params": dict, "using": str} | selection)
    shape(body["query"], {"nearest": object})
    shape(body.get("params", {}), {}, {"exact": bool})
    if body["limit"] < 1:
        raise Refused(400, "limit: value 0 invalid, must be 1 or larger")
    using = body.get("using", DEFAULT)
    found = collection.search(using, body["query"]["nearest"], body.get("filter"), body["limit"])
    return {"points": [_record(collection, one, body) | {"version": 0, "score": score} for one, score in found]}


def _retrieve(collection: Collection, body: Json) -> Json:
    shape(body, {"ids": list}, {"with_payload": bool, "with_vector": bool})
    ids = dict.fromkeys(map(point_id, body["ids"]))
    return [_record(collection, one, body) for one in ids if one in collection.points]


def _scroll(collection: Collection, body: Json) -> Json:
    selection: dict[str, type] = {"with_payload": list, "with_vector": bool}
    shape(body, {"limit": int}, {"filter": dict, "offset": object} | selection)
    start = str(point_id(body["offset"])) if "offset" in body else ""
    ids = [one for one in collection.passing(body.get("filter")) if str(one) >= start]
    records = [_record(collection, one, body) for one in ids[: body["limit"]]]
    return {"points": records, "next_page_offset": next(iter(ids[body["limit"] :]), None)}


def _count(collection: Collection, body: Json) -> Json:
    shape(body, {"exact": bool}, {"filter": dict})
    return {"count": len(collection.passing(body.get("filter")))}


def _record(collection: Collection, one: str | int, body: Json) -> dict[str, Json]:
    _, payload = collection.points[one]
    chosen = body.get("with_payload", False)
    if isinstance(chosen, list):
        payload = {name: value for name, value in payload.items() if name in chosen}
    record: dict[str, Any] = {"id": one} | ({"payload": payload} if chosen else {})
    return record | ({"vector": collection.vectors(one)} if body.get("with_vector") else {})


def _done() -> Json:
    return {"operation_id": 1, "status": "completed"}


ROUTES: dict[tuple[str, str], Callable[[Collection, Json], Json]] = {
    ("GET", ""): _info,
    ("PUT", "index"): _index,
    ("PUT", "points"): _upsert,
    ("POST", "points"): _retrieve,
    ("POST", "points/delete"): _delete,
    ("POST", "points/query"): _query,
    ("POST", "points/scroll"): _scroll,
    ("POST", "points/count"): _count,
}
