"""Rows of somebody else's database: read, never written, within a time, a page at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    LargeBinary,
    Select,
    Text,
    and_,
    cast,
    column,
    create_engine,
    func,
    literal,
    or_,
    select,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.expression import ColumnElement

from ragstone.core.errors import SourceError
from ragstone.fetch.calls import redact

Row = Mapping[str, Any]
# What makes a transaction unable to write, and a statement unable to run on, where the database knows how.
_GUARDS: Mapping[str, tuple[str, ...]] = {
    "sqlite": ("PRAGMA query_only = ON",),
    "postgresql": ("SET TRANSACTION READ ONLY", "SET LOCAL statement_timeout = {milliseconds}"),
    "mysql": ("SET SESSION TRANSACTION READ ONLY", "SET SESSION max_execution_time = {milliseconds}"),
    "mariadb": ("SET SESSION TRANSACTION READ ONLY", "SET SESSION max_statement_time = {seconds}"),
    "oracle": ("SET TRANSACTION READ ONLY",),
}
_SQLITE_STEPS = 10_000


class Undecoded(str):
    """Text of SQLite that is not UTF-8, as far as it can be shown. It sorts elsewhere than what it is shown as."""

    raw: bytes

    @classmethod
    def of(cls, raw: bytes) -> Undecoded:
        """Return the text that these bytes are."""
        shown = cls(raw.decode("utf-8", "replace"))
        shown.raw = raw
        return shown


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Undecoded.of(raw)


@dataclass(frozen=True, slots=True)
class RowQuery:
    """A query as a table that can be narrowed, ordered and cut."""

    query: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    cursor: str | None = None

    def everything(self) -> Select[Any]:
        """Return all rows, in whatever order they come."""
        return select(*self._table())

    def page(self, at_least: Any, after: Sequence[Any] | None, size: int) -> Select[Any]:
        """Return the next rows by cursor and key: from the value `at_least` on, or behind the row `after`."""
        table = self._table()
        order = [table[name] for name in self.order()]
        statement = select(*table).where(*(place.is_not(None) for place in order))
        if after is not None:
            statement = statement.where(_behind(order, after))
        elif at_least is not None:
            statement = statement.where(order[0] >= at_least)
        return statement.order_by(*order).limit(size)

    def count_unplaced(self) -> Select[int]:
        """Count the rows that have no place in the order, and so are on no page."""
        table = self._table()
        return select(func.count()).where(or_(*(table[name].is_(None) for name in self.order())))

    def place(self, row: Row) -> tuple[Any, ...]:
        """Return the place of a row in the order."""
        return tuple(row[name] for name in self.order())

    def order(self) -> tuple[str, ...]:
        """Return the columns that rows are ordered by."""
        return ((self.cursor,) if self.cursor else ()) + tuple(name for name in self.key if name != self.cursor)

    def _table(self) -> Any:
        # The line end closes a comment the query may end in; its colons are its own, not parameters.
        own = text(f"\n{self.query}\n".replace(":", "\\:"))
        return own.columns(*(column(name) for name in self.columns)).subquery("source_rows").c


def _behind(order: Sequence[ColumnElement[Any]], after: Sequence[Any]) -> ColumnElement[bool]:
    """`(a, b) > (x, y)` as every database understands it."""
    after = [cast(literal(value.raw, LargeBinary), Text) if isinstance(value, Undecoded) else value for value in after]
    return or_(
        *(
            and_(*(order[n] == after[n] for n in range(depth)), order[depth] > after[depth])
            for depth in range(len(order))
        )
    )


def same_place(before: Sequence[Any] | None, other: Sequence[Any]) -> bool:
    """Return whether two rows stand at the same place of the order."""
    exact = [[(type(value), getattr(value, "raw", value)) for value in place] for place in (before or (), other)]
    return exact[0] == exact[1]


class RowReader:
    """A named database that rows are read from."""

    def __init__(self, name: str, address: SecretStr, seconds: float) -> None:
        self._name = name
        self._seconds = seconds
        self._url = self._parse_address(address)
        self._engine = self._make_engine()
        self._deadline = 0.0

    def stream(self, statement: Select[Any], size: int) -> Iterator[list[Row]]:
        """Yield all rows of one statement, as they were when it began."""
        with self._connect() as connection:
            rows = connection.execute(statement, execution_options={"yield_per": size}).mappings()
            while part := rows.fetchmany(size):
                yield [dict(row) for row in part]
                self._start_clock()

    def rows(self, statement: Select[Any]) -> list[Row]:
        """Return the rows of a statement that says how many it wants."""
        with self._connect() as connection:
            return [dict(row) for row in connection.execute(statement).mappings()]

    def number(self, statement: Select[int]) -> int:
        """The one number a statement asks for."""
        with self._connect() as connection:
            return connection.execute(statement).scalar_one()

    def _start_clock(self) -> None:
        """The clock runs while the database works, not while the rows that came are being looked at."""
        self._deadline = time.monotonic() + self._seconds

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                self._guard(connection)
                yield connection
        except DBAPIError as error:
            raise self._failure(error.orig) from error
        except SQLAlchemyError as error:
            raise self._failure(error) from error

    def _make_engine(self) -> Engine:
        try:
            # No pool: a connection is closed with the page it was opened for.
            engine = create_engine(self._url, poolclass=NullPool)
        except (NoSuchModuleError, ModuleNotFoundError) as error:
            raise SourceError(
                f"database '{self._name}' needs a driver for {self._url.drivername}",
                hint="install it beside Ragstone, such as: pip install 'psycopg[binary]'",
            ) from error
        if engine.dialect.is_async:
            raise SourceError(
                f"database '{self._name}' names an asyncio driver, {self._url.drivername}",
                hint="name one that is not, such as postgresql+psycopg or mysql+pymysql",
            )
        return engine

    def _guard(self, connection: Connection) -> None:
        self._start_clock()
        dialect = connection.dialect
        name = "mariadb" if getattr(dialect, "is_mariadb", False) else dialect.name
        for guard in _GUARDS.get(name, ()):
            limit = guard.format(milliseconds=round(self._seconds * 1000), seconds=self._seconds)
            connection.exec_driver_sql(limit)
        if name == "sqlite":
            driver: Any = connection.connection.driver_connection
            driver.text_factory = _decode
            driver.set_progress_handler(lambda: time.monotonic() > self._deadline, _SQLITE_STEPS)

    def _parse_address(self, address: SecretStr) -> URL:
        try:
            url = make_url(address.get_secret_value())
        except (ArgumentError, ValueError):
            # Not `from`: what could not be parsed may hold a password.
            raise SourceError(
                f"the address of database '{self._name}' cannot be read",
                hint="write it as dialect+driver://user:password@host/name",
            ) from None
        if url.get_backend_name() == "sqlite" and not (url.database or "").startswith("file:"):
            file = Path(url.database or "")
            if not file.is_file():
                # SQLite would make an empty database of that name.
                raise SourceError(f"database '{self._name}' is a file that does not exist: {file}")
        return url

    def _failure(self, error: BaseException | None) -> SourceError:
        password = str(self._url.password or "")
        return SourceError(
            f"database '{self._name}': {redact(str(error), password, most=300)}",
            hint="check the query in a database shell, or the database's address",
        )
