"""Conformance tests of the source states of every `SourceBook`, to inherit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.conformance.suites.queue_claims import T, document_job, put, take

from ragstone.core.clock import now
from ragstone.core.errors import KbGone, StoreCorrupt
from ragstone.core.jobs import MOST_NAMED, NEAR_DUPLICATE, SourceFailures, SourceRecord
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import Queue, SourceBook
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Failure, KnowledgeBase
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.queue import SqlQueue
from ragstone.stores.ledger.sources import SqlSourceBook
from ragstone.stores.sql.database import Connection
from ragstone.stores.vault import Owner, Vault

Stores = tuple[Ledger, Queue, SourceBook]
VAULT = Vault(b"k" * 32)
GONE = Failure("https://a.example/x", "fetch_failed", "nobody answers", "try later", Remedy(Action.CHECK_STORES))
AGAIN = Remedy(Action.INGEST_AGAIN, kb="tides")
DAMAGED = Failure("test:a", "parse_failed", "it is damaged", "save it again", AGAIN)


def with_sources(ledger: SqlLedger) -> Stores:
    """A ledger that seals with `VAULT`, with its queue and its sources."""
    return ledger, SqlQueue(ledger), SqlSourceBook(ledger, VAULT, lambda _: {"password"})


class SourceSuite:
    """Inherit and say how to open a ledger with its queue and its sources."""

    async def open(self, folder: Path) -> Stores:
        """An empty ledger that seals with `VAULT`, its queue and its sources, whose data live with this folder."""
        raise NotImplementedError

    @pytest.fixture
    async def stores(self, tmp_path: Path) -> AsyncIterator[Stores]:
        ledger, queue, book = await self.open(tmp_path)
        async with ledger.transaction(T) as tx:
            kb = await tx.open_kb("default")
        await book.of(T).add(kb, "test", "files", {}, "manual", None)
        yield ledger, queue, book
        await ledger.close()

    async def test_what_a_run_could_not_read_is_remembered_until_the_next(self, stores: Stores) -> None:
        _, _, book = stores
        assert (await _source(book)).state == "new"
        for unread, state in ((SourceFailures(120, (GONE,) * MOST_NAMED), "failing"), (SourceFailures(), "ok")):
            source = await _ran(book, unread)
            assert (source.source_failures.count, source.source_failures.first) == (unread.count, unread.first)
            assert source.state == state
        assert (await _ran(book, SourceFailures(1, (GONE,), total=True), "broken off")).state == "failed"

    async def test_documents_that_failed_count_until_they_do_not(self, stores: Stores) -> None:
        ledger, queue, book = stores
        await put(ledger, document_job("a"), document_job("b"))
        a, b = await take(queue)
        await queue.of(T).fail(a.ticket, DAMAGED.code, DAMAGED.error, DAMAGED.hint, DAMAGED.remedy)
        source = await _ran(book, SourceFailures())
        assert source.source_failures == SourceFailures(1, (DAMAGED,), total=False)
        assert source.state == "partly"  # b is on its way
        await queue.of(T).fail(b.ticket, NEAR_DUPLICATE, "as another")
        assert (await _source(book)).state == "failing"
        assert (await _ran(book, SourceFailures(2, (GONE,)))).source_failures == SourceFailures(
            3, (GONE, DAMAGED), total=True
        )
        assert await queue.of(T).retry(a.id)
        assert (await _ran(book, SourceFailures())).source_failures == SourceFailures()
        assert [source.source_failures for source in await book.of(T).all()] == [SourceFailures()]

    async def test_what_failed_before_and_cannot_be_read_any_more_counts_once(self, stores: Stores) -> None:
        ledger, queue, book = stores
        await put(ledger, document_job("a"))
        (a,) = await take(queue)
        await queue.of(T).fail(a.ticket, DAMAGED.code, DAMAGED.error)
        locked = Failure(DAMAGED.uri, "unreadable", "it may not be read")
        source = await _ran(book, SourceFailures(1, (locked,)))
        assert source.source_failures == SourceFailures(1, (locked,), total=True)

    async def test_what_failed_goes_with_its_document(self, stores: Stores) -> None:
        ledger, queue, book = stores
        await put(ledger, document_job("a"))
        (a,) = await take(queue)
        await queue.of(T).fail(a.ticket, DAMAGED.code, DAMAGED.error)
        assert (await _source(book)).source_failures.count == 1
        async with ledger.transaction(T) as tx:
            await tx.delete(a.document_id)
        assert (await _source(book)).source_failures == SourceFailures()

    async def test_secrets_are_read_whatever_their_kb_is_called(self, stores: Stores) -> None:
        ledger, _, book = stores
        await _add_mailbox(stores, "mail")
        for name in ("b", "c", "default"):
            await _rename(ledger, name)
            assert await _passwords(book) == {"mail": "of mail"}
            found = await book.of(T).get(name, "mail")
            assert found is not None
            assert found.config["password"] == "of mail"

    async def test_a_source_is_not_added_to_a_kb_that_was_renamed_meanwhile(self, stores: Stores) -> None:
        ledger, _, book = stores
        before = await _rename(ledger, "b")
        with pytest.raises(KbGone, match="renamed to 'b'"):
            await book.of(T).add(before, "mail", "imap", {"password": "x"}, "manual", None)

    async def test_a_damaged_secret_is_that_of_its_source_alone(self, stores: Stores) -> None:
        ledger, _, book = stores
        for name in ("bad", "good"):
            await _add_mailbox(stores, name)
        assert isinstance(ledger, SqlLedger)
        await ledger.write(T, _damage, "bad")
        bad, good, plain = await book.of(T).all()
        assert [one.name for one in await book.of(T).due(now())] == ["bad", "good"]
        assert (good.config["password"], good.damage, plain.state) == ("of good", None, "new")
        assert isinstance(bad.damage, StoreCorrupt)
        assert (bad.state, bad.last_error) == ("failed", str(bad.damage))
        assert "source default/bad" in bad.last_error
        await _rename(ledger, "b")
        assert await _passwords(book) == {"good": "of good"}


async def _add_mailbox(stores: Stores, name: str) -> None:
    ledger, _, book = stores
    kb = await ledger.of(T).kb("default")
    assert kb is not None
    await book.of(T).add(kb, name, "imap", {"password": f"of {name}"}, "daily", now())


async def _rename(ledger: Ledger, name: str) -> KnowledgeBase:
    """Rename the only kb, and return what it was."""
    (kb,) = await ledger.of(T).kbs()
    async with ledger.transaction(T) as tx:
        await tx.rename_kb(kb, name)
    return kb


async def _passwords(book: SourceBook) -> dict[str, object]:
    found = [record for record in await book.of(T).all() if record.kind == "imap" and not record.damage]
    return {record.name: record.config["password"] for record in found}


def _damage(connection: Connection, tenant_id: str, name: str) -> None:
    sealed = VAULT.seal_text("of another", Owner(tenant_id, "source", "elsewhere/mail", "password"))
    connection.execute(
        "UPDATE sources SET config = ? WHERE tenant_id = ? AND name = ?",
        (connection.dialect.to_json({"password": sealed}), tenant_id, name),
    )


async def _source(book: SourceBook) -> SourceRecord:
    found = await book.of(T).get("default", "test")
    assert found is not None
    return found


async def _ran(book: SourceBook, unread: SourceFailures, error: str = "") -> SourceRecord:
    await book.of(T).ran((await _source(book)).id, error, None, unread)
    return await _source(book)
