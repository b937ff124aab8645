"""The chain of the audit record on every ledger: whatever is done to its rows by hand is noticed."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.conformance import postgres_server
from tests.warm import warm_python

from ragstone.core.audit import AuditEntry
from ragstone.stores.control import audit as audit_module
from ragstone.stores.control.audit import SqlAuditTrail
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.sql.database import Connection

postgres_databases = postgres_server.postgres_databases
LEDGERS: dict[str, Callable[[Path], SqlLedger]] = {
    "sqlite": SqliteLedger,
    "postgres": lambda folder: PostgresLedger(postgres_server.server(18).database(folder), folder),
}
START = datetime(2026, 1, 31, tzinfo=UTC)
OLD = START - timedelta(days=31)
LINKS = "request_id, previous, hash"
ALL = "moment, tenant_id, tenant, actor, action, outcome, target, kb, count, document_ids, counts, detail, kind"
TAMPERED = {
    "changed": ["UPDATE audit SET actor = 'eve' WHERE target = '3'"],
    "its kind changed": ["UPDATE audit SET kind = 'seen' WHERE target = '3'"],
    "moved to another tenant": ["UPDATE audit SET tenant_id = 't2' WHERE target = '3'"],
    "inserted": [f"INSERT INTO audit ({ALL}) SELECT {ALL} FROM audit WHERE target = '1'"],
    "inserted as a copy": [f"INSERT INTO audit ({ALL}, {LINKS}) SELECT {ALL}, {LINKS} FROM audit WHERE target = '1'"],
    "removed": ["DELETE FROM audit WHERE target = '3'"],
    "the first one removed": ["DELETE FROM audit WHERE target = '0'"],
    "the last one removed": ["DELETE FROM audit WHERE target = '4'"],
    "reordered": [
        "UPDATE audit SET id = 900 WHERE target = '2'",
        "UPDATE audit SET id = (SELECT max(id) FROM audit WHERE target = '1') + 1 WHERE target = '3'",
        "UPDATE audit SET id = (SELECT max(id) FROM audit WHERE target = '3') + 1 WHERE target = '2'",
    ],
    "removed as if pruned": [
        "INSERT INTO audit_gaps (previous, hash, entries) SELECT previous, hash, 1 FROM audit WHERE target = '2'",
        "DELETE FROM audit WHERE target = '2'",
    ],
}


@pytest.fixture(params=LEDGERS)
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlLedger]:
    opened = LEDGERS[request.param](tmp_path)
    yield opened
    await opened.close()


def entry(target: object, moment: datetime = START, action: str = "document.delete") -> AuditEntry:
    return AuditEntry(moment, "t1", "acme", "ada", action, target=str(target))


@pytest.mark.req("R-SEC-14")
@pytest.mark.parametrize("how", TAMPERED)
async def test_tampering_is_noticed(ledger: SqlLedger, how: str) -> None:
    trail = SqlAuditTrail(ledger, 30, lambda: START)
    await trail.record([entry(number) for number in range(3)])
    await trail.record([entry(number) for number in (3, 4)])
    before = await trail.verify()
    assert (before.entries, before.pruned, before.problem) == (5, 0, "")

    def tamper(connection: Connection) -> None:
        for statement in TAMPERED[how]:
            connection.execute(statement)

    await ledger.control_write(tamper)
    chain = await trail.verify()
    assert not chain.is_intact
    assert chain.problem


async def test_the_first_broken_entry_is_named(ledger: SqlLedger) -> None:
    trail = SqlAuditTrail(ledger, 30, lambda: START)
    await trail.record([entry(number) for number in range(4)])
    ids: list[int] = await ledger.control_read(
        lambda connection: [row[0] for row in connection.execute("SELECT id FROM audit ORDER BY id").fetchall()], []
    )
    await ledger.control_write(
        lambda connection: connection.execute("UPDATE audit SET count = 7 WHERE id = ?", ids[2:3])
    )
    chain = await trail.verify()
    assert (chain.entries, chain.broken_at, chain.problem) == (2, ids[2], f"entry {ids[2]} was changed")
    await ledger.control_write(lambda connection: connection.execute("DELETE FROM audit WHERE id = ?", ids[1:2]))
    chain = await trail.verify()
    assert (chain.entries, chain.broken_at) == (1, ids[2])


async def test_pruning_keeps_the_chain(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = START
    trail = SqlAuditTrail(ledger, 30, lambda: moment)
    monkeypatch.setattr(audit_module, "PIECE", 2)
    await trail.record([entry(0, OLD), entry(1), entry(2, OLD), entry(3, OLD), entry(4), entry(5, OLD)])
    for number in (6, 7, 8):
        await trail.record([entry(number)])
        assert (await trail.verify()).problem == ""
    chain = await trail.verify()
    assert chain.pruned == 4
    gaps = await ledger.control_read(
        lambda connection: sorted(row[0] for row in connection.execute("SELECT entries FROM audit_gaps").fetchall()), []
    )
    assert gaps == [1, 1, 2]  # neighbours are one gap
    await ledger.control_write(lambda connection: connection.execute("DELETE FROM audit_gaps WHERE entries = 2"))
    assert not (await trail.verify()).is_intact


async def test_a_record_whose_every_entry_is_old_is_still_proven(ledger: SqlLedger) -> None:
    moment = START
    trail = SqlAuditTrail(ledger, 30, lambda: moment)
    await trail.record([entry(number) for number in range(3)])
    moment = START + timedelta(days=60)
    await trail.record([entry(9, moment)])
    chain = await trail.verify()
    assert (chain.entries, chain.pruned, chain.problem) == (2, 3, "")  # the new one, and that others were pruned


async def test_a_record_that_was_written_anew_lacks_the_hash_that_was_noted(ledger: SqlLedger) -> None:
    trail = SqlAuditTrail(ledger, 30, lambda: START)
    await trail.record([entry(1)])
    noted = (await trail.verify()).head
    await trail.record([entry(2)])
    assert (await trail.verify(noted)).is_intact

    def begin_again(connection: Connection) -> None:
        for table in ("audit", "audit_head", "audit_gaps"):
            connection.execute(f"DELETE FROM {table}")

    await ledger.control_write(begin_again)
    await trail.record([entry(2)])
    assert (await trail.verify()).is_intact
    assert "noted" in (await trail.verify(noted)).problem


async def test_writers_in_two_processes_make_one_chain(ledger: SqlLedger, tmp_path: Path) -> None:
    kind = "sqlite" if isinstance(ledger, SqliteLedger) else "postgres"
    other = LEDGERS[kind](tmp_path)
    trails = [SqlAuditTrail(opened, 30, lambda: START) for opened in (ledger, other, ledger)]
    try:
        await asyncio.gather(*(trail.record([entry(number)] * 3) for number in range(12) for trail in trails))
    finally:
        await other.close()
    chain = await trails[0].verify()
    assert (chain.entries, chain.problem) == (108, "")


KILLED = """
import asyncio, os, sys
from pathlib import Path
from ragstone.core.audit import AuditEntry
from ragstone.core.clock import now
from ragstone.stores.control import audit
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger

entry = AuditEntry(now(), "t1", "acme", "ada", "kb.delete")

def work(connection):
    audit.append_entries(connection, [entry])
    os._exit(9)

async def main():
    ledger = SqliteLedger(Path(sys.argv[1]))
    await audit.SqlAuditTrail(ledger, 30).record([entry])
    await ledger.control_write(work)

asyncio.run(main())
"""


async def test_a_writer_that_is_killed_leaves_a_whole_chain(tmp_path: Path) -> None:
    ended = await asyncio.to_thread(subprocess.run, [*warm_python(), "-c", KILLED, str(tmp_path)], check=False)
    assert ended.returncode == 9
    ledger = SqliteLedger(tmp_path)
    trail = SqlAuditTrail(ledger, 30)
    try:
        await trail.record([entry(1)])
        chain = await trail.verify()
    finally:
        await ledger.close()
    assert (chain.entries, chain.problem) == (2, "")


@pytest.mark.parametrize("kind", LEDGERS)
async def test_entries_of_an_earlier_version_are_chained_by_the_upgrade(kind: str, tmp_path: Path) -> None:
    ledger = LEDGERS[kind](tmp_path)
    await SqlAuditTrail(ledger, 30, lambda: START).record([entry(number) for number in range(3)])

    def undo(connection: Connection) -> None:
        version = "alembic_version" if kind == "sqlite" else "alembic_version_control"
        for statement in (
            "ALTER TABLE audit DROP COLUMN previous",
            "ALTER TABLE audit DROP COLUMN hash",
            "DROP TABLE audit_head",
            "DROP TABLE audit_gaps",
            *(f"ALTER TABLE api_keys DROP COLUMN {name}" for name in ("per_minute", "minute", "used")),
            *(f"DROP TABLE {name}" for name in ("stored_replies", "alerts", "alert_messages")),
            f"UPDATE {version} SET version_num = '0008'",
        ):
            connection.execute(statement)

    await ledger.control_write(undo)
    await ledger.close()
    upgraded = LEDGERS[kind](tmp_path)
    try:
        trail = SqlAuditTrail(upgraded, 30, lambda: START)
        assert ((await trail.verify()).entries, (await trail.verify()).problem) == (3, "")
        await trail.record([entry(3)])
        assert ((await trail.verify()).entries, (await trail.verify()).problem) == (4, "")
    finally:
        await upgraded.close()
