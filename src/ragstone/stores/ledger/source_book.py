"""The configured sources of all tenants, on the rows of the ledger; their secrets are sealed when there is a key."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime

from ragstone.core.jobs import SourceFailures, SourceRecord
from ragstone.core.types import KnowledgeBase, Metadata
from ragstone.stores.ledger import sources
from ragstone.stores.ledger.ledger import SqlLedger, UnknownTenant
from ragstone.stores.sql.database import Connection
from ragstone.stores.vault import Owner, Vault

SecretKeys = Callable[[str], Collection[str]]
"""Which settings of a kind of source are secrets."""


class SqlSourceBook:
    """Implements `core.jobs.SourceBook`."""

    def __init__(self, ledger: SqlLedger, vault: Vault | None = None, secret_keys: SecretKeys = lambda _: ()) -> None:
        self._ledger = ledger
        self._vault = vault or Vault()
        self._secret_keys = secret_keys

    async def add(
        self,
        tenant: str,
        kb: KnowledgeBase,
        name: str,
        kind: str,
        config: Metadata,
        schedule: str,
        next_run_at: datetime | None,
    ) -> SourceRecord:
        def work(connection: Connection, tenant_id: str) -> SourceRecord:
            owner = Owner(tenant_id, "source", f"{kb.name}/{name}")
            sealed = self._vault.seal_config(config, self._secret_keys(kind), owner)
            added = sources.add_source(connection, tenant_id, kb, name, kind, sealed, schedule, next_run_at)
            return self._opened(tenant_id, added)

        return await self._ledger.write(tenant, work)

    async def get(self, tenant: str, kb: str, name: str) -> SourceRecord | None:
        def work(connection: Connection, tenant_id: str) -> SourceRecord | None:
            found = sources.read_source(connection, tenant_id, kb, name)
            return self._opened(tenant_id, found) if found else None

        try:
            return await self._ledger.read(tenant, work)
        except UnknownTenant:
            return None

    async def all(self, tenant: str, kb: str | None = None) -> list[SourceRecord]:
        def work(connection: Connection, tenant_id: str) -> list[SourceRecord]:
            return [self._opened(tenant_id, one) for one in sources.read_sources(connection, tenant_id, kb)]

        try:
            return await self._ledger.read(tenant, work)
        except UnknownTenant:
            return []

    async def due(self, tenant: str, moment: datetime) -> list[SourceRecord]:
        def work(connection: Connection, tenant_id: str) -> list[SourceRecord]:
            return [self._opened(tenant_id, one) for one in sources.due_sources(connection, tenant_id, moment)]

        return await self._ledger.read(tenant, work)

    async def ran(
        self, tenant: str, source_id: str, error: str, next_run_at: datetime | None, unread: SourceFailures
    ) -> None:
        await self._ledger.write(tenant, sources.ran, source_id, error, next_run_at, unread)

    async def pause(self, tenant: str, source_id: str, paused: bool) -> None:
        await self._ledger.write(tenant, sources.pause, source_id, paused)

    async def remove(self, tenant: str, source_id: str) -> None:
        await self._ledger.write(tenant, sources.remove_source, source_id)

    async def renew(self, tenant: str) -> int:
        """Seal the secrets of all sources with the present key; how many were not."""

        def work(connection: Connection, tenant_id: str) -> int:
            renewed = 0
            for record in sources.read_sources(connection, tenant_id):
                keys = self._secret_keys(record.kind)
                sealed = self._vault.renew_config(record.config, keys, _owner(tenant_id, record))
                if sealed is not None:
                    sources.reconfigure(connection, tenant_id, record.id, sealed)
                    renewed += 1
            return renewed

        return await self._ledger.write(tenant, work)

    def _opened(self, tenant_id: str, record: SourceRecord) -> SourceRecord:
        keys = self._secret_keys(record.kind)
        return replace(record, config=self._vault.open_config(record.config, keys, _owner(tenant_id, record)))


def _owner(tenant_id: str, record: SourceRecord) -> Owner:
    return Owner(tenant_id, "source", f"{record.kb}/{record.name}")
