"""A connection to PostgreSQL that takes the ledger's SQL, and how values travel over it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, cast

import psycopg
from psycopg import sql
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Format, TransactionStatus
from psycopg.types.json import set_json_loads

from ragstone.core.errors import StoreError
from ragstone.stores.control.tenant_rows import leaving
from ragstone.stores.ledger.postgres.dialect import HalfVector, PostgresDialect
from ragstone.stores.ledger.postgres.errors import IDLE_SECONDS, LOCK_SECONDS, STATEMENT_SECONDS
from ragstone.stores.ledger.repository import UnknownTenant

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
    """Implements `stores.database.Connection`. The transaction is begun and ended by the session."""

    dialect = PostgresDialect()

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> psycopg.Cursor:
        cursor = self._connection.cursor(binary=True)
        return cursor.execute(to_client_sql(sql), tuple(parameters))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> psycopg.Cursor:
        cursor = self._connection.cursor(binary=True)
        cursor.executemany(to_client_sql(sql), list(rows))
        return cursor

    def pages(self, sql: str, parameters: Sequence[Any], size: int) -> Iterator[list[Any]]:
        with self._connection.cursor("pages", binary=True) as cursor:
            cursor.execute(to_client_sql(sql), tuple(parameters))
            while rows := cursor.fetchmany(size):
                yield rows


@lru_cache(maxsize=1024)
def to_client_sql(sql: str) -> str:
    """Return the ledger's SQL with the client's marks; no literal of ours has a question mark in it."""
    return sql.replace("%", "%%").replace("?", "%s")


def connect(dsn: str) -> psycopg.Connection:
    """Return a connection on which nothing is begun. What it needs is set by each transaction for itself."""
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


READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
"""Each statement sees what was committed when it began: so what is read once a lock is held is what it guards."""
CONTROL_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('ragstone control', 0))"
TENANT_LOCK = (
    "SELECT pg_advisory_xact_lock_shared(hashtextextended('ragstone gate', 0)); "
    "SELECT pg_advisory_xact_lock(hashtextextended('ragstone tenant ' || id, 0)) FROM tenants WHERE name = {name}"
)
"""One writer per tenant, on any number of machines; the gate is closed while tables are made or dropped."""
TENANT = "SELECT id, state, set_config('ragstone.tenant', id, {local}) FROM tenants WHERE name = {name}"
DURABLE = "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"
RELAXED = "SELECT set_config('synchronous_commit', 'off', true)"
FACTS = """
SELECT r.rolname, r.rolsuper OR r.rolbypassrls, v.nspname, t.oid
FROM pg_extension e JOIN pg_namespace v ON v.oid = e.extnamespace
JOIN pg_type t ON t.typnamespace = e.extnamespace AND t.typname = 'halfvec'
JOIN pg_namespace s ON s.nspname = 'ragstone' JOIN pg_roles r ON r.oid = s.nspowner
WHERE e.extname = 'vector'
"""
LIMITS = {
    "lock_timeout": f"{LOCK_SECONDS}s",
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s",
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",
}
"""Nothing hangs; and a plan is made for the tenant at hand, since those of different sizes need different ones."""


class Session:
    """A connection that is known to be ready for our SQL."""

    def __init__(self, dsn: str) -> None:
        self._connection = connect(dsn)
        try:
            self._settings = self._acquaint()
        except BaseException:
            self._connection.close()
            raise
        self.rows = PostgresConnection(self._connection)

    @property
    def is_lost(self) -> bool:
        return self._connection.closed

    @property
    def is_open(self) -> bool:
        """Return whether a transaction is open that can still be committed."""
        return self._connection.info.transaction_status == TransactionStatus.INTRANS

    def read(self, tenant: str, erased: str = "") -> str:
        """Begin a snapshot of a tenant's rows; the tenant's id. `erased` is the id of one that may be leaving."""
        return self._require_tenant(tenant, self._begin(tenant, READ, TENANT), erased)

    def write(self, tenant: str, erased: str = "") -> str:
        """Begin a transaction in which nobody else writes for this tenant; the tenant's id."""
        return self._require_tenant(tenant, self._begin(tenant, WRITE, DURABLE, TENANT_LOCK, TENANT), erased)

    def write_log(self, tenant: str) -> str:
        """Begin a write that a crash of the server may cost the last of: the commit waits for no disk."""
        return self._require_tenant(tenant, self._begin(tenant, WRITE, RELAXED, TENANT_LOCK, TENANT))

    def read_control(self) -> None:
        """Begin a snapshot of the tables that know all tenants."""
        self._begin("", READ)

    def touch_control(self) -> None:
        """Begin a transaction on those that takes turns with nobody."""
        self._begin("", WRITE)

    def write_control(self) -> None:
        """Begin a transaction in which nobody else writes to those."""
        self._begin("", WRITE, DURABLE, CONTROL_LOCK)

    def see(self, tenant: str) -> str:
        """See a tenant's rows from here on in the transaction; the tenant's id."""
        return self._require_tenant(tenant, self._last(sql.SQL(TENANT).format(name=tenant, local=True)))

    @contextmanager
    def outside(self, tenant: str) -> Iterator[str]:
        """See a tenant's rows without a transaction, each statement for itself and as long as it takes."""
        self._last(_set(self._settings | {"statement_timeout": "0"}, local=False))
        try:
            yield self._require_tenant(tenant, self._last(sql.SQL(TENANT).format(name=tenant, local=False)))
        finally:
            # The next one must find nothing of this: what cannot be taken back goes with the connection.
            try:
                self._connection.execute("RESET ALL; RESET ROLE")
            except psycopg.Error:
                self._connection.close()

    def commit(self) -> None:
        """`COMMIT` of a transaction that has failed says nothing and undoes it: so this looks first."""
        if not self.is_open:
            self.rollback()
            raise StoreError("the transaction was undone by an earlier failure", hint="begin another")
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        if self.is_lost or self._connection.info.transaction_status == TransactionStatus.IDLE:
            return
        try:
            self._connection.execute("ROLLBACK")
        except psycopg.OperationalError:
            self._connection.close()  # the server undoes what nobody can commit

    def cancel(self) -> None:
        """Cancel the statement that another thread waits for, if there is one and the server can be reached."""
        with suppress(psycopg.Error):
            self._connection.cancel_safe()

    def close(self) -> None:
        self._connection.close()

    def _acquaint(self) -> dict[str, str]:
        """Find out who owns the tables and where the vectors' type is; what every transaction has to set."""
        found = self._connection.execute(FACTS).fetchone()
        if found is None:
            raise StoreError("there are no tables of Ragstone", hint="start again: that makes them")
        role, is_above, vectors, halfvec = found
        if is_above:
            raise StoreError(
                f"role '{role}' owns the tables and is above row-level security",
                hint=f"ALTER ROLE {role} NOSUPERUSER NOBYPASSRLS, or give the schema 'ragstone' another owner",
            )
        adapt(self._connection, halfvec)
        places = dict.fromkeys(("ragstone", "public", vectors))
        path = sql.SQL(", ").join(map(sql.Identifier, places)).as_string()
        return {"role": role, "search_path": path} | LIMITS

    def _begin(self, tenant: str, *statements: str) -> tuple[str, str, str] | None:
        """Begin a transaction in one visit to the server; return what the last statement found."""
        first, *others = (sql.SQL(text).format(name=tenant, local=True) for text in statements)
        try:
            return self._last(sql.SQL("; ").join([first, _set(self._settings), *others]))
        except psycopg.Error:
            self.rollback()
            raise

    def _last(self, statements: sql.Composed) -> tuple[str, str, str] | None:
        cursor = self._connection.execute(statements)
        while cursor.nextset():
            pass
        return cast("tuple[str, str, str] | None", cursor.fetchone())

    def _require_tenant(self, tenant: str, row: tuple[str, str, str] | None, erased: str = "") -> str:
        if row is None or (row[1] == "deleting" and row[0] != erased):
            self.rollback()
            raise leaving(tenant) if row else UnknownTenant(tenant)
        return row[0]


def _set(settings: Mapping[str, str], *, local: bool = True) -> sql.Composed:
    each = [sql.SQL("set_config({}, {}, {})").format(*setting, local) for setting in settings.items()]
    return sql.SQL("SELECT {}").format(sql.SQL(", ").join(each))
