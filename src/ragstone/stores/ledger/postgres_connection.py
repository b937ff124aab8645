"""A connection to PostgreSQL that takes the ledger's SQL, and how values travel over it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Format
from psycopg.types.json import set_json_loads

from ragstone.stores.ledger.postgres_dialect import HalfVector, PostgresDialect

DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "fallback_application_name": "ragstone",
}
"""So that a server which is gone is noticed; what the connection string says goes first."""


class PostgresConnection:
    """Implements `stores.database.Connection`. The transaction is begun and ended by whoever lends it."""

    dialect = PostgresDialect()

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> psycopg.Cursor:
        cursor = self._connection.cursor(binary=True)
        return cursor.execute(marked(sql), tuple(parameters))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> psycopg.Cursor:
        cursor = self._connection.cursor(binary=True)
        cursor.executemany(marked(sql), list(rows))
        return cursor


@lru_cache(maxsize=1024)
def marked(sql: str) -> str:
    """The ledger's SQL with the client's marks; no literal of ours has a question mark in it."""
    return sql.replace("%", "%%").replace("?", "%s")


def connect(dsn: str) -> psycopg.Connection:
    """A connection on which nothing is begun. What it needs is set by each transaction for itself."""
    given = conninfo_to_dict(dsn)
    missing = {name: value for name, value in DEFAULTS.items() if name not in given}
    return psycopg.connect(make_conninfo(dsn, client_encoding="utf8", **missing), autocommit=True)


def adapt(connection: psycopg.Connection, halfvec: int) -> None:
    """Teach a connection our text, JSON and vectors; `halfvec` is the type's number in this database."""
    adapters = connection.adapters
    adapters.register_dumper(str, TextDumper)
    adapters.register_dumper(HalfVector, type("HalfDumper", (HalfDumper,), {"oid": halfvec}))
    adapters.register_loader(halfvec, HalfLoader)
    set_json_loads(_as_text, connection)


class TextDumper(Dumper):
    """Text without what PostgreSQL cannot keep: a NUL becomes U+FFFD, half of a surrogate pair a question mark.

    Both are one character for one, so that offsets still fit.
    """

    def dump(self, obj: str) -> Buffer:
        return obj.replace("\x00", "\ufffd").encode("utf-8", "replace")


class HalfDumper(Dumper):
    """A vector as pgvector sends and receives it; registered with the type's number."""

    format = Format.BINARY

    def dump(self, obj: HalfVector) -> Buffer:
        return obj.wire


class HalfLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> HalfVector:
        return HalfVector(bytes(data))


def _as_text(data: str | bytes) -> str:
    return data if isinstance(data, str) else data.decode()
