"""The appointments of a tenant. Only one transaction of a tenant writes at a time, so no slot is booked twice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ragstone.core.clock import canonical, now
from ragstone.core.errors import NotFoundError, QuotaExceeded, SlotTaken
from ragstone.core.ids import opaque_id
from ragstone.core.shop import Appointment, Slot
from ragstone.core.shop.slots import Span
from ragstone.stores.ledger.repository import TenantRepository, in_snapshot_or, in_transaction
from ragstone.stores.sql.database import Connection

MOST_APPOINTMENTS = 1_000_000
"""Of a tenant."""
COLUMNS = "id, service_id, starts_at, ends_at, customer, status, created_at"
APPOINTMENT = f"SELECT {COLUMNS} FROM appointments WHERE tenant_id = ?"
MEETING = (
    "FROM appointments WHERE tenant_id = ? AND service_id = ? AND status = 'booked' AND starts_at < ? AND ends_at > ?"
)


class AppointmentRepository(TenantRepository):
    """Keeps appointments; what comes here was checked."""

    @in_transaction
    def book(
        self, connection: Connection, tenant_id: str, slot: Slot, customer: str, *, of_ledger: bool = True
    ) -> Appointment:
        """Book a slot unless something booked meets it; a service `of_ledger` must not have been removed meanwhile."""
        service = "SELECT 1 FROM services WHERE tenant_id = ? AND id = ?"
        if of_ledger and not connection.execute(service, (tenant_id, slot.service_id)).fetchone():
            raise NotFoundError(f"no service {slot.service_id!r:.80}")
        start, end = canonical(slot.starts_at), canonical(slot.ends_at)
        if connection.execute(f"SELECT 1 {MEETING}", (tenant_id, slot.service_id, end, start)).fetchone():
            raise slot_taken(slot)
        counted = "SELECT count(*) FROM appointments WHERE tenant_id = ?"
        if int(connection.execute(counted, (tenant_id,)).fetchone()[0]) >= MOST_APPOINTMENTS:
            raise QuotaExceeded(f"a shop has at most {MOST_APPOINTMENTS:,} appointments")
        made = Appointment(
            opaque_id(), slot.service_id, slot.starts_at, slot.ends_at, customer, "booked", now().replace(microsecond=0)
        )
        put_appointments(connection, tenant_id, [made])
        return made

    @in_snapshot_or(list)
    def taken(
        self, connection: Connection, tenant_id: str, service_id: str, start: datetime, end: datetime
    ) -> list[Span]:
        """Return the spans of a service that are booked and meet a time."""
        rows = connection.execute(
            f"SELECT starts_at, ends_at {MEETING}", (tenant_id, service_id, canonical(end), canonical(start))
        )
        return [(datetime.fromisoformat(begins), datetime.fromisoformat(ends)) for begins, ends in rows]

    @in_transaction
    def cancel(self, connection: Connection, tenant_id: str, appointment_id: str) -> Appointment | None:
        """Cancel an appointment and return it; None when there is none."""
        key = (tenant_id, appointment_id)
        connection.execute("UPDATE appointments SET status = 'cancelled' WHERE tenant_id = ? AND id = ?", key)
        row = connection.execute(f"{APPOINTMENT} AND id = ?", key).fetchone()
        return _appointment(row) if row else None

    @in_snapshot_or(lambda: None)
    def get(self, connection: Connection, tenant_id: str, appointment_id: str) -> Appointment | None:
        row = connection.execute(f"{APPOINTMENT} AND id = ?", (tenant_id, appointment_id)).fetchone()
        return _appointment(row) if row else None

    @in_snapshot_or(list)
    def list(
        self,
        connection: Connection,
        tenant_id: str,
        service_id: str | None,
        start: datetime | None,
        end: datetime | None,
        limit: int,
    ) -> list[Appointment]:
        """Return appointments in order of time: all, or of one service, or those that meet a time."""
        narrowed, given = "", []
        for condition, value in (
            ("service_id = ?", service_id),
            ("ends_at > ?", canonical(start) if start else None),
            ("starts_at < ?", canonical(end) if end else None),
        ):
            if value is not None:
                narrowed += f" AND {condition}"
                given.append(value)
        rows = connection.execute(f"{APPOINTMENT}{narrowed} ORDER BY starts_at, id LIMIT ?", (tenant_id, *given, limit))
        return [_appointment(row) for row in rows]


def read_appointments(connection: Connection, tenant_id: str, after: str, limit: int) -> list[Appointment]:
    """Return appointments behind an id, in order of id."""
    rows = connection.execute(f"{APPOINTMENT} AND id > ? ORDER BY id LIMIT ?", (tenant_id, after, limit))
    return [_appointment(row) for row in rows]


def slot_taken(slot: Slot) -> SlotTaken:
    """Return the error for a slot that somebody else has."""
    return SlotTaken(f"{slot.starts_at:%Y-%m-%d %H:%M} is booked already", hint="choose another free slot")


def put_appointments(connection: Connection, tenant_id: str, appointments: Sequence[Appointment]) -> None:
    """Write appointments over those with their ids."""
    connection.executemany(
        f"INSERT INTO appointments (tenant_id, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (tenant_id, id) DO UPDATE SET service_id = excluded.service_id, starts_at = excluded.starts_at, "
        "ends_at = excluded.ends_at, customer = excluded.customer, status = excluded.status, "
        "created_at = excluded.created_at",
        [
            (
                *(tenant_id, one.id, one.service_id, canonical(one.starts_at), canonical(one.ends_at)),
                *(one.customer, one.status, canonical(one.created_at)),
            )
            for one in appointments
        ],
    )


def _appointment(row: Sequence[Any]) -> Appointment:
    appointment_id, service_id, starts, ends, customer, status, created = row
    return Appointment(
        *(appointment_id, service_id, datetime.fromisoformat(starts), datetime.fromisoformat(ends)),
        *(customer, status, datetime.fromisoformat(created)),
    )
