"""The book of replies to requests with an idempotency key, on every ledger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.conformance import postgres_server

from ragstone.core.errors import QuotaExceeded
from ragstone.stores.control import replies
from ragstone.stores.control.replies import SqlReplyBook
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer

postgres_databases = postgres_server.postgres_databases
LEDGERS: dict[str, Callable[[Path], SqlLedger]] = {
    "sqlite": lambda folder: SqliteLedger(folder, [Fts5Writer()]),
    "postgres": lambda folder: PostgresLedger(postgres_server.server(18).database(folder), folder),
}
ONE = "1" * 64


class Book(SqlReplyBook):
    """A book whose clock is moved by hand."""

    moment = 1000.0
    tenant_id = ""

    async def state(self, owner: str, fingerprint: str = "f", request: str = ONE) -> str:
        return (await self.begin(request, self.tenant_id, fingerprint, owner)).state


@pytest.fixture(params=LEDGERS)
async def book(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Book]:
    ledger = LEDGERS[request.param](tmp_path)
    book = Book(ledger, lambda: book.moment)
    book.tenant_id = (await SqlTenantBook(ledger).create("acme")).id
    yield book
    await ledger.close()


async def test_one_of_many_does_the_work_and_the_others_get_its_reply(book: Book) -> None:
    states = await asyncio.gather(*(book.state(f"owner {number}") for number in range(5)))
    assert sorted(states) == ["begun", *["running"] * 4]
    assert await book.state("other", "another body") == "other"
    await book.finish(ONE, f"owner {states.index('begun')}", b"reply \x00\xff")
    found = await book.begin(ONE, book.tenant_id, "f", "late")
    assert (found.state, found.sealed) == ("done", b"reply \x00\xff")
    await book.forget(book.tenant_id)
    assert (await book.begin(ONE, book.tenant_id, "f", "late")).sealed is None
    book.moment += replies.KEPT_SECONDS + 1
    assert await book.state("next day") == "begun"


async def test_who_renews_is_believed_and_who_was_killed_is_not(book: Book) -> None:
    assert await book.state("first") == "begun"
    book.moment += replies.LEASE_SECONDS - 1
    await book.renew(ONE, "first")
    book.moment += replies.LEASE_SECONDS - 1
    assert await book.state("second") == "running"
    book.moment += 2
    assert await book.state("second") == "begun"
    await book.finish(ONE, "first", b"too late")
    await book.release(ONE, "first")
    assert await book.state("third") == "running"
    await book.release(ONE, "second")
    assert await book.state("third") == "begun"


async def test_what_is_forgotten_while_it_is_under_way_is_done_but_not_kept(book: Book) -> None:
    for request in ("1" * 64, "2" * 64, "3" * 64):
        await book.state("asker", request=request)
    await book.forget(book.tenant_id)
    assert await book.state("other") == "running"
    await book.finish("1" * 64, "asker", b"reply")
    assert await book.begin("1" * 64, book.tenant_id, "f", "late") == replies.ReplyState("done")
    await book.release("2" * 64, "asker")
    assert await book.state("again", request="2" * 64) == "begun"
    book.moment += replies.LEASE_SECONDS + 1
    assert await book.state("again", request="3" * 64) == "begun"
    await book.finish("3" * 64, "again", b"made since")
    assert (await book.begin("3" * 64, book.tenant_id, "f", "late")).sealed == b"made since"


async def test_the_oldest_reply_goes_before_a_tenant_has_too_many(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MOST_REPLIES", 2)
    keys = [str(number) * 64 for number in range(4)]
    for key in keys[:3]:
        assert await book.state("first", request=key) == "begun"
        await book.finish(key, "first", b"reply")
        book.moment += 1
    assert [await book.state("late", request=key) for key in keys[1:3]] == ["done"] * 2
    assert await book.state("late", request=keys[0]) == "begun"
    assert [await book.state("late", request=key) for key in (keys[2], keys[0])] == ["done", "running"]


async def test_only_requests_under_way_can_be_too_many(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MOST_REPLIES", 2)
    assert [await book.state("first", request=str(number) * 64) for number in range(2)] == ["begun"] * 2
    with pytest.raises(QuotaExceeded, match="2 requests with an idempotency key are under way already"):
        await book.state("first", request="2" * 64)
    assert (await book.begin("3" * 64, "", "f", "operator")).state == "begun"
    book.moment += replies.LEASE_SECONDS
    await book.renew("1" * 64, "first")
    assert await book.state("first", request="2" * 64) == "begun"
    assert await book.state("late", request="1" * 64) == "running"
