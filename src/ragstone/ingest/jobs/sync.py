"""FETCH for a configured source: queue new documents, remove those that are gone, and advance the cursor.

The outcome of a sync is reported once its documents have ended.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ragstone.core.clock import canonical, current_read_time, parse_moment
from ragstone.core.errors import PASSING, LeaseLost, SourceError
from ragstone.core.ids import content_hash
from ragstone.core.jobs import (
    ACTIVE,
    MOST_NAMED,
    NEAR_DUPLICATE,
    Job,
    NewJob,
    Priority,
    SourceFailures,
    SourceRecord,
    Ticket,
)
from ragstone.core.ledger import Ledger, Transaction
from ragstone.core.protocols import Source, TenantQueue, TenantSources
from ragstone.core.types import SKIPPED, Document, Failure, Item, KnowledgeBase, Page
from ragstone.ingest.diff import MEMBER, SourceDiff
from ragstone.ingest.enrich.near_duplicates import twin_of
from ragstone.ingest.parsers.draft import one_line
from ragstone.ingest.prepare import Preparer, find_unusable
from ragstone.ingest.sources.files.owners import Owners, report_owned
from ragstone.ingest.sources.secrets import MaskedSource, SecretMask
from ragstone.ingest.work import JobBatch, RunReport, SourceListing, WorkItem, describe_skipped

PAGE_SECONDS = 900.0
MOST_JOBS = 1_000_000
MOST_NOTICES = 10_000


@dataclass
class SyncReport:
    """Counts of one sync of a source."""

    queued: int = 0
    unchanged: int = 0
    removed: int = 0
    moved: int = 0
    skipped: list[Failure] = field(default_factory=list)
    unread: list[Failure] = field(default_factory=list)
    """Items that the source could not read."""
    failed_before: list[Failure] = field(default_factory=list)
    """Items that failed in an earlier sync, have not changed since, and would only fail again."""
    gave_nothing: bool = False
    """True if everything that the source has is among `unread`."""

    @property
    def failures(self) -> list[Failure]:
        return [*self.unread, *self.failed_before]

    @property
    def source_failures(self) -> SourceFailures:
        """Return the failures to keep with the source."""
        return SourceFailures(len(self.unread), tuple(self.unread[:MOST_NAMED]), self.gave_nothing)

    @property
    def counts(self) -> dict[str, int]:
        """Return the counts under the words that are shown to people."""
        return {
            "queued": self.queued,
            "unchanged": self.unchanged,
            "removed": self.removed,
            "moved": self.moved,
            "failed": len(self.failures),
            "skipped": len(self.skipped),
        }

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {what}" for what, count in self.counts.items() if count) or "nothing new"
        reasons = "; ".join([*(failure.error for failure in self.failures[:3]), *describe_skipped(self.skipped)])
        return f"{counts} ({reasons})" if reasons else counts


@dataclass
class Sync:
    """One sync of one source."""

    ledger: Ledger
    preparer: Preparer
    tenant: str
    kb: KnowledgeBase
    record: SourceRecord
    ticket: Ticket | None = None
    seed: str = ""
    """Seed of the ids of new documents; the tenant's name unless the tenant was renamed."""
    owners: Owners = field(default_factory=dict)
    """Which of its files are documents already that others have brought, by external id."""
    report: SyncReport = field(default_factory=SyncReport)
    afresh: bool = False
    """Try all items again that failed before."""
    _listed: Container[str] | None = None

    async def run(self, source: Source, *, afresh: bool = False) -> SyncReport:
        """Read the source from its cursor on, or from the beginning; each page is queued whole or not at all."""
        self.afresh = afresh
        if isinstance(source, MaskedSource) and source.mask.contains_secret(self.record.cursor):
            await self._rename(source.mask)
        counted, lists_all = RunReport(), True
        diff = SourceDiff(self.ledger, self.preparer, self.tenant, self.kb, counted, self.ticket, self.seed)
        async for page in _in_time(source.fetch(None if afresh else self.record.cursor), self.record.name):
            if page.listed is not None:
                self._listed = page.listed
                await diff.expect_listing(SourceListing(self.record.name, page.listed))
            if page.leaving:
                await diff.expect_removals(self.record.name, page.leaving)
            lists_all = lists_all and page.cursor is None
            await self._queue_page(page, diff)
        await diff.remove_missing()
        self.report.gave_nothing = self._gave_nothing(lists_all)
        self.report.removed += counted.removed
        self.report.moved += counted.moved
        return self.report

    async def _queue_page(self, page: Page, diff: SourceDiff) -> None:
        work_items = []
        for entry in page.items:
            failure = entry if isinstance(entry, Failure) else _find_unstorable(entry) or self._find_owned(entry)
            if failure:
                diff.note_unread(failure)
                (self.report.skipped if failure.code == SKIPPED else self.report.unread).append(failure)
            elif isinstance(entry, Item):
                work_items.append(WorkItem(entry, JobBatch()))
        todo, current = await diff.compare(work_items)
        self.report.unchanged += len(current)
        earlier = await self.ledger.of(self.tenant).newest_jobs([work.document_id for work in todo])
        earlier = await self._drop_stale(earlier, page.removed)
        new = [work for work in todo if self._is_news(work, earlier.get(work.document_id))]
        jobs = await new_jobs(self.ledger, self.tenant, new, Priority.BATCH)
        async with self.ledger.transaction(self.tenant) as tx:
            await self._check_lease(tx)
            await tx.supersede_failed([work.document_id for work in current])
            await tx.enqueue_all(self.kb, jobs)
            for external_id in page.removed:
                gone = await tx.identify(self.kb, self.record.name, external_id)
                self.report.removed += bool(gone and await tx.delete(gone))
            await tx.advance(self.record.id, page.cursor)
        self.report.queued += len(jobs)

    def _find_owned(self, item: Item) -> Failure | None:
        owner = self.owners.get(item.external_id.partition(MEMBER)[0])
        return report_owned(item.uri, owner) if owner else None

    def _gave_nothing(self, lists_all: bool) -> bool:
        """Return whether the source gave nothing at all, neither new nor known."""
        report = self.report
        if not report.unread or report.queued or report.unchanged or report.failed_before:
            return False
        lost = {failure.uri for failure in report.unread}
        return lists_all or (isinstance(self._listed, frozenset) and self._listed <= lost)

    async def _rename(self, mask: SecretMask) -> None:
        """Give documents new ids that were stored before the values of variables were masked."""
        there = await self.ledger.of(self.tenant).source_documents(self.kb, self.record.name)
        for external_id, (identity, _) in there.items():
            document = await self.ledger.of(self.tenant).document(identity)
            if document is None or not mask.contains_secret([external_id, document.uri]):
                continue
            async with self.ledger.transaction(self.tenant) as tx:
                await self._check_lease(tx)
                await tx.move(identity, mask.hide_in_addresses(external_id), mask.hide_in_addresses(document.uri))

    async def _drop_stale(self, jobs: Mapping[str, Job], removed: Container[str]) -> dict[str, Job]:
        """Drop jobs that left a document out for a near duplicate that is gone or has changed since."""
        kept = {}
        for identity, job in jobs.items():
            if job.state == "failed" and job.error_code == NEAR_DUPLICATE:
                twin = await self.ledger.of(self.tenant).document(twin_of(job.error))
                if twin is None or not twin.version or self._is_removed(twin, removed):
                    continue
                if job.finished_at and _may_have_changed(twin, job.finished_at):
                    continue
            kept[identity] = job
        return kept

    def _is_removed(self, document: Document, removed: Container[str]) -> bool:
        """Return whether this sync removes a document."""
        if document.source != self.record.name or document.kb != self.kb.name:
            return False
        container = document.external_id.partition(MEMBER)[0]
        return document.external_id in removed or (
            self._listed is not None and document.external_id not in self._listed and container not in self._listed
        )

    def _is_news(self, work: WorkItem, job: Job | None) -> bool:
        """Return whether an item is to be queued: not if it is queued already, or would only fail again."""
        if job is None or job.content_hash != content_hash(work.item.content):
            return True
        skipped = job.state == "completed" and "skipped" in job.progress.found
        left_out = job.state == "failed" and job.error_code == NEAR_DUPLICATE
        if job.state in ACTIVE or left_out or (skipped and not self.afresh):
            self.report.unchanged += 1
            return False
        if job.state == "failed" and job.error_code not in PASSING and not self.afresh:
            failure = Failure(job.uri, job.error_code, job.error, job.progress.hint, job.progress.remedy)
            self.report.failed_before.append(failure)
            return False
        return True

    async def _check_lease(self, tx: Transaction) -> None:
        if self.ticket and not await tx.holds(self.ticket):
            raise LeaseLost(f"another worker has taken over source '{self.record.name}'")


def _find_unstorable(item: Item) -> Failure | None:
    """Return why an item cannot be kept for a job; None if it can: what else is wrong with it, the job tells."""
    if problem := find_unusable(item):
        return problem
    try:
        json.dumps(dict(item.metadata), allow_nan=False, default=str)
    except ValueError as error:
        said = f"the metadata of '{item.uri}' cannot be stored: {error}"
        return Failure(item.uri, "invalid_input", said, external_id=item.external_id)
    return None


def _may_have_changed(document: Document, since: datetime) -> bool:
    """Return whether a document may have changed since a time of whole seconds.

    Within the same second, only a first version is certain to be the older one.
    """
    return document.updated_at > since or (document.updated_at == since and document.version > 1)


async def _in_time(pages: AsyncIterator[Page], name: str) -> AsyncIterator[Page]:
    """Yield pages; raise `SourceError` if one takes so long that the source must be stuck."""
    while True:
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                page = await anext(pages, None)
        except TimeoutError:
            raise SourceError(
                f"source '{name}' gave nothing for {PAGE_SECONDS / 60:.0f} minutes",
                hint="it goes on where it was with the next sync",
            ) from None
        if page is None:
            return
        yield page


async def new_jobs(
    ledger: Ledger,
    tenant: str,
    work_items: Sequence[WorkItem],
    priority: Priority,
    *,
    keep: bool = False,
    notify: bool = False,
) -> list[NewJob]:
    """Store the content of items for any worker, and return the jobs to queue for them."""
    contents = [_bytes(work.item) for work in work_items]
    names = await ledger.of(tenant).keep_originals(
        [(work.document_id, content) for work, content in zip(work_items, contents, strict=True)]
    )
    return [
        _new_job(work, len(content), name, priority, keep=keep, notify=notify)
        for work, content, name in zip(work_items, contents, names, strict=True)
    ]


def _bytes(item: Item) -> bytes:
    content = item.content
    return content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")


def _new_job(work: WorkItem, size: int, original: str, priority: Priority, *, keep: bool, notify: bool) -> NewJob:
    item = work.item
    return NewJob(
        kind="document",
        source=item.source,
        external_id=item.external_id,
        uri=item.uri,
        priority=priority,
        document_id=work.document_id,
        content_hash=content_hash(item.content),
        size=size,
        facts={
            "title": one_line(item.title),
            "metadata": dict(item.metadata),
            "media_type": item.media_type,
            "modified_at": canonical(item.modified_at) if item.modified_at else None,
            "original": original,
            "text": isinstance(item.content, str),
            "keep": keep,
            "read": item.read or current_read_time(),
        },
        notify=notify,
    )


async def load_items(ledger: Ledger, tenant: str, jobs: Sequence[Job]) -> list[Item | None]:
    """Return the items of jobs; None for one that has been deleted since."""
    contents = await ledger.of(tenant).originals([(job.document_id, job.facts["original"]) for job in jobs])
    return [None if content is None else _load_item(job, content) for job, content in zip(jobs, contents, strict=True)]


def _load_item(job: Job, content: bytes) -> Item:
    facts = job.facts
    return Item(
        source=job.source,
        external_id=job.external_id,
        uri=job.uri,
        content=content.decode("utf-8", "surrogatepass") if facts["text"] else content,
        title=facts["title"],
        metadata=facts["metadata"],
        modified_at=parse_moment(facts["modified_at"]) if facts["modified_at"] else None,
        media_type=facts["media_type"],
        read=job.read,
    )


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
    skipped: int = 0
    """Pictures that were left out: those without words, and those that were passed over."""
    passed_over: int = 0
    """Pictures that were not named themselves; `message` says how to take them in."""
    unread: int = 0
    """Items that the source could not give, and those that failed before and have not changed since."""
    failures: int = 0
    """Everything that is not taken in by now, of this sync or an earlier one."""
    failed: tuple[Failure, ...] = ()
    """The first of them, or why the sync itself failed."""
    did_something: bool = False
    message: str = ""


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
        skipped=found.get("skipped", 0) + wordless,
        passed_over=found.get("skipped", 0),
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
