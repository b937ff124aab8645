"""The services of a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from ragstone.core.clock import canonical
from ragstone.core.errors import InputError, QuotaExceeded
from ragstone.core.shop import Service
from ragstone.core.shop.windows import format_windows, parse_windows
from ragstone.language.catalogue import index_service
from ragstone.stores.ledger.repository import TenantRepository, in_snapshot_or, in_transaction
from ragstone.stores.shop.ranking import find_ids, read_in_order
from ragstone.stores.sql.database import Connection, in_parts, marks

MOST_SERVICES = 1000
"""Of a tenant."""
COLUMNS = "id, name, description, price, currency, minutes, windows, timezone, updated_at"
SERVICE = f"SELECT {COLUMNS} FROM services WHERE tenant_id = ?"


class ServiceRepository(TenantRepository):
    """Keeps services; what comes here was checked."""

    @in_snapshot_or(list)
    def find(self, connection: Connection, tenant_id: str, query: str, limit: int) -> list[Service]:
        """Return the services that a text is about, best first."""
        return read_services(connection, tenant_id, find_ids(connection, tenant_id, "services", query, limit))

    @in_snapshot_or(lambda: None)
    def get(self, connection: Connection, tenant_id: str, service_id: str) -> Service | None:
        found = read_services(connection, tenant_id, [service_id])
        return found[0] if found else None

    @in_snapshot_or(list)
    def list(self, connection: Connection, tenant_id: str, after: str, limit: int) -> list[Service]:
        """Return a page of services in order of id."""
        return read_service_page(connection, tenant_id, after, limit)

    async def put(self, services: Sequence[Service]) -> None:
        """Write services over those with their ids, all or none."""
        await self._put(await asyncio.to_thread(lambda: [_row(service) for service in services]))

    @in_transaction
    def _put(self, connection: Connection, tenant_id: str, rows: Sequence[tuple[Any, ...]]) -> None:
        _write(connection, tenant_id, rows)
        counted = "SELECT count(*) FROM services WHERE tenant_id = ?"
        if int(connection.execute(counted, (tenant_id,)).fetchone()[0]) > MOST_SERVICES:
            raise QuotaExceeded(f"a shop has at most {MOST_SERVICES:,} services", hint="remove some first")

    @in_transaction
    def remove(self, connection: Connection, tenant_id: str, service_id: str, moment: datetime) -> bool:
        """Remove a service with its past appointments; refused while one is booked for a time to come."""
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


def read_service_page(connection: Connection, tenant_id: str, after: str, limit: int) -> list[Service]:
    """Return services behind an id, in order of id."""
    rows = connection.execute(f"{SERVICE} AND id > ? ORDER BY id LIMIT ?", (tenant_id, after, limit))
    return [_service(row) for row in rows]


def put_services(connection: Connection, tenant_id: str, services: Sequence[Service]) -> None:
    """Write services over those with their ids."""
    _write(connection, tenant_id, [_row(service) for service in services])


def _write(connection: Connection, tenant_id: str, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.executemany(
        "INSERT INTO services (tenant_id, id, name, description, price, currency, minutes, windows, timezone, "
        "updated_at, terms, language) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant_id, id) "
        "DO UPDATE SET name = excluded.name, description = excluded.description, price = excluded.price, "
        "currency = excluded.currency, minutes = excluded.minutes, windows = excluded.windows, "
        "timezone = excluded.timezone, updated_at = excluded.updated_at, terms = excluded.terms, "
        "language = excluded.language",
        [(tenant_id, *row) for row in rows],
    )


def read_services(connection: Connection, tenant_id: str, ids: Sequence[str]) -> list[Service]:
    """Return those of the services that there are, in the order of their ids as given."""
    rows = [
        row
        for part in in_parts(ids)
        for row in connection.execute(f"{SERVICE} AND id IN ({marks(part)})", (tenant_id, *part))
    ]
    return [_service(row) for row in read_in_order(rows, ids)]


def _row(service: Service) -> tuple[Any, ...]:
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
