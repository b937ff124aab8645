"""Usage and reservations of tenants, as functions over a connection.

What is limited by amount is counted in the tenant's own rows; what is limited by time is added up in `usage`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta

from ragstone.core.clock import canonical
from ragstone.core.errors import InputError, QuotaExceeded
from ragstone.core.ids import opaque_id
from ragstone.core.model_types import Bill
from ragstone.core.tenants import QUOTA_NAMES, QuotaName, Reservation, Stock, Tenant
from ragstone.stores.sql.database import Connection

LAPSES = timedelta(hours=1)
"""The time that a reservation holds when its holder is not heard of any more."""
MINUTE, DAY, MONTH = "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%Y-%m"
QUEUED = "queued."
"""The prefix of the names of reserved amounts that count as waiting in the queue, too."""
COST, UNITS = "cost.", "units."
"""The prefixes of the names of costs, and of what was used for them; the kind follows. Both are kept by day."""
MONTHS_SHOWN = 12
SLACK = 1e-9
"""Sums of cents are not exact."""


def live_stock(connection: Connection, tenant_id: str) -> Stock:
    """Count the searchable content of a tenant from its own rows."""
    documents, chunks = connection.execute(
        "SELECT count(*), coalesce(sum(chunk_count), 0) FROM documents WHERE tenant_id = ? AND version > 0",
        (tenant_id,),
    ).fetchone()
    taken = connection.execute(
        f"SELECT coalesce(sum({connection.dialect.packed_bytes('v.text')}), 0) FROM versions v "
        "JOIN documents d ON d.id = v.document_id AND d.version = v.version WHERE v.tenant_id = ?",
        (tenant_id,),
    ).fetchone()[0]
    return Stock(int(documents), int(chunks), int(taken))


def kept_originals(connection: Connection, tenant_id: str) -> int:
    """Return the bytes of originals whose jobs have ended: they are kept until they are deleted."""
    row = connection.execute(
        "SELECT coalesce(sum(stored), 0) FROM jobs "
        "WHERE tenant_id = ? AND state IN ('completed', 'failed', 'cancelled') AND stored > 0",
        (tenant_id,),
    ).fetchone()
    return int(row[0])


def coming_originals(connection: Connection, tenant_id: str) -> int:
    """Return the bytes of originals that wait in the queue and are to be kept."""
    row = connection.execute(
        "SELECT coalesce(sum(stored), 0) FROM jobs WHERE tenant_id = ? AND state IN ('pending', 'running') "
        f"AND stored > 0 AND {connection.dialect.json_true('facts', 'keep')}",
        (tenant_id,),
    ).fetchone()
    return int(row[0])


def queued_stock(connection: Connection, tenant_id: str) -> Stock:
    """Return what a tenant has queued and cannot be found yet: files, room for their text, and archives to import."""
    keep = connection.dialect.json_true("j.facts", "keep")
    documents, taken = connection.execute(
        "SELECT count(DISTINCT CASE WHEN d.version = 0 THEN d.id END), "
        "coalesce(sum(CASE WHEN j.stored > 0 THEN j.stored ELSE j.size END), 0) + "
        f"coalesce(sum(CASE WHEN j.stored > 0 AND {keep} THEN j.size ELSE 0 END), 0) FROM jobs j "
        "JOIN documents d ON d.id = j.document_id WHERE j.tenant_id = ? AND j.kind = 'document' "
        "AND j.state IN ('pending', 'running')",
        (tenant_id,),
    ).fetchone()
    archives = connection.execute(
        "SELECT coalesce(sum(stored), 0) FROM jobs WHERE tenant_id = ? AND kind = 'task' "
        "AND state IN ('pending', 'running')",
        (tenant_id,),
    ).fetchone()[0]
    return Stock(int(documents), 0, int(taken) + int(archives))


def expired_documents(connection: Connection, tenant_id: str, before: datetime, limit: int) -> list[str]:
    """Return documents that were not updated since, oldest first; none that is being worked on.

    Of failed ones and archives, which cannot be found, their last job and what came in with them count.
    """
    moment = canonical(before)
    rows = connection.execute(
        "SELECT d.id FROM documents d WHERE d.tenant_id = ? AND d.updated_at < ? "
        "AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.tenant_id = d.tenant_id AND j.document_id = d.id "
        "AND (j.state IN ('pending', 'running') OR (d.version = 0 AND j.finished_at >= ?))) "
        "AND (d.version > 0 OR NOT EXISTS (SELECT 1 FROM documents c WHERE c.tenant_id = d.tenant_id "
        "AND c.parent_id = d.id AND c.updated_at >= ?)) ORDER BY d.updated_at, d.id LIMIT ?",
        (tenant_id, moment, moment, moment, limit),
    )
    return [identity for (identity,) in rows]


def reserve(
    connection: Connection,
    tenant: Tenant,
    amounts: Mapping[QuotaName, float],
    stock: Stock,
    moment: datetime,
    *,
    queued: bool,
    waiting: Stock,
) -> Reservation:
    """Promise all of it or nothing."""
    limited = {name: amount for name, amount in amounts.items() if tenant.quotas.of(name) is not None}
    connection.execute(
        "DELETE FROM reservations WHERE tenant_id = ? AND expires_at < ?", (tenant.id, canonical(moment))
    )
    check(connection, tenant, limited, stock, moment, read_reserved(connection, tenant.id, moment, queued=queued))
    reservation = Reservation(opaque_id(), tenant.id, limited)
    rows: dict[str, float] = {}
    for name, amount in limited.items():
        rows[QUEUED + name] = min(waiting.of(name), amount)
        rows[name] = amount - rows[QUEUED + name]
    connection.executemany(
        "INSERT INTO reservations (id, name, tenant_id, amount, expires_at) VALUES (?, ?, ?, ?, ?)",
        [(reservation.id, name, tenant.id, amount, canonical(moment + LAPSES)) for name, amount in rows.items()],
    )
    return reservation


def release(connection: Connection, reservation: Reservation) -> None:
    connection.execute("DELETE FROM reservations WHERE id = ?", (reservation.id,))


def spend(connection: Connection, tenant: Tenant, name: QuotaName, amount: float, moment: datetime) -> None:
    """Use some of what is limited by time, if there is some left."""
    check(connection, tenant, {name: amount}, Stock(), moment, read_reserved(connection, tenant.id, moment))
    add(connection, tenant.id, usage_name(name), amount, moment)


def add(connection: Connection, tenant_id: str, name: str, amount: float, moment: datetime) -> None:
    """Add to what was used in the minute or day that runs; earlier minutes are forgotten, days are kept."""
    period = _period(name, moment)
    connection.execute(
        "INSERT INTO usage (tenant_id, name, period, used) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (tenant_id, name, period) DO UPDATE SET used = usage.used + ?",
        (tenant_id, name, period, amount, amount),
    )
    if not name.startswith((COST, UNITS)):
        connection.execute(
            "DELETE FROM usage WHERE tenant_id = ? AND name = ? AND period <> ?", (tenant_id, name, period)
        )


def queries(connection: Connection, tenant_id: str, moment: datetime) -> float:
    """Queries of the minute that runs."""
    row = connection.execute(
        "SELECT used FROM usage WHERE tenant_id = ? AND name = 'queries_per_minute' AND period = ?",
        (tenant_id, moment.strftime(MINUTE)),
    ).fetchone()
    return float(row[0]) if row else 0.0


def costs(connection: Connection, tenant_id: str, moment: datetime) -> dict[str, float]:
    """Return the costs of the current month, by kind."""
    return _monthly(connection, tenant_id, COST, moment)


def units(connection: Connection, tenant_id: str, moment: datetime) -> dict[str, float]:
    """Return the tokens and queries of the current month, by kind."""
    return _monthly(connection, tenant_id, UNITS, moment)


def _monthly(connection: Connection, tenant_id: str, prefix: str, moment: datetime) -> dict[str, float]:
    # Costs of an earlier version have the month as their period, the others the day.
    rows = connection.execute(
        "SELECT name, sum(used) FROM usage WHERE tenant_id = ? AND substr(name, 1, ?) = ? "
        "AND substr(period, 1, 7) = ? GROUP BY name ORDER BY name",
        (tenant_id, len(prefix), prefix, moment.strftime(MONTH)),
    )
    return {name.removeprefix(prefix): float(used) for name, used in rows}


def costs_by_month(connection: Connection, tenant_id: str) -> dict[str, dict[str, float]]:
    """Return the costs of the last months by kind, oldest first."""
    rows = connection.execute(
        "SELECT substr(period, 1, 7), name, sum(used) FROM usage WHERE tenant_id = ? AND substr(name, 1, ?) = ? "
        "GROUP BY substr(period, 1, 7), name ORDER BY 1, 2",
        (tenant_id, len(COST), COST),
    )
    months: dict[str, dict[str, float]] = {}
    for month, name, used in rows:
        months.setdefault(month, {})[name.removeprefix(COST)] = float(used)
    return dict(list(months.items())[-MONTHS_SHOWN:])


def units_by_day(connection: Connection, tenant_id: str, kind: str, moment: datetime) -> dict[str, int]:
    """Return the units of a kind by day, of the last 31 days."""
    rows = connection.execute(
        "SELECT period, used FROM usage WHERE tenant_id = ? AND name = ? AND period > ? ORDER BY period",
        (tenant_id, UNITS + kind, (moment - timedelta(days=31)).strftime(DAY)),
    )
    return {day: int(used) for day, used in rows}


def count_conversations(connection: Connection, tenant_id: str, moment: datetime) -> int:
    """Return the number of conversations with a turn in the month that runs."""
    row = connection.execute(
        "SELECT count(DISTINCT conversation) FROM turns WHERE tenant_id = ? AND substr(moment, 1, 7) = ?",
        (tenant_id, moment.strftime(MONTH)),
    ).fetchone()
    return int(row[0])


def add_bill(
    connection: Connection, tenant_id: str, bill: Bill, free_units: Mapping[str, int], moment: datetime
) -> None:
    """Add a bill; of what is free for some units a day, only those beyond are charged."""
    for kind, used in bill.units.items():
        add(connection, tenant_id, UNITS + kind, used, moment)
    for kind, usd in bill.items():
        used, free = bill.units.get(kind, 0.0), free_units.get(kind, 0)
        if used and free:
            row = connection.execute(
                "SELECT sum(used) FROM usage WHERE name = ? AND period = ?", (UNITS + kind, moment.strftime(DAY))
            ).fetchone()
            usd *= min(used, max(float(row[0]) - free, 0.0)) / used
        if usd:
            add(connection, tenant_id, COST + kind, usd, moment)


def add_once_a_day(connection: Connection, tenant_id: str, name: str, amount: float, moment: datetime) -> None:
    """Add an amount unless there is one of today: however often this is done, it counts once."""
    connection.execute(
        "INSERT INTO usage (tenant_id, name, period, used) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (tenant_id, name, period) DO NOTHING",
        (tenant_id, name, moment.strftime(DAY), amount),
    )


def read_reserved(
    connection: Connection, tenant_id: str, moment: datetime, *, queued: bool = False
) -> dict[str, float]:
    """Return the reservations that have not expired, by name; `queued` leaves out what waits in the queue."""
    rows = connection.execute(
        "SELECT name, sum(amount) FROM reservations WHERE tenant_id = ? AND expires_at >= ? GROUP BY name",
        (tenant_id, canonical(moment)),
    )
    reserved: dict[str, float] = {}
    for name, amount in rows:
        if not (queued and name.startswith(QUEUED)):
            kind = name.removeprefix(QUEUED)
            reserved[kind] = reserved.get(kind, 0.0) + float(amount)
    return reserved


def usage_name(name: QuotaName) -> str:
    """Return the row that a quota's use is added up in."""
    return f"{COST}other" if name == "cost_per_month" else name


def check(
    connection: Connection,
    tenant: Tenant,
    amounts: Mapping[QuotaName, float],
    stock: Stock,
    moment: datetime,
    promised: Mapping[str, float],
) -> None:
    """Raise `QuotaExceeded` unless all of it fits beside what is used and promised."""
    for name, amount in amounts.items():
        if name not in QUOTA_NAMES or not 0 <= amount < math.inf:
            raise InputError(f"{amount} of '{name!s:.40}' cannot be reserved")
        limit, waiting = tenant.quotas.of(name), promised.get(name, 0)
        used = _read_use(connection, tenant, name, stock, moment)
        # What was just stored counts as promised, too, until its promise is released: it refuses nothing that is empty.
        wanted = waiting + amount if amount else 0
        if limit is not None and used + wanted > limit + SLACK:
            raise _refusal(tenant.name, name, amount, limit, used, waiting, moment)


def _read_use(connection: Connection, tenant: Tenant, name: QuotaName, stock: Stock, moment: datetime) -> float:
    match name:
        case "queries_per_minute":
            return queries(connection, tenant.id, moment)
        case "cost_per_month":
            return math.fsum(costs(connection, tenant.id, moment).values())
        case _:
            return stock.of(name)


def _refusal(
    tenant: str, name: QuotaName, amount: float, limit: float, used: float, promised: float, moment: datetime
) -> QuotaExceeded:
    """Says which limit, how high it is, and what is used of it."""
    match name:
        case "queries_per_minute":
            said = f"tenant '{tenant}' may ask {limit:,.0f} queries per minute and has asked {used:,.0f}"
            left = 60.0 - moment.second
            return QuotaExceeded(said, hint=f"try again in {left:.0f} s", retry_after=left, limit=limit)
        case "cost_per_month":
            said = f"tenant '{tenant}' may spend {limit:,.2f} USD per month and has spent {used:,.2f}"
            return QuotaExceeded(said, hint="wait for the next month, or raise quotas.cost_per_month")
        case _:
            waiting = f", and {promised:,.0f} on the way" if promised else ""
            what = name.removesuffix("s") if limit == 1 else name
            said = f"tenant '{tenant}' may have {limit:,.0f} {what} and has {used:,.0f}{waiting}"
            verb = "does" if amount == 1 else "do"
            return QuotaExceeded(
                f"{said}: {amount:,.0f} more {verb} not fit", hint=f"delete something, or raise quotas.{name}"
            )


def _period(name: str, moment: datetime) -> str:
    return moment.strftime(DAY if name.startswith((COST, UNITS)) else MINUTE)
