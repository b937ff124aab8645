"""The dialect of PostgreSQL."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragstone.core.errors import InputError
from ragstone.core.filters import Filter
from ragstone.core.types import Json, Vector
from ragstone.stores.sql.database import Connection
from ragstone.stores.sql.postgres_filters import condition

HEAD = struct.Struct("!HH")


@dataclass(frozen=True, slots=True)
class HalfVector:
    """A vector as pgvector's `halfvec` travels: its dimension, two spare bytes, big-endian float16s."""

    wire: bytes


class PostgresDialect:
    """Implements `stores.database.Dialect`."""

    has_log = True

    def json_text(self, column: str, key: str) -> str:
        return f"({column} ->> '{key}')"

    def json_true(self, column: str, key: str) -> str:
        return f"coalesce({column} -> '{key}' = 'true', FALSE)"

    def to_json(self, value: Json) -> str:
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
        except ValueError as error:
            raise InputError(f"this cannot be stored: {error}") from error
        return _exact(value) if "\\u0000" in text or "e+" in text else text

    def condition(self, where: Filter, parameters: list[Any], *, chunks: bool = True) -> str:
        return condition(where, parameters, chunks=chunks)

    def pack(self, text: str) -> str:
        return text

    def unpack(self, packed: str) -> str:
        return packed

    def packed_bytes(self, column: str) -> str:
        return f"pg_column_size({column})"

    def pack_vector(self, half: NDArray[Any]) -> HalfVector:
        return HalfVector(HEAD.pack(len(half), 0) + half.astype(">f2").tobytes())

    def unpack_vector(self, packed: HalfVector) -> Vector:
        return np.frombuffer(packed.wire, ">f2", offset=HEAD.size).astype(np.float32)

    def lease_now(self, connection: Connection) -> float:
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        return float(row[0])

    def boot(self) -> str:
        return "postgres"  # the database's clock counts from no boot

    def bytes_used(self, connection: Connection, tenant_id: str) -> int:
        row = connection.execute(
            "SELECT coalesce(sum(pg_relation_size(p.oid) + coalesce(pg_relation_size(nullif(p.reltoastrelid, 0)), 0) "
            "+ pg_indexes_size(p.oid)), 0)::bigint FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhrelid "
            "JOIN pg_class w ON w.oid = i.inhparent "
            "WHERE w.relnamespace = 'ragstone'::regnamespace AND p.relname = w.relname || '_' || ?",
            (tenant_id,),
        ).fetchone()
        return int(row[0])

    def look_around(self, connection: Connection, tenant_id: str) -> None:
        # Autovacuum would do it within a minute; until then every join is planned for a single row.
        parts = connection.execute(
            "SELECT quote_ident(p.relname) FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhrelid "
            "JOIN pg_class w ON w.oid = i.inhparent "
            "WHERE w.relnamespace = 'ragstone'::regnamespace AND p.relname = w.relname || '_' || ?",
            (tenant_id,),
        ).fetchall()
        for (part,) in (*parts, ("documents",)):
            connection.execute(f"ANALYZE {part}")


def _exact(value: Json) -> str:
    """JSON that JSONB gives back as it was.

    It keeps numbers by their digits: one such as 1e+16 would come back whole and off by a few, so all are written out.
    """
    match value:
        case str():
            return json.dumps(value.replace("\x00", "\ufffd"), ensure_ascii=False)
        case float():
            return number_text(value)
        case dict():
            return "{" + ",".join(f"{_exact(str(key))}:{_exact(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_exact, value)) + "]"
    return json.dumps(value, default=str)


def number_text(value: float) -> str:
    """A number by all its digits before the point: what is equal in Python is equal as a decimal."""
    text = repr(value)
    return f"{value:.1f}" if "e+" in text else text
