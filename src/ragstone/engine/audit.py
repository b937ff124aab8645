"""The audit record of a tenant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ragstone.core.audit import AuditEntry
from ragstone.engine.access import WorkspacePart, record_caller
from ragstone.query.context import checked_count

MOST_AUDITED = 100_000


@record_caller
class Audit(WorkspacePart):
    """The audit record of a tenant: actions, and the actors that took them."""

    async def list(
        self, *, action: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> Sequence[AuditEntry]:
        """Return entries, newest first; `action` is one, or `document` for all of `document.…`."""
        checked_count("limit", limit, most=MOST_AUDITED)
        audit = self._scope.components.audit
        return await audit.entries(await self._scope.admit(), action=action, since=since, limit=limit)
