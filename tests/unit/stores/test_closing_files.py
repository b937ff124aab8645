"""Files of tenants in which a read or a write that was cancelled still runs: only those who delete wait for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ragstone.core.errors import StoreBusy
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger.sqlite import ledger as sqlite
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.sql.database import Connection

PATIENCE = 10.0
"""Seconds after which work that hangs ends by itself: a loop that waits for it is seen, not waited for for ever."""


class Hang:
    """Work on a tenant's rows that hangs until it is let go."""

    def __init__(self) -> None:
        self._begun = threading.Event()
        self._let_go = threading.Event()
        self.was_let_go: bool | None = None
        """None while it hangs; False when the loop did not come to letting it go."""

    def __call__(self, rows: Connection, tenant_id: str) -> None:
        self._begun.set()
        self.was_let_go = self._let_go.wait(PATIENCE)
        rows.execute("SELECT count(*) FROM jobs").fetchone()

    async def cancel_within(self, ledger: SqliteLedger, tenant: str, *, writing: bool = False) -> None:
        """Begin the work for a tenant, and cancel it: its thread goes on."""
        task = asyncio.create_task((ledger.write if writing else ledger.read)(tenant, self))
        await asyncio.to_thread(self._begun.wait)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def let_go(self) -> None:
        self._let_go.set()


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    opened = SqliteLedger(tmp_path, open_tenants=1)
    yield opened
    await opened.close()


async def open_tenant(ledger: SqliteLedger, name: str) -> str:
    """Open a tenant, so that any other has to make room; return its id."""
    async with ledger.transaction(name) as tx:
        await tx.open_kb("default")
    async with ledger.file(name) as file:
        return file.tenant_id


@pytest.mark.parametrize("writing", [False, True])
async def test_a_tenant_makes_room_while_its_work_hangs_and_is_opened_again(
    ledger: SqliteLedger, writing: bool
) -> None:
    await open_tenant(ledger, "slow")
    hang = Hang()
    await hang.cancel_within(ledger, "slow", writing=writing)
    await open_tenant(ledger, "other")
    assert [kb.name for kb in await ledger.of("slow").kbs()] == ["default"]
    hang.let_go()
    await ledger.close()
    assert hang.was_let_go
    async with ledger.transaction("slow") as tx:
        await tx.open_kb("second")
    assert [kb.name for kb in await ledger.of("slow").kbs()] == ["default", "second"]


@pytest.mark.parametrize("writing", [False, True])
async def test_a_deletion_waits_until_nothing_runs_in_a_file_that_was_closed(
    ledger: SqliteLedger, tmp_path: Path, writing: bool
) -> None:
    tenant_id = await open_tenant(ledger, "slow")
    hang = Hang()
    await hang.cancel_within(ledger, "slow", writing=writing)
    await open_tenant(ledger, "other")
    deleting = asyncio.create_task(ledger.forget("slow", tenant_id))
    await open_tenant(ledger, "another")
    assert (deleting.done(), (tmp_path / "tenants" / tenant_id).exists()) == (False, True)
    hang.let_go()
    await deleting
    assert hang.was_let_go
    assert not (tmp_path / "tenants" / tenant_id).exists()
    assert await ledger.remains(tenant_id) == {"files": 0}


async def test_a_deletion_gives_up_on_work_that_hangs_for_long(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await open_tenant(ledger, "slow")
    hang, book = Hang(), SqlTenantBook(ledger)
    await hang.cancel_within(ledger, "slow")
    await open_tenant(ledger, "other")
    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "CLOSING_SECONDS", 0, raising=False)
        with pytest.raises(StoreBusy, match="something still works for tenant 'slow'"):
            await book.delete("slow")
    hang.let_go()
    assert await book.finish_deletions() == ["slow"]
    assert hang.was_let_go
