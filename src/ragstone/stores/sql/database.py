"""The database as the ledger's functions use it: running SQL, and the few things that databases do differently.

SQL is written once, in the subset that SQLite and PostgreSQL share, with `?` for every value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from ragstone.core.batches import batched
from ragstone.core.filters import Filter
from ragstone.core.types import Json, Vector

T = TypeVar("T")
PER_STATEMENT = 500
"""Values that one statement is given at most."""


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchmany(self, size: int = ...) -> list[Any]: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection inside a transaction. Only one transaction per tenant writes at a time."""

    @property
    def dialect(self) -> Dialect: ...

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Cursor: ...

    def pages(self, sql: str, parameters: Sequence[Any], size: int) -> Iterator[list[Any]]:
        """Yield what a query finds, `size` rows at a time: never more of them are in memory."""
        ...


class Dialect(Protocol):
    """The differences between databases."""

    @property
    def has_log(self) -> bool:
        """Return whether the retrieval log is among the ledger's tables, and not in a file of its own."""
        ...

    def json_text(self, column: str, key: str) -> str:
        """Return SQL for a member of a JSON object, as text."""
        ...

    def json_true(self, column: str, key: str) -> str:
        """Return SQL for whether a member of a JSON object is true."""
        ...

    def to_json(self, value: Json) -> str:
        """Return JSON to store; what is not JSON is stored as its text."""
        ...

    def condition(self, where: Filter, parameters: list[Any], *, chunks: bool = True) -> str:
        """Return SQL for a filter over `documents d` and, if `chunks`, `chunks c`; its values go to `parameters`."""
        ...

    def pack(self, text: str) -> bytes | str:
        """Return long text as the database keeps it."""
        ...

    def unpack(self, packed: Any) -> str: ...

    def packed_bytes(self, column: str) -> str:
        """Return SQL for the bytes that a packed text takes, without reading it."""
        ...

    def pack_vector(self, half: NDArray[Any]) -> Any:
        """Return a row of float16 as the database keeps it."""
        ...

    def unpack_vector(self, packed: Any) -> Vector: ...

    def lease_now(self, connection: Connection) -> float:
        """Return the seconds on the clock that all workers share."""
        ...

    def boot(self) -> str:
        """Return the start that this clock counts from; times of another start mean nothing."""
        ...

    def bytes_used(self, connection: Connection, tenant_id: str) -> int:
        """Return the approximate size of the tenant's rows on disk."""
        ...

    def look_around(self, connection: Connection, tenant_id: str) -> None:
        """Let the database update its statistics after a large write: it plans by them."""
        ...


def next_number(connection: Connection, tenant_id: str, name: str, count: int) -> int:
    """Take `count` numbers that no other row of this tenant has; return the first of them."""
    last = connection.execute(
        "INSERT INTO counters (tenant_id, name, value) VALUES (?, ?, ?) "
        "ON CONFLICT (tenant_id, name) DO UPDATE SET value = counters.value + ? RETURNING value",
        (tenant_id, name, count, count),
    ).fetchone()[0]
    return int(last) - count + 1


def last_number(connection: Connection, tenant_id: str, name: str) -> int:
    """Return the last number that was taken; 0 when none was."""
    row = connection.execute(
        "SELECT value FROM counters WHERE tenant_id = ? AND name = ?", (tenant_id, name)
    ).fetchone()
    return int(row[0]) if row else 0


def keep_newest(connection: Connection, tenant_id: str, table: str, key: Sequence[str], order: str, most: int) -> None:
    """Remove rows of a tenant beyond `most` from a table, the first in order going first."""
    counted = f"SELECT count(*) FROM {table} WHERE tenant_id = ?"
    over = int(connection.execute(counted, (tenant_id,)).fetchone()[0]) - most
    if over > 0:
        names = ", ".join(key)
        connection.execute(
            f"DELETE FROM {table} WHERE tenant_id = ? AND ({names}) IN "
            f"(SELECT {names} FROM {table} WHERE tenant_id = ? ORDER BY {order} LIMIT ?)",
            (tenant_id, tenant_id, over),
        )


def marks(values: Sequence[object]) -> str:
    """Return as many placeholders as there are values."""
    return ",".join("?" * len(values))


def in_parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Return values in parts that one statement can take."""
    return batched(values, PER_STATEMENT)
