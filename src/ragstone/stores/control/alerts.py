"""Alerts beside the names of the tenants, where all processes see the same state, and messages about them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from ragstone.core.clock import canonical, now
from ragstone.core.ids import opaque_id
from ragstone.core.types import Json
from ragstone.stores.sql.database import Connection

if TYPE_CHECKING:
    from ragstone.stores.ledger.ledger import SqlLedger

AlertState = Literal["firing", "resolved"]
MOST_MESSAGES = 1000
"""Of those that wait, the newest: a webhook that is away for days does not fill the disk."""
LEASE = timedelta(seconds=60)
"""The time in which a process that took a message has to send it; after that another one does."""
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(hours=1)
MOST_ATTEMPTS = 40
COLUMNS = "tenant_id, rule, tenant, state, value, threshold, since, checked_at"


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """The value of a rule now, and whether that is alarming."""

    rule: str
    value: float
    threshold: float
    alarming: bool


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule that fires or has fired."""

    tenant_id: str
    rule: str
    tenant: str
    """Empty for what concerns the whole service."""
    state: AlertState
    value: float
    threshold: float
    since: datetime
    """The time at which its state began."""
    checked_at: datetime


@dataclass(frozen=True, slots=True)
class AlertMessage:
    """Something to be told to the webhook."""

    id: str
    body: Json
    attempts: int


class SqlAlertBook:
    """Keeps the state of rules. One that fires already does not fire again, in whichever process it is found."""

    def __init__(self, ledger: SqlLedger, clock: Callable[[], datetime] = now) -> None:
        self._ledger = ledger
        self._clock = clock

    async def update(self, tenant_id: str, tenant: str, findings: Sequence[RuleFinding], *, tell: bool) -> list[Alert]:
        """Record the findings about a tenant and return the alerts that began or ended; `tell` queues messages."""
        if not findings:
            return []
        known = await self._read(tenant_id)
        states = {alert.rule: alert.state for alert in known}
        if not any(finding.alarming or finding.rule in states for finding in findings):
            return []  # most of the time: nothing is written
        moment = self._clock()
        return await self._ledger.control_write(
            lambda connection: _update(connection, tenant_id, tenant, findings, moment, tell=tell)
        )

    async def all(self, tenant_id: str | None = None) -> list[Alert]:
        """Return the alerts of a tenant, or of all and of the service: those that fire first, then the newest."""
        return sorted(
            await self._read(tenant_id),
            key=lambda alert: (alert.state == "resolved", -alert.since.timestamp(), alert.rule),
        )

    async def _read(self, tenant_id: str | None) -> list[Alert]:
        nothing: list[Alert] = []
        return await self._ledger.control_read(lambda connection: _read(connection, tenant_id), nothing)

    async def take_message(self) -> AlertMessage | None:
        """Take the oldest message that is due, for a minute; None when there is none."""
        moment = self._clock()
        due = await self._ledger.control_read(lambda connection: _due(connection, moment), None)
        if due is None:
            return None
        return await self._ledger.control_write(lambda connection: _take(connection, moment))

    async def end_message(self, message: AlertMessage, *, sent: bool) -> None:
        """Forget a message that was sent; try another one again later, each time after a longer pause."""
        moment = self._clock()

        def end(connection: Connection) -> None:
            if sent or message.attempts >= MOST_ATTEMPTS:
                connection.execute("DELETE FROM alert_messages WHERE id = ?", (message.id,))
                return
            pause = min(FIRST_PAUSE * 2 ** min(message.attempts - 1, 20), LONGEST_PAUSE)
            change = "UPDATE alert_messages SET next_at = ? WHERE id = ?"
            connection.execute(change, (canonical(moment + pause), message.id))

        await self._ledger.control_write(end)


def forget_alerts(connection: Connection, tenant_id: str) -> None:
    """Remove the alerts of a tenant that is deleted."""
    connection.execute("DELETE FROM alerts WHERE tenant_id = ?", (tenant_id,))
    connection.execute("DELETE FROM alert_messages WHERE tenant_id = ?", (tenant_id,))


def _update(
    connection: Connection,
    tenant_id: str,
    tenant: str,
    findings: Sequence[RuleFinding],
    moment: datetime,
    *,
    tell: bool,
) -> list[Alert]:
    known = {alert.rule: alert for alert in _read(connection, tenant_id)}
    changed = []
    for finding in findings:
        before = known.get(finding.rule)
        if before is None and not finding.alarming:
            continue
        state: AlertState = "firing" if finding.alarming else "resolved"
        is_new = before is None or before.state != state
        since = moment if before is None or is_new else before.since
        alert = Alert(tenant_id, finding.rule, tenant, state, finding.value, finding.threshold, since, moment)
        connection.execute(
            f"INSERT INTO alerts ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant_id, rule) DO UPDATE "
            "SET tenant = excluded.tenant, state = excluded.state, value = excluded.value, "
            "threshold = excluded.threshold, since = excluded.since, checked_at = excluded.checked_at",
            (tenant_id, alert.rule, tenant, state, alert.value, alert.threshold, canonical(since), canonical(moment)),
        )
        if is_new:
            changed.append(alert)
    if tell:
        _queue(connection, changed, moment)
    return changed


def _queue(connection: Connection, changed: Sequence[Alert], moment: datetime) -> None:
    for alert in changed:
        message_id = opaque_id()
        body = {
            "id": message_id,
            "rule": alert.rule,
            "tenant": alert.tenant,
            "state": alert.state,
            "value": alert.value,
            "threshold": alert.threshold,
            "since": canonical(alert.since),
        }
        connection.execute(
            "INSERT INTO alert_messages (id, tenant_id, body, created_at, attempts, next_at) VALUES (?, ?, ?, ?, 0, ?)",
            (message_id, alert.tenant_id, json.dumps(body), canonical(moment), canonical(moment)),
        )
    over = int(connection.execute("SELECT count(*) FROM alert_messages").fetchone()[0]) - MOST_MESSAGES
    if over > 0:
        connection.execute(
            "DELETE FROM alert_messages WHERE id IN (SELECT id FROM alert_messages ORDER BY created_at, id LIMIT ?)",
            (over,),
        )


def _read(connection: Connection, tenant_id: str | None) -> list[Alert]:
    where = "" if tenant_id is None else "WHERE tenant_id = ?"
    values = () if tenant_id is None else (tenant_id,)
    return [_alert(row) for row in connection.execute(f"SELECT {COLUMNS} FROM alerts {where}", values).fetchall()]


def _alert(row: Sequence[Any]) -> Alert:
    tenant_id, rule, tenant, state, value, threshold, since, checked_at = row
    moments = datetime.fromisoformat(since), datetime.fromisoformat(checked_at)
    return Alert(tenant_id, rule, tenant, state, value, threshold, *moments)


def _due(connection: Connection, moment: datetime) -> Any:
    return connection.execute(
        "SELECT id, body, attempts FROM alert_messages WHERE next_at <= ? ORDER BY created_at, id LIMIT 1",
        (canonical(moment),),
    ).fetchone()


def _take(connection: Connection, moment: datetime) -> AlertMessage | None:
    row = _due(connection, moment)
    if row is None:
        return None  # another process was quicker
    message_id, body, attempts = row
    connection.execute(
        "UPDATE alert_messages SET attempts = ?, next_at = ? WHERE id = ?",
        (attempts + 1, canonical(moment + LEASE), message_id),
    )
    return AlertMessage(message_id, json.loads(body), attempts + 1)
