"""The products and services of a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar

from ragstone.core.clock import canonical
from ragstone.core.errors import InputError, QuotaExceeded
from ragstone.core.shop import Product, Service
from ragstone.core.shop.windows import format_windows, parse_windows
from ragstone.language.catalogue import LONGEST_QUERY, index_product, index_service, rank
from ragstone.language.terms import terms_asked
from ragstone.stores.ledger.repository import TenantRepository, in_snapshot_or, in_transaction
from ragstone.stores.sql.database import Connection, in_parts, marks

T = TypeVar("T")
MOST_ASKED = 24
"""Words of a query that are looked for."""


@dataclass(frozen=True, slots=True)
class EntryTable(Generic[T]):
    """A table of entries that are found by their words."""

    name: str
    columns: tuple[str, ...]
    """Those of an entry behind its id; the words that find it come last in a row."""
    most: int
    """Of a tenant."""
    make_row: Callable[[T], tuple[Any, ...]]
    read_row: Callable[[Sequence[Any]], T]

    def read_page(self, connection: Connection, tenant_id: str, after: str, limit: int) -> list[T]:
        """Return entries behind an id, in order of id."""
        rows = connection.execute(f"{self._select} AND id > ? ORDER BY id LIMIT ?", (tenant_id, after, limit))
        return [self.read_row(row) for row in rows]

    def read(self, connection: Connection, tenant_id: str, ids: Sequence[str]) -> list[T]:
        """Return those of the entries that there are, in the order of their ids as given."""
        found = {
            row[0]: row
            for part in in_parts(ids)
            for row in connection.execute(f"{self._select} AND id IN ({marks(part)})", (tenant_id, *part))
        }
        return [self.read_row(found[entry_id]) for entry_id in ids if entry_id in found]

    def write(self, connection: Connection, tenant_id: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write rows over those with their ids."""
        columns = (*self.columns, "terms", "language")
        connection.executemany(
            f"INSERT INTO {self.name} (tenant_id, id, {', '.join(columns)}) VALUES (?, ?, {marks(columns)}) "
            f"ON CONFLICT (tenant_id, id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in columns)}",
            [(tenant_id, *row) for row in rows],
        )

    def find_ids(self, connection: Connection, tenant_id: str, query: str, limit: int) -> list[str]:
        """Return the ids of the entries that a query is about, best first."""
        spoken = f"SELECT DISTINCT language FROM {self.name} WHERE tenant_id = ? AND language <> ''"
        languages = [row[0] for row in connection.execute(spoken, (tenant_id,))]
        asked = terms_asked(query[:LONGEST_QUERY], languages)[:MOST_ASKED]
        if not asked:
            return []
        patterns = [f"% {term} %" for terms in asked for term in terms]
        matching = " OR ".join(["terms LIKE ?"] * len(patterns))
        rows = connection.execute(
            f"SELECT id, terms FROM {self.name} WHERE tenant_id = ? AND ({matching}) ORDER BY id",
            (tenant_id, *patterns),
        ).fetchall()
        return rank([(row[0], row[1].split()) for row in rows], asked, self.count(connection, tenant_id), limit)

    def count(self, connection: Connection, tenant_id: str) -> int:
        """Return the number of entries of a tenant."""
        counted = f"SELECT count(*) FROM {self.name} WHERE tenant_id = ?"
        return int(connection.execute(counted, (tenant_id,)).fetchone()[0])

    @property
    def _select(self) -> str:
        return f"SELECT id, {', '.join(self.columns)} FROM {self.name} WHERE tenant_id = ?"


def _product_row(product: Product) -> tuple[Any, ...]:
    words = index_product(product)
    return (
        *(product.id, product.name, product.category, product.brand, product.description),
        *(None if product.price is None else str(product.price), product.currency, product.stock),
        *(canonical(product.updated_at), words.terms, words.language),
    )


def _product(row: Sequence[Any]) -> Product:
    product_id, name, category, brand, description, price, currency, stock, updated = row
    return Product(
        *(product_id, name, category, brand, description, None if price is None else Decimal(price)),
        *(currency, stock, datetime.fromisoformat(updated)),
    )


def _service_row(service: Service) -> tuple[Any, ...]:
    words = index_service(service)
    return (
        *(service.id, service.name, service.description),
        *(None if service.price is None else str(service.price), service.currency, service.minutes),
        *(format_windows(service.windows), service.timezone, canonical(service.updated_at)),
        *(words.terms, words.language),
    )


def _service(row: Sequence[Any]) -> Service:
    service_id, name, description, price, currency, minutes, windows, timezone, updated = row
    return Service(
        *(service_id, name, description, None if price is None else Decimal(price), currency, minutes),
        *(parse_windows(windows), timezone, datetime.fromisoformat(updated)),
    )


PRODUCTS = EntryTable(
    "products",
    ("name", "category", "brand", "description", "price", "currency", "stock", "updated_at"),
    100_000,
    _product_row,
    _product,
)
SERVICES = EntryTable(
    "services",
    ("name", "description", "price", "currency", "minutes", "windows", "timezone", "updated_at"),
    1000,
    _service_row,
    _service,
)


class EntryRepository(TenantRepository, Generic[T]):
    """Keeps entries; what comes here was checked."""

    table: EntryTable[T]

    @in_snapshot_or(list)
    def find(self, connection: Connection, tenant_id: str, query: str, limit: int) -> list[T]:
        """Return the entries that a text is about, best first."""
        return self.table.read(connection, tenant_id, self.table.find_ids(connection, tenant_id, query, limit))

    @in_snapshot_or(lambda: None)
    def get(self, connection: Connection, tenant_id: str, entry_id: str) -> T | None:
        found = self.table.read(connection, tenant_id, [entry_id])
        return found[0] if found else None

    @in_snapshot_or(list)
    def list(self, connection: Connection, tenant_id: str, after: str, limit: int) -> list[T]:
        """Return a page of entries in order of id."""
        return self.table.read_page(connection, tenant_id, after, limit)

    async def put(self, entries: Sequence[T]) -> None:
        """Write entries over those with their ids, all or none."""
        await self._put(await asyncio.to_thread(lambda: [self.table.make_row(entry) for entry in entries]))

    @in_transaction
    def _put(self, connection: Connection, tenant_id: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self.table.write(connection, tenant_id, rows)
        if self.table.count(connection, tenant_id) > self.table.most:
            raise QuotaExceeded(f"a shop has at most {self.table.most:,} {self.table.name}", hint="remove some first")


class ProductRepository(EntryRepository[Product]):
    """Keeps products."""

    table = PRODUCTS

    @in_transaction
    def remove(self, connection: Connection, tenant_id: str, product_id: str) -> bool:
        """Remove a product; False when there is none."""
        gone = connection.execute("DELETE FROM products WHERE tenant_id = ? AND id = ?", (tenant_id, product_id))
        return bool(gone.rowcount)


class ServiceRepository(EntryRepository[Service]):
    """Keeps services."""

    table = SERVICES

    @in_transaction
    def remove(self, connection: Connection, tenant_id: str, service_id: str, moment: datetime) -> bool:
        """Remove a service with its past appointments; refused while it has future bookings."""
        (booked,) = connection.execute(
            "SELECT count(*) FROM appointments WHERE tenant_id = ? AND service_id = ? AND status = 'booked' "
            "AND ends_at > ?",
            (tenant_id, service_id, canonical(moment)),
        ).fetchone()
        if booked:
            raise InputError(
                f"service {service_id} has {booked} appointments to come", hint="cancel them first, or leave it"
            )
        connection.execute("DELETE FROM appointments WHERE tenant_id = ? AND service_id = ?", (tenant_id, service_id))
        gone = connection.execute("DELETE FROM services WHERE tenant_id = ? AND id = ?", (tenant_id, service_id))
        return bool(gone.rowcount)
