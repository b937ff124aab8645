"""What SQLite does its own way."""

from __future__ import annotations

import json
import sqlite3
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragstone.core import clock as host_clock
from ragstone.core.filters import Filter
from ragstone.core.types import Json, Vector
from ragstone.stores.database import Connection
from ragstone.stores.filter_sqlite import condition


class SqliteDialect:
    """Implements `stores.database.Dialect`."""

    def json_text(self, column: str, key: str) -> str:
        return f"json_extract({column}, '$.{key}')"

    def json_true(self, column: str, key: str) -> str:
        return f"coalesce(json_extract({column}, '$.{key}'), 0)"

    def to_json(self, value: Json) -> str:
        return json.dumps(value, default=str)

    def condition(self, where: Filter, parameters: list[Any], *, chunks: bool = True) -> str:
        return condition(where, parameters, chunks=chunks)

    def pack(self, text: str) -> bytes:
        return zlib.compress(text.encode(), 1)

    def unpack(self, packed: bytes) -> str:
        return zlib.decompress(packed).decode()

    def packed_bytes(self, column: str) -> str:
        return f"length({column})"  # of a blob it is bytes, and SQLite reads only its header

    def pack_vector(self, half: NDArray[Any]) -> bytes:
        return half.tobytes()

    def unpack_vector(self, packed: bytes) -> Vector:
        return np.frombuffer(packed, np.float16).astype(np.float32)

    def lease_now(self, connection: Connection) -> float:
        return host_clock.host_seconds()

    def boot(self) -> str:
        return host_clock.boot_id()

    def bytes_used(self, connection: Connection, tenant_id: str) -> int:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        return int(pages * size)

    def look_around(self, connection: Connection, tenant_id: str) -> None:
        """Nothing: it plans by its indexes alone."""


class SqliteConnection(sqlite3.Connection):
    """A connection that knows its dialect."""

    dialect = SqliteDialect()
