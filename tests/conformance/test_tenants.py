"""The book of tenants on every ledger: limits hold, names change hands, and what is deleted is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.conformance import postgres_server
from tests.conformance.suites.queues import document_job

from ragstone.core.errors import InputError, NotFoundError, QuotaExceeded
from ragstone.core.model_types import Bill
from ragstone.core.tenants import Quotas, Reservation, Stock
from ragstone.stores.control import tenant_rows
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer
from ragstone.stores.sql.database import Connection
from ragstone.testing.builders import delete, make_version, put

postgres_databases = postgres_server.postgres_databases


class Time:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.moment = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.moment

    def go_by(self, seconds: float = tenant_rows.REST_SECONDS) -> None:
        """As long as names rest, unless told otherwise."""
        self.moment += timedelta(seconds=seconds)


LEDGERS: dict[str, Callable[[Path, Time], SqlLedger]] = {
    "sqlite": lambda folder, time: SqliteLedger(folder, [Fts5Writer()], clock=time),
    "postgres": lambda folder, time: PostgresLedger(postgres_server.server(18).database(folder), folder, clock=time),
}


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture(params=LEDGERS)
async def ledger(request: pytest.FixtureRequest, tmp_path: Path, time: Time) -> AsyncIterator[SqlLedger]:
    opened = LEDGERS[request.param](tmp_path, time)
    yield opened
    await opened.close()


@pytest.fixture
def book(ledger: SqlLedger, time: Time) -> SqlTenantBook:
    return SqlTenantBook(ledger, clock=time)


async def names(ledger: SqlLedger, tenant: str) -> list[str]:
    kb = await ledger.of(tenant).kb("default")
    return [one.external_id for one in await ledger.of(tenant).documents(kb)] if kb else []


async def test_what_is_written_down_is_read_back(book: SqlTenantBook) -> None:
    await book.create("acme", Quotas(documents=5, cost_per_month=2.5))
    await book.set_retention("acme", 30)
    changed = await book.set_settings("acme", {"retrieval.k": 5, "flags.new": 25})
    assert changed.quotas == Quotas(documents=5, cost_per_month=2.5)
    assert (changed.retention_days, changed.settings) == (30, {"retrieval.k": 5, "flags.new": 25.0})
    assert await book.all() == [changed]
    with pytest.raises(InputError, match="already"):
        await book.create("acme")


async def test_stock_is_counted_where_it_lies(book: SqlTenantBook, ledger: SqlLedger) -> None:
    await put(ledger, make_version("a", ("one", "two")), make_version("b"), tenant="acme")
    async with ledger.transaction("acme") as tx:
        await tx.enqueue(await tx.open_kb("default"), document_job("c", size=700))
    usage = await book.usage("acme")
    assert (usage.stock.documents, usage.stock.chunks) == (2, 3)
    assert usage.stock.bytes > 0
    assert usage.queued == Stock(documents=1, bytes=700)
    await delete(ledger, make_version("a").document_id, tenant="acme")
    assert (await book.usage("acme")).stock.chunks == 1


async def test_twenty_that_race_for_the_last_unit(book: SqlTenantBook, ledger: SqlLedger) -> None:
    """FAULTS 19."""
    await put(ledger, make_version("a"), tenant="acme")
    await book.set_quotas("acme", Quotas(documents=2, queries_per_minute=10**6, cost_per_month=1))
    tries = await asyncio.gather(
        *(book.reserve("acme", {"documents": 1, "bytes": 5}) for _ in range(20)), return_exceptions=True
    )
    won = [one for one in tries if isinstance(one, Reservation)]
    assert len(won) == 1
    assert sum(isinstance(one, QuotaExceeded) for one in tries) == 19
    with pytest.raises(QuotaExceeded, match="may have 2 documents and has 1, and 1 on the way"):
        await book.reserve("acme", {"documents": 1}, queued=True)
    await put(ledger, make_version("b"), tenant="acme")
    await book.release(won[0])
    with pytest.raises(QuotaExceeded, match="may have 2 documents and has 2: 1 more"):
        await book.check("acme", {"documents": 1})
    await asyncio.gather(*(book.charge_bill("acme", Bill(llm=0.125)) for _ in range(8)))
    usage = await book.usage("acme")
    assert (usage.cost, usage.reserved) == (1.0, {})
    await asyncio.gather(*(book.spend("acme", "queries_per_minute") for _ in range(8)))
    with pytest.raises(QuotaExceeded):
        await book.spend("acme", "cost_per_month", 0.01)


@pytest.mark.req("R-TEN-17")
async def test_a_name_that_changed_hands(book: SqlTenantBook, ledger: SqlLedger, time: Time) -> None:
    await put(ledger, make_version("first"), tenant="acme")
    renamed = await book.rename("acme", "acme_v2")
    time.go_by()
    made = await book.create("acme")
    assert (renamed.seed, made.seed) == ("acme", made.id)
    await put(ledger, make_version("second", tenant=made.seed), tenant="acme")
    assert (await names(ledger, "acme"), await names(ledger, "acme_v2")) == (["second"], ["first"])
    await book.delete("acme")
    assert await names(ledger, "acme_v2") == ["first"]


async def test_a_suspended_tenant_gets_no_turn(book: SqlTenantBook, ledger: SqlLedger) -> None:
    await book.create("acme")
    await book.create("b")
    await book.suspend("acme")
    assert list(await ledger.work_signals()) == ["b"]
    await book.resume("acme")
    assert list(await ledger.work_signals()) == ["acme", "b"]


def _has_folder(folder: Path, name: str) -> bool:
    return any(folder.glob(f"*/{name}"))


@pytest.mark.req("R-TEN-15")
async def test_a_deleted_tenant_leaves_nothing(ledger: SqlLedger, tmp_path: Path, time: Time) -> None:
    seen: list[int] = []

    async def eraser(tenant: str) -> None:
        seen.append(len(await ledger.of(tenant).kbs()))
        await ledger.write(tenant, lambda connection, _: connection.execute("SELECT 1").fetchone())

    book = SqlTenantBook(ledger, [eraser], time)
    version = make_version("a", tenant="acme")
    await put(ledger, version, tenant="acme")
    await ledger.of("acme").keep_originals([(version.document_id, b"the original")])
    await put(ledger, make_version("b"))
    await book.set_quotas("acme", Quotas(documents=9))
    await book.reserve("acme", {"documents": 1})
    await book.charge_bill("acme", Bill(embedding=1.0))
    gone = await book.delete("acme")
    assert seen == [1]
    assert [one.name for one in await book.all()] == ["default"]
    assert not _has_folder(tmp_path, gone.id)
    with pytest.raises(NotFoundError):
        await book.usage("acme")
    time.go_by()
    await put(ledger, version, tenant="acme")
    usage = await book.usage("acme")
    assert (usage.stock.documents, usage.cost, usage.reserved) == (1, 0.0, {})
    assert (await names(ledger, "acme"), await names(ledger, "default")) == (["a"], ["b"])


async def test_nobody_works_for_a_tenant_that_is_being_deleted(ledger: SqlLedger) -> None:
    async def away(_tenant: str) -> None:
        raise NotFoundError("the index is away")

    await put(ledger, make_version("a"), tenant="acme")
    with pytest.raises(NotFoundError, match="the index is away"):
        await SqlTenantBook(ledger, [away]).delete("acme")
    book = SqlTenantBook(ledger)
    for asked in (names(ledger, "acme"), put(ledger, make_version("b"), tenant="acme"), book.create("acme")):
        with pytest.raises(NotFoundError, match="tenant 'acme' is being deleted"):
            await asked
    assert await book.finish_deletions() == ["acme"]
    assert await book.all() == []
    assert await names(ledger, "acme") == []


RESTING = r"the name 'acme' was let go just now and is given to nobody else until 20\d\d-"


async def resting(ledger: SqlLedger) -> list[tuple[str, str]]:
    """Names that rest, with the ids of those who may take them back."""
    rows = "SELECT name, tenant_id FROM resting_names ORDER BY name"
    return await ledger.control_read(lambda connection: [tuple(row) for row in connection.execute(rows)], [])


async def test_a_name_is_not_given_to_another_while_it_rests(
    book: SqlTenantBook, ledger: SqlLedger, time: Time
) -> None:
    for name in ("acme", "globex"):
        await put(ledger, make_version(f"of {name}"), tenant=name)
    acme = await book.rename("acme", "old")
    time.go_by(tenant_rows.REST_SECONDS - 1)
    for asked in (book.rename("globex", "acme"), book.create("acme")):
        with pytest.raises(InputError, match=RESTING):
            await asked
    late = make_version("late")
    for made in (put(ledger, late, tenant="acme"), ledger.of("acme").keep_originals([("ab", b"late")])):
        with pytest.raises(NotFoundError, match=r"tenant 'acme' was deleted \(or renamed\) just now"):
            await made
    assert [one.name for one in await book.all()] == ["globex", "old"]
    assert await resting(ledger) == [("acme", acme.id)]
    time.go_by(1)
    await book.rename("globex", "acme")
    assert (await names(ledger, "acme"), await names(ledger, "old")) == (["of globex"], ["of acme"])
    assert [name for name, _ in await resting(ledger)] == ["globex"]


async def test_a_tenant_may_take_its_own_name_back(book: SqlTenantBook, ledger: SqlLedger) -> None:
    await put(ledger, make_version("a"), tenant="acme")
    renamed = await book.rename("acme", "apex")
    assert (await book.rename("apex", "acme")).id == renamed.id
    assert await names(ledger, "acme") == ["a"]
    assert await resting(ledger) == [("apex", renamed.id)]
    await put(ledger, make_version("b"), tenant="acme")  # it does not rest any more


async def test_a_deleted_tenant_does_not_come_back_by_itself(
    book: SqlTenantBook, ledger: SqlLedger, time: Time
) -> None:
    await put(ledger, make_version("a"), tenant="first")
    await book.rename("first", "acme")
    await book.delete("acme")
    assert await resting(ledger) == [("acme", ""), ("first", "")]
    with pytest.raises(NotFoundError, match="just now"):
        await put(ledger, make_version("late"), tenant="acme")
    with pytest.raises(InputError, match=RESTING):
        await book.create("acme")
    assert await book.all() == []
    time.go_by()
    await put(ledger, make_version("new"), tenant="acme")
    assert (await names(ledger, "acme"), await resting(ledger)) == (["new"], [])


class Died(Exception):
    """Stands for a process that died."""


async def test_a_name_rests_from_the_moment_it_is_let_go(
    book: SqlTenantBook, ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash before the commit leaves the old name in use; after it, the name rests already."""

    async def dies_before_the_commit(work: Callable[[Connection], object]) -> None:
        def died(connection: Connection) -> None:
            work(connection)
            raise Died

        await control_write(died)

    control_write = ledger.control_write
    await put(ledger, make_version("a"), tenant="acme")
    for asked in (book.rename("acme", "old"), book.delete("acme")):
        with monkeypatch.context() as patch:
            patch.setattr(ledger, "control_write", dies_before_the_commit)
            with pytest.raises(Died):
                await asked
        assert (await names(ledger, "acme"), await resting(ledger)) == (["a"], [])

    async def away(_tenant: str) -> None:
        raise NotFoundError("the index is away")

    with pytest.raises(NotFoundError, match="the index is away"):
        await SqlTenantBook(ledger, [away]).delete("acme")
    assert [name for name, _ in await resting(ledger)] == ["acme"]
