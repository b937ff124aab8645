"""API keys go to another ledger with their tenant: clients go on with the ones they have."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.moves.sites import Site, site, stock

from ragstone.core.clock import now
from ragstone.core.keys import ApiKey, IssuedKey, NewApiKey
from ragstone.settings.tree import Adapter
from ragstone.stores.control.keys import SqlKeyBook, StoredKey
from ragstone.stores.sql.database import Connection
from ragstone.transfer.migrate.keys import compare_keys
from ragstone.transfer.reports import MoveReport

LIMITED = NewApiKey("default", ("read", "write"), "robot", ("default", "other"), now() + timedelta(days=9), 60)
WHOLE = NewApiKey("default", ("admin",), "ada")
OPERATOR = NewApiKey("", ("admin",), "operator")


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Site]:
    async with site(tmp_path / "a") as opened:
        await stock(opened, 1)
        yield opened


def book_of(one: Site) -> SqlKeyBook:
    return SqlKeyBook(one.stores.ledger)


async def carried(here: Site, tmp_path: Path, *tenants: str) -> MoveReport:
    """Move to the folder `b`: all tenants, unless some are named."""
    return await here.mover.migrate(Adapter(kind="sqlite", path=tmp_path / "b"), tenants=tenants or None)


async def found_there(tmp_path: Path, issued: IssuedKey) -> ApiKey | None:
    """The key that a client's text leads to in the folder `b`."""
    async with site(tmp_path / "b") as there:
        return await book_of(there).find(issued.token)


async def run(one: Site, statement: str, *values: str) -> None:
    def work(connection: Connection) -> None:
        connection.execute(statement, values)

    await one.stores.ledger.control_write(work)


async def test_keys_work_there_as_they_do_here(here: Site, tmp_path: Path) -> None:
    issued = [await book_of(here).create(wanted) for wanted in (LIMITED, WHOLE, OPERATOR)]
    for _ in range(2):
        assert (await carried(here, tmp_path)).is_equal
    async with site(tmp_path / "b") as there:
        tenant = await there.stores.tenants.get("default")
        assert tenant is not None
        for one in issued:
            expected = replace(one.key, tenant_id=tenant.id) if one.key.tenant else one.key
            assert await book_of(there).find(one.token) == expected
        assert await book_of(there).create_first([OPERATOR]) == []


async def test_a_key_that_ended_between_two_moves_is_refused_there(here: Site, tmp_path: Path) -> None:
    revoked, rotated, gone, operator = [
        await book_of(here).create(wanted) for wanted in (LIMITED, WHOLE, WHOLE, OPERATOR)
    ]
    await carried(here, tmp_path)
    await book_of(here).revoke(revoked.key.id, tenant=None)
    await book_of(here).revoke(operator.key.id, tenant=None)
    new = await book_of(here).rotate(rotated.key.id, tenant=None, grace=timedelta())
    await run(here, "DELETE FROM api_keys WHERE id = ?", gone.key.id)
    assert (await carried(here, tmp_path)).is_equal
    for ended in (revoked, rotated, gone, operator):
        assert await found_there(tmp_path, ended) is None
    assert await found_there(tmp_path, new) is not None


async def test_a_key_that_was_revoked_there_stays_so(here: Site, tmp_path: Path) -> None:
    issued = await book_of(here).create(WHOLE)
    await carried(here, tmp_path)
    async with site(tmp_path / "b") as there:
        await book_of(there).revoke(issued.key.id, tenant=None)
    assert (await carried(here, tmp_path)).is_equal
    assert await found_there(tmp_path, issued) is None


async def test_one_tenant_takes_only_its_own_keys_along(here: Site, tmp_path: Path) -> None:
    await stock(here, 1, tenant="acme")
    mine, operator = await book_of(here).create(WHOLE), await book_of(here).create(OPERATOR)
    other = await book_of(here).create(replace(WHOLE, tenant="acme"))
    await carried(here, tmp_path, "default")
    assert await found_there(tmp_path, mine) is not None
    assert [await found_there(tmp_path, one) for one in (operator, other)] == [None, None]


async def test_keys_of_another_operator_there_are_left_alone(here: Site, tmp_path: Path) -> None:
    async with site(tmp_path / "b") as there:
        theirs = await book_of(there).create(OPERATOR)
    await book_of(here).create(OPERATOR)
    assert (await carried(here, tmp_path)).is_equal
    assert await found_there(tmp_path, theirs) is not None


@pytest.mark.parametrize("wanted", [WHOLE, OPERATOR], ids=["a tenant's", "the operator's"])
async def test_a_key_that_does_not_arrive_is_named(
    here: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: NewApiKey
) -> None:
    issued = await book_of(here).create(wanted)
    monkeypatch.setattr("ragstone.transfer.migrate.keys.write_keys", lambda *_: None)
    report = await carried(here, tmp_path)
    assert not report.is_equal
    assert report.tenants[0].differences.named == (f"key {issued.key.id} ({wanted.name}) is missing",)


def test_keys_that_differ_are_named() -> None:
    key = StoredKey("0" * 16, "robot", "read", "docs", "2026-01-31T09:00:00+00:00", None, None, "f" * 64, None)
    ended = key._replace(revoked_at="2026-02-01T09:00:00+00:00")
    assert compare_keys([key], [key]) == compare_keys([key], [ended]) == []
    assert compare_keys([key], []) == ["key 0000000000000000 (robot) is missing"]
    assert compare_keys([ended], [key]) == ["key 0000000000000000 (robot) differs"]
    assert compare_keys([key], [key._replace(kbs="")]) == ["key 0000000000000000 (robot) differs"]
    assert compare_keys([], [key]) == ["key 0000000000000000 (robot) is there and not here"]
