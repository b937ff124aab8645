"""Points as Pinecone's records: ids that say their partition, metadata of the kinds and the size that it holds."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from ragstone.core.batches import batched_by_weight
from ragstone.core.errors import PointRefused
from ragstone.core.types import Json
from ragstone.core.vectors import Point, VectorPartition
from ragstone.stores.vectors.checks import name_point, unit
from ragstone.stores.vectors.rest import encode, numbers
from ragstone.stores.vectors.terms import terms_of

MAX_METADATA = 40_000
"""Bytes; the limit is given as 40 KB."""
MAX_PAYLOAD = 8 * 1024 * 1024
LEFT_OUT = '{"left_out":"payload"}'
MAX_BATCH = 100
MAX_BYTES = 1_900_000
"""Of one request; the limit is 2 MB."""


def prefix_of(partition: VectorPartition) -> str:
    """Return the prefix that the ids of this partition have, and those of no other."""
    return f"{_quote(partition.tenant_id)}#{_quote(partition.space)}#"


def record(partition: VectorPartition, point: Point) -> Json:
    """Return the point as it is stored; whatever filters ask for is in its terms, whole or as a hash."""
    values = numbers(unit(point.vector, f"chunk {point.chunk_id}"))
    metadata: dict[str, Json] = {
        "tenant_id": partition.tenant_id,
        "space": partition.space,
        "chunk_id": point.chunk_id,
        "terms": terms_of(point.payload),
    }
    room = MAX_METADATA - len(encode(metadata))
    if room < len(LEFT_OUT):
        raise PointRefused(
            f"the metadata of {name_point(point)} is more than Pinecone takes ({MAX_METADATA} bytes)",
            hint="give the document fewer metadata fields, or choose another vector store",
        )
    return {"id": prefix_of(partition) + point.chunk_id, "values": values, "metadata": metadata | _copy(point, room)}


def _copy(point: Point, room: int) -> dict[str, Json]:
    """Return the payload as JSON, packed where that is too large; what is still too large is left out by name."""
    shorter = {name: value for name, value in point.payload.items() if name != "text"}
    for copy in (
        {"payload": _json(point.payload)},
        {"packed": _pack(point.payload)},
        {"packed": _pack(shorter), "left_out": "text"},
    ):
        if len(encode(copy)) <= room:
            return copy
    return {"left_out": "payload"}


def point_of(partition: VectorPartition, stored: Json) -> Point:
    """Return the point as it was given, with a vector of length one."""
    vector, metadata = np.array(stored["values"], np.float32), stored["metadata"]
    payload = metadata.get("payload") or _unpack(metadata.get("packed"))
    return Point(stored["id"].removeprefix(prefix_of(partition)), unit(vector), json.loads(payload))


def upsert_bodies(partition: VectorPartition, points: Sequence[Point], namespace: str) -> Iterator[bytes]:
    """Yield bodies of upserts that keep to the limits of one request."""
    records = (encode(record(partition, point)) for point in points)
    for batch in batched_by_weight(records, lambda packed: len(packed) + 1, most=MAX_BATCH, heaviest=MAX_BYTES):
        yield b'{"namespace":%s,"vectors":[%s]}' % (encode(namespace), b",".join(batch))


def _json(payload: Any) -> str:
    written = json.dumps(dict(payload), ensure_ascii=False, separators=(",", ":"))
    try:
        written.encode()
    except UnicodeEncodeError:
        return json.dumps(dict(payload), separators=(",", ":"))
    return written


def _pack(payload: Any) -> str:
    return b64encode(zlib.compress(_json(payload).encode())).decode()


def _unpack(packed: str | None) -> bytes:
    if packed is None:
        return b"{}"
    try:
        return zlib.decompressobj().decompress(b64decode(packed), MAX_PAYLOAD)
    except zlib.error as error:
        raise ValueError("a packed payload cannot be unpacked") from error


def _quote(part: str) -> str:
    return quote(part, safe="", errors="surrogatepass")
