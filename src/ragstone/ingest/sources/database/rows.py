"""Rows of a foreign database: read, never written, within a time, a page at a time."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from pathlib import Path
from string import Formatter
from typing import Annotated, Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import AfterValidator, SecretStr
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.expression import ColumnElement

from ragstone.core.errors import SourceError
from ragstone.core.types import Json
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
OVERLAP = timedelta(minutes=10)
"""The longest time of a transaction whose rows are certain to be read."""


def _plain_fields(template: str) -> str:
    for _, name, spec, conversion in Formatter().parse(template):
        if name is not None and (not name or spec or conversion or set(name) & set(".[]{}")):
            raise ValueError(f"'{{{name}}}' must be a column's name and nothing else; write '{{{{' for a brace")
    return template


Template = Annotated[str, AfterValidator(_plain_fields)]
"""Text with columns in braces: `{name}: {description}`."""


def columns_of(template: str) -> tuple[str, ...]:
    """Return the columns a template asks for, each once."""
    names = (name for _, name, _, _ in Formatter().parse(template) if name)
    return tuple(dict.fromkeys(names))


def render(template: str, row: Mapping[str, Any]) -> str:
    """Return the template with the row's values in it. Nothing of a value is read as a template."""
    return "".join(
        literal + (as_text(row[name]) if name else "") for literal, name, _, _ in Formatter().parse(template)
    )


def as_text(value: Any) -> str:
    """Return a value as people read it; nothing for NULL and for bytes, which are no text."""
    match value:
        case None | bytes() | bytearray() | memoryview():
            return ""
        case bool():
            return "true" if value else "false"
        case dict() | list():
            return json.dumps(value, ensure_ascii=False, default=str)
        case _:
            return str(value)


def as_metadata(value: Any) -> Json:
    """Return a value as it may stand in metadata; None for what cannot."""
    match value:
        case str() | bool() | int() | datetime() | date() | dict() | list():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return _number(value)
        case UUID() | time_of_day() | timedelta():
            return str(value)
        case _:
            return None


def _number(value: Decimal) -> Json:
    """Return a number where none of its digits is lost by that, else its digits."""
    if not value.is_finite() or abs(value.adjusted()) > 15:
        return str(value)
    near = float(value)
    return (int(near) if near.is_integer() else near) if Decimal(repr(near)) == value else str(value)


def to_cursor(value: Any, column: str) -> Json:
    """Return a cursor column's value as JSON that says its kind."""
    match value:
        case bool() | None:
            pass
        case int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case datetime():
            return {"datetime": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case Decimal() if value.is_finite():
            return {"decimal": str(value)}
    raise SourceError(
        f"the cursor column '{column}' holds {type(value).__name__}, which has no order to go on by",
        hint="choose a column that only grows, such as a number or a time of change",
    )


def from_cursor(kept: Json) -> Any:
    """Return the value that `to_cursor` was given."""
    match kept:
        case {"datetime": str() as text}:
            return datetime.fromisoformat(text)
        case {"date": str() as text}:
            return date.fromisoformat(text)
        case {"decimal": str() as text}:
            return Decimal(text)
        case _:
            return kept


def step_back(value: Any) -> Any:
    """Return where to go on from: a little before a time, as rows that bear an earlier one may be committed later."""
    try:
        match value:
            case datetime():
                return value - OVERLAP
            case date():
                return value - timedelta(days=1)
    except OverflowError:  # the first day of all
        pass
    return value


def find_furthest(kept: Any, reached: Any) -> Any:
    """Return the later of two times, or what was reached: only the database knows the order of other values."""
    try:
        return max(kept, reached) if isinstance(kept, date) else reached
    except TypeError:  # the column is of another type by now
        return reached


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

    def everything(self) -> sa.Select[Any]:
        """Return all rows, in whatever order they come."""
        return sa.select(*self._table())

    def page(self, at_least: Any, after: Sequence[Any] | None, size: int) -> sa.Select[Any]:
        """Return the next rows by cursor and key: from the value `at_least` on, or behind the row `after`."""
        table = self._table()
        order = [table[name] for name in self.order()]
        statement = sa.select(*table).where(*(place.is_not(None) for place in order))
        if after is not None:
            statement = statement.where(_behind(order, after))
        elif at_least is not None:
            statement = statement.where(order[0] >= at_least)
        return statement.order_by(*order).limit(size)

    def count_unplaced(self) -> sa.Select[int]:
        """Count the rows that have no place in the order, and so are on no page."""
        table = self._table()
        return sa.select(sa.func.count()).where(sa.or_(*(table[name].is_(None) for name in self.order())))

    def place(self, row: Row) -> tuple[Any, ...]:
        """Return the place of a row in the order."""
        return tuple(row[name] for name in self.order())

    def order(self) -> tuple[str, ...]:
        """Return the columns that rows are ordered by."""
        return ((self.cursor,) if self.cursor else ()) + tuple(name for name in self.key if name != self.cursor)

    def _table(self) -> Any:
        # The line end closes a comment the query may end in; its colons are its own, not parameters.
        own = sa.text(f"\n{self.query}\n".replace(":", "\\:"))
        return own.columns(*(sa.column(name) for name in self.columns)).subquery("source_rows").c


def _behind(order: Sequence[ColumnElement[Any]], after: Sequence[Any]) -> ColumnElement[bool]:
    """Return the condition `(a, b) > (x, y)` as every database understands it."""
    after = [
        sa.cast(sa.literal(value.raw, sa.LargeBinary), sa.Text) if isinstance(value, Undecoded) else value
        for value in after
    ]
    return sa.or_(
        *(
            sa.and_(*(order[n] == after[n] for n in range(depth)), order[depth] > after[depth])
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

    def stream(self, statement: sa.Select[Any], size: int) -> Iterator[list[Row]]:
        """Yield all rows of one statement, as they were when it began."""
        with self._connect() as connection:
            rows = connection.execute(statement, execution_options={"yield_per": size}).mappings()
            while part := rows.fetchmany(size):
                yield [dict(row) for row in part]
                self._start_clock()

    def rows(self, statement: sa.Select[Any]) -> list[Row]:
        """Return the rows of a statement that says how many it wants."""
        with self._connect() as connection:
            return [dict(row) for row in connection.execute(statement).mappings()]

    def number(self, statement: sa.Select[int]) -> int:
        """Return the number that a statement asks for."""
        with self._connect() as connection:
            return connection.execute(statement).scalar_one()

    def _start_clock(self) -> None:
        """Start the clock: it runs while the database works, not while its rows are looked at."""
        self._deadline = time.monotonic() + self._seconds

    @contextmanager
    def _connect(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.connect() as connection:
                self._guard(connection)
                yield connection
        except DBAPIError as error:
            raise self._failure(error.orig) from error
        except SQLAlchemyError as error:
            raise self._failure(error) from error

    def _make_engine(self) -> sa.Engine:
        try:
            # No pool: a connection is closed with the page it was opened for.
            engine = sa.create_engine(self._url, poolclass=NullPool)
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

    def _guard(self, connection: sa.Connection) -> None:
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

    def _parse_address(self, address: SecretStr) -> sa.URL:
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
