"""The settings of a tenant's agents: one JSON document for each."""

from __future__ import annotations

import json
from datetime import datetime
from typing import NamedTuple

from ragstone.core.clock import canonical, now
from ragstone.core.types import Json
from ragstone.stores.ledger.repository import TenantRepository, in_snapshot_or, in_transaction
from ragstone.stores.sql.database import Connection


class AgentDocument(NamedTuple):
    """The settings of an agent, and when they were written."""

    agent: str
    document: dict[str, Json]
    updated_at: datetime


class AgentSettingsRepository(TenantRepository):
    """Keeps the settings of agents by their names; the caller has checked what it writes."""

    @in_snapshot_or(lambda: None)
    def get(self, connection: Connection, tenant_id: str, agent: str) -> AgentDocument | None:
        """Return the settings of an agent; None when it has none of its own."""
        row = connection.execute(
            "SELECT document, updated_at FROM agent_settings WHERE tenant_id = ? AND agent = ?", (tenant_id, agent)
        ).fetchone()
        return AgentDocument(agent, json.loads(row[0]), datetime.fromisoformat(row[1])) if row else None

    @in_transaction
    def put(self, connection: Connection, tenant_id: str, agent: str, document: dict[str, Json]) -> AgentDocument:
        """Write the settings of an agent in place of those it has."""
        made = AgentDocument(agent, document, now().replace(microsecond=0))
        put_agent_settings(connection, tenant_id, made)
        return made

    @in_transaction
    def remove(self, connection: Connection, tenant_id: str, agent: str) -> bool:
        """Remove the settings of an agent; False when it has none."""
        gone = connection.execute("DELETE FROM agent_settings WHERE tenant_id = ? AND agent = ?", (tenant_id, agent))
        return bool(gone.rowcount)


def read_agent_settings(connection: Connection, tenant_id: str) -> list[AgentDocument]:
    """Return the settings of all agents in order of their names."""
    rows = connection.execute(
        "SELECT agent, document, updated_at FROM agent_settings WHERE tenant_id = ? ORDER BY agent", (tenant_id,)
    )
    return [AgentDocument(agent, json.loads(text), datetime.fromisoformat(moment)) for agent, text, moment in rows]


def put_agent_settings(connection: Connection, tenant_id: str, settings: AgentDocument) -> None:
    """Write the settings of an agent in place of those it has."""
    connection.execute(
        "INSERT INTO agent_settings (tenant_id, agent, document, updated_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (tenant_id, agent) DO UPDATE SET document = excluded.document, updated_at = excluded.updated_at",
        (tenant_id, settings.agent, json.dumps(settings.document), canonical(settings.updated_at)),
    )
