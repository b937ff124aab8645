"""Conformance tests of claims on a `Queue` and their order: part of `QueueSuite`."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from ragstone.core.ids import content_hash, document_id
from ragstone.core.jobs import Job, Lane, NewJob, Priority
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import Queue

T = "acme"
LONG, OVER = 60.0, -1.0
Stores = tuple[Ledger, Queue]


def document_job(name: str, *, content: str = "words", priority: Priority = Priority.BATCH, size: int = 1) -> NewJob:
    """A job for the document of that name."""
    return NewJob(
        kind="document",
        source="test",
        external_id=name,
        uri=f"test:{name}",
        priority=priority,
        document_id=document_id(T, "default", "test", name),
        content_hash=content_hash(content),
        size=size,
        facts={"title": name, "original": ""},
        notify=True,
    )


async def put(ledger: Ledger, *jobs: NewJob, kb: str = "default") -> list[Job]:
    """Queue jobs in one transaction."""
    async with ledger.transaction(T) as tx:
        scope = await tx.open_kb(kb)
        return [await tx.enqueue(scope, job) for job in jobs]


async def take(
    queue: Queue,
    *,
    lease: float = LONG,
    attempts: int = 3,
    most: int = 32,
    most_bytes: int = 1000,
    lane: Lane = "all",
    worker: str = "worker",
) -> list[Job]:
    return await queue.of(T).claim(
        worker, lease_seconds=lease, attempts=attempts, most=most, most_bytes=most_bytes, lane=lane
    )


def names(jobs: list[Job]) -> list[str]:
    return [job.external_id for job in jobs]


class QueueClaimsSuite:
    """Claims are bounded, in order, and never overlap."""

    async def test_the_sooner_priority_goes_first_then_the_older_job(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("batch 1"), document_job("batch 2"))
        await put(ledger, document_job("upload", priority=Priority.UPLOAD))
        assert names(await take(queue)) == ["upload"]
        assert names(await take(queue)) == ["batch 1", "batch 2"]

    async def test_a_claim_is_bounded_by_count_and_by_bytes(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, *(document_job(name, size=400) for name in "abcde"))
        assert names(await take(queue, most=1)) == ["a"]
        assert names(await take(queue, most_bytes=900)) == ["b", "c"]
        assert names(await take(queue, most_bytes=1)) == ["d"]

    async def test_a_claim_is_of_one_kb(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"))
        other = replace(document_job("b"), document_id=document_id(T, "other", "test", "b"))
        await put(ledger, other, kb="other")
        assert [job.kb for job in await take(queue)] == ["default"]
        assert [job.kb for job in await take(queue)] == ["other"]

    async def test_what_lost_a_worker_is_taken_first_in_ever_smaller_shares(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, *(document_job(str(number)) for number in range(20)))
        assert len(await take(queue, lease=OVER, most=12)) == 12
        assert names(await take(queue, lease=OVER, most=12)) == ["0", "1", "2", "3"]
        assert names(await take(queue, most=12)) == ["4", "5", "6", "7"]
        assert names(await take(queue, most=12)) == ["8", "9", "10", "11"]
        for alone in ("0", "1", "2", "3"):
            assert names(await take(queue, most=12)) == [alone]
        assert names(await take(queue, most=12)) == [str(number) for number in range(12, 20)]

    async def test_what_was_lost_first_is_taken_up_first(self, stores: Stores) -> None:
        """Or the first in the queue could be lost again and again while the others wait."""
        ledger, queue = stores
        await put(ledger, document_job("a"), document_job("b"))
        for worker in ("first", "second"):
            await take(queue, most=1, worker=worker)
        for worker in ("second", "first"):
            await queue.of(T).take_back(worker, 3)
        assert names(await take(queue, most=1, lane="lost")) == ["b"]
        assert names(await take(queue, most=1, lane="lost")) == ["a"]

    async def test_shares_shrink_however_many_attempts_there_are(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, *(document_job(str(number)) for number in range(16)))
        taken = [len(await take(queue, lease=OVER, most=16, attempts=1000)) for _ in range(6)]
        assert taken == [16, 4, 4, 4, 4, 2]

    async def test_express_takes_what_was_tried_before_then_what_somebody_waits_for(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("lost"))
        assert names(await take(queue, lease=OVER)) == ["lost"]
        await put(ledger, document_job("batch"), document_job("upload", priority=Priority.UPLOAD))
        assert names(await take(queue, lane="express")) == ["lost"]
        assert names(await take(queue, lane="express")) == ["upload"]
        assert await take(queue, lane="express") == []
        assert names(await take(queue, lane="batch")) == ["batch"]

    async def test_a_last_try_is_no_batch_s_business(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"))
        for _ in range(2):
            assert names(await take(queue, lease=OVER, lane="batch")) == ["a"]
        assert await take(queue, lane="batch") == []
        assert await queue.of(T).next_due(3, lane="batch") is None
        assert await queue.of(T).next_due(4, lane="batch") == 0.0
        assert await queue.of(T).next_due(3, lane="express") == 0.0
        assert names(await take(queue, lane="express")) == ["a"]

    async def test_what_was_lost_has_a_lane_until_its_last_try(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("lost"))
        assert await queue.of(T).next_due(3, lane="lost") is None
        assert await take(queue, lane="lost") == []
        await take(queue, lease=OVER)
        await put(ledger, document_job("new"), document_job("upload", priority=Priority.UPLOAD))
        assert await queue.of(T).next_due(3, lane="lost") == 0.0
        assert names(await take(queue, lease=OVER, lane="lost")) == ["lost"]
        assert await take(queue, lane="lost") == []
        assert names(await take(queue, lane="express")) == ["lost"]

    async def test_what_a_dead_worker_held_is_taken_back_before_its_lease_ends(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"), document_job("b"), document_job("c"))
        (dead,) = await take(queue, worker="dead", most=1)
        (alive,) = await take(queue, worker="alive", most=1)
        assert await queue.of(T).take_back("dead", 3) == 1
        assert await queue.of(T).take_back("dead", 3) == 0
        assert names(await take(queue, lane="lost")) == ["a"]
        assert await queue.of(T).heartbeat({dead.ticket: None, alive.ticket: None}, 60.0) == {dead.ticket}

    async def test_what_has_used_up_its_attempts_fails_when_it_is_taken_back(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"))
        (job,) = await take(queue, worker="dead", attempts=1)
        assert await queue.of(T).take_back("dead", 1) == 1
        ended = await queue.of(T).job(job.id)
        assert ended is not None
        assert (ended.state, ended.error_code) == ("failed", "worker_died")

    async def test_who_has_one_attempt_only_is_taken_by_any(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"))
        assert names(await take(queue, attempts=1, lane="batch")) == ["a"]

    async def test_express_is_due_when_it_has_something_to_take(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, document_job("a"))
        assert await queue.of(T).next_due(3, lane="batch") == 0.0
        assert await queue.of(T).next_due(3, lane="express") is None
        await take(queue, lease=OVER)
        assert await queue.of(T).next_due(3, lane="express") == 0.0

    async def test_a_source_that_is_looked_at_is_looked_at_once_more_if_somebody_asks(self, stores: Stores) -> None:
        ledger, queue = stores
        look = replace(document_job("docs"), kind="sync", document_id="", facts={"afresh": False})
        afresh = replace(look, facts={"afresh": True})

        async def begin() -> list[Job]:
            return await queue.of(T).claim("worker", "sync", lease_seconds=LONG, attempts=3, most=1, most_bytes=1)

        await put(ledger, look)
        (first,) = await begin()
        asked = [job for work in (look, look, afresh, look) for job in await put(ledger, work)]
        assert {job.id == first.id for job in asked} == {False}
        assert len({job.id for job in asked}) == 1
        # Nobody else begins it before the first has ended, nor looks for it all the time.
        assert await begin() == []
        waits = await queue.of(T).next_due(3, "sync")
        assert waits is not None
        assert waits > LONG / 2
        await put(ledger, replace(look, source="other"))
        (other,) = await begin()
        assert other.source == "other"
        await queue.of(T).complete(first.ticket, "done")
        assert await queue.of(T).next_due(3, "sync") == 0.0
        (second,) = await begin()
        assert (second.id, second.facts) == (asked[0].id, {"afresh": True})
        await queue.of(T).complete(second.ticket, "done")
        assert await begin() == []

    async def test_racing_workers_never_take_the_same_job(self, stores: Stores) -> None:
        ledger, queue = stores
        await put(ledger, *(document_job(str(number)) for number in range(60)))
        taken = await asyncio.gather(*(take(queue, most=3) for _ in range(25)))
        ids = [job.id for jobs in taken for job in jobs]
        assert len(ids) == len(set(ids)) == 60
