"""The shop of a workspace: lookups with their age, changes that are told, and shops in a database of their own."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ragstone import Engine, Settings, open_engine
from ragstone.core.errors import InputError, NotFoundError, SettingsError, SourceError
from ragstone.core.shop import Product, Service
from ragstone.engine.shop.lookups import LookupCache
from ragstone.samples import shop as demo

MONDAY = date(2031, 6, 2)
TABLES = """
CREATE TABLE items (sku TEXT, title TEXT, shelf TEXT, maker TEXT, words TEXT, cents INTEGER, left_over INTEGER,
    shop TEXT);
INSERT INTO items VALUES ('T-1', 'Green tea', 'Tea', 'Haus', 'Fresh and sweet.', 450, 3, 'acme');
INSERT INTO items VALUES ('S-1', 'Rose soap', 'Bath', 'Haus', 'A romantic soap.', 290, 9, 'acme');
INSERT INTO items VALUES ('bad/id', 'Broken tea', 'Tea', '', '', 1, 1, 'acme');
INSERT INTO items VALUES ('X-1', 'Secret tea', 'Tea', 'Other', 'Of another shop.', 1, 1, 'globex');
CREATE TABLE offers (code TEXT, title TEXT, minutes INTEGER, hours TEXT);
INSERT INTO offers VALUES ('massage', 'Massage', 60, 'mon 09:00-12:00');
CREATE TABLE diary (offer TEXT, begins TEXT, ends TEXT);
INSERT INTO diary VALUES ('massage', '2031-06-02T10:00:00', '2031-06-02T11:00:00');
"""
MAPPING = {
    "database": "store",
    "products": "SELECT sku AS id, title AS name, shelf AS category, maker AS brand, words AS description, "
    "cents / 100.0 AS price, 'EUR' AS currency, left_over AS stock FROM items WHERE shop = 'acme'",
    "services": "SELECT code AS id, title AS name, '' AS description, NULL AS price, 'EUR' AS currency, minutes, "
    "hours AS windows, 'UTC' AS timezone FROM offers",
    "appointments": "SELECT offer AS service_id, begins AS starts_at, ends AS ends_at FROM diary",
}


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with open_engine(Settings(data_dir=tmp_path)) as opened:
        yield opened


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The database of a shop that has nothing to do with Ragstone."""
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        connection.executescript(TABLES)
    return tmp_path / "store.db"


def settings_of(file: Path, **mapping: Any) -> Settings:
    own = {**MAPPING, **mapping}
    return Settings(data_dir=file.parent / "data", databases={"store": f"sqlite:///{file}"}, shops={"acme": own})


async def test_the_workspace_has_a_shop(engine: Engine) -> None:
    shop = engine.workspace("acme").shop
    assert await shop.list_products() == []
    made = await shop.put_product(Product("", "Tea"))
    assert (await shop.product(made.id)).name == "Tea"


@pytest.mark.req("R-CSA-06", "R-CSA-07", "R-CSA-09")
async def test_lookups_are_kept_for_a_minute_and_say_their_age(engine: Engine) -> None:
    moment = 1000.0
    engine._components.shop_lookups = LookupCache(lambda: moment)
    shop, elsewhere = engine.workspace("acme").shop, engine._components.ledger
    await shop.put_products(demo.products())
    await shop.put_services(demo.services())
    (spice,) = await shop.get_product_context("Tell me about the Oriental Spice perfume")
    assert (spice.product.name, spice.product.price, spice.product.stock) == ("Oriental Spice", Decimal("42.00"), 18)
    assert spice.age_seconds == 0
    await elsewhere.write(
        "acme", lambda rows, _: rows.execute("UPDATE products SET stock = 5 WHERE id = 'oriental-spice'")
    )
    moment += 59
    (kept,) = await shop.get_product_context("Tell me about the Oriental Spice perfume")
    assert (kept.product.stock, kept.age_seconds) == (18, 59)
    moment += 2
    (fresh,) = await shop.get_product_context("Tell me about the Oriental Spice perfume")
    assert (fresh.product.stock, fresh.age_seconds) == (5, 0)
    massages = await shop.get_service_context("When can I book a massage?")
    assert [one.service.id for one in massages][:3] == [
        *("relaxing-massage", "deep-tissue-massage", "express-back-massage")
    ]
    assert all(one.service.windows for one in massages)
    assert await engine.workspace("globex").shop.get_product_context("Tell me about the Oriental Spice perfume") == []


async def test_what_this_process_changes_is_seen_at_once(engine: Engine) -> None:
    shop = engine.workspace("acme").shop
    await shop.put_product(Product("tea", "Tea", stock=3))
    await shop.get_product_context("tea")
    await shop.put_product(Product("tea", "Tea", stock=2))
    assert [one.product.stock for one in await shop.get_product_context("tea")] == [2]
    await shop.remove_product("tea")
    assert await shop.get_product_context("tea") == []


@pytest.mark.req("R-CSA-08")
async def test_availability_is_that_of_this_moment(engine: Engine) -> None:
    shop = engine.workspace("acme").shop
    await shop.put_services(demo.services())
    before = await shop.get_appointment_availability("relaxing-massage", (MONDAY, MONDAY))
    made = await shop.book("relaxing-massage", before[0].starts_at, "Ada")
    assert await shop.get_appointment_availability("relaxing-massage", (MONDAY, MONDAY)) == before[1:]
    await shop.cancel(made.id)
    assert await shop.get_appointment_availability("relaxing-massage", (MONDAY, MONDAY)) == before
    every = await shop.get_appointment_availability()
    assert {slot.service_id for slot in every} == {service.id for service in demo.services()}
    assert [slot.starts_at.astimezone(UTC) for slot in every] == sorted(
        slot.starts_at.astimezone(UTC) for slot in every
    )
    assert all(slot.starts_at > datetime.now(UTC) for slot in every)


async def test_bookings_of_the_demo_can_be_made_on_any_day(engine: Engine) -> None:
    shop = engine.workspace("acme").shop
    await shop.put_services(demo.services())
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date()
    for booking in demo.BOOKINGS:
        free = await shop.free_slots(booking.service_id, tomorrow, tomorrow + timedelta(days=13))
        await shop.book(booking.service_id, free[booking.slot].starts_at, booking.customer)
    assert len(await shop.appointments()) == len(demo.BOOKINGS)


async def test_a_service_that_is_booked_cannot_be_removed(engine: Engine) -> None:
    shop = engine.workspace("acme").shop
    await shop.put_services(demo.services())
    slot = (await shop.free_slots("relaxing-massage", MONDAY, MONDAY))[0]
    made = await shop.book("relaxing-massage", slot.starts_at, "Ada")
    with pytest.raises(InputError, match="has 1 appointments to come"):
        await shop.remove_service("relaxing-massage")
    await shop.cancel(made.id)
    await shop.remove_service("relaxing-massage")
    with pytest.raises(NotFoundError, match="no service 'relaxing-massage'"):
        await shop.service("relaxing-massage")


async def test_a_shop_is_read_from_its_own_database(database: Path) -> None:
    async with open_engine(settings_of(database)) as engine:
        shop = engine.workspace("acme").shop
        assert [one.id for one in await shop.list_products()] == ["S-1", "T-1"]
        tea = await shop.product("T-1")
        assert (tea.name, tea.price, tea.currency, tea.stock) == ("Green tea", Decimal("4.50"), "EUR", 3)
        assert [one.id for one in await shop.find_products("Do you have green teas?")] == ["T-1"]
        assert [one.id for one in await shop.find_products("something romantic")] == ["S-1"]
        assert [one.id for one in await shop.find_services("massages")] == ["massage"]
        free = await shop.free_slots("massage", MONDAY, MONDAY)
        assert [f"{slot.starts_at:%H:%M}" for slot in free] == ["09:00", "11:00"]
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE items SET left_over = 2 WHERE sku = 'T-1'")
            connection.execute("DELETE FROM diary")
        assert (await shop.product("T-1")).stock == 2
        assert len(await shop.free_slots("massage", MONDAY, MONDAY)) == 3
        for unknown in ("X-1", "t-1", "T-1 ", "bad/id", "' OR 1=1 --"):
            with pytest.raises(NotFoundError):
                await shop.product(unknown)
        assert await engine.workspace("globex").shop.list_products() == []


async def test_nothing_is_written_to_the_database_of_a_shop(database: Path) -> None:
    before = await asyncio.to_thread(database.read_bytes)
    async with open_engine(settings_of(database)) as engine:
        shop = engine.workspace("acme").shop
        for change in (
            shop.put_product(Product("tea", "Tea")),
            shop.remove_product("T-1"),
            shop.put_service(Service("walk", "Walk")),
            shop.remove_service("massage"),
            shop.book("massage", datetime(2031, 6, 2, 9, tzinfo=UTC), "Ada"),
        ):
            with pytest.raises(InputError, match="in a database of its own"):
                await change
    assert await asyncio.to_thread(database.read_bytes) == before


async def test_services_of_a_database_can_be_booked_in_the_ledger(database: Path) -> None:
    async with open_engine(settings_of(database, appointments=None)) as engine:
        shop = engine.workspace("acme").shop
        await engine.tenants.create("acme")
        made = await shop.book("massage", datetime(2031, 6, 2, 9, tzinfo=UTC), "Ada")
        assert [f"{slot.starts_at:%H:%M}" for slot in await shop.free_slots("massage", MONDAY, MONDAY)] == [
            "10:00",
            "11:00",
        ]
        await shop.cancel(made.id)
        assert len(await shop.free_slots("massage", MONDAY, MONDAY)) == 3


@pytest.mark.parametrize(
    "mapping", [{"products": "DELETE FROM items"}, {"products": "SELECT 1; DROP TABLE items"}, {"database": "other"}]
)
async def test_a_mapping_that_cannot_be_is_refused_when_the_engine_opens(
    database: Path, mapping: dict[str, str]
) -> None:
    with pytest.raises(SettingsError, match=r"shops\.acme"):
        open_engine(settings_of(database, **mapping))


@pytest.mark.parametrize("stock", ["'many'", "1e999", "x'00'", "NULL + 1"])
async def test_rows_of_another_type_are_left_out(database: Path, stock: str) -> None:
    wrong = MAPPING["products"].replace("left_over AS stock", f"CASE sku WHEN 'T-1' THEN {stock} ELSE 9 END AS stock")
    never = MAPPING["services"].replace("minutes", "NULL AS minutes")
    async with open_engine(settings_of(database, products=wrong, services=never)) as engine:
        shop = engine.workspace("acme").shop
        expected = ["S-1", "T-1"] if stock == "NULL + 1" else ["S-1"]
        assert [one.id for one in await shop.list_products()] == expected
        assert await shop.list_services() == ()


async def test_a_database_that_hangs_takes_no_longer_than_its_time(database: Path) -> None:
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, '' AS name, '' AS category, "
    )
    endless += "'' AS brand, '' AS description, 0 AS price, '' AS currency, 0 AS stock FROM n WHERE i < 0"
    async with open_engine(settings_of(database, products=endless, seconds=0.2)) as engine:
        workspace = engine.workspace("acme")
        with pytest.raises(SourceError, match=r"within 0\.2 s"):
            await workspace.shop.list_products()
        assert len(await workspace.shop.list_services()) == 1


async def test_a_database_that_is_gone_is_an_error_of_the_source(database: Path) -> None:
    async with open_engine(settings_of(database)) as engine:
        await asyncio.to_thread(database.unlink)
        with pytest.raises(SourceError, match="does not exist"):
            await engine.workspace("acme").shop.find_products("tea")
    async with open_engine(settings_of(database.parent / "store2.db", products="SELECT 1 AS id")) as engine:
        with closing(sqlite3.connect(database.parent / "store2.db")) as connection:
            connection.executescript(TABLES)
        with pytest.raises(SourceError, match="no such column"):
            await engine.workspace("acme").shop.find_products("tea")
