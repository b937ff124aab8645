"""Leases hold whatever the wall clock does, and end with the boot they were given in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.conformance.suites.queues import T, document_job, names, put, take

from ragstone.core import clock as host_clock
from ragstone.stores.ledger import jobs
from ragstone.stores.ledger import queue as queue_rows
from ragstone.stores.ledger.queue import SqlQueue
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer


@pytest.mark.parametrize("hours", [-1, 1, 24 * 365])
async def test_a_jump_of_the_clock_gives_no_job_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """FAULTS 15."""
    ledger = SqliteLedger(tmp_path, [Fts5Writer()])
    queue = SqlQueue(ledger)
    await put(ledger, document_job("a"), document_job("b"))
    (held,) = await take(queue, most=1)
    await queue.of(T).put_back((await take(queue, most=1))[0].ticket, wait_seconds=60, code="", error="", counts=True)
    jumped = datetime.now(UTC) + timedelta(hours=hours)
    for module in (jobs, queue_rows):
        monkeypatch.setattr(module, "now", lambda: jumped)
    assert await take(queue) == []
    await queue.of(T).complete(held.ticket, "")
    await ledger.close()


async def test_leases_and_waits_end_with_the_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = SqliteLedger(tmp_path, [Fts5Writer()])
    queue = SqlQueue(ledger)
    await put(ledger, document_job("a"), document_job("b"))
    await take(queue, most=1)
    waiting = await take(queue, most=1)
    await queue.of(T).put_back(waiting[0].ticket, wait_seconds=1000, code="", error="", counts=True)
    monkeypatch.setattr(host_clock, "boot_id", lambda: "another boot")
    assert sorted(names(await take(queue))) == ["a", "b"]
    await ledger.close()


def test_the_clock_is_one_for_all_and_never_goes_back() -> None:
    before = host_clock.host_seconds()
    assert host_clock.host_seconds() >= before > 0
    assert host_clock.boot_id() == host_clock.boot_id() != ""
