"""Room is promised to one after the other, never twice, and what is used is counted where it lies."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.suites.queues import document_job
from tests.warm import warm_python

from ragstone.core.errors import InputError, QuotaExceeded
from ragstone.core.model_types import Bill, add_cost, collect_costs
from ragstone.core.tenants import QuotaName, Quotas, Reservation, Stock
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer
from ragstone.testing.builders import delete, make_version, put

NOON = datetime(2026, 3, 31, 12, 0, 20, tzinfo=UTC)
RACE = """
import asyncio, sys
from pathlib import Path
from ragstone.core.errors import QuotaExceeded
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer
from ragstone.stores.control.tenants import SqlTenantBook

async def main():
    ledger = SqliteLedger(Path(sys.argv[1]), [Fts5Writer()])
    book = SqlTenantBook(ledger)
    await book.get("acme")
    print("ready", flush=True)
    sys.stdin.readline()
    tries = await asyncio.gather(*(book.reserve("acme", {"documents": 1}) for _ in range(5)), return_exceptions=True)
    assert all(isinstance(one, QuotaExceeded) for one in tries if isinstance(one, BaseException)), tries
    print(sum(not isinstance(one, BaseException) for one in tries))
    await ledger.close()

asyncio.run(main())
"""


class Clock:
    """Time that stands until it is moved."""

    def __init__(self) -> None:
        self.moment = NOON

    def __call__(self) -> datetime:
        return self.moment

    def go(self, **by: float) -> None:
        self.moment += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    opened = SqliteLedger(tmp_path, [Fts5Writer()])
    yield opened
    await opened.close()


@pytest.fixture
def book(ledger: SqliteLedger, clock: Clock) -> SqlTenantBook:
    return SqlTenantBook(ledger, clock=clock)


async def test_what_there_is_is_counted_where_it_lies(book: SqlTenantBook, ledger: SqliteLedger) -> None:
    await put(ledger, make_version("a", ("one", "two")), make_version("b"), tenant="acme")
    await put(ledger, make_version("c"), tenant="acme", kb="other")
    first = (await book.usage("acme")).stock
    assert (first.documents, first.chunks) == (3, 4)
    assert first.bytes > 0
    await put(ledger, make_version("a", ("one", "two", "three")), tenant="acme")
    await delete(ledger, make_version("b").document_id, tenant="acme")
    second = (await book.usage("acme")).stock
    assert (second.documents, second.chunks) == (2, 4)
    assert 0 < second.bytes < first.bytes
    await delete(ledger, make_version("a").document_id, tenant="acme")
    async with ledger.transaction("acme") as tx:
        await tx.delete_kb("other")
    assert (await book.usage("acme")).stock == Stock(0, 0, 0)


async def test_what_waits_in_the_queue_takes_room_too(book: SqlTenantBook, ledger: SqliteLedger) -> None:
    await book.create("acme", Quotas(documents=2))
    async with ledger.transaction("acme") as tx:
        kb = await tx.open_kb("default")
        await tx.enqueue(kb, document_job("a", size=700))
    usage = await book.usage("acme")
    assert (usage.stock, usage.queued) == (Stock(), Stock(documents=1, bytes=700))
    with pytest.raises(QuotaExceeded):
        await book.reserve("acme", {"documents": 2}, queued=True)
    await book.reserve("acme", {"documents": 2})  # the one that waits will need room only once
    await put(ledger, make_version("a", tenant="acme"), tenant="acme")
    usage = await book.usage("acme")
    assert (usage.stock.documents, usage.queued.documents) == (1, 0)


@pytest.mark.req("R-TEN-12")
@pytest.mark.parametrize(
    ("quotas", "amounts", "message"),
    [
        (Quotas(documents=2), {"documents": 2}, "tenant 'acme' may have 2 documents and has 1: 2 more do not fit"),
        (Quotas(documents=1), {"documents": 1}, "may have 1 document and has 1: 1 more does not fit"),
        (Quotas(chunks=4), {"chunks": 2}, "tenant 'acme' may have 4 chunks and has 3: 2 more do not fit"),
        (Quotas(bytes=10_000), {"bytes": 10_000}, r"tenant 'acme' may have 10,000 bytes and has \d\d: 10,000 more"),
        (Quotas(cost_per_month=1), {"cost_per_month": 2}, "may spend 1.00 USD per month and has spent 0.00"),
    ],
)
async def test_a_refusal_names_the_limit_and_what_is_used(
    book: SqlTenantBook, ledger: SqliteLedger, quotas: Quotas, amounts: dict[QuotaName, float], message: str
) -> None:
    await put(ledger, make_version("a", ("one", "two", "three")), tenant="acme")
    await book.set_quotas("acme", quotas)
    with pytest.raises(QuotaExceeded, match=message) as refused:
        await book.reserve("acme", amounts)
    assert (refused.value.code, refused.value.retryable) == ("quota_exceeded", False)
    assert next(iter(amounts)) in refused.value.hint
    assert (await book.usage("acme")).reserved == {}


async def test_all_of_it_or_nothing(book: SqlTenantBook) -> None:
    await book.create("acme", Quotas(documents=10, bytes=100))
    with pytest.raises(QuotaExceeded, match="100 bytes"):
        await book.reserve("acme", {"documents": 1, "bytes": 101})
    assert (await book.usage("acme")).reserved == {}
    held = await book.reserve("acme", {"documents": 1, "bytes": 100, "chunks": 5})
    assert (await book.usage("acme")).reserved == {"documents": 1, "bytes": 100}
    await book.release(held)
    assert (await book.usage("acme")).reserved == {}


async def test_what_is_promised_is_not_promised_again(book: SqlTenantBook, ledger: SqliteLedger) -> None:
    await book.create("acme", Quotas(documents=2))
    held = await book.reserve("acme", {"documents": 1})
    await book.reserve("acme", {"documents": 1})
    with pytest.raises(QuotaExceeded, match="may have 2 documents and has 0, and 2 on the way: 1 more"):
        await book.reserve("acme", {"documents": 1})
    await put(ledger, make_version("a"), tenant="acme")
    await book.release(held)
    with pytest.raises(QuotaExceeded, match="may have 2 documents and has 1, and 1 on the way: 1 more"):
        await book.reserve("acme", {"documents": 1})


async def test_what_was_just_stored_and_is_still_promised_is_in_the_way_of_nothing_empty(
    book: SqlTenantBook, ledger: SqliteLedger
) -> None:
    await book.create("acme", Quotas(documents=2, chunks=3))
    held = await book.reserve("acme", {"documents": 1, "chunks": 3}, waiting=Stock(documents=1))
    await put(ledger, make_version("a", ("one", "two", "three")), tenant="acme")
    assert (await book.usage("acme")).reserved == {"documents": 1, "chunks": 3}
    await book.release(await book.reserve("acme", {"documents": 1, "chunks": 0}, queued=True))
    await book.release(held)
    with pytest.raises(QuotaExceeded, match="may have 3 chunks and has 3: 1 more"):
        await book.reserve("acme", {"chunks": 1})


async def test_who_has_no_limit_writes_nothing(book: SqlTenantBook, ledger: SqliteLedger) -> None:
    assert await book.reserve("nobody", {"documents": 10**9}) == Reservation("", "")
    await book.create("acme", Quotas(documents=1))
    await ledger.of("acme").kbs()  # makes the tenant's file, which the control file remembers
    before = (await ledger.control()).version()  # type: ignore[union-attr]
    held = await book.reserve("acme", {"chunks": 10**9, "bytes": 10**12})
    await book.release(held)
    await book.check("acme", {"documents": 1, "cost_per_month": 0})
    assert (await ledger.control()).version() == before  # type: ignore[union-attr]


async def test_a_promise_that_nobody_keeps_lapses(book: SqlTenantBook, clock: Clock) -> None:
    await book.create("acme", Quotas(documents=1))
    await book.reserve("acme", {"documents": 1})
    clock.go(minutes=59)
    with pytest.raises(QuotaExceeded):
        await book.reserve("acme", {"documents": 1})
    clock.go(minutes=2)
    assert (await book.usage("acme")).reserved == {}
    await book.reserve("acme", {"documents": 1})
    assert (await book.usage("acme")).reserved == {"documents": 1}


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf")])
async def test_only_an_amount_can_be_reserved(book: SqlTenantBook, amount: float) -> None:
    await book.create("acme", Quotas(documents=1, cost_per_month=1))
    for asked in (book.reserve("acme", {"documents": amount}), book.spend("acme", "cost_per_month", amount)):
        with pytest.raises(InputError, match="cannot be reserved"):
            await asked
    with pytest.raises(InputError, match="cannot be charged"):
        await book.charge_bill("acme", Bill(llm=amount))
    with pytest.raises(InputError, match="kind of cost"):
        await book.charge_bill("acme", Bill(**{"../x": 1}))


@pytest.mark.req("R-TEN-13", "R-SEC-10")
async def test_queries_are_counted_by_the_minute(book: SqlTenantBook, clock: Clock) -> None:
    await book.create("acme", Quotas(queries_per_minute=3))
    await book.create("b", Quotas(queries_per_minute=1))
    for _ in range(3):
        await book.spend("acme", "queries_per_minute")
    with pytest.raises(QuotaExceeded, match="may ask 3 queries per minute and has asked 3") as refused:
        await book.spend("acme", "queries_per_minute")
    assert (refused.value.retry_after, refused.value.retryable) == (40.0, True)
    await book.spend("b", "queries_per_minute")
    assert (await book.usage("acme")).queries == 3
    clock.go(seconds=40)
    assert (await book.usage("acme")).queries == 0
    await book.spend("acme", "queries_per_minute")
    assert (await book.usage("acme")).queries == 1


@pytest.mark.req("R-TEN-12")
async def test_costs_add_up_by_month_and_kind(book: SqlTenantBook, clock: Clock) -> None:
    await book.create("acme", Quotas(cost_per_month=1.0))
    await book.charge_bill("acme", Bill(embedding=0.25))
    await book.charge_bill("acme", Bill(llm=0.5))
    await book.charge_bill("acme", Bill(embedding=0.25))
    usage = await book.usage("acme")
    assert (usage.cost, usage.cost_by_kind) == (1.0, {"embedding": 0.5, "llm": 0.5})
    await book.check("acme", {"cost_per_month": 0})
    with pytest.raises(QuotaExceeded, match=r"may spend 1.00 USD per month and has spent 1.00"):
        await book.reserve("acme", {"cost_per_month": 0.01})
    await book.charge_bill("acme", Bill(llm=0.5))  # it is spent, whatever the limit
    with pytest.raises(QuotaExceeded) as refused:
        await book.check("acme", {"cost_per_month": 0})
    assert not refused.value.retryable
    clock.go(hours=12)
    assert (await book.usage("acme")).cost == 0.0
    await book.check("acme", {"cost_per_month": 0})


async def test_twenty_that_race_for_the_last_unit(book: SqlTenantBook, ledger: SqliteLedger) -> None:
    """FAULTS 19."""
    await book.create("acme", Quotas(documents=3, queries_per_minute=1))
    await put(ledger, make_version("a"), make_version("b"), tenant="acme")
    tries = await asyncio.gather(*(book.reserve("acme", {"documents": 1}) for _ in range(20)), return_exceptions=True)
    assert sum(isinstance(one, Reservation) for one in tries) == 1
    assert sum(isinstance(one, QuotaExceeded) for one in tries) == 19
    asked = await asyncio.gather(*(book.spend("acme", "queries_per_minute") for _ in range(20)), return_exceptions=True)
    assert sum(one is None for one in asked) == 1


def test_processes_that_race_for_the_last_units(tmp_path: Path) -> None:
    asyncio.run(_fill(tmp_path))
    children = [
        subprocess.Popen(
            [*warm_python(), "-c", RACE, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    won = 0
    for child in children:
        out, err = child.communicate(timeout=240)
        assert child.returncode == 0, err
        won += int(out)
    assert won == 3


async def _fill(folder: Path) -> None:
    ledger = SqliteLedger(folder, [Fts5Writer()])
    await put(ledger, make_version("a"), tenant="acme")
    await SqlTenantBook(ledger).set_quotas("acme", Quotas(documents=4))
    await ledger.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(0, 4)),
        st.tuples(st.just("store"), st.integers(0, 9)),
        st.tuples(st.just("release"), st.integers(0, 9)),
        st.tuples(st.just("remove"), st.integers(0, 9)),
        st.tuples(st.just("limit"), st.integers(0, 6)),
    ),
    max_size=12,
)


@settings(max_examples=15, deadline=None)
@given(limit=st.integers(0, 6), steps=STEPS)
def test_used_and_promised_never_pass_the_limit(limit: int, steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_walk(Path(folder), limit, steps))


async def _walk(folder: Path, limit: int, steps: list[tuple[str, int]]) -> None:
    """Whoever was promised room stores as many documents as that, or none; others delete, or change the limit."""
    ledger = SqliteLedger(folder, [Fts5Writer()])
    book = SqlTenantBook(ledger)
    await book.create("acme", Quotas(documents=limit))
    held: list[Reservation] = []
    live: list[str] = []
    made = 0
    for action, number in steps:
        room = limit - len(live) - sum(int(one.amounts["documents"]) for one in held)
        if action == "limit":
            limit = number
            await book.set_quotas("acme", Quotas(documents=limit))
        elif action == "reserve":
            try:
                held.append(await book.reserve("acme", {"documents": number}))
                assert number <= room
            except QuotaExceeded:
                assert number > room
        elif action == "remove" and live:
            await delete(ledger, live.pop(number % len(live)), tenant="acme")
        elif action in ("store", "release") and held:
            reservation = held.pop(number % len(held))
            if action == "store":
                for _ in range(int(reservation.amounts["documents"])):
                    made += 1
                    version = make_version(f"d{made}")
                    await put(ledger, version, tenant="acme")
                    live.append(version.document_id)
            await book.release(reservation)
        usage = await book.usage("acme")
        promised = sum(int(one.amounts["documents"]) for one in held)
        assert (usage.stock.documents, usage.reserved.get("documents", 0)) == (len(live), promised)
    await ledger.close()


async def test_documents_that_were_not_updated_are_found(book: SqlTenantBook, ledger: SqliteLedger) -> None:
    await put(ledger, make_version("a"), make_version("b"), tenant="acme")
    async with ledger.transaction("acme") as tx:
        kb = await tx.open_kb("default")
        await tx.enqueue(kb, document_job("c"))
    soon = datetime.now(UTC) + timedelta(seconds=5)
    found = await book.list_expired("acme", soon)
    assert sorted(found) == sorted([make_version("a").document_id, make_version("b").document_id])
    assert len(await book.list_expired("acme", soon, 1)) == 1
    assert await book.list_expired("acme", datetime.now(UTC) - timedelta(days=1)) == []


@pytest.mark.req("R-OBS-07", "R-OBS-10", "R-TEN-12")
async def test_a_bill_is_written_by_day_and_shown_by_month(book: SqlTenantBook, clock: Clock) -> None:
    await book.create("acme")
    with collect_costs() as bill:
        add_cost("embedding", 0.25, 1000)
        add_cost("llm", 0.5, 200)
    await book.charge_bill("acme", bill)
    clock.go(hours=13)  # the next day, of the next month
    await book.charge_bill("acme", bill)
    usage = await book.usage("acme")
    assert usage.cost_by_kind == {"embedding": 0.25, "llm": 0.5}
    assert usage.units_by_kind == {"embedding": 1000, "llm": 200}
    month = {"embedding": 0.25, "llm": 0.5}
    assert usage.cost_by_month == {"2026-03": month, "2026-04": month}
    clock.go(days=1)
    await book.charge_bill("acme", bill)
    assert (await book.usage("acme")).cost == 1.5


async def test_costs_of_an_earlier_version_count_in_their_month(book: SqlTenantBook) -> None:
    made = await book.create("acme", Quotas(cost_per_month=5.0))
    await book._ledger.control_write(
        lambda connection: connection.execute("INSERT INTO usage VALUES (?, 'cost.llm', '2026-03', 3.0)", (made.id,))
    )
    await book.charge_bill("acme", Bill(llm=1.0))
    assert (await book.usage("acme")).cost_by_month == {"2026-03": {"llm": 4.0}}
    budget = await book.budget("acme")
    assert budget is not None
    assert (budget.limit, budget.spent) == (5.0, 4.0)


@pytest.mark.req("R-OBS-09", "R-OBS-19", "R-OBS-24")
async def test_web_searches_are_counted_by_day_and_free_up_to_a_number(book: SqlTenantBook, clock: Clock) -> None:
    await book.create("acme")
    await book.create("globex")

    async def ask(tenant: str, times: int) -> None:
        with collect_costs() as bill:
            add_cost("web", 0.005 * times, times)
        await book.charge_bill(tenant, bill, {"web": 100})

    await ask("acme", 90)
    assert (await book.usage("acme")).cost == 0
    await ask("globex", 20)  # ten of them are beyond what is free, all tenants together
    await ask("acme", 2)
    usage = await book.usage("acme")
    assert (usage.cost_by_kind, usage.web_queries) == ({"web": pytest.approx(0.01)}, {"2026-03-31": 92})
    assert (await book.usage("globex")).cost == pytest.approx(0.05)
    clock.go(days=1)
    await ask("acme", 3)
    assert (await book.usage("acme")).web_queries == {"2026-03-31": 92, "2026-04-01": 3}
    assert (await book.usage("acme")).cost == 0


@pytest.mark.req("R-OBS-08")
async def test_keeping_vectors_is_charged_once_a_day(book: SqlTenantBook, clock: Clock) -> None:
    await book.create("acme")
    await put(book._ledger, make_version("a", ("one", "two", "three")), tenant="acme")
    for _ in range(3):
        await asyncio.gather(*(book.charge_day("acme", "vectors", 0.5) for _ in range(3)))
    assert (await book.usage("acme")).cost_by_kind == {"vectors": 1.5}
    clock.go(days=1)
    await book.charge_day("acme", "vectors", 0.5)
    assert (await book.usage("acme")).cost_by_month == {"2026-03": {"vectors": 1.5}, "2026-04": {"vectors": 1.5}}
