"""Tenants come, change their names, rest and go; what is deleted is gone whenever it was cut short."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragstone.core.errors import InputError, NotFoundError, SettingsError, StoreBusy, StoreError, TenantGone
from ragstone.core.model_types import Bill
from ragstone.core.tenants import Quotas
from ragstone.stores.control import tenant_rows
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger.queue import SqlQueue
from ragstone.stores.ledger.sqlite import ledger as sqlite
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.ledger.sqlite.tenant_file import TenantFile
from ragstone.stores.lexical.sqlite import Fts5Writer
from ragstone.testing.builders import make_version, put


class Books:
    """Opens the ledger of one folder as often as a test wants, as processes would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledgers: list[SqliteLedger] = []
        self.moment = datetime.now(UTC)

    def open(self, **options: Any) -> SqlTenantBook:
        self.ledgers.append(SqliteLedger(self.folder, [Fts5Writer()], clock=lambda: self.moment))
        return SqlTenantBook(self.ledgers[-1], clock=lambda: self.moment, **options)

    def pass_time(self, seconds: float = tenant_rows.REST_SECONDS) -> None:
        """As long as names rest, unless told otherwise."""
        self.moment += timedelta(seconds=seconds)

    @property
    def ledger(self) -> SqliteLedger:
        """That of the book opened last."""
        return self.ledgers[-1]

    def left(self) -> set[str]:
        """Names of the folders that tenants have."""
        return {path.name for part in ("tenants", "documents") for path in (self.folder / part).glob("*")}


@pytest.fixture
async def books(tmp_path: Path) -> AsyncIterator[Books]:
    made = Books(tmp_path / "data")
    yield made
    for ledger in made.ledgers:
        await ledger.close()


@pytest.fixture
def book(books: Books) -> SqlTenantBook:
    return books.open()


async def names(ledger: SqliteLedger, tenant: str) -> list[str]:
    """External ids of a tenant's documents."""
    kb = await ledger.of(tenant).kb("default")
    return [one.external_id for one in await ledger.of(tenant).documents(kb)] if kb else []


async def fill(ledger: SqliteLedger, tenant: str, name: str = "a") -> None:
    version = make_version(name, tenant=tenant)
    await put(ledger, version, tenant=tenant)
    await ledger.of(tenant).keep_originals([(version.document_id, b"the original")])


async def test_a_tenant_is_made_and_found(book: SqlTenantBook) -> None:
    made = await book.create("acme", Quotas(documents=5, cost_per_month=2.5))
    assert await book.get("acme") == made
    assert (made.name, made.state, made.seed, made.settings) == ("acme", "active", "acme", {})
    assert made.quotas == Quotas(documents=5, cost_per_month=2.5)
    assert made.retention_days is None
    assert abs((datetime.now(UTC) - made.created_at).total_seconds()) < 60
    assert await book.get("other") is None
    assert await book.all() == [made]


async def test_looking_leaves_no_folder_behind(book: SqlTenantBook, books: Books) -> None:
    assert await book.all() == []
    assert await book.get("acme") is None
    for asked in (book.suspend("acme"), book.delete("acme"), book.usage("acme"), book.rename("acme", "b")):
        with pytest.raises(NotFoundError, match="there is no tenant 'acme'"):
            await asked
    assert await book.finish_deletions() == []
    assert not books.folder.exists()


async def test_whoever_is_written_for_exists(book: SqlTenantBook, books: Books) -> None:
    await put(books.ledger, make_version())
    (only,) = await book.all()
    assert (only.name, only.state, only.quotas) == ("default", "active", Quotas())


async def test_a_name_is_given_once(book: SqlTenantBook) -> None:
    await book.create("acme")
    with pytest.raises(InputError, match="there is a tenant 'acme' already"):
        await book.create("acme")
    await book.create("b")
    with pytest.raises(InputError, match="there is a tenant 'acme' already"):
        await book.rename("b", "acme")
    assert (await book.rename("b", "b")).name == "b"


@pytest.mark.req("R-TEN-16")
@pytest.mark.parametrize("name", ["", "../x", "A", "a/b", "a.b", "a\x00", "é", "-a", "a" * 64, "~a", "a b", "\ud800"])
async def test_a_name_is_safe_wherever_it_is_used(book: SqlTenantBook, books: Books, name: str) -> None:
    await book.create("acme")
    for asked in (book.create(name), book.rename("acme", name)):
        with pytest.raises(InputError, match="is not a valid name"):
            await asked
    assert [one.name for one in await book.all()] == ["acme"]
    assert books.left() == set()


@pytest.mark.req("R-TEN-17")
async def test_names_that_look_like_another_ones_versions_are_apart(book: SqlTenantBook, books: Books) -> None:
    kin = ("acme", "acme_v2", "acme_old", "acme-v2")
    for name in kin:
        await fill(books.ledger, name, f"of {name}")
    made = await book.all()
    assert len({one.id for one in made}) == len(kin)
    assert not any(one.name in physical for one in made for physical in books.left())
    await book.delete("acme")
    for name in kin[1:]:
        assert await names(books.ledger, name) == [f"of {name}"]


@pytest.mark.parametrize(
    ("quotas", "named"),
    [
        (Quotas(documents=-1), "quotas.documents cannot be -1"),
        (Quotas(bytes=2**53), "quotas.bytes cannot be"),
        (Quotas(cost_per_month=float("nan")), "quotas.cost_per_month cannot be nan"),
        (Quotas(cost_per_month=float("inf")), "quotas.cost_per_month cannot be inf"),
        (Quotas(chunks=1.5), "quotas.chunks cannot be 1.5"),  # type: ignore[arg-type]
    ],
)
async def test_a_quota_is_a_number_from_0_on(book: SqlTenantBook, quotas: Quotas, named: str) -> None:
    await book.create("acme")
    with pytest.raises(InputError, match=named):
        await book.set_quotas("acme", quotas)
    assert (await book.set_quotas("acme", Quotas(documents=0))).quotas == Quotas(documents=0)


@pytest.mark.parametrize("days", [0, -3, 36_501])
async def test_a_retention_is_some_days(book: SqlTenantBook, days: int) -> None:
    await book.create("acme")
    with pytest.raises(InputError, match=f"retention_days cannot be {days}"):
        await book.set_retention("acme", days)
    assert (await book.set_retention("acme", 30)).retention_days == 30
    assert (await book.set_retention("acme", None)).retention_days is None


async def test_settings_are_checked_before_they_are_stored(book: SqlTenantBook) -> None:
    await book.create("acme")
    stored = await book.set_settings("acme", {"retrieval.k": "5", "flags.new": "25%"})
    assert stored.settings == {"retrieval.k": 5, "flags.new": 25.0}
    with pytest.raises(SettingsError, match=r"'retrieval.kk' cannot be set"):
        await book.set_settings("acme", {"retrieval.kk": 5})
    assert await book.get("acme") == stored


async def test_a_suspended_tenant_gets_no_turn_until_it_is_resumed(book: SqlTenantBook, books: Books) -> None:
    queue = SqlQueue(books.ledger)
    await fill(books.ledger, "acme")
    await fill(books.ledger, "b")
    before = await queue.work_signals()
    assert (await book.suspend("acme")).state == "suspended"
    assert list(await queue.work_signals()) == ["b"]
    assert (await book.resume("acme")).state == "active"
    assert (await queue.work_signals())["acme"] > before["acme"]  # whoever waits for it looks again


async def test_a_renamed_tenant_is_the_same_tenant(book: SqlTenantBook, books: Books) -> None:
    await fill(books.ledger, "acme")
    before = await book.get("acme")
    assert before is not None
    renamed = await book.rename("acme", "apex")
    assert (renamed.id, renamed.name, renamed.seed) == (before.id, "apex", "acme")
    assert await names(books.ledger, "apex") == ["a"]
    assert await names(books.ledger, "acme") == []
    assert (await book.rename("apex", "acme")).seed == "acme"


async def test_a_name_that_changed_hands_leads_to_the_new_tenant_everywhere(books: Books) -> None:
    mine, theirs = books.open(), books.open()
    first, second = books.ledgers
    await fill(first, "acme", "of the first")
    assert await names(second, "acme") == ["of the first"]
    await mine.rename("acme", "apex")
    books.pass_time()
    await fill(first, "acme", "of the second")
    for ledger in books.ledgers:  # although both have had the first one's file open under that name
        assert await names(ledger, "acme") == ["of the second"]
        assert await names(ledger, "apex") == ["of the first"]
    made = await theirs.get("acme")
    assert made is not None
    assert made.seed == made.id  # ids of its documents cannot be those of the first one's


@pytest.mark.req("R-TEN-15")
async def test_a_deleted_tenant_leaves_nothing(book: SqlTenantBook, books: Books) -> None:
    await fill(books.ledger, "acme")
    await fill(books.ledger, "b")
    await book.set_quotas("acme", Quotas(documents=9))
    await book.reserve("acme", {"documents": 1})
    await book.charge_bill("acme", Bill(embedding=1.0))
    other = await book.get("b")
    assert other is not None
    gone = await book.delete("acme")
    assert gone.name == "acme"
    assert await book.all() == [other]
    assert books.left() == {other.id}
    books.pass_time()
    await fill(books.ledger, "acme", "new")
    usage = await book.usage("acme")
    assert (usage.stock.documents, usage.cost, usage.reserved) == (1, 0.0, {})
    made = await book.get("acme")
    assert made is not None
    assert made.id != gone.id
    assert made.quotas == Quotas()


async def test_another_process_does_not_go_on_with_a_deleted_tenants_files(books: Books) -> None:
    mine, _theirs = books.open(), books.open()
    first, second = books.ledgers
    await fill(first, "acme", "old")
    assert await names(second, "acme") == ["old"]
    await mine.delete("acme")
    assert await names(second, "acme") == []
    books.pass_time()
    await fill(second, "acme", "new")
    assert await names(first, "acme") == ["new"]


class Interrupted(Exception):
    """Stands for a process that died."""


def dying_at(step: int, monkeypatch: pytest.MonkeyPatch, book: SqlTenantBook, books: Books) -> None:
    """Let a deletion die before its step: the state, another store, each folder, the name, the second look."""
    made: list[int] = []

    def died() -> None:
        made.append(1)
        if len(made) == step:
            raise Interrupted

    def dies(inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            died()
            return inner(*arguments)

        return call

    async def eraser(_tenant: str) -> None:
        died()

    monkeypatch.setattr(sqlite, "_remove", dies(sqlite._remove))
    monkeypatch.setattr(books.ledger, "control_write", dies(books.ledger.control_write))
    book._erasers = [eraser]


@pytest.mark.parametrize("step", range(1, 8))
async def test_a_deletion_that_died_is_finished_by_the_next_process(
    books: Books, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    book = books.open()
    await fill(books.ledger, "acme")
    with monkeypatch.context() as dying:
        dying_at(step, dying, book, books)
        with pytest.raises(Interrupted):
            await book.delete("acme")
    told: list[str] = []

    async def eraser(tenant: str) -> None:
        assert await books.ledger.of(tenant).kbs() is not None  # it may look, and nobody else
        told.append(tenant)

    later = books.open(erasers=[eraser])
    begun = await later.get("acme")
    if step == 1:
        assert begun is not None
        assert begun.state == "active"
        assert await names(books.ledger, "acme") == ["a"]
        return
    if begun is not None:
        assert begun.state == "deleting"
        for asked in (fill(books.ledger, "acme"), later.create("acme"), later.resume("acme")):
            with pytest.raises(NotFoundError, match="tenant 'acme' is being deleted"):
                await asked
    assert await later.finish_deletions() == (["acme"] if begun else [])
    assert told == (["acme"] if begun else [])
    assert await later.all() == []
    assert books.left() == set()
    books.pass_time()
    await fill(books.ledger, "acme", "new")
    assert await names(books.ledger, "acme") == ["new"]


async def test_a_store_that_cannot_delete_leaves_the_tenant_being_deleted(books: Books) -> None:
    async def away(_tenant: str) -> None:
        raise StoreError("the index cannot be reached")

    book = books.open(erasers=[away])
    await fill(books.ledger, "acme")
    with pytest.raises(StoreError, match="the index cannot be reached"):
        await book.delete("acme")
    assert await book.finish_deletions() == []
    (still,) = await book.all()
    assert still.state == "deleting"
    assert (await books.open().delete("acme")).name == "acme"
    assert await book.all() == []


async def test_a_deletion_waits_for_what_is_under_way(
    book: SqlTenantBook, books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()
    forget = books.ledger.forget

    async def forgetting(tenant: str, tenant_id: str) -> None:
        begun.set()
        await forget(tenant, tenant_id)

    monkeypatch.setattr(books.ledger, "forget", forgetting)
    await fill(books.ledger, "acme")
    async with books.ledger.transaction("acme") as tx:
        await tx.open_kb("other")
        deleting = asyncio.create_task(book.delete("acme"))
        await begun.wait()
        await tx.open_kb("third")
        assert not deleting.done()
    await deleting
    assert books.left() == set()
    books.pass_time()
    await fill(books.ledger, "acme")
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0)
    async with books.ledger.transaction("acme"):
        with pytest.raises(StoreBusy, match="something still works for tenant 'acme'"):
            await book.delete("acme")
    assert await book.finish_deletions() == ["acme"]


async def test_nothing_is_made_anew_by_who_opens_a_tenant_that_another_process_deletes(
    book: SqlTenantBook, books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(books.ledger, "acme")
    books.open()
    reached, go = threading.Event(), threading.Event()

    def slow(*args: Any) -> TenantFile:
        reached.set()
        assert go.wait(240)
        return TenantFile(*args)

    monkeypatch.setattr(sqlite, "TenantFile", slow)
    late = asyncio.create_task(books.ledger.of("acme").kbs())
    writing = asyncio.create_task(fill(books.ledger, "acme"))
    await asyncio.to_thread(reached.wait, 60)
    await book.delete("acme")
    go.set()
    assert await late == []
    with pytest.raises(TenantGone, match="was deleted"):
        await writing
    assert books.left() == set()


async def test_who_still_reads_a_tenant_that_another_process_has_deleted_is_told_so(
    book: SqlTenantBook, books: Books
) -> None:
    await fill(books.ledger, "acme")
    books.open()

    async def read_on() -> None:
        async with books.ledger.file("acme") as file:
            await book.delete("acme")
            await file.look_up(lambda rows: rows.execute("SELECT count(*) FROM jobs").fetchone())

    with pytest.raises(TenantGone, match="there is no tenant 'acme'"):
        await read_on()
