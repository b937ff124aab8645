"""The audit record: who did what, and the one that writes it down."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Protocol

from ragstone.core.clock import now
from ragstone.core.erasure import Receipt
from ragstone.core.errors import RagstoneError
from ragstone.core.ids import NAME

Outcome = Literal["begun", "done", "failed", "denied"]
"""`begun` is on the disk before a deletion begins; one without a `done` or `failed` after it was cut short."""
Kind = Literal["seen", "refused", "change"]
"""How an entry is kept: changes are always recorded, and no number of the others pushes them out."""
DENIED = "Access denied"
MOST_IDS = 10
"""How many documents of a result are named."""
NAME_CHARS, TARGET_CHARS, DETAIL_CHARS = 127, 255, 255
_actor: ContextVar[str] = ContextVar("ragstone_actor", default="")
_request: ContextVar[str] = ContextVar("ragstone_request", default="")


@contextmanager
def acting_as(name: str | None, request_id: str | None = None) -> Iterator[None]:
    """Have what is done in the block recorded under this name and request; None leaves what an outer block set."""
    before = _actor.get(), _request.get()
    tokens = (
        _actor.set(before[0] if name is None else _printable(name)),
        _request.set(before[1] if request_id is None else _printable(request_id)),
    )
    try:
        yield
    finally:
        _actor.reset(tokens[0])
        _request.reset(tokens[1])


def _printable(name: str) -> str:
    # It is shown on terminals and in logs later on.
    return "".join(character if character.isprintable() else "\ufffd" for character in name[:NAME_CHARS])


@dataclass(frozen=True, slots=True)
class Caller:
    """The name and the request that things are done under; empty where none is given."""

    actor: str = ""
    request_id: str = ""


NO_CALLER = Caller()


def caller() -> Caller:
    """Return the name and the request that things are done under now."""
    return Caller(_actor.get(), _request.get())


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
    request_id: str = ""
    """The request that was served, as the workspace names it; empty where there is none."""

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
        tenant_id: str | None,
        tenant: str | None,
        action: str | None = None,
        since: datetime | None = None,
        limit: int = 100,
    ) -> list[AuditEntry]:
        """Newest first: of all tenants, of the one with this id, or of all that had this name."""
        ...


logger = logging.getLogger(__name__)
ID = re.compile(r"[0-9A-Za-z]{1,64}")
NO_ID = "(not an id)"
"""What somebody typed in place of an id may be anything, also what must not be kept."""
Identity = Callable[[str], Awaitable[str]]
"""The id of the tenant of a name; empty while there is none."""


async def nobody(_: str) -> str:
    """The identity of tenants where there are none."""
    return ""


@dataclass(slots=True)
class Deed:
    """What has been done so far of something that cannot be undone, by target."""

    done: dict[str, tuple[int, Mapping[str, int]]] = field(default_factory=dict)

    def did(self, target: str, documents: int = 0, counts: Mapping[str, int] | None = None) -> None:
        """Say that it is done to a target, with how many documents and what else."""
        self.done[target] = documents, counts or {}


class Auditor:
    """Writes entries for tenants that exist. Looking at something neither waits for this nor fails with it."""

    def __init__(self, trail: AuditTrail | None = None, identity: Identity = nobody) -> None:
        """Without a trail nothing is recorded."""
        self._trail = trail
        self._identity = identity

    async def saw(
        self,
        tenant: str,
        action: str,
        *,
        target: str = "",
        kb: str = "",
        count: int = 0,
        document_ids: Iterable[str] = (),
        error: Exception | None = None,
    ) -> None:
        """Note that something was looked at; with an error, that it was tried."""
        outcome: Outcome = "failed" if error else "done"
        detail = "" if error is None else getattr(error, "code", "internal")
        named = tuple(dict.fromkeys(document_ids))[:MOST_IDS]
        facts = {"target": target, "kb": kb, "count": count, "document_ids": named, "detail": detail}
        await self._note(tenant, action, outcome, **facts)

    async def denied(self, tenant: str, action: str, target: str) -> None:
        """Note that an id was asked for that the tenant does not have.

        Whether another tenant has it is not looked up: it is nobody's business here, and the time that it takes
        would tell who asked.
        """
        named = target if ID.fullmatch(target) else NO_ID
        await self._note(tenant, action, "denied", target=named, detail=DENIED)

    async def changed(
        self,
        tenant: str,
        action: str,
        target: str = "",
        *,
        kb: str = "",
        count: int = 0,
        outcome: Outcome = "done",
    ) -> None:
        """Record a change that was made, or begins; when this returns it is on the disk."""
        entry = await self._entry(tenant, action, outcome, target=target, kb=kb, count=count)
        if entry and self._trail:
            await self._trail.record([entry])

    async def came_about(
        self, tenant: str, action: str, target: str = "", *, kb: str = "", count: int = 0
    ) -> None:
        """Record a change that nothing can take back; if that fails it is logged, for the change stands."""
        try:
            await self.changed(tenant, action, target, kb=kb, count=count)
        except RagstoneError as error:
            logger.warning("%s of tenant '%s' is not in the audit record: %s", action, tenant, error)

    async def entries(
        self, tenant: str, *, action: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[AuditEntry]:
        """What was done for a tenant that exists, newest first; nothing of one that had its name before."""
        identity = await self._identity(tenant)
        if not identity or self._trail is None:
            return []
        return await self._trail.entries(
            tenant_id=identity, tenant=None, action=action, since=since, limit=limit
        )

    async def erased(self, receipt: Receipt, tenant_id: str = "") -> None:
        """Record what an erasure removed; `tenant_id` is that of a tenant who is gone by now."""
        target, whole = receipt.target, receipt.complete
        counts = {f"{store}.{what}": n for store, own in receipt.removed.items() for what, n in own.items()}
        who = caller()
        entry = AuditEntry(
            moment=now(),
            tenant_id=tenant_id or await self._identity(receipt.tenant),
            tenant=receipt.tenant,
            actor=who.actor,
            request_id=who.request_id,
            action=f"{target.kind}.erase",
            outcome="done" if whole else "failed",
            target=target.name,
            kb=target.kb,
            count=counts.get("ledger.documents", 0),
            counts=counts,
            detail="" if whole else "not complete yet",
        )
        await self._ended([entry])

    @asynccontextmanager
    async def carrying_out(
        self, tenant: str, action: str, targets: Sequence[str], kb: str = ""
    ) -> AsyncIterator[Deed]:
        """Record that something is removed or renamed: before it begins, and once more when it is done or failed."""
        deed = Deed()
        begun = [await self._entry(tenant, action, "begun", target=one, kb=kb) for one in targets]
        made = [entry for entry in begun if entry]
        if self._trail:
            await self._trail.record(made)
        try:
            yield deed
        except RagstoneError as error:
            failed = [_ended(one, "failed", deed, error.code) for one in made if one.target not in deed.done]
            await self._ended([*failed, *_done(made, deed)])
            raise
        await self._ended(_done(made, deed))

    async def _ended(self, entries: Sequence[AuditEntry]) -> None:
        try:
            if self._trail:
                await self._trail.record(entries)
        except RagstoneError as error:
            # That it was begun is on the disk. What is done is done, and must not be reported as failed.
            logger.warning("the audit record does not say how something ended: %s", error)

    async def _note(self, tenant: str, action: str, outcome: Outcome, **facts: Any) -> None:
        if self._trail is None:
            return
        try:
            if entry := await self._entry(tenant, action, outcome, **facts):
                self._trail.note(entry)
        except RagstoneError as error:
            logger.warning("%s of tenant '%s' is not in the audit record: %s", action, tenant, error)

    async def _entry(self, tenant: str, action: str, outcome: Outcome, **facts: Any) -> AuditEntry | None:
        """None for a tenant that does not exist: nothing is done for it, and asking leaves no trace on the disk."""
        identity = await self._identity(tenant) if self._trail else ""
        if not NAME.fullmatch(facts.get("kb", "")):
            facts["kb"] = ""
        if not identity:
            return None
        who = caller()
        return AuditEntry(
            now(), identity, tenant, who.actor, action, outcome, request_id=who.request_id, **facts
        )


def _done(begun: Sequence[AuditEntry], deed: Deed) -> list[AuditEntry]:
    return [_ended(one, "done", deed) for one in begun if one.target in deed.done]


def _ended(begun: AuditEntry, outcome: Outcome, deed: Deed, detail: str = "") -> AuditEntry:
    documents, counts = deed.done.get(begun.target, (0, {}))
    return replace(begun, moment=now(), outcome=outcome, count=documents, counts=counts, detail=detail)
