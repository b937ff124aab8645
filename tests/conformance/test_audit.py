"""The audit record on every ledger: what is added stays, old entries go, and a tenant's end does not touch it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import postgres_server

from ragstone.core import background
from ragstone.core.audit import AuditEntry, Outcome, acting_as
from ragstone.core.errors import StoreBusy
from ragstone.core.tenants import Quotas
from ragstone.stores.control import audit as audit_module
from ragstone.stores.control.audit import SqlAuditTrail
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer
from ragstone.testing.builders import make_version, put

postgres_databases = postgres_server.postgres_databases
LEDGERS: dict[str, Callable[[Path], SqlLedger]] = {
    "sqlite": lambda folder: SqliteLedger(folder, [Fts5Writer()]),
    "postgres": lambda folder: PostgresLedger(postgres_server.server(18).database(folder), folder),
}
START = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.fixture(params=LEDGERS)
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlLedger]:
    opened = LEDGERS[request.param](tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def trail(ledger: SqlLedger) -> SqlAuditTrail:
    return SqlAuditTrail(ledger, 30, lambda: START)


def entry(action: str, moment: datetime = START, outcome: Outcome = "done", **facts: object) -> AuditEntry:
    return AuditEntry(moment, "t1", "acme", "ada", action, outcome, **facts)  # type: ignore[arg-type]


async def entries(trail: SqlAuditTrail, **chosen: Any) -> list[AuditEntry]:
    return await trail.entries(**{"tenant_id": None, "tenant": None, **chosen})


async def actions(trail: SqlAuditTrail, **chosen: object) -> list[str]:
    return [one.action for one in await entries(trail, **chosen)]


async def test_what_is_written_is_read_back_newest_first(trail: SqlAuditTrail) -> None:
    whole = entry(
        "document.delete",
        target="d1",
        kb="main",
        count=2,
        document_ids=("d1", "d2"),
        counts={"ledger.chunks": 12},
        detail="why",
    )
    await trail.record([whole, entry("tenant.suspend")])
    trail.note(entry("search"))
    assert await actions(trail) == ["search", "tenant.suspend", "document.delete"]
    assert (await entries(trail))[-1] == whole


async def test_entries_are_chosen_by_tenant_action_and_moment(trail: SqlAuditTrail) -> None:
    other = AuditEntry(START, "t2", "other", "", "search")
    before = START - timedelta(days=2)
    await trail.record([entry("tenant.quotas", before), entry("tenant.suspend"), entry("tenants"), other])
    assert await actions(trail, tenant_id="t2") == await actions(trail, tenant="other") == ["search"]
    assert await actions(trail, action="tenant") == ["tenant.suspend", "tenant.quotas"]
    assert await actions(trail, action="tenant.suspend") == ["tenant.suspend"]
    assert await actions(trail, action="tenant", since=START) == ["tenant.suspend"]
    assert await actions(trail, limit=1) == ["search"]
    assert await actions(trail, tenant_id="t' OR '1'='1") == []


async def test_words_that_a_database_refuses_are_written_all_the_same(trail: SqlAuditTrail) -> None:
    await trail.record([entry("document.read", target="\x00\ud800" + "x" * 1000)])
    [found] = await entries(trail)
    assert found.target == " ?" + "x" * 253


async def test_what_is_old_goes_and_what_is_too_much(trail: SqlAuditTrail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_module, "MOST", 3)
    old = START - timedelta(days=31)
    seen = [entry("search", START - timedelta(seconds=10 - n), target=str(n)) for n in range(6)]
    refused = [entry("document.read", START - timedelta(days=1), "denied")]
    kept = [entry("document.delete", START - timedelta(days=29))]
    await trail.record([entry("search", old), entry("kb.delete", old), *seen, *refused, *kept])
    found = await entries(trail)
    assert [one.target for one in found if one.action == "search"] == ["5", "4", "3"]
    others = [one.action for one in found if one.action != "search"]
    assert others == ["audit.prune", "document.delete", "document.read"]


async def test_a_long_tail_is_pruned_piece_by_piece(trail: SqlAuditTrail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_module, "PIECE", 2)
    old = START - timedelta(days=31)
    left = []
    for number in range(3):
        await trail.record([entry("kb.delete", old)] * 5 if number == 0 else [entry("tenant.resume")])
        left.append(len(await entries(trail, action="kb.delete")))
    assert left == [3, 1, 0]


async def test_with_0_days_only_changes_and_refusals_are_recorded(ledger: SqlLedger) -> None:
    before = START - timedelta(days=100)
    await SqlAuditTrail(ledger, 365, lambda: START).record([entry("search", before), entry("kb.delete", before)])
    trail = SqlAuditTrail(ledger, 0, lambda: START)
    trail.note(entry("search"))
    trail.note(entry("document.read", outcome="denied"))
    await trail.record([entry("document.delete")])
    await trail.flush()
    # What was seen before it was switched off goes with the first thing that is written.
    assert sorted(await actions(trail)) == ["audit.prune", "document.delete", "document.read", "kb.delete"]


async def test_what_is_dropped_or_cannot_be_written_is_told(
    trail: SqlAuditTrail, ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "MOST_WAITING", 2)
    for _ in range(5):
        trail.note(entry("search"))
    with monkeypatch.context() as patched:

        async def busy(_: object) -> None:
            raise StoreBusy("locked")

        patched.setattr(ledger, "control_write", busy)
        await trail.flush()
    trail.note(entry("ask"))
    found = await entries(trail)
    assert [(one.action, one.count) for one in found] == [("audit.lost", 5), ("ask", 0)]
    trail.note(entry("ask"))
    assert await actions(trail, action="audit.lost") == ["audit.lost"]


async def test_looking_makes_nothing(trail: SqlAuditTrail, tmp_path: Path) -> None:
    assert await entries(trail) == []
    assert not (tmp_path / "control.db").exists()


async def test_writers_take_turns(ledger: SqlLedger) -> None:
    trails = [SqlAuditTrail(ledger, 30, lambda: START) for _ in range(4)]
    await asyncio.gather(*(one.record([entry("kb.delete", target=str(n))]) for n, one in enumerate(trails * 5)))
    assert sorted(int(one.target) for one in await entries(trails[0])) == list(range(20))


@pytest.mark.req("R-SEC-14")
async def test_changes_of_tenants_are_recorded_and_outlive_them(ledger: SqlLedger, trail: SqlAuditTrail) -> None:
    book = SqlTenantBook(ledger)
    with acting_as("ada"):
        made = await book.create("acme", Quotas(documents=5))
        await book.set_quotas("acme", Quotas(documents=6))
        await book.set_retention("acme", 9)
        await book.set_settings("acme", {"retrieval.k": 3})
        await book.suspend("acme")
        await book.resume("acme")
        await book.rename("acme", "apex")
        await put(ledger, make_version("one"), tenant="implicit")
    with acting_as("root"):
        await book.delete("apex")
    found = await entries(trail, tenant_id=made.id)
    assert [(one.action, one.outcome, one.actor, one.tenant, one.target) for one in reversed(found)] == [
        ("tenant.create", "done", "ada", "acme", "acme"),
        ("tenant.quotas", "done", "ada", "acme", "acme"),
        ("tenant.retention", "done", "ada", "acme", "acme"),
        ("tenant.settings", "done", "ada", "acme", "acme"),
        ("tenant.suspend", "done", "ada", "acme", "acme"),
        ("tenant.resume", "done", "ada", "acme", "acme"),
        ("tenant.rename", "done", "ada", "acme", "apex"),
        ("tenant.delete", "begun", "root", "apex", "apex"),
        ("tenant.delete", "done", "root", "apex", "apex"),
    ]
    assert [(one.action, one.actor) for one in await entries(trail, tenant="implicit")] == [("tenant.create", "ada")]


async def test_a_change_that_fails_is_not_recorded(ledger: SqlLedger, trail: SqlAuditTrail) -> None:
    book = SqlTenantBook(ledger)
    await book.create("acme")
    await book.create("apex")
    with pytest.raises(Exception, match="already"):
        await book.rename("acme", "apex")
    assert await actions(trail) == ["tenant.create", "tenant.create"]
