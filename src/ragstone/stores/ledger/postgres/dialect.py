"""The dialect of PostgreSQL: values, and filters as conditions.

Values and keys are always bound, never written into the SQL. No condition is ever NULL, so that NOT means what it says.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragstone.core.errors import InputError
from ragstone.core.filters import Filter, Range, Scalar
from ragstone.core.types import Json, Vector
from ragstone.stores.sql.database import Connection
from ragstone.stores.sql.filters import bounds_of, column_of, join_terms, origin_column

HEAD = struct.Struct("!HH")
NUMBERS = ("c.page", "c.level")
"""Columns that hold numbers; the others hold text."""
ORIGIN = origin_column(
    lambda name: f"(CASE jsonb_typeof(d.metadata -> '{name}') WHEN 'string' THEN d.metadata ->> '{name}' END)"
)


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
        return _exact_json(value) if "\\u0000" in text or "e+" in text else text

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


def _exact_json(value: Json) -> str:
    """Return JSON that JSONB gives back as it was.

    It keeps numbers by their digits: one such as 1e+16 would come back whole and off by a few, so all are written out.
    """
    match value:
        case str():
            return json.dumps(value.replace("\x00", "\ufffd"), ensure_ascii=False)
        case float():
            return _number_text(value)
        case dict():
            return "{" + ",".join(f"{_exact_json(str(key))}:{_exact_json(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_exact_json, value)) + "]"
    return json.dumps(value, default=str)


def _number_text(value: float) -> str:
    """Return a number with all its digits before the point: what is equal in Python is equal as a decimal."""
    text = repr(value)
    return f"{value:.1f}" if "e+" in text else text


def condition(where: Filter, parameters: list[Any], *, chunks: bool = True) -> str:
    """Return a condition over `documents d` and, if `chunks`, `chunks c`; appends its values to `parameters`."""
    return join_terms(
        where,
        lambda field, values: _one_of(field, values, parameters, chunks),
        lambda within: _range(within, parameters, chunks),
    )


def _one_of(field: str, values: tuple[Scalar, ...], parameters: list[Any], chunks: bool) -> str:
    column = column_of(field, chunks=chunks, origin=ORIGIN)
    if column is None:
        # A list contains its items, and a single value itself; an object contains neither.
        parameters.extend((field, [_exact_json(value) for value in values]))
        return "coalesce((d.metadata -> ?::text) @> ANY (?::jsonb[]), FALSE)"
    if column in NUMBERS:
        parameters.append([_exact_number(value) for value in values if not isinstance(value, str | bool)])
        return f"({column} IS NOT NULL AND {column} = ANY (?::numeric[]))"
    parameters.append([value for value in values if isinstance(value, str)])
    return f"({column} IS NOT NULL AND {column} = ANY (?::text[]))"


def _range(where: Range, parameters: list[Any], chunks: bool) -> str:
    bounds = bounds_of(where)
    is_text = isinstance(bounds[0][1], str)
    column = column_of(where.field, chunks=chunks, origin=ORIGIN)
    if column is None:
        kind, value = ("string", "->> ?::text") if is_text else ("number", "-> ?::text")
        # CASE, since the parts of an AND may be looked at in any order, and other kinds are no numbers.
        parameters.append(where.field)
        tests = _compare(f"(d.metadata {value})", bounds, parameters, [where.field])
        return f"(CASE jsonb_typeof(d.metadata -> ?::text) WHEN '{kind}' THEN {tests} ELSE FALSE END)"
    if (column in NUMBERS) is is_text:
        return "(FALSE)"
    return f"({column} IS NOT NULL AND {_compare(column, bounds, parameters, [])})"


def _compare(value: str, bounds: Sequence[tuple[str, Scalar]], parameters: list[Any], keys: Sequence[str]) -> str:
    tests = []
    for sign, bound in bounds:
        parameters.extend((*keys, bound if isinstance(bound, str) else _exact_number(bound)))
        if isinstance(bound, str):
            tests.append(f'{value} COLLATE "C" {sign} ?::text')
        else:
            tests.append(f"{value}::numeric {sign} ?::numeric")
    return " AND ".join(tests)


def _exact_number(value: float) -> Decimal:
    """Return a number as its decimal digits, which is how JSONB keeps it: equal and in order exactly as in Python."""
    return Decimal(value) if isinstance(value, int) or abs(value) >= 1e16 else Decimal(repr(value))
