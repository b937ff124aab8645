"""Report the outcome of a sync: documents that it brought and removed, and those that failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ragstone.core.jobs import Job
from ragstone.core.protocols import TenantQueue, TenantSources
from ragstone.core.types import Failure

MOST_JOBS = 1_000_000
MOST_NOTICES = 10_000


@dataclass(frozen=True, slots=True)
class SyncOutcome:
    """The result of one sync of a source."""

    source: str
    kb: str
    job_id: str
    state: str
    taken_in: int = 0
    unchanged: int = 0
    removed: int = 0
    moved: int = 0
    passed_over: int = 0
    """Pictures that were not named themselves; `message` says how to take them in."""
    wordless: int = 0
    """Pictures without words."""
    unread: int = 0
    """Items that the source could not give, and those that failed before and have not changed since."""
    failures: int = 0
    """Everything that is not taken in by now, of this sync or an earlier one."""
    failed: tuple[Failure, ...] = ()
    """The first of them, or why the sync itself failed."""
    did_something: bool = False
    message: str = ""

    @property
    def skipped(self) -> int:
        """Return the number of pictures that were left out."""
        return self.passed_over + self.wordless


async def work_and_report(
    queue: TenantQueue, sources: TenantSources, syncs: Sequence[Job], work: Callable[[], Awaitable[None]]
) -> list[SyncOutcome]:
    """Have queued syncs worked on by `work`, and return what each of them led to. Their notices are marked as read."""
    before = {job.ticket for job in await _list_unfinished(queue)}
    await work()
    unfinished = [job for job in await _list_unfinished(queue) if job.ticket not in before]
    return [await _read_outcome(queue, sources, sync, unfinished) for sync in syncs]


async def _list_unfinished(queue: TenantQueue) -> list[Job]:
    """Return jobs that ended badly or not at all; a job that fails once more has another ticket then."""
    return await queue.jobs(("pending", "running", "failed", "cancelled"), limit=MOST_JOBS)


async def _read_outcome(
    queue: TenantQueue, sources: TenantSources, sync: Job, unfinished: Sequence[Job]
) -> SyncOutcome:
    ended = await queue.job(sync.id) or sync
    state, message = await _read_ending(queue, ended)
    if state != "completed":
        why = Failure(sync.uri, ended.error_code, message, ended.progress.hint, ended.progress.remedy)
        return SyncOutcome(sync.source, sync.kb, sync.id, state, failures=1, failed=(why,), message=message)
    found = ended.progress.found
    source = await sources.get(sync.kb, sync.source)
    lost = [job for job in unfinished if job.kind == "document" and (job.source, job.kb) == (sync.source, sync.kb)]
    queued = found.get("queued", 0)
    wordless = await _count_wordless(queue, sync) if queued else 0
    return SyncOutcome(
        *(sync.source, sync.kb, sync.id, state),
        taken_in=max(0, queued - len(lost) - wordless),
        unchanged=found.get("unchanged", 0),
        removed=found.get("removed", 0),
        moved=found.get("moved", 0),
        passed_over=found.get("skipped", 0),
        wordless=wordless,
        unread=found.get("failed", 0),
        failures=source.source_failures.count if source else 0,
        failed=source.source_failures.first if source else (),
        did_something=source is None or not source.source_failures.total,
        message=message,
    )


async def _count_wordless(queue: TenantQueue, sync: Job) -> int:
    """Return how many of the jobs that a sync queued met a picture without words."""
    ended = await queue.jobs(("completed",), sync.source, MOST_JOBS)
    return sum(
        "skipped" in job.progress.found
        for job in ended
        if job.kind == "document" and job.kb == sync.kb and job.created_at >= sync.created_at
    )


async def _read_ending(queue: TenantQueue, ended: Job) -> tuple[str, str]:
    """Return how a sync ended and what it said, and mark its notice as read."""
    for notice in await queue.notices(limit=MOST_NOTICES):
        if notice.job_id == ended.id:
            await queue.mark_read([notice.id])
            return notice.kind, notice.message
    return ended.state, ended.error
