"""Who did what: entries that name things by id and count them, and never say what a document or a query says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

Outcome = Literal["begun", "done", "failed", "denied"]
"""`begun` is on the disk before a deletion begins; one without a `done` or `failed` after it was cut short."""
Kind = Literal["seen", "refused", "change"]
"""How an entry is kept: changes are always recorded, and no number of the others pushes them out."""
DENIED = "Access denied"
MOST_IDS = 10
"""How many documents of a result are named."""
NAME_CHARS, TARGET_CHARS, DETAIL_CHARS = 127, 255, 255
_actor: ContextVar[str] = ContextVar("ragstone_actor", default="")


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Have what is done in the block recorded under this name; an inner block goes before an outer one."""
    # It is shown on terminals and in logs later on.
    token = _actor.set("".join(one if one.isprintable() else "\ufffd" for one in name[:NAME_CHARS]))
    try:
        yield
    finally:
        _actor.reset(token)


def actor() -> str:
    """Under which name things are done now; empty when nobody said."""
    return _actor.get()


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that was done for a tenant, or refused."""

    moment: datetime
    tenant_id: str
    tenant: str
    """What the tenant was called then."""
    actor: str
    action: str
    """Such as `search`, `document.read`, `document.delete` or `tenant.suspend`."""
    outcome: Outcome = "done"
    target: str = ""
    """The id that was asked for, or the name of a kb, source or tenant."""
    kb: str = ""
    count: int = 0
    """Passages that were found, or documents that were removed."""
    document_ids: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """What was removed, by store and kind: `{"ledger.chunks": 12}`."""
    detail: str = ""

    @property
    def kind(self) -> Kind:
        if self.outcome == "denied":
            return "refused"
        return "seen" if self.action.partition(".")[2] in ("", "read") else "change"


class AuditTrail(Protocol):
    """Where entries go. They are added and, when they are old enough, removed; none is ever changed."""

    def note(self, entry: AuditEntry) -> None:
        """Record something that was looked at, a moment later and with others; returns at once."""
        ...

    async def record(self, entries: Sequence[AuditEntry]) -> None:
        """Record changes; when this returns they are on the disk."""
        ...

    async def flush(self) -> None:
        """Write what waits."""
        ...

    async def entries(
        self,
        *,
        tenant_id: str | None = None,
        tenant: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        limit: int = 100,
    ) -> list[AuditEntry]:
        """Newest first: of all tenants, of the one with this id, or of all that had this name."""
        ...


def audit_json(entry: AuditEntry) -> dict[str, object]:
    """An entry as JSON."""
    from ragstone.core.clock import canonical

    return {
        "moment": canonical(entry.moment),
        "actor": entry.actor,
        "tenant": entry.tenant,
        "tenant_id": entry.tenant_id,
        "action": entry.action,
        "outcome": entry.outcome,
        "target": entry.target,
        "kb": entry.kb,
        "count": entry.count,
        "document_ids": list(entry.document_ids),
        "counts": dict(entry.counts),
        "detail": entry.detail,
    }
