"""The products of a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from ragstone.core.clock import canonical
from ragstone.core.errors import QuotaExceeded
from ragstone.core.shop import Product
from ragstone.language.catalogue import index_product
from ragstone.stores.ledger.repository import TenantRepository, in_snapshot_or, in_transaction
from ragstone.stores.shop.ranking import find_ids, read_in_order
from ragstone.stores.sql.database import Connection, in_parts, marks

MOST_PRODUCTS = 100_000
"""Of a tenant."""
COLUMNS = "id, name, category, brand, description, price, currency, stock, updated_at"
PRODUCT = f"SELECT {COLUMNS} FROM products WHERE tenant_id = ?"


class ProductRepository(TenantRepository):
    """Keeps products; what comes here was checked."""

    @in_snapshot_or(list)
    def find(self, connection: Connection, tenant_id: str, query: str, limit: int) -> list[Product]:
        """Return the products that a text is about, best first."""
        ids = find_ids(connection, tenant_id, "products", query, limit)
        return read_products(connection, tenant_id, ids)

    @in_snapshot_or(lambda: None)
    def get(self, connection: Connection, tenant_id: str, product_id: str) -> Product | None:
        found = read_products(connection, tenant_id, [product_id])
        return found[0] if found else None

    @in_snapshot_or(list)
    def list(self, connection: Connection, tenant_id: str, after: str, limit: int) -> list[Product]:
        """Return a page of products in order of id."""
        return read_product_page(connection, tenant_id, after, limit)

    async def put(self, products: Sequence[Product]) -> Sequence[Product]:
        """Write products over those with their ids, all or none; return those that were replaced, as they were."""
        return await self._put(await asyncio.to_thread(lambda: [_row(product) for product in products]))

    @in_transaction
    def _put(self, connection: Connection, tenant_id: str, rows: Sequence[tuple[Any, ...]]) -> Sequence[Product]:
        replaced = read_products(connection, tenant_id, [row[0] for row in rows])
        _write(connection, tenant_id, rows)
        counted = "SELECT count(*) FROM products WHERE tenant_id = ?"
        if int(connection.execute(counted, (tenant_id,)).fetchone()[0]) > MOST_PRODUCTS:
            raise QuotaExceeded(f"a shop has at most {MOST_PRODUCTS:,} products", hint="remove some first")
        return replaced

    @in_transaction
    def remove(self, connection: Connection, tenant_id: str, product_id: str) -> Product | None:
        """Remove a product and return it; None when there is none."""
        found = read_products(connection, tenant_id, [product_id])
        connection.execute("DELETE FROM products WHERE tenant_id = ? AND id = ?", (tenant_id, product_id))
        return found[0] if found else None


def read_product_page(connection: Connection, tenant_id: str, after: str, limit: int) -> list[Product]:
    """Return products behind an id, in order of id."""
    rows = connection.execute(f"{PRODUCT} AND id > ? ORDER BY id LIMIT ?", (tenant_id, after, limit))
    return [_product(row) for row in rows]


def put_products(connection: Connection, tenant_id: str, products: Sequence[Product]) -> None:
    """Write products over those with their ids."""
    _write(connection, tenant_id, [_row(product) for product in products])


def _write(connection: Connection, tenant_id: str, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.executemany(
        "INSERT INTO products (tenant_id, id, name, category, brand, description, price, currency, stock, updated_at, "
        "terms, language) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant_id, id) DO UPDATE SET "
        "name = excluded.name, category = excluded.category, brand = excluded.brand, "
        "description = excluded.description, price = excluded.price, currency = excluded.currency, "
        "stock = excluded.stock, updated_at = excluded.updated_at, terms = excluded.terms, "
        "language = excluded.language",
        [(tenant_id, *row) for row in rows],
    )


def read_products(connection: Connection, tenant_id: str, ids: Sequence[str]) -> list[Product]:
    """Return those of the products that there are, in the order of their ids as given."""
    rows = [
        row
        for part in in_parts(ids)
        for row in connection.execute(f"{PRODUCT} AND id IN ({marks(part)})", (tenant_id, *part))
    ]
    return [_product(row) for row in read_in_order(rows, ids)]


def _row(product: Product) -> tuple[Any, ...]:
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
