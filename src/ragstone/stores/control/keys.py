"""API keys in the control tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ragstone.core.audit import AuditEntry, Caller, caller
from ragstone.core.clock import canonical, now, parse_moment
from ragstone.core.errors import NotFoundError, QuotaExceeded, suspended
from ragstone.core.keys import (
    TOKEN,
    ApiKey,
    IssuedKey,
    NewApiKey,
    RequestAllowance,
    check_key,
    is_secret,
    new_token,
    read_scopes,
)
from ragstone.core.remedies import Action, Remedy
from ragstone.stores.control import tenant_rows
from ragstone.stores.control.audit import append_entries
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.sql.database import Connection

KEY = (
    "SELECT k.id, k.name, coalesce(t.name, ''), coalesce(k.tenant_id, ''), k.scopes, k.kbs, k.created_at, "
    "k.expires_at, k.revoked_at, k.per_minute, k.secret_hash FROM api_keys k LEFT JOIN tenants t ON t.id = k.tenant_id"
)
GRACE = timedelta(hours=24)
MOST_KEYS = 10_000
"""Valid keys of one tenant."""
MINUTE = "%Y-%m-%dT%H:%M"
NO_SECRET = "0" * 64
"""Compared with when there is no key of an id, so that the time of an answer says nothing about ids."""


class StoredKey(NamedTuple):
    """A key as its row holds it, but for its tenant and the requests it has made."""

    id: str
    name: str
    scopes: str
    kbs: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    secret_hash: str
    per_minute: int | None


class SqlKeyBook:
    """All keys. One that does not exist is `NotFoundError`."""

    def __init__(self, ledger: SqlLedger, clock: Callable[[], datetime] = now) -> None:
        self._ledger = ledger
        self._clock = clock

    async def create(self, wanted: NewApiKey) -> IssuedKey:
        """Make a key; the tenant has to exist."""
        checked, moment, who = check_key(wanted, self._clock()), self._clock(), caller()
        return await self._ledger.control_write(lambda connection: _insert(connection, checked, moment, who))

    async def create_first(self, wanted: Sequence[NewApiKey]) -> list[IssuedKey]:
        """Make keys if there are none at all; return them, or nothing where there are some."""
        moment, who = self._clock(), caller()
        checked = [check_key(key, moment) for key in wanted]

        def create_unless_there(connection: Connection) -> list[IssuedKey]:
            if connection.execute("SELECT 1 FROM api_keys LIMIT 1").fetchone():
                return []
            return [_insert(connection, key, moment, who) for key in checked]

        return await self._ledger.control_write(create_unless_there)

    async def all(self, tenant: str | None) -> list[ApiKey]:
        """Return the keys of a tenant, those of the operator for an empty name, or all for None; oldest first."""
        nothing: list[ApiKey] = []
        return await self._ledger.control_read(lambda connection: _keys(connection, tenant), nothing)

    async def revoke(self, key_id: str, *, tenant: str | None) -> ApiKey:
        """Have a key refused from now on: one of this tenant, or with None of any."""
        moment, who = self._clock(), caller()
        return await self._ledger.control_write(
            lambda connection: _revoke(connection, _existing(connection, key_id, tenant), moment, who)
        )

    async def rotate(self, key_id: str, *, tenant: str | None, grace: timedelta = GRACE) -> IssuedKey:
        """Make a key with the same rights, and have the old one refused when `grace` is over."""
        moment, who = self._clock(), caller()

        def replace_key(connection: Connection) -> IssuedKey:
            old = _existing(connection, key_id, tenant)
            ends = moment + grace if old.expires_at is None else min(old.expires_at, moment + grace)
            connection.execute("UPDATE api_keys SET expires_at = ? WHERE id = ?", (canonical(ends), old.id))
            wanted = NewApiKey(old.tenant, old.scopes, old.name, old.kbs, old.expires_at, old.per_minute)
            return _insert(connection, wanted, moment, who, "key.rotate")

        return await self._ledger.control_write(replace_key)

    async def find(self, token: str) -> ApiKey | None:
        """Return the key that a caller has sent, or None if there is none like it or it is not valid now."""
        parts = TOKEN.fullmatch(token)
        key_id, secret = parts.groups() if parts else ("", "")
        row = await self._ledger.control_read(lambda connection: _row(connection, key_id), None)
        if not is_secret(secret, row[-1] if row else NO_SECRET) or row is None:
            return None
        found = _key(row)
        return found if found.is_valid(self._clock()) else None

    async def spend(self, key: ApiKey) -> RequestAllowance | None:
        """Count a request of a key that has a limit, or raise `QuotaExceeded`; None for a key that has none."""
        if key.per_minute is None:
            return None
        limit, moment = key.per_minute, self._clock()
        used = await self._ledger.control_write(lambda connection: _count_request(connection, key.id, limit, moment))
        seconds = 60 - moment.second
        if used is None:
            raise QuotaExceeded(
                f"this key may make {limit:,} {'request' if limit == 1 else 'requests'} per minute and has made them",
                hint=f"try again in {seconds} s",
                retry_after=seconds,
                limit=limit,
            )
        return RequestAllowance(limit, limit - used, seconds)


def read_keys(connection: Connection, tenant: str) -> list[StoredKey]:
    """Return the keys of a tenant, or the operator's for an empty name, as they are stored."""
    rows = connection.execute(
        f"SELECT {', '.join(StoredKey._fields)} FROM api_keys WHERE coalesce(tenant_id, '') = ? ORDER BY id",
        (_tenant_id(connection, tenant) or "",),
    )
    return [StoredKey(*row) for row in rows]


def write_keys(connection: Connection, tenant: str, keys: Sequence[StoredKey]) -> None:
    """Give a tenant these keys and no others; to those of the operator they are added. What was revoked stays so."""
    tenant_id = _tenant_id(connection, tenant)
    if tenant:
        gone = {key.id for key in read_keys(connection, tenant)} - {key.id for key in keys}
        connection.executemany("DELETE FROM api_keys WHERE id = ?", [(key_id,) for key_id in gone])
    connection.executemany(
        f"INSERT INTO api_keys (tenant_id, {', '.join(StoredKey._fields)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET tenant_id = excluded.tenant_id, name = excluded.name, "
        "scopes = excluded.scopes, kbs = excluded.kbs, created_at = excluded.created_at, "
        "expires_at = excluded.expires_at, revoked_at = coalesce(api_keys.revoked_at, excluded.revoked_at), "
        "secret_hash = excluded.secret_hash, per_minute = excluded.per_minute",
        [(tenant_id, *key) for key in keys],
    )


def _tenant_id(connection: Connection, tenant: str) -> str | None:
    """Return the id of a tenant, or None for the operator."""
    return tenant_rows.existing(connection, tenant).id if tenant else None


def _count_request(connection: Connection, key_id: str, limit: int, moment: datetime) -> int | None:
    """Return the requests of this minute with one more, or None if there is none left; one statement decides."""
    minute = moment.strftime(MINUTE)
    row = connection.execute(
        "UPDATE api_keys SET used = CASE WHEN minute = ? THEN used + 1 ELSE 1 END, minute = ? "
        "WHERE id = ? AND (minute IS NULL OR minute <> ? OR used < ?) RETURNING used",
        (minute, minute, key_id, minute, limit),
    ).fetchone()
    return int(row[0]) if row else None


def _insert(
    connection: Connection, wanted: NewApiKey, moment: datetime, who: Caller, action: str = "key.create"
) -> IssuedKey:
    tenant_id = _admit(connection, wanted.tenant, moment) if wanted.tenant else None
    key_id, token, stored = new_token()
    connection.execute(
        "INSERT INTO api_keys (id, name, tenant_id, scopes, kbs, created_at, expires_at, secret_hash, per_minute) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(key_id, wanted.name, tenant_id, " ".join(wanted.scopes), " ".join(wanted.kbs), canonical(moment)),
            *(canonical(wanted.expires_at) if wanted.expires_at else None, stored, wanted.per_minute),
        ),
    )
    made = _existing(connection, key_id, None)
    _record(connection, made, action, moment, who)
    return IssuedKey(made, token)


def _admit(connection: Connection, name: str, moment: datetime) -> str:
    """Return the id of a tenant that may have another key."""
    tenant = tenant_rows.existing(connection, name)
    if tenant.state == "suspended":
        raise suspended(name)
    row = connection.execute(
        "SELECT count(*) FROM api_keys WHERE tenant_id = ? AND revoked_at IS NULL "
        "AND (expires_at IS NULL OR expires_at > ?)",
        (tenant.id, canonical(moment)),
    ).fetchone()
    if row[0] >= MOST_KEYS:
        raise QuotaExceeded(
            f"tenant '{name}' has {MOST_KEYS:,} valid keys, and may have no more",
            hint="revoke the ones that are not used",
        )
    return tenant.id


def _revoke(connection: Connection, key: ApiKey, moment: datetime, who: Caller) -> ApiKey:
    if key.revoked_at is None:
        connection.execute("UPDATE api_keys SET revoked_at = ? WHERE id = ?", (canonical(moment), key.id))
        _record(connection, key, "key.revoke", moment, who)
    return _existing(connection, key.id, None)


def _existing(connection: Connection, key_id: str, tenant: str | None) -> ApiKey:
    row = _row(connection, key_id)
    if row is None or (tenant is not None and row[2] != tenant):
        raise NotFoundError(f"there is no key '{key_id!s:.40}'", remedy=Remedy(Action.LIST_KEYS))
    return _key(row)


def _row(connection: Connection, key_id: str) -> Sequence[Any] | None:
    row: Sequence[Any] | None = connection.execute(f"{KEY} WHERE k.id = ?", (key_id,)).fetchone()
    return row


def _keys(connection: Connection, tenant: str | None) -> list[ApiKey]:
    where = "" if tenant is None else "WHERE coalesce(t.name, '') = ?"
    values = () if tenant is None else (tenant,)
    return [_key(row) for row in connection.execute(f"{KEY} {where} ORDER BY k.created_at, k.id", values).fetchall()]


def _record(connection: Connection, key: ApiKey, action: str, moment: datetime, who: Caller) -> None:
    entry = AuditEntry(moment, key.tenant_id, key.tenant, who.actor, action, target=key.id, request_id=who.request_id)
    append_entries(connection, [entry])


def _key(row: Sequence[Any]) -> ApiKey:
    key_id, name, tenant, tenant_id, scopes, kbs, created, expires, revoked, per_minute, _ = row
    made = parse_moment(created)
    assert made is not None
    return ApiKey(
        id=key_id,
        name=name,
        tenant=tenant,
        tenant_id=tenant_id,
        scopes=read_scopes(scopes.split()),
        kbs=tuple(kbs.split()),
        created_at=made,
        expires_at=parse_moment(expires) if expires else None,
        revoked_at=parse_moment(revoked) if revoked else None,
        per_minute=per_minute,
    )
