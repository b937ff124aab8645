"""A shop goes with its tenant: into archives and out of them, to another ledger, and away."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.moves.sites import Site, contents, site, stock
from tests.unit.moves.test_hostile_archives import members_of, signed, write

from ragstone.core.errors import InputError
from ragstone.core.shop import Appointment
from ragstone.core.shop.slots import list_slots
from ragstone.samples import shop
from ragstone.settings.tree import Adapter
from ragstone.stores.ledger import erasure
from ragstone.stores.shop.agent_settings import AgentSettingsRepository
from ragstone.stores.shop.appointments import AppointmentRepository, put_appointments
from ragstone.stores.shop.entries import ProductRepository, ServiceRepository

MONDAY = date(2031, 6, 2)


async def open_shop(one: Site, tenant: str = "default") -> Appointment:
    """Put the demo shop into a tenant that has some documents."""
    await stock(one, 2, tenant=tenant)
    await ProductRepository(one.stores.ledger, tenant).put(shop.products())
    await ServiceRepository(one.stores.ledger, tenant).put(shop.services())
    await AgentSettingsRepository(one.stores.ledger, tenant).put("service", {"max_document_results": 3})
    massage = next(service for service in shop.services() if service.id == "relaxing-massage")
    slot = list_slots(massage, MONDAY, MONDAY)[0]
    return await AppointmentRepository(one.stores.ledger, tenant).book(slot, "Ada Brook")


async def counts(one: Site, tenant: str = "default") -> dict[str, int]:
    rows = await one.stores.ledger.read(tenant, erasure.count_tenant)
    return {name: rows[name] for name in erasure.OF_SHOP}


def files_with(folder: Path, words: bytes) -> list[Path]:
    return [place for place in folder.rglob("*") if place.is_file() and words in place.read_bytes()]


ALL = {"products": 17, "services": 6, "appointments": 1, "agent_settings": 1}


async def test_an_archive_brings_the_shop_back(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here, site(tmp_path / "b") as there:
        made = await open_shop(here)
        await here.mover.export_archive(tmp_path / "x.zip")
        report = await there.mover.import_archive(tmp_path / "x.zip")
        assert "17 products were taken in, and 0 left as they are here" in report.remarks
        assert await counts(there) == ALL
        kept = await AppointmentRepository(there.stores.ledger, "default").get(made.id)
        assert kept == await AppointmentRepository(here.stores.ledger, "default").get(made.id)
        again = await there.mover.import_archive(tmp_path / "x.zip")
        assert "0 products were taken in, and 17 left as they are here" in again.remarks
        await there.mover.export_archive(tmp_path / "y.zip")
        assert contents(tmp_path / "x.zip") == contents(tmp_path / "y.zip")


async def test_an_archive_of_some_kbs_has_no_shop_in_it(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here:
        await open_shop(here)
        await here.mover.export_archive(tmp_path / "x.zip", kbs=["default"])
        assert not [name for name in contents(tmp_path / "x.zip") if name.startswith("shop/")]


async def test_no_time_is_booked_twice_by_an_import(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here, site(tmp_path / "b") as there:
        made = await open_shop(here)
        await here.mover.export_archive(tmp_path / "x.zip")
        await stock(there, 1)
        half = timedelta(minutes=30)
        other = Appointment(
            *("f" * 32, made.service_id, made.starts_at + half, made.ends_at + half, "Bob", "booked"),
            datetime(2026, 1, 1, tzinfo=UTC),
        )
        await there.stores.ledger.write("default", put_appointments, [other])
        report = await there.mover.import_archive(tmp_path / "x.zip", overwrite=True)
        assert "0 appointments were taken in, and 1 left as they are here" in report.remarks
        assert await counts(there) == ALL


async def test_a_move_to_another_ledger_takes_the_shop_along(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here:
        await open_shop(here)
        assert (await here.mover.migrate(Adapter(kind="sqlite", path=tmp_path / "b"))).is_equal
        await ProductRepository(here.stores.ledger, "default").remove("gift-box")
        assert (await here.mover.migrate(Adapter(kind="sqlite", path=tmp_path / "b"))).is_equal
        async with site(tmp_path / "b") as there:
            assert await counts(there) == ALL | {"products": 16}


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("products", {"price": "-1"}, "cannot be a price"),
    ("products", {"price": "x"}, "is not a number"),
    ("products", {"id": "../../etc/passwd"}, "cannot be an id"),
    ("products", {"stock": 2**40}, "'stock'"),
    ("products", {"name": ""}, "the name is empty"),
    ("services", {"timezone": "/etc/passwd"}, "no time zone"),
    ("services", {"windows": "always"}, "no opening hours"),
    ("appointments", {"status": "maybe"}, "'status'"),
    ("appointments", {"ends_at": "2000-01-01T00:00:00+00:00"}, "ends before it begins"),
    ("agent_settings", {"agent": "../x"}, "not a valid name"),
    ("agent_settings", {"document": []}, "not a JSON object"),
]


@pytest.mark.parametrize(("kind", "change", "said"), WRONG)
async def test_a_wrong_entry_is_refused_before_anything_is_written(
    kind: str, change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    async with site(tmp_path / "a") as here, site(tmp_path / "b") as there:
        await open_shop(here)
        await here.mover.export_archive(tmp_path / "x.zip")
        members = members_of(tmp_path / "x.zip")
        name = f"shop/{kind}-000000.jsonl"
        first, *others = members[name].splitlines(keepends=True)
        members[name] = b"".join([json.dumps({**json.loads(first), **change}).encode() + b"\n", *others])
        hostile = write(tmp_path / "hostile.zip", signed(members))
        with pytest.raises(InputError, match=said):
            await there.mover.import_archive(hostile)
        assert await there.stores.tenants.get("default") is None


async def test_a_tenant_that_is_deleted_leaves_no_shop(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here:
        await open_shop(here, "acme")
        tenant = await here.stores.tenants.get("acme")
        assert tenant is not None
        assert await counts(here, "acme") == ALL
        assert files_with(tmp_path, b"Ada Brook")
        await here.stores.tenants.delete("acme")
        assert set((await here.stores.ledger.remains(tenant.id)).values()) == {0}
        assert not files_with(tmp_path, b"Ada Brook")
