"""Conformance tests of every `Queue`, to inherit.

A lease of less than no time has run out when it begins: so nothing here has to wait.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.conformance.suites.queue_claims import (
    LONG,
    OVER,
    QueueClaimsSuite,
    Stores,
    T,
    document_job,
    names,
    put,
    take,
)

from ragstone.core.clock import ReadTime, now
from ragstone.core.errors import LeaseLost
from ragstone.core.jobs import JobProgress, NewJob, Priority, Ticket
from ragstone.core.remedies import Action, Remedy

__all__ = ["QueueSuite", "Stores", "T", "document_job", "names", "put", "take"]


class QueueSuite(QueueClaimsSuite):
    """Inherit and say how to open a ledger with its queue: jobs end once, in order, and only for who holds them."""

    async def open(self, folder: Path) -> Stores:
        """An empty ledger and its queue, whose data live with this folder."""
        raise NotImplementedError

    @pytest.fixture
    async def stores(self, tmp_path: Path) -> AsyncIterator[Stores]:
        ledger, queue = await self.open(tmp_path)
        yield ledger, queue
        await ledger.close()

    async def test_a_job_is_taken_once_and_completed(self, stores: Stores) -> None:
        ledger, queue = stores
        (queued,) = await put(ledger, document_job("a"))
        assert (queued.state, queued.attempts) == ("pending", 0)
        (job,) = await take(queue)
        assert (job.id, job.state, job.attempts) == (queued.id, "running", 1)
        assert await take(queue) == []
        await queue.of(T).complete(job.ticket, "done")
        found = await queue.of(T).job(job.id)
        assert found is not None
        assert (found.state, found.error, found.progress.percent) == ("completed", "", 100)
        assert await queue.of(T).counts() == {"completed": 1}

    async def test_what_is_rolled_back_was_never_queued(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"))

        async def break_off() -> None:
            async with ledger.transaction(T) as tx:
                await tx.enqueue(await tx.open_kb("default"), document_job("b"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await break_off()
        assert names(await take(queue)) == ["a"]

    async def test_who_lost_a_lease_cannot_end_the_job(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"), document_job("b"))
        lost = await take(queue, lease=OVER)
        assert names(lost) == ["a", "b"]
        again, _ = await take(queue)
        assert (again.external_id, again.attempts) == ("a", 2)
        for stale in lost:
            with pytest.raises(LeaseLost):
                await queue.of(T).complete(stale.ticket, "")
            with pytest.raises(LeaseLost):
                await queue.of(T).fail(stale.ticket, "x", "y")
        async with ledger.transaction(T) as tx:
            assert not await tx.holds(lost[0].ticket)
            assert await tx.holds(again.ticket)

    async def test_of_several_tickets_those_that_are_still_good(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, *(document_job(name) for name in "abc"))
        a, b, c = await take(queue)
        await queue.of(T).cancel(b.id)
        stale = Ticket(c.id, c.token - 1)
        async with ledger.transaction(T) as tx:
            assert await tx.holding([a.ticket, b.ticket, stale]) == {a.ticket}
            assert await tx.holding([]) == set()
            await tx.complete_all({a.ticket: JobProgress(percent=100), b.ticket: JobProgress(), stale: JobProgress()})
        states = {job.external_id: job.state for job in await queue.of(T).jobs()}
        assert states == {"a": "completed", "b": "cancelled", "c": "running"}

    async def test_after_the_last_attempt_a_job_is_put_aside_with_a_reason(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"))
        for _ in range(3):
            assert len(await take(queue, lease=OVER)) == 1
        assert await take(queue) == []
        (dead,) = await queue.of(T).jobs(("failed",))
        assert (dead.error_code, dead.attempts) == ("worker_died", 3)
        assert dead.error == "test:a ended its worker 3 times; it is put aside until someone retries it"
        assert await queue.of(T).retry(dead.id)
        (again,) = await take(queue)
        assert again.attempts == 1

    async def test_a_heartbeat_keeps_a_job_and_writes_its_progress(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"))
        (job,) = await take(queue, lease=OVER)
        progress = JobProgress("embed", chunks=3, chunks_total=9, percent=40, eta_seconds=1.5)
        assert await queue.of(T).heartbeat({job.ticket: progress}, LONG) == set()
        assert await take(queue) == []
        found = await queue.of(T).job(job.id)
        assert found is not None
        assert found.progress == progress
        assert await queue.of(T).heartbeat({job.ticket: None}, OVER) == set()
        found = await queue.of(T).job(job.id)
        assert found is not None
        assert found.progress == progress
        assert names(await take(queue)) == ["a"]

    async def test_a_heartbeat_tells_which_jobs_were_cancelled(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"), document_job("b"))
        a, b = await take(queue)
        assert await queue.of(T).cancel(a.id)
        assert not await queue.of(T).cancel(a.id)
        void = await queue.of(T).heartbeat({a.ticket: JobProgress(), b.ticket: JobProgress()}, LONG)
        assert void == {a.ticket}
        with pytest.raises(LeaseLost):
            await queue.of(T).complete(a.ticket, "")

    async def test_what_is_put_back_waits_and_may_not_count(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"))
        (job,) = await take(queue)
        await queue.of(T).put_back(job.ticket, wait_seconds=1000, code="remote_failed", error="down", counts=True)
        assert await take(queue) == []
        wait = await queue.of(T).next_due(3)
        assert wait is not None
        assert 900 < wait <= 1000
        assert await queue.of(T).cancel(job.id)
        assert await queue.of(T).retry(job.id)
        (job,) = await take(queue)
        await queue.of(T).put_back(job.ticket, wait_seconds=0, code="", error="", counts=False)
        (job,) = await take(queue)
        assert job.attempts == 1

    async def test_equal_content_is_queued_once_and_newer_content_takes_over(self, stores: Stores) -> None:
        ledger, queue = stores
        (first,) = await put(ledger, document_job("a"))
        (same,) = await put(ledger, document_job("a", priority=Priority.UPLOAD))
        assert (same.id, same.priority) == (first.id, Priority.UPLOAD)
        (running,) = await take(queue)
        (newer,) = await put(ledger, document_job("a", content="other words"))
        assert newer.id != running.id
        with pytest.raises(LeaseLost):
            await queue.of(T).complete(running.ticket, "")
        old = await queue.of(T).job(running.id)
        assert old is not None
        assert (old.state, old.error_code) == ("cancelled", "superseded")
        assert names(await take(queue)) == ["a"]

    async def test_a_job_is_of_the_last_reading_whoever_queues_it_last(self, stores: Stores) -> None:
        ledger, queue = stores

        def read(content: str, second: float) -> NewJob:
            job = document_job("a", content=content)
            return replace(job, facts={**job.facts, "read": ReadTime("boot", second)})

        (last,) = await put(ledger, read("new", 3))
        assert names(await put(ledger, read("new", 1), read("old", 2))) == ["a", "a"]
        assert [(job.id, job.read.seconds) for job in await take(queue)] == [(last.id, 3)]

    async def test_a_deleted_document_takes_its_jobs_along(self, stores: Stores) -> None:
        ledger, queue = stores
        (queued,) = await put(ledger, document_job("a"))
        (job,) = await take(queue)
        async with ledger.transaction(T) as tx:
            assert await tx.delete(queued.document_id)
        assert await queue.of(T).job(queued.id) is None
        with pytest.raises(LeaseLost):
            await queue.of(T).complete(job.ticket, "")
        assert await ledger.of(T).status(queued.document_id) is None

    async def test_a_document_is_where_its_job_is_until_it_is_live(self, stores: Stores) -> None:
        ledger, queue = stores

        async def status() -> tuple[str, str]:
            found = await ledger.of(T).status(document_job("a").document_id)
            assert found is not None
            return found.status, found.processing_error

        await put(ledger, document_job("a"))
        assert await status() == ("pending", "")
        (job,) = await take(queue)
        assert await status() == ("processing", "")
        await queue.of(T).fail(job.ticket, "parse_failed", "it is damaged")
        assert await status() == ("failed", "it is damaged")
        assert await ledger.of(T).document(job.document_id) is None

    async def test_a_hint_is_kept_with_the_error_that_it_is_for(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"))

        async def advice() -> tuple[str, Remedy | None]:
            (found,) = await queue.of(T).jobs()
            return found.progress.hint, found.progress.remedy

        (job,) = await take(queue)
        await queue.of(T).put_back(job.ticket, wait_seconds=0, code="busy", error="not now", counts=True, hint="wait")
        assert await advice() == ("wait", None)
        (job,) = await take(queue)
        await queue.of(T).heartbeat({job.ticket: JobProgress("extract", percent=5)}, LONG)
        remedy = Remedy(Action.INGEST_AGAIN, kb="tides")
        await queue.of(T).fail(job.ticket, "parse_failed", "it is damaged", "save it", remedy)
        assert (await advice(), (await queue.of(T).jobs())[0].progress.percent) == (("save it", remedy), 5)
        assert await queue.of(T).retry(job.id)
        (job,) = await take(queue)
        await queue.of(T).fail(job.ticket, "parse_failed", "it is damaged")
        assert await advice() == ("", None)

    async def test_the_jobs_of_a_source_are_counted(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"), replace(document_job("b"), source="other"))
        assert await queue.of(T).counts() == {"pending": 2}
        assert await queue.of(T).counts("other") == {"pending": 1}
        assert await queue.of(T).counts("none") == {}

    async def test_notices_say_how_jobs_ended(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"), document_job("b"), replace(document_job("c"), notify=False))
        a, b, c = await take(queue)
        await queue.of(T).complete(a.ticket, "all well")
        await queue.of(T).fail(b.ticket, "parse_failed", "it is damaged")
        await queue.of(T).complete(c.ticket, "nobody asked")
        newest = await queue.of(T).notices()
        assert [(notice.kind, notice.uri, notice.message) for notice in newest] == [
            ("failed", "test:b", "it is damaged"),
            ("completed", "test:a", "all well"),
        ]
        await queue.of(T).mark_read([newest[0].id])
        assert [notice.uri for notice in await queue.of(T).notices(unread=True)] == ["test:a"]
        assert [notice.uri for notice in await queue.of(T).unsent()] == ["test:a", "test:b"]
        await queue.of(T).mark_sent(newest[1].id)
        assert [notice.uri for notice in await queue.of(T).unsent()] == ["test:b"]

    async def test_a_warning_is_told_once_in_a_while(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"))
        moment = now()
        assert await queue.of(T).warn("quality:default", "too little", quiet_since=moment - timedelta(days=7))
        assert not await queue.of(T).warn("quality:default", "again", quiet_since=moment - timedelta(days=7))
        assert await queue.of(T).warn("quality:other", "this too", quiet_since=moment - timedelta(days=7))
        assert await queue.of(T).warn("quality:default", "later", quiet_since=moment + timedelta(days=7))
        told = [(notice.kind, notice.uri, notice.message, notice.job_id) for notice in await queue.of(T).notices()]
        assert told == [
            ("warning", "quality:default", "later", ""),
            ("warning", "quality:other", "this too", ""),
            ("warning", "quality:default", "too little", ""),
        ]
        async with ledger.transaction(T) as tx:
            await tx.delete_kb("default")
        assert [notice.uri for notice in await queue.of(T).notices()] == ["quality:other"]

    async def test_a_kb_has_a_turn_of_one_name_once(self, stores: Stores) -> None:
        ledger, queue = stores
        may = replace(document_job("a"), kind="reembed", document_id="", source="", external_id="may")
        (first,) = await put(ledger, may)
        # While one waits or runs, nobody needs another; afterwards each of them is another turn.
        assert [job.id for job in await put(ledger, may, replace(may, external_id="june"))] == [first.id] * 2
        (job,) = await queue.of(T).claim("worker", "reembed", lease_seconds=LONG, attempts=3, most=1, most_bytes=1)
        await queue.of(T).complete(job.ticket, "done")
        (again,) = await put(ledger, may)
        assert (again.id, again.state) == (first.id, "completed")
        (june,) = await put(ledger, replace(may, external_id="june"))
        assert (june.state, june.id != first.id) == ("pending", True)
        kb = await ledger.of(T).kb("default")
        assert kb is not None
        newest = await queue.of(T).newest(kb, "reembed")
        assert newest is not None
        assert newest.id == june.id
        assert await queue.of(T).newest(kb, "document") is None

    async def test_bells_ring_for_their_tenant(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"))
        before = await queue.work_signals()
        assert list(before) == [T]
        await queue.signal_work(T)
        assert (await queue.work_signals())[T] != before[T]

    async def test_an_unknown_tenant_or_job_is_nothing(self, stores: Stores) -> None:
        ledger, queue = stores
        assert await queue.of("nobody").job("0" * 32) is None
        assert await queue.of("nobody").jobs() == []
        assert await queue.of("nobody").counts() == {}
        assert await queue.of("nobody").notices() == []
        await put(ledger, document_job("a"))
        assert await queue.of(T).job("0" * 32) is None
        assert not await queue.of(T).cancel("0" * 32)
        assert not await queue.of(T).retry("0" * 32)
