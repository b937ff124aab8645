"""Chunks in Milvus: their collection and partition, their rows, and the rows that go in one message."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragstone.core.batches import batched_by_weight
from ragstone.core.errors import InputError, PointRefused, StoreCorrupt
from ragstone.core.ids import content_hash
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Json
from ragstone.core.vectors import Isolation, Point, VectorPartition
from ragstone.stores.vectors.checks import name_point, unit
from ragstone.stores.vectors.milvus.filters import ranges_of, terms_of

PIECE = 60_000
"""Characters of a payload's JSON in one text; Milvus takes 65,535 bytes, and the JSON is ASCII."""
MOST_PIECES = 256
MOST_TERMS = 4096
"""Milvus holds no longer list."""
MOST_RANGES = 65_536
"""Bytes that Milvus takes as one JSON value."""
BATCH_ROWS = 256
BATCH_BYTES = 8 * 1024 * 1024
"""The server refuses messages of 64 MB."""

_NAMESPACE = uuid.UUID("3c0f4f0e-8a55-5d0b-9b6f-6f5f0c0a4d11")
_PLAIN = re.compile(r"[0-9A-Za-z]{1,64}")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scope:
    """The target of every call on a partition: a collection, a partition of it or none, and a condition or none."""

    collection: str
    partition: str | None = None
    condition: str = ""

    @property
    def partitions(self) -> list[str] | None:
        return [self.partition] if self.partition else None

    def narrow(self, *conditions: str) -> str:
        """Return the scope's condition together with others."""
        return " and ".join(f"({condition})" for condition in (self.condition, *conditions) if condition)


def scope_of(partition: VectorPartition, isolation: Isolation) -> Scope:
    """Return the scope of a partition. Its names are unambiguous, and hold nothing that Milvus would refuse."""
    tenant, space = _plain(partition.tenant_id), _plain(partition.space)
    if isolation == "collection":
        return Scope(f"rs_{tenant}_{space}")
    inside = f"tenant_{tenant}" if isolation == "namespace" else None
    return Scope(f"rs_d{partition.dimension}", inside, f'tenant_id == "{tenant}" and space == "{space}"')


def physical_id(partition: VectorPartition, chunk_id: str) -> str:
    """Return a key that no other tenant or space can name, and that is safe in an expression whatever the id is."""
    return uuid.uuid5(_NAMESPACE, json.dumps([partition.tenant_id, partition.space, chunk_id])).hex


def row_of(partition: VectorPartition, point: Point) -> Row:
    """Return a point as Milvus stores it."""
    if not np.isfinite(point.vector).all():
        raise InputError(f"the vector of chunk {point.chunk_id} holds numbers that are not finite")
    terms, ranges = terms_of(point.payload), ranges_of(point.payload)
    pieces = _pieces(point.payload)
    if len(terms) > MOST_TERMS or len(json.dumps(ranges)) > MOST_RANGES or len(pieces) > MOST_PIECES:
        raise PointRefused(
            f"the metadata of {name_point(point)} is more than Milvus can hold",
            hint="shorten its lists, or choose another kind for store.vectors",
        )
    return {
        "id": physical_id(partition, point.chunk_id),
        "vector": unit(point.vector, f"chunk {point.chunk_id}"),
        "tenant_id": _plain(partition.tenant_id),
        "space": _plain(partition.space),
        "chunk_id": point.chunk_id,
        "terms": terms,
        "ranges": ranges,
        "payload": pieces,
    }


def point_of(row: Mapping[str, Any]) -> Point:
    """Return the point of a row, with the payload as it was given."""
    try:
        payload: dict[str, Json] = json.loads("".join(row["payload"]))
    except ValueError as error:
        raise StoreCorrupt(
            f"the payload of chunk {row['chunk_id']} in Milvus cannot be read",
            hint="a repair writes it again from the ledger",
            remedy=Remedy(Action.REPAIR_STORES),
        ) from error
    return Point(row["chunk_id"], unit(np.asarray(row["vector"], np.float32)), payload)


def batch_rows(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield rows, as many at a time as one message may hold."""
    return batched_by_weight(rows, _weight, most=BATCH_ROWS, heaviest=BATCH_BYTES)


def among(ids: Sequence[str]) -> str:
    """Return the condition of being one of these rows."""
    listed = ", ".join(f'"{row_id}"' for row_id in ids)
    return f"id in [{listed}]"


def _plain(identity: str) -> str:
    return identity if _PLAIN.fullmatch(identity) else content_hash(identity)


def _pieces(payload: Mapping[str, Json]) -> list[str]:
    written = json.dumps(dict(payload))
    return [written[start : start + PIECE] for start in range(0, len(written), PIECE)]


def _weight(row: Row) -> int:
    return int(row["vector"].nbytes) + sum(map(len, row["payload"])) + 32 * len(row["terms"]) + 1024


GRAPH = {"M": 16, "efConstruction": 100}


def make(client: Any, scope: Scope, dimension: int, *, embedded: bool, timeout: float) -> int:
    """Create what is missing, however far an earlier attempt came; return the dimension of the collection."""
    name = scope.collection
    if not client.has_collection(name, timeout=timeout):
        client.create_collection(name, schema=_schema(client, dimension), timeout=timeout)
    if not client.list_indexes(name, field_name="vector", timeout=timeout):
        client.create_index(name, _index(client, embedded), timeout=timeout, sync=False)
    client.load_collection(name, timeout=timeout)
    if scope.partition and not client.has_partition(name, scope.partition, timeout=timeout):
        client.create_partition(name, scope.partition, timeout=timeout)
    fields = client.describe_collection(name, timeout=timeout)["fields"]
    (vector,) = [field for field in fields if field["name"] == "vector"]
    return int(vector["params"]["dim"])


def drop(client: Any, scope: Scope, *, timeout: float) -> None:
    """Remove a collection, if it is there."""
    if client.has_collection(scope.collection, timeout=timeout):
        client.drop_collection(scope.collection, timeout=timeout)


def _schema(client: Any, dimension: int) -> Any:
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=32)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    for name in ("tenant_id", "space", "chunk_id"):
        schema.add_field(name, DataType.VARCHAR, max_length=64)
    texts = {"datatype": DataType.ARRAY, "element_type": DataType.VARCHAR}
    schema.add_field("terms", **texts, max_capacity=MOST_TERMS, max_length=24)
    schema.add_field("ranges", DataType.JSON)
    schema.add_field("payload", **texts, max_capacity=MOST_PIECES, max_length=65_535)
    return schema


def _index(client: Any, embedded: bool) -> Any:
    index = client.prepare_index_params()
    if embedded:
        # A full scan: milvus-lite's graph finds 63 % of what it should under a condition that 1 % of the rows pass.
        index.add_index("vector", index_type="FLAT", metric_type="COSINE")
    else:
        index.add_index("vector", index_type="HNSW", metric_type="COSINE", params=GRAPH)
    return index
