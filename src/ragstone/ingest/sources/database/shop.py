"""Shops that are read from a database of the tenant's own: looked at when somebody asks, never written.

The database and the queries come from the operator's settings alone, so that no caller can have others read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Generic, TypeVar

from pydantic import SecretStr
from sqlalchemy import Select, String, case, cast, column, or_, select, text

from ragstone.core.background import ReaderPool
from ragstone.core.clock import parse_moment
from ragstone.core.errors import InputError, SettingsError, SourceError, StoreBusy
from ragstone.core.registry import nearest
from ragstone.core.shop import Product, Service
from ragstone.core.shop.checks import check_id, check_product, check_service
from ragstone.core.shop.slots import Span
from ragstone.core.shop.tables import COLUMNS
from ragstone.core.shop.windows import parse_windows
from ragstone.ingest.sources.database.records import READERS, find_words, holds_word
from ragstone.ingest.sources.database.rows import Row, RowReader, as_text
from ragstone.ingest.sources.database.source import one_select
from ragstone.language.catalogue import IndexedWords, index_product, index_service, rank
from ragstone.language.terms import terms_asked
from ragstone.settings.records import ShopMapping

logger = logging.getLogger(__name__)
T = TypeVar("T", Product, Service)
MOST_CANDIDATES = 200
"""Rows with a word of the query that are compared with it."""
MOST_BOOKED = 20_000
"""Bookings of a service that are looked at."""
WORDED = {"products": ("name", "brand", "category", "description"), "services": ("name", "description")}
BOOKED = ("service_id", "starts_at", "ends_at")


class ShopDatabase:
    """One shop's database, read within a time by threads of its own."""

    def __init__(self, tenant: str, mapping: ShopMapping, databases: Mapping[str, SecretStr]) -> None:
        if mapping.database not in databases:
            raise SettingsError(
                f"setting 'shops.{tenant}' names the database '{mapping.database}', which is not there",
                hint=nearest(mapping.database, databases) or f"put its address under databases.{mapping.database}",
            )
        self._name = mapping.database
        self._address = databases[mapping.database]
        self._seconds = mapping.seconds
        self._readers = ReaderPool(READERS, f"database '{mapping.database}'")
        queries = {kind: _check_query(tenant, kind, getattr(mapping, kind)) for kind in (*COLUMNS, "appointments")}
        self.products = MappedEntries(self, queries["products"], "products", _product, index_product)
        self.services = MappedEntries(self, queries["services"], "services", _service, index_service)
        self._booked = queries["appointments"]

    async def taken(self, service_id: str, start: datetime, end: datetime) -> list[Span]:
        """Return the spans of a service that are booked and meet a time."""
        table = _as_table(self._booked, BOOKED)
        own = cast(table["service_id"], String) == service_id
        rows = await self.read(select(*table).where(own).limit(MOST_BOOKED + 1))
        if len(rows) > MOST_BOOKED:
            raise SourceError(
                f"more than {MOST_BOOKED:,} appointments of one service were read",
                hint="let the query leave out the past",
            )
        spans = [(_moment(row["starts_at"]), _moment(row["ends_at"])) for row in rows]
        return [(begins, ends) for begins, ends in spans if begins < end and ends > start]

    async def read(self, statement: Select[Any]) -> list[Row]:
        """Return the rows of a statement; `SourceError` when there are none in time."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._readers.run(partial(self._rows, statement))
        except TimeoutError as error:
            hint = "raise the seconds of the shop's mapping, or index the columns"
            raise SourceError(f"no rows of database '{self._name}' within {self._seconds:g} s", hint=hint) from error
        except StoreBusy as error:
            raise SourceError(str(error), hint="see what locks it; there are rows again once they have") from error

    def _rows(self, statement: Select[Any]) -> list[Row]:
        return RowReader(self._name, self._address, self._seconds).rows(statement)


class MappedEntries(Generic[T]):
    """Products or services as rows of a query. A row that cannot be an entry is left out and logged."""

    def __init__(
        self,
        database: ShopDatabase,
        query: str,
        kind: str,
        make: Callable[[Row], T],
        index: Callable[[T], IndexedWords],
    ) -> None:
        self._database = database
        self._query = query
        self._kind = kind
        self._columns = COLUMNS["products" if kind == "products" else "services"]
        self._make: Callable[[Row], T] = make
        self._index: Callable[[T], IndexedWords] = index

    async def find(self, query: str, limit: int) -> Sequence[T]:
        """Return the entries that a text is about, best first."""
        words = find_words(query)
        if not words:
            return []
        table = _as_table(self._query, self._columns)
        held = [or_(*(holds_word(table[name], word) for name in WORDED[self._kind])) for word in words]
        shared = sum((case((condition, 1), else_=0) for condition in held[1:]), case((held[0], 1), else_=0))
        some = select(*table).where(or_(*held)).order_by(shared.desc(), table["id"]).limit(MOST_CANDIDATES)
        entries = self._entries(await self._database.read(some))
        return await asyncio.to_thread(self._rank, entries, query, limit)

    async def get(self, entry_id: str) -> T | None:
        """Return the entry of an id; None when there is none."""
        table = _as_table(self._query, self._columns)
        rows = await self._database.read(select(*table).where(cast(table["id"], String) == entry_id).limit(2))
        # A database may compare without regard to case or trailing spaces: ids are exact.
        return next((entry for entry in self._entries(rows) if entry.id == entry_id), None)

    async def list(self, after: str, limit: int) -> Sequence[T]:
        """Return a page of entries in order of id."""
        table = _as_table(self._query, self._columns)
        place = cast(table["id"], String)
        rows = await self._database.read(select(*table).where(place > after).order_by(place).limit(limit))
        return self._entries(rows)

    def _rank(self, entries: Sequence[T], query: str, limit: int) -> Sequence[T]:
        words = {entry.id: self._index(entry) for entry in entries}
        languages = sorted({one.language for one in words.values()} - {""})
        terms = [(entry_id, one.terms.split()) for entry_id, one in words.items()]
        known = {entry.id: entry for entry in entries}
        return [known[found] for found in rank(terms, terms_asked(query, languages), len(entries) + 1, limit)]

    def _entries(self, rows: Sequence[Row]) -> Sequence[T]:
        found: dict[str, T] = {}
        for row in rows:
            try:
                entry = self._make(row)
            except (InputError, InvalidOperation, ValueError, TypeError, OverflowError) as error:
                logger.warning("a row of a shop's %s is left out: %s", self._kind, error)
                continue
            found.setdefault(entry.id, entry)
        return tuple(found.values())


def _check_query(tenant: str, kind: str, query: str | None) -> str:
    try:
        return one_select(query) if query else ""
    except ValueError as error:
        raise SettingsError(f"setting 'shops.{tenant}.{kind}': {error}") from error


def _as_table(query: str, columns: Sequence[str]) -> Any:
    # The line end closes a comment the query may end in; its colons are its own, not parameters.
    own = text(f"\n{query}\n".replace(":", "\\:"))
    return own.columns(*(column(name) for name in columns)).subquery("shop_rows").c


def _product(row: Row) -> Product:
    return check_product(
        Product(
            id=check_id(as_text(row["id"])),
            name=as_text(row["name"]),
            category=as_text(row["category"]),
            brand=as_text(row["brand"]),
            description=as_text(row["description"]),
            price=_price(row["price"]),
            currency=as_text(row["currency"]) or "USD",
            stock=None if row["stock"] is None else int(row["stock"]),
        )
    )


def _service(row: Row) -> Service:
    return check_service(
        Service(
            id=check_id(as_text(row["id"])),
            name=as_text(row["name"]),
            description=as_text(row["description"]),
            price=_price(row["price"]),
            currency=as_text(row["currency"]) or "USD",
            minutes=int(row["minutes"]),
            windows=parse_windows(as_text(row["windows"])),
            timezone=as_text(row["timezone"]) or "UTC",
        )
    )


def _price(value: Any) -> Decimal | None:
    """Return a price to two digits where it is a binary fraction, which has no exact ones."""
    if value is None:
        return None
    return Decimal(f"{value:.2f}") if isinstance(value, float) else Decimal(str(value))


def _moment(value: Any) -> datetime:
    found = value if isinstance(value, datetime) else parse_moment(as_text(value))
    if found is None:
        raise SourceError(f"{as_text(value)!r:.60} is no time of an appointment", hint="give times in ISO 8601")
    return found if found.tzinfo else found.replace(tzinfo=UTC)
