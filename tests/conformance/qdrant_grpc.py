"""Qdrant's gRPC interface in front of the REST double: what comes in one protocol is asked in the other."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NoReturn

import grpc
from qdrant_client import grpc as protocol
from qdrant_client.conversions.conversion import GrpcToRest, payload_to_grpc
from qdrant_client.grpc import collections_service_pb2_grpc, points_service_pb2_grpc, qdrant_pb2_grpc
from tests.doubles.qdrant import VERSION, QdrantDouble
from tests.doubles.web import Request

from ragstone.core.types import Json

CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    404: grpc.StatusCode.NOT_FOUND,
    409: grpc.StatusCode.ALREADY_EXISTS,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
}


@contextmanager
def grpc_in_front_of(double: QdrantDouble) -> Iterator[int]:
    """Serves on a port of loopback while it is entered."""
    server = grpc.server(ThreadPoolExecutor(4))
    front = _Front(double)
    collections_service_pb2_grpc.add_CollectionsServicer_to_server(front.collections, server)
    points_service_pb2_grpc.add_PointsServicer_to_server(front.points, server)
    qdrant_pb2_grpc.add_QdrantServicer_to_server(front.root, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


class _Front:
    def __init__(self, double: QdrantDouble) -> None:
        self._double = double
        self._turn = threading.Lock()
        self.collections = _Collections(self)
        self.points = _Points(self)
        self.root = _Root()

    def ask(self, context: Any, method: str, path: str, body: Json = None, *, wait: bool = False) -> Json:
        """The double's answer to the same in REST."""
        headers = {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}
        content = b"" if body is None else json.dumps(body).encode()
        request = Request(method, f"/collections{path}", {"wait": "true"} if wait else {}, headers, content)
        with self._turn:
            reply = self._double.faults.popleft() if self._double.faults else self._double.answer(request)
        if reply.status != 200:
            _abort(context, reply.status)
        return json.loads(reply.body)["result"]


def _abort(context: Any, status: int) -> NoReturn:
    context.abort(CODES[status], "refused")
    raise AssertionError("unreachable: abort raises")


class _Root(qdrant_pb2_grpc.QdrantServicer):
    def HealthCheck(self, request: Any, context: Any) -> Any:
        return protocol.HealthCheckReply(title="qdrant", version=VERSION)


class _Collections(collections_service_pb2_grpc.CollectionsServicer):
    def __init__(self, front: _Front) -> None:
        self._front = front

    def List(self, request: Any, context: Any) -> Any:
        found = self._front.ask(context, "GET", "")["collections"]
        names = [protocol.CollectionDescription(name=one["name"]) for one in found]
        return protocol.ListCollectionsResponse(collections=names)

    def Get(self, request: Any, context: Any) -> Any:
        config = self._front.ask(context, "GET", f"/{request.collection_name}")["config"]
        given = config["params"]["vectors"]
        named = given.get("dense")
        vectors = protocol.VectorParams(size=(named or given)["size"], distance=protocol.Distance.Cosine)
        dense = protocol.VectorsConfig(params=vectors)
        if named:
            dense = protocol.VectorsConfig(params_map=protocol.VectorParamsMap(map={"dense": vectors}))
        sparse = {
            name: protocol.SparseVectorParams(modifier=protocol.Modifier.Idf)
            for name in config["params"].get("sparse_vectors", {})
        }
        return protocol.GetCollectionInfoResponse(
            result=protocol.CollectionInfo(
                status=protocol.CollectionStatus.Green,
                optimizer_status=protocol.OptimizerStatus(ok=True),
                segments_count=1,
                config=protocol.CollectionConfig(
                    params=protocol.CollectionParams(
                        vectors_config=dense,
                        shard_number=1,
                        sparse_vectors_config=protocol.SparseVectorConfig(map=sparse) if sparse else None,
                    ),
                    hnsw_config=protocol.HnswConfigDiff(**config["hnsw_config"]),
                    optimizer_config=protocol.OptimizersConfigDiff(**config["optimizer_config"]),
                    wal_config=protocol.WalConfigDiff(**config["wal_config"]),
                ),
            )
        )

    def Create(self, request: Any, context: Any) -> Any:
        hnsw = GrpcToRest.convert_hnsw_config_diff(request.hnsw_config)
        body: dict[str, Json] = {"hnsw_config": _plain(hnsw)}
        if request.vectors_config.HasField("params"):
            body["vectors"] = _plain(GrpcToRest.convert_vector_params(request.vectors_config.params))
        else:
            named = request.vectors_config.params_map.map
            body["vectors"] = {name: _plain(GrpcToRest.convert_vector_params(one)) for name, one in named.items()}
        if request.HasField("sparse_vectors_config"):
            sparse = GrpcToRest.convert_sparse_vector_config(request.sparse_vectors_config)
            body["sparse_vectors"] = {name: _plain(one) for name, one in sparse.items()}
        self._front.ask(context, "PUT", f"/{request.collection_name}", body)
        return protocol.CollectionOperationResponse(result=True)

    def Delete(self, request: Any, context: Any) -> Any:
        result = self._front.ask(context, "DELETE", f"/{request.collection_name}")
        return protocol.CollectionOperationResponse(result=result)


class _Points(points_service_pb2_grpc.PointsServicer):
    def __init__(self, front: _Front) -> None:
        self._front = front

    def CreateFieldIndex(self, request: Any, context: Any) -> Any:
        schema = {"type": "keyword"}
        schema |= _plain(GrpcToRest.convert_payload_schema_params(request.field_index_params))
        body = {"field_name": request.field_name, "field_schema": schema}
        self._front.ask(context, "PUT", f"/{request.collection_name}/index", body, wait=request.wait)
        return _done()

    def Upsert(self, request: Any, context: Any) -> Any:
        points = [_plain(GrpcToRest.convert_point_struct(one)) for one in request.points]
        path = f"/{request.collection_name}/points"
        self._front.ask(context, "PUT", path, {"points": points}, wait=request.wait)
        return _done()

    def Delete(self, request: Any, context: Any) -> Any:
        body = _plain(GrpcToRest.convert_points_selector(request.points))
        path = f"/{request.collection_name}/points/delete"
        self._front.ask(context, "POST", path, body, wait=request.wait)
        return _done()

    def Query(self, request: Any, context: Any) -> Any:
        asked = request.query.nearest
        nearest: Json = list(asked.dense.data)
        if asked.HasField("sparse"):
            nearest = {"indices": list(asked.sparse.indices), "values": list(asked.sparse.values)}
        body = _where(request) | {"query": {"nearest": nearest}, "limit": request.limit}
        body["with_payload"] = ["chunk_id"]
        body |= {"using": request.using} if request.using else {}
        found = self._front.ask(context, "POST", f"/{request.collection_name}/points/query", body)
        points = [protocol.ScoredPoint(score=one["score"], **_record(one)) for one in found["points"]]
        return protocol.QueryResponse(result=points)

    def Get(self, request: Any, context: Any) -> Any:
        body = {"ids": [one.uuid for one in request.ids], "with_payload": True, "with_vector": True}
        found = self._front.ask(context, "POST", f"/{request.collection_name}/points", body)
        return protocol.GetResponse(result=[protocol.RetrievedPoint(**_record(one)) for one in found])

    def Scroll(self, request: Any, context: Any) -> Any:
        body = _where(request) | {"limit": request.limit, "with_payload": ["chunk_id"]}
        body |= {"offset": request.offset.uuid} if request.HasField("offset") else {}
        found = self._front.ask(context, "POST", f"/{request.collection_name}/points/scroll", body)
        following = found["next_page_offset"]
        return protocol.ScrollResponse(
            result=[protocol.RetrievedPoint(**_record(one)) for one in found["points"]],
            next_page_offset=protocol.PointId(uuid=following) if following else None,
        )

    def Count(self, request: Any, context: Any) -> Any:
        body = _where(request) | {"exact": request.exact}
        found = self._front.ask(context, "POST", f"/{request.collection_name}/points/count", body)
        return protocol.CountResponse(result=protocol.CountResult(count=found["count"]))


def _where(request: Any) -> dict[str, Json]:
    return {"filter": _plain(GrpcToRest.convert_filter(request.filter))} if request.HasField("filter") else {}


def _plain(model: Any) -> dict[str, Json]:
    plain: dict[str, Json] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain


def _record(found: dict[str, Json]) -> dict[str, Any]:
    record: dict[str, Any] = {"id": protocol.PointId(uuid=found["id"])}
    record["payload"] = payload_to_grpc(found["payload"])
    if isinstance(found.get("vector"), dict):
        named = {name: _vector(one) for name, one in found["vector"].items()}
        record["vectors"] = protocol.VectorsOutput(vectors=protocol.NamedVectorsOutput(vectors=named))
    elif "vector" in found:
        record["vectors"] = protocol.VectorsOutput(vector=_vector(found["vector"]))
    return record


def _vector(given: Json) -> Any:
    if isinstance(given, dict):
        return protocol.VectorOutput(sparse=protocol.SparseVector(**given))
    return protocol.VectorOutput(dense=protocol.DenseVector(data=given))


def _done() -> Any:
    result = protocol.UpdateResult(operation_id=1, status=protocol.UpdateStatus.Completed)
    return protocol.PointsOperationResponse(result=result)
