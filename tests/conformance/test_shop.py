"""The shop on every ledger: what is kept comes back, no time is booked twice, and tenants do not see each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.conformance import postgres_server

from ragstone.core.errors import InputError, QuotaExceeded, SlotTaken
from ragstone.core.shop import Product, Service, Slot
from ragstone.core.shop.checks import check_service
from ragstone.core.shop.slots import list_slots
from ragstone.core.shop.windows import parse_windows
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.shop import appointments
from ragstone.stores.shop.agent_settings import AgentSettingsRepository
from ragstone.stores.shop.appointments import AppointmentRepository
from ragstone.stores.shop.entries import PRODUCTS, ProductRepository, ServiceRepository

postgres_databases = postgres_server.postgres_databases
LEDGERS: dict[str, Callable[[Path], SqlLedger]] = {
    "sqlite": SqliteLedger,
    "postgres": lambda folder: PostgresLedger(postgres_server.server(18).database(folder), folder),
}
MOMENT = datetime(2026, 1, 31, 9, 0, tzinfo=UTC)
MONDAY = date(2030, 6, 3)
MASSAGE = check_service(
    Service(
        "massage", "Massage", "With oil", Decimal("80.5"), "EUR", 60, parse_windows("mon 09:00-17:00"), "UTC", MOMENT
    )
)
SLOTS = list_slots(MASSAGE, MONDAY, MONDAY)


@pytest.fixture(params=LEDGERS)
async def ledgers(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[SqlLedger]]:
    """The same ledger, opened twice as two processes do."""
    opened = [LEDGERS[request.param](tmp_path) for _ in range(2)]
    for tenant in ("acme", "globex"):
        await SqlTenantBook(opened[0]).create(tenant)
    yield opened
    for ledger in opened:
        await ledger.close()


@pytest.mark.req("R-DOM-38")
async def test_what_is_kept_comes_back(ledgers: list[SqlLedger]) -> None:
    full = Product(
        "tea.1", "Tee – 茶", "Tee", "Haus", "Grün \N{TEACUP WITHOUT HANDLE}", Decimal("4.50"), "EUR", 12, MOMENT
    )
    bare = Product("soap", "Soap", updated_at=MOMENT)
    repository = ProductRepository(ledgers[0], "acme")
    await repository.put([full, bare])
    again = ProductRepository(ledgers[1], "acme")
    assert (await again.get("tea.1"), await again.get("soap"), await again.get("tea")) == (full, bare, None)
    assert [one.id for one in await again.list("", 10)] == ["soap", "tea.1"]
    assert [one.id for one in await again.list("soap", 10)] == ["tea.1"]
    dearer = Product("soap", "Soap", price=Decimal("2.00"), updated_at=MOMENT)
    await again.put([dearer])
    assert await repository.get("soap") == dearer
    assert (await repository.remove("soap"), await repository.remove("soap")) == (True, False)
    services = ServiceRepository(ledgers[0], "acme")
    await services.put([MASSAGE])
    assert await services.get("massage") == MASSAGE
    agents = AgentSettingsRepository(ledgers[0], "acme")
    made = await agents.put("service", {"enable": True, "limits": [3, 5]})
    assert await agents.get("service") == made
    assert (await agents.remove("service"), await agents.remove("service")) == (True, False)
    assert await agents.get("service") is None


async def test_many_customers_want_the_same_times(ledgers: list[SqlLedger]) -> None:
    await ServiceRepository(ledgers[0], "acme").put([MASSAGE])
    books = [AppointmentRepository(ledger, "acme") for ledger in ledgers]

    async def want(number: int) -> str | None:
        try:
            return (await books[number % 2].book(SLOTS[number % len(SLOTS)], f"customer {number}")).id
        except SlotTaken:
            return None

    got = [one for one in await asyncio.gather(*(want(number) for number in range(48))) if one]
    kept = await books[0].list(None, None, None, 100)
    assert (len(got), len(kept), {one.id for one in kept}) == (len(SLOTS), len(SLOTS), set(got))
    spans = sorted((one.starts_at, one.ends_at) for one in kept)
    assert spans == [(slot.starts_at, slot.ends_at) for slot in SLOTS]


async def test_times_that_only_overlap_are_taken_too(ledgers: list[SqlLedger]) -> None:
    await ServiceRepository(ledgers[0], "acme").put([MASSAGE])
    book, half = AppointmentRepository(ledgers[0], "acme"), timedelta(minutes=30)
    first = await book.book(SLOTS[1], "Ada")
    for start, end in ((-half, half), (half, 3 * half), (half / 2, half), (-half, 3 * half)):
        begins = SLOTS[1].starts_at
        with pytest.raises(SlotTaken, match="is booked already"):
            await book.book(Slot("massage", begins + start, begins + end), "Bob")
    await book.book(SLOTS[0], "Cleo")
    await book.book(SLOTS[2], "Dora")
    assert await book.cancel(first.id) is not None
    assert (await book.book(SLOTS[1], "Bob")).customer == "Bob"


async def test_tenants_have_shops_of_their_own(ledgers: list[SqlLedger]) -> None:
    await ProductRepository(ledgers[0], "acme").put([Product("tea", "Tea", "Hidden leaf")])
    await ServiceRepository(ledgers[0], "acme").put([MASSAGE])
    made = await AppointmentRepository(ledgers[0], "acme").book(SLOTS[0], "Ada")
    await AgentSettingsRepository(ledgers[0], "acme").put("service", {})
    other = ProductRepository(ledgers[0], "globex")
    assert (await other.get("tea"), await other.list("", 10), await other.find("tea", 5)) == (None, [], [])
    assert not await other.remove("tea")
    assert await ServiceRepository(ledgers[0], "globex").get("massage") is None
    theirs = AppointmentRepository(ledgers[0], "globex")
    assert (await theirs.get(made.id), await theirs.cancel(made.id)) == (None, None)
    assert await theirs.taken("massage", SLOTS[0].starts_at, SLOTS[-1].ends_at) == []
    assert await AgentSettingsRepository(ledgers[0], "globex").get("service") is None
    kept = await AppointmentRepository(ledgers[0], "acme").get(made.id)
    assert (kept and kept.status, await ProductRepository(ledgers[0], "acme").get("tea") is not None) == (
        "booked",
        True,
    )


async def test_words_find_products_in_their_language(ledgers: list[SqlLedger]) -> None:
    shelf = ProductRepository(ledgers[0], "acme")
    german = "Die Kerzen werden von Hand gegossen und brennen an langen Abenden für viele Stunden."
    await shelf.put(
        [
            Product("candle", "Kerze", "Haus", "", german),
            Product("scarf", "Wool scarf", "Textiles", "", "A scarf that keeps you warm on long evenings."),
            Product("lamp", "Lamp X-200/b", "Electronics", "Lumo", ""),
            Product("ru", "Чашка", "Посуда", "", "Большая чашка для чая из белого фарфора ручной работы"),
        ]
    )
    for query, wanted in {
        "Habt ihr Kerzen?": ["candle"],
        "Is there a warm scarf?": ["scarf"],
        "evening": ["scarf"],
        "x-200/B": ["lamp"],
        "чашки": ["ru"],
        "Lumo lamps": ["lamp"],
        "100% _ %": [],
        "": [],
    }.items():
        assert [one.id for one in await shelf.find(query, 5)] == wanted, query


async def test_a_service_goes_only_when_nobody_waits_for_it(ledgers: list[SqlLedger]) -> None:
    services, book = ServiceRepository(ledgers[0], "acme"), AppointmentRepository(ledgers[0], "acme")
    await services.put([MASSAGE])
    made = await book.book(SLOTS[0], "Ada")
    with pytest.raises(InputError, match="has 1 appointments to come"):
        await services.remove("massage", MOMENT)
    await book.cancel(made.id)
    assert (await services.remove("massage", MOMENT), await services.remove("massage", MOMENT)) == (True, False)
    assert await book.get(made.id) is None


async def test_a_shop_is_not_endless(ledgers: list[SqlLedger], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProductRepository, "table", replace(PRODUCTS, most=1))
    monkeypatch.setattr(appointments, "MOST_APPOINTMENTS", 1)
    shelf = ProductRepository(ledgers[0], "acme")
    with pytest.raises(QuotaExceeded):
        await shelf.put([Product("a", "A"), Product("b", "B")])
    assert await shelf.list("", 10) == []
    await ServiceRepository(ledgers[0], "acme").put([MASSAGE])
    book = AppointmentRepository(ledgers[0], "acme")
    await book.book(SLOTS[0], "Ada")
    with pytest.raises(QuotaExceeded):
        await book.book(SLOTS[1], "Bob")
