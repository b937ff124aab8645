"""Conformance tests of the source states of every `SourceBook`, to inherit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.conformance.suites.queue_claims import T, document_job, put, take

from ragstone.core.jobs import MOST_NAMED, NEAR_DUPLICATE, SourceFailures, SourceRecord
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import Queue, SourceBook
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Failure

Stores = tuple[Ledger, Queue, SourceBook]
GONE = Failure("https://a.example/x", "fetch_failed", "nobody answers", "try later", Remedy(Action.CHECK_STORES))
AGAIN = Remedy(Action.INGEST_AGAIN, kb="tides")
DAMAGED = Failure("test:a", "parse_failed", "it is damaged", "save it again", AGAIN)


class SourceSuite:
    """Inherit and say how to open a ledger with its queue and its sources."""

    async def open(self, folder: Path) -> Stores:
        """An empty ledger, its queue and its sources, whose data live with this folder."""
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


async def _source(book: SourceBook) -> SourceRecord:
    found = await book.of(T).get("default", "test")
    assert found is not None
    return found


async def _ran(book: SourceBook, unread: SourceFailures, error: str = "") -> SourceRecord:
    await book.of(T).ran((await _source(book)).id, error, None, unread)
    return await _source(book)
