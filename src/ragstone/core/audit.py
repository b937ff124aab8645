"""The audit record, and the receipts of erasures that it holds."""

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
from ragstone.core.errors import RagstoneError
from ragstone.core.ids import NAME

Outcome = Literal["begun", "done", "failed", "denied"]
"""`begun` is on the disk before a deletion begins; one without a `done` or `failed` after it was cut short."""
Kind = Literal["seen", "refused", "change"]
"""The kind of an entry: changes are always recorded, and no number of the others pushes them out."""
DENIED = "Access denied"
MOST_IDS = 10
"""The number of documents of a result that are named."""
NAME_CHARS, TARGET_CHARS, DETAIL_CHARS = 127, 255, 255
_actor: ContextVar[str] = ContextVar("ragstone_actor", default="")
_request: ContextVar[str] = ContextVar("ragstone_request", default="")
_tenant: ContextVar[str] = ContextVar("ragstone_tenant", default="")
_trace: ContextVar[str] = ContextVar("ragstone_trace", default="")


@contextmanager
def acting_as(name: str | None, request_id: str | None = None) -> Iterator[None]:
    """Record the actions inside the block under this name and request; None keeps those of an outer block."""
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


@contextmanager
def working_for(tenant: str | None, trace_id: str | None = None) -> Iterator[None]:
    """Have log lines of the block carry a tenant and a trace; None keeps those of an outer block."""
    before = _tenant.get(), _trace.get()
    tokens = (
        _tenant.set(before[0] if tenant is None else tenant),
        _trace.set(before[1] if trace_id is None else trace_id),
    )
    try:
        yield
    finally:
        _tenant.reset(tokens[0])
        _trace.reset(tokens[1])


def log_fields() -> dict[str, str]:
    """Return the request, tenant, actor and trace that things are done for now, as far as they are known."""
    known = {"request_id": _request.get(), "tenant": _tenant.get(), "actor": _actor.get(), "trace_id": _trace.get()}
    return {name: value for name, value in known.items() if value}


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that was done for a tenant, or refused."""

    moment: datetime
    tenant_id: str
    tenant: str
    """The tenant's name at that time."""
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
    """Removed things by store and kind: `{"ledger.chunks": 12}`."""
    detail: str = ""
    request_id: str = ""
    """The request that was served, as the workspace names it; empty where there is none."""

    @property
    def kind(self) -> Kind:
        if self.outcome == "denied":
            return "refused"
        return "seen" if self.action.partition(".")[2] in ("", "read") else "change"


@dataclass(frozen=True, slots=True)
class AuditChain:
    """The result of following the hashes of the audit record from the first entry to the last."""

    entries: int
    """Entries that were found as they were written."""
    pruned: int
    """Entries that were removed by age or number, which the record itself says."""
    head: str
    """The hash of the last entry: noted elsewhere, it proves later that the record was not rewritten."""
    broken_at: int | None = None
    """The number of the first entry that is not as it was written, or of the last good one if others are missing."""
    problem: str = ""

    @property
    def is_intact(self) -> bool:
        return not self.problem


class AuditTrail(Protocol):
    """Storage for entries: they are added, and removed by age, but never changed."""

    def note(self, entry: AuditEntry) -> None:
        """Queue a read to be written with others; returns at once."""
        ...

    async def record(self, entries: Sequence[AuditEntry]) -> None:
        """Record changes; when this returns they are on the disk."""
        ...

    async def flush(self) -> None:
        """Write the queued entries."""
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


TargetKind = Literal["document", "source", "kb", "tenant"]
Counts = Mapping[str, Mapping[str, int]]
"""By store, and there by what it is: `{"ledger": {"chunks": 12}, "files": {"originals": 1}}`."""


@dataclass(frozen=True, slots=True)
class ErasureTarget:
    """The thing to erase: a document by its id, others by name. Only a source needs its kb."""

    kind: TargetKind
    name: str
    kb: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Counts of an erasure: what was removed, and what a second look at every store found."""

    tenant: str
    target: ErasureTarget
    removed: Counts
    remaining: Counts
    """Counted afterwards, in the same places."""
    requery: int | None
    """Hits of searches for its own words and vectors afterwards; None when these could not run."""
    scrubbed: bool
    """True once its bytes are overwritten in the ledger's files. A database server does that in its own time."""
    unfinished: tuple[str, ...]
    """Steps that could not be done yet, with reason and remedy. The ledger keeps them until they are done."""
    moment: datetime

    @property
    def complete(self) -> bool:
        """True when nothing is left in any store."""
        left = sum(sum(counts.values()) for counts in self.remaining.values())
        return not left and self.requery == 0 and not self.unfinished


logger = logging.getLogger(__name__)
ID = re.compile(r"[0-9A-Za-z]{1,64}")
NO_ID = "(not an id)"
"""Recorded in place of a malformed id, which may hold anything, also secrets."""
Identity = Callable[[str], Awaitable[str]]
"""The id of the tenant of a name; empty while there is none."""


@dataclass(slots=True)
class AuditedAction:
    """Targets that an irreversible action has completed so far."""

    done: dict[str, tuple[int, Mapping[str, int]]] = field(default_factory=dict)

    def mark_done(self, target: str, documents: int = 0, counts: Mapping[str, int] | None = None) -> None:
        """Record that the action is done to a target, with its documents and other counts."""
        self.done[target] = documents, counts or {}


class Auditor:
    """Writes entries for tenants that exist. Reads neither wait for this nor fail with it."""

    def __init__(self, trail: AuditTrail | None, identity: Identity) -> None:
        """Without a trail nothing is recorded."""
        self._trail = trail
        self._identity = identity

    async def record_read(
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
        """Queue an entry for a read; with an error, for a failed one."""
        outcome: Outcome = "failed" if error else "done"
        detail = "" if error is None else getattr(error, "code", "internal")
        named = tuple(dict.fromkeys(document_ids))[:MOST_IDS]
        facts = {"target": target, "kb": kb, "count": count, "document_ids": named, "detail": detail}
        await self._note(tenant, action, outcome, **facts)

    async def record_denial(self, tenant: str, action: str, target: str) -> None:
        """Queue an entry for an id that the tenant does not have.

        The other tenants are not searched for it: the time that takes would reveal whether one of them has it.
        """
        named = target if ID.fullmatch(target) else NO_ID
        await self._note(tenant, action, "denied", target=named, detail=DENIED)

    async def record_change(
        self, tenant: str, action: str, target: str = "", *, kb: str = "", count: int = 0, outcome: Outcome = "done"
    ) -> None:
        """Record a change that was made or begins; it is on the disk when this returns."""
        entry = await self._entry(tenant, action, outcome, target=target, kb=kb, count=count)
        if entry and self._trail:
            await self._trail.record([entry])

    async def record_event(self, tenant: str, action: str, target: str = "", *, kb: str = "", count: int = 0) -> None:
        """Record a change that cannot be undone; a failure to record it is only logged."""
        try:
            await self.record_change(tenant, action, target, kb=kb, count=count)
        except RagstoneError as error:
            logger.warning("cannot record %s of tenant '%s' in the audit record: %s", action, tenant, error)

    async def entries(
        self, tenant: str, *, action: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[AuditEntry]:
        """Return the entries of a tenant that exists, newest first; none of an earlier one with its name."""
        identity = await self._identity(tenant)
        if not identity or self._trail is None:
            return []
        return await self._trail.entries(tenant_id=identity, tenant=None, action=action, since=since, limit=limit)

    async def record_erasure(self, receipt: Receipt, tenant_id: str = "") -> None:
        """Record an erasure; `tenant_id` is that of a tenant that no longer exists."""
        target, complete = receipt.target, receipt.complete
        counts = {f"{store}.{what}": n for store, own in receipt.removed.items() for what, n in own.items()}
        who = caller()
        entry = AuditEntry(
            moment=now(),
            tenant_id=tenant_id or await self._identity(receipt.tenant),
            tenant=receipt.tenant,
            actor=who.actor,
            request_id=who.request_id,
            action=f"{target.kind}.erase",
            outcome="done" if complete else "failed",
            target=target.name,
            kb=target.kb,
            count=counts.get("ledger.documents", 0),
            counts=counts,
            detail="" if complete else "not complete yet",
        )
        await self._record_end([entry])

    @asynccontextmanager
    async def record_action(
        self, tenant: str, action: str, targets: Sequence[str], kb: str = ""
    ) -> AsyncIterator[AuditedAction]:
        """Record a removal or renaming when the block begins, and again when it is done or has failed."""
        audited = AuditedAction()
        entries = [await self._entry(tenant, action, "begun", target=target, kb=kb) for target in targets]
        begun = [entry for entry in entries if entry]
        if self._trail:
            await self._trail.record(begun)
        try:
            yield audited
        except RagstoneError as error:
            failed = [
                _end_entry(entry, "failed", audited, error.code) for entry in begun if entry.target not in audited.done
            ]
            await self._record_end([*failed, *_end_completed(begun, audited)])
            raise
        await self._record_end(_end_completed(begun, audited))

    async def _record_end(self, entries: Sequence[AuditEntry]) -> None:
        try:
            if self._trail:
                await self._trail.record(entries)
        except RagstoneError as error:
            # The begin is on the disk; a completed action must not be reported as failed.
            logger.warning("cannot record the end of an action in the audit record: %s", error)

    async def _note(self, tenant: str, action: str, outcome: Outcome, **facts: Any) -> None:
        if self._trail is None:
            return
        try:
            if entry := await self._entry(tenant, action, outcome, **facts):
                self._trail.note(entry)
        except RagstoneError as error:
            logger.warning("cannot record %s of tenant '%s' in the audit record: %s", action, tenant, error)

    async def _entry(self, tenant: str, action: str, outcome: Outcome, **facts: Any) -> AuditEntry | None:
        """Return an entry; None for a tenant that does not exist, so that asking leaves no trace on the disk."""
        identity = await self._identity(tenant) if self._trail else ""
        if not NAME.fullmatch(facts.get("kb", "")):
            facts["kb"] = ""
        if not identity:
            return None
        who = caller()
        return AuditEntry(now(), identity, tenant, who.actor, action, outcome, request_id=who.request_id, **facts)


def _end_completed(begun: Sequence[AuditEntry], audited: AuditedAction) -> list[AuditEntry]:
    return [_end_entry(entry, "done", audited) for entry in begun if entry.target in audited.done]


def _end_entry(begun: AuditEntry, outcome: Outcome, audited: AuditedAction, detail: str = "") -> AuditEntry:
    documents, counts = audited.done.get(begun.target, (0, {}))
    return replace(begun, moment=now(), outcome=outcome, count=documents, counts=counts, detail=detail)
