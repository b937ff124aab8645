"""The configured sources of a tenant and what of each could not be taken in; secrets are sealed when there is a key."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ragstone.core.clock import canonical, now, parse_moment
from ragstone.core.errors import InputError, LeaseLost, StoreCorrupt
from ragstone.core.ids import opaque_id
from ragstone.core.jobs import MOST_NAMED, NEAR_DUPLICATE, SourceFailures, SourceRecord, Ticket
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Failure, Json, KnowledgeBase, Metadata
from ragstone.stores.ledger.jobs import holds
from ragstone.stores.ledger.repository import TenantRepository, in_snapshot, in_snapshot_or, in_transaction
from ragstone.stores.ledger.writes import present
from ragstone.stores.sql.database import Connection, marks
from ragstone.stores.vault import Owner, Vault

if TYPE_CHECKING:
    from ragstone.stores.ledger.ledger import SqlLedger

ADVICE = ("hint", "remedy")
OF_SOURCE = "= (SELECT kb_id, name FROM sources WHERE tenant_id = ? AND id = ?)"
LAST = (
    "NOT EXISTS (SELECT 1 FROM jobs n WHERE n.tenant_id = j.tenant_id AND n.document_id = j.document_id "
    "AND n.seq > j.seq)"
)
FAILED = (
    "FROM jobs j WHERE j.tenant_id = ? AND j.kind = 'document' AND j.state = 'failed' AND j.error_code <> ? "
    f"AND (j.kb_id, j.source) {OF_SOURCE} AND {LAST}"
)
TAKEN_IN = (
    f"SELECT 1 FROM documents d WHERE d.tenant_id = ? AND (d.kb_id, d.source) {OF_SOURCE} AND (d.version > 0 OR "
    "EXISTS (SELECT 1 FROM jobs w WHERE w.tenant_id = d.tenant_id AND w.document_id = d.id "
    "AND w.state IN ('pending', 'running'))) AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.tenant_id = d.tenant_id "
    f"AND j.document_id = d.id AND j.state = 'failed' AND {LAST}) LIMIT 1"
)
SOURCE = (
    "SELECT s.id, k.name, s.name, s.kind, s.config, s.schedule, s.cursor, s.paused, s.next_run_at, s.last_run_at, "
    "s.last_error, s.created_at, s.unread FROM sources s "
    "JOIN knowledge_bases k ON k.tenant_id = s.tenant_id AND k.id = s.kb_id WHERE s.tenant_id = ?"
)
SecretKeys = Callable[[str], Collection[str]]
"""Gives the settings of a kind of source that are secrets."""


class SqlSourceBook:
    """Implements `SourceBook`."""

    def __init__(self, ledger: SqlLedger, vault: Vault | None = None, secret_keys: SecretKeys = lambda _: ()) -> None:
        self._ledger = ledger
        self._vault = vault or Vault()
        self._secret_keys = secret_keys

    def of(self, tenant: str) -> SqlTenantSources:
        """Return the sources of one tenant."""
        return SqlTenantSources(self._ledger, tenant, self._vault, self._secret_keys)


class SqlTenantSources(TenantRepository):
    """Implements `TenantSources`."""

    def __init__(self, ledger: SqlLedger, tenant: str, vault: Vault, secret_keys: SecretKeys) -> None:
        super().__init__(ledger, tenant)
        self._vault = vault
        self._secret_keys = secret_keys

    @in_transaction
    def add(
        self,
        connection: Connection,
        tenant_id: str,
        kb: KnowledgeBase,
        name: str,
        kind: str,
        config: Metadata,
        schedule: str,
        next_run_at: datetime | None,
    ) -> SourceRecord:
        """Write a source down; a name is taken once per kb."""
        kb = present(connection, tenant_id, kb)
        if _read(connection, tenant_id, "k.name = ? AND s.name = ?", kb.name, name):
            raise InputError(
                f"knowledge base '{kb.name}' already has a source '{name}'",
                hint="choose another name, or",
                remedy=Remedy(Action.REMOVE_SOURCE, source=name),
            )
        owner = Owner(tenant_id, "source", f"{kb.name}/{name}")
        sealed = self._vault.seal_config(config, self._secret_keys(kind), owner)
        connection.execute(
            "INSERT INTO sources (id, tenant_id, kb_id, name, kind, config, schedule, cursor, paused, next_run_at, "
            "last_error, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, 'null', 0, ?, '', ?)",
            (
                *(opaque_id(), tenant_id, kb.id, name, kind, connection.dialect.to_json(dict(sealed)), schedule),
                *(canonical(next_run_at) if next_run_at else None, canonical(now())),
            ),
        )
        (added,) = _read(connection, tenant_id, "k.name = ? AND s.name = ?", kb.name, name)
        return self._open(tenant_id, _with_failed_documents(connection, tenant_id, added))

    @in_snapshot_or(lambda: None)
    def get(self, connection: Connection, tenant_id: str, kb: str, name: str) -> SourceRecord | None:
        found = _read(connection, tenant_id, "k.name = ? AND s.name = ?", kb, name)
        return self._open(tenant_id, _with_failed_documents(connection, tenant_id, found[0])) if found else None

    @in_snapshot_or(list)
    def all(self, connection: Connection, tenant_id: str, kb: str | None = None) -> list[SourceRecord]:
        """Return the sources of a kb or of all, in order of kb and name."""
        found = _read(connection, tenant_id) if kb is None else _read(connection, tenant_id, "k.name = ?", kb)
        return [self._open(tenant_id, _with_failed_documents(connection, tenant_id, record)) for record in found]

    @in_snapshot
    def due(self, connection: Connection, tenant_id: str, moment: datetime) -> list[SourceRecord]:
        """Return the sources whose time has come and that are not paused, without their failed documents.

        Their secrets stay sealed, so that one that cannot be opened fails the sync of its source and nothing else.
        """
        return _read(
            connection, tenant_id, "s.paused = 0 AND s.next_run_at <= ?", canonical(moment), order="s.next_run_at"
        )

    @in_transaction
    def ran(
        self,
        connection: Connection,
        tenant_id: str,
        source_id: str,
        error: str,
        next_run_at: datetime | None,
        unread: SourceFailures,
        ticket: Ticket | None = None,
    ) -> None:
        """Write down the end of a run: when the next one is, what broke it off, and what it could not read.

        A worker whose ticket is void writes nothing: its job was cancelled, or another worker says how it ended.
        """
        if ticket and not holds(connection, tenant_id, ticket):
            return
        connection.execute(
            "UPDATE sources SET last_run_at = ?, last_error = ?, next_run_at = ?, unread = ? "
            "WHERE tenant_id = ? AND id = ?",
            (
                *(canonical(now()), error, canonical(next_run_at) if next_run_at else None),
                *(connection.dialect.to_json(_to_stored(unread)), tenant_id, source_id),
            ),
        )

    @in_transaction
    def pause(self, connection: Connection, tenant_id: str, source_id: str, paused: bool) -> None:
        connection.execute(
            "UPDATE sources SET paused = ? WHERE tenant_id = ? AND id = ?", (int(paused), tenant_id, source_id)
        )

    @in_transaction
    def remove(self, connection: Connection, tenant_id: str, source_id: str) -> None:
        """Remove a source and cancel its jobs: a worker that reads it finds its ticket void."""
        connection.execute(
            "UPDATE jobs SET state = 'cancelled', token = token + 1, error_code = 'cancelled', "
            "error = 'its source was removed', finished_at = ? WHERE tenant_id = ? "
            f"AND kind <> 'task' AND state IN ('pending', 'running') AND (kb_id, source) {OF_SOURCE}",
            (canonical(now()), tenant_id, tenant_id, source_id),
        )
        connection.execute("DELETE FROM sources WHERE tenant_id = ? AND id = ?", (tenant_id, source_id))

    @in_transaction
    def renew(self, connection: Connection, tenant_id: str) -> int:
        """Seal the secrets of all sources with the present key, and return how many were not."""
        renewed = 0
        for record in _read(connection, tenant_id):
            keys = self._secret_keys(record.kind)
            sealed = self._vault.renew_config(record.config, keys, _owner(tenant_id, record))
            if sealed is not None:
                _write_config(connection, tenant_id, record.id, sealed)
                renewed += 1
        return renewed

    def _open(self, tenant_id: str, record: SourceRecord) -> SourceRecord:
        """Return the source with its secrets; a damaged one with the reason why they cannot be opened."""
        keys = self._secret_keys(record.kind)
        try:
            return replace(record, config=self._vault.open_config(record.config, keys, _owner(tenant_id, record)))
        except StoreCorrupt as error:
            return replace(record, last_error=str(error), damage=error)


def follow_renamed_kb(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, former_name: str, vault: Vault
) -> None:
    """Seal the secrets of a kb's sources for its new name: they can be opened only as those of the kb they name."""
    for record in _read(connection, tenant_id, "k.name = ?", kb.name):
        former = _owner(tenant_id, replace(record, kb=former_name))
        sealed = vault.rebind_config(record.config, former, _owner(tenant_id, record))
        if sealed != record.config:
            _write_config(connection, tenant_id, record.id, sealed)


def advance(connection: Connection, tenant_id: str, source_id: str, cursor: Json) -> None:
    """Remember how far a source has been read, in the transaction that takes in what was read."""
    found = connection.execute(
        "UPDATE sources SET cursor = ? WHERE tenant_id = ? AND id = ?",
        (connection.dialect.to_json(cursor), tenant_id, source_id),
    )
    if not found.rowcount:
        raise LeaseLost("the source was removed while it was being read")


def reschedule(
    connection: Connection, tenant_id: str, source_id: str, due: datetime | None, next_run_at: datetime | None
) -> bool:
    """Set when the next run is; False when another worker did since this one was due."""
    found = connection.execute(
        "UPDATE sources SET next_run_at = ? WHERE tenant_id = ? AND id = ? AND next_run_at = ?",
        (*(canonical(next_run_at) if next_run_at else None, tenant_id, source_id), canonical(due) if due else None),
    )
    return bool(found.rowcount)


def _read(
    connection: Connection, tenant_id: str, where: str = "1 = 1", *given: str, order: str = "k.name, s.name"
) -> list[SourceRecord]:
    rows = connection.execute(f"{SOURCE} AND {where} ORDER BY {order}", (tenant_id, *given)).fetchall()
    return [_source(row) for row in rows]


def _write_config(connection: Connection, tenant_id: str, source_id: str, config: Metadata) -> None:
    connection.execute(
        "UPDATE sources SET config = ? WHERE tenant_id = ? AND id = ?",
        (connection.dialect.to_json(dict(config)), tenant_id, source_id),
    )


def _owner(tenant_id: str, record: SourceRecord) -> Owner:
    return Owner(tenant_id, "source", f"{record.kb}/{record.name}")


def _source(row: Sequence[Any]) -> SourceRecord:
    identity, kb, name, kind, config, schedule, cursor, paused, following, last, error, made, unread = row
    created = parse_moment(made)
    assert created is not None
    return SourceRecord(
        *(identity, kb, name, kind, json.loads(config), schedule, _json(cursor), bool(paused)),
        *(parse_moment(following) if following else None, parse_moment(last) if last else None),
        *(error, created),
        source_failures=_unread_of(json.loads(unread)),
    )


def _to_stored(unread: SourceFailures) -> dict[str, Any]:
    stored = asdict(unread)
    for failure, written in zip(unread.first, stored["first"], strict=True):
        del written["remedy"], written["external_id"]
        if failure.remedy:
            written["remedy"] = failure.remedy.to_json()
    return stored


def _unread_of(stored: Mapping[str, Any]) -> SourceFailures:
    first = tuple(_failure(**failure) for failure in stored.get("first", ()))
    return SourceFailures(stored.get("count", 0), first, stored.get("total", False))


def _with_failed_documents(connection: Connection, tenant_id: str, source: SourceRecord) -> SourceRecord:
    """Return the source with documents whose last job failed among what could not be taken in."""
    unread = source.source_failures
    # What could not even be read this time is not told twice.
    told = [failure.uri for failure in unread.first]
    which = f"{FAILED} AND j.uri NOT IN ({marks(told)})" if told else FAILED
    given = (tenant_id, NEAR_DUPLICATE, tenant_id, source.id, *told)
    failed = connection.execute(f"SELECT count(*) {which}", given).fetchone()[0]
    count = unread.count + failed
    if not count:
        return source
    rows = connection.execute(
        f"SELECT j.uri, j.error_code, j.error, j.progress {which} ORDER BY j.seq LIMIT ?", (*given, MOST_NAMED)
    )
    lost = [
        _failure(uri, code, error, **{key: value for key, value in json.loads(how_far).items() if key in ADVICE})
        for uri, code, error, how_far in rows
    ]
    first = (*unread.first, *lost)[:MOST_NAMED]
    nothing = not connection.execute(TAKEN_IN, (tenant_id, tenant_id, source.id)).fetchone()
    return replace(source, source_failures=SourceFailures(count, first, unread.total or nothing))


def _failure(uri: str, code: str, error: str, hint: str = "", remedy: Mapping[str, str] | None = None) -> Failure:
    return Failure(uri, code, error, hint, Remedy.from_json(remedy))


def _json(column: Any) -> Json:
    # SQLite takes a column of type JSON for a number if it looks like one.
    return json.loads(column) if isinstance(column, str) else column
