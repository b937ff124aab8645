"""A tenant that was deleted or renamed between two moves does not live on in the other ledger without a word."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.conformance import postgres_server
from tests.unit.moves.sites import Site, site, stock

from ragstone.settings.tree import Adapter
from ragstone.transfer.reports import MoveReport, TenantMove

postgres_databases = postgres_server.postgres_databases
REMOVE = "delete the tenant there, with the settings of the new ledger"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Site]:
    """An installation of two tenants that were moved to the folder `b`."""
    async with site(tmp_path / "a") as opened:
        await stock(opened, 1)
        await stock(opened, 2, tenant="bob")
        assert (await carried(opened, tmp_path)).is_equal
        yield opened


async def carried(here: Site, tmp_path: Path, *tenants: str) -> MoveReport:
    """Move to the folder `b`: all tenants, unless some are named."""
    return await here.mover.migrate(Adapter(kind="sqlite", path=tmp_path / "b"), tenants=tenants or None)


async def names(one: Site) -> list[str]:
    return [tenant.name for tenant in await one.stores.tenants.all()]


def last(report: MoveReport) -> TenantMove:
    """The last entry of a report that is not equal."""
    assert not report.is_equal
    return report.tenants[-1]


async def test_a_tenant_that_was_deleted_here_is_a_difference_until_it_is_removed_there(
    here: Site, tmp_path: Path
) -> None:
    await here.stores.tenants.delete("bob")
    left = last(await carried(here, tmp_path))
    assert (left.tenant, left.documents) == ("bob", 0)
    assert left.differences.named == (f"tenant 'bob' of an earlier move was deleted here: {REMOVE}",)
    assert (await carried(here, tmp_path, "default")).is_equal
    async with site(tmp_path / "b") as there:
        await there.stores.tenants.delete("bob")
    assert (await carried(here, tmp_path)).is_equal


async def test_a_tenant_that_was_renamed_here_is_renamed_there(here: Site, tmp_path: Path) -> None:
    await here.stores.tenants.rename("bob", "robert")
    report = await carried(here, tmp_path)
    assert report.is_equal
    assert [(move.tenant, move.written) for move in report.tenants] == [("default", 0), ("robert", 0)]
    async with site(tmp_path / "b") as there:
        assert await names(there) == ["default", "robert"]
        assert await there.uris(tenant="robert") == await here.uris(tenant="robert")


async def test_a_copy_that_was_used_there_keeps_its_name_and_is_a_difference(here: Site, tmp_path: Path) -> None:
    await here.stores.tenants.rename("bob", "robert")
    async with site(tmp_path / "b") as there:
        await stock(there, 1, first=7, tenant="bob")
    left = last(await carried(here, tmp_path))
    said = f"tenant 'bob' of an earlier move is called 'robert' here and has been written to there: {REMOVE}"
    assert left.differences.named == (said,)
    async with site(tmp_path / "b") as there:
        assert await names(there) == ["bob", "default", "robert"]
        assert len(await there.uris(tenant="bob")) == 3


async def test_a_name_that_is_taken_there_is_taken_from_nobody(here: Site, tmp_path: Path) -> None:
    await here.stores.tenants.rename("bob", "robert")
    async with site(tmp_path / "b") as there:
        await there.stores.tenants.create("robert")
    left = last(await carried(here, tmp_path))
    assert left.differences.named == (f"tenant 'bob' of an earlier move is called 'robert' here: {REMOVE}",)


async def test_tenants_of_another_installation_are_left_alone(here: Site, tmp_path: Path) -> None:
    async with site(tmp_path / "c") as second:
        await stock(second, 1, tenant="acme")
        async with site(tmp_path / "b") as there:
            await there.stores.tenants.create("own")
        report = await carried(second, tmp_path)
        assert report.is_equal
        said = "tenants there that this ledger knows nothing of were left alone: bob, default"
        assert [move.remarks for move in report.tenants] == [(said,)]
    async with site(tmp_path / "b") as there:
        assert await names(there) == ["acme", "bob", "default", "own"]


async def test_a_database_is_followed_and_looked_at_as_well(here: Site, tmp_path: Path) -> None:
    await stock(here, 1, tenant="carl")
    to = Adapter(kind="postgres", dsn=SecretStr(postgres_server.server(18).database(tmp_path)))
    assert (await here.mover.migrate(to)).is_equal
    await here.stores.tenants.rename("carl", "charles")
    await here.stores.tenants.delete("bob")
    report = await here.mover.migrate(to)
    assert [(move.tenant, move.written) for move in report.tenants] == [("charles", 0), ("default", 0), ("bob", 0)]
    assert last(report).differences.named == (f"tenant 'bob' of an earlier move was deleted here: {REMOVE}",)
