"""STORE: a wave of documents goes live, each whole or not at all, and jobs end in the same transaction.

How each document ended, stored or not, is recorded here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ragstone.core.clock import ReadTime
from ragstone.core.errors import PASSING, EmptyDocument, NoTextSeen, NotFoundError, PointRefused, RagstoneError
from ragstone.core.ids import content_hash
from ragstone.core.jobs import JobProgress, Ticket, UnderWay
from ragstone.core.ledger import Ledger, Transaction
from ragstone.core.types import SKIPPED, Failure, KnowledgeBase, Matrix, NewVersion, failure_of
from ragstone.ingest.diff import is_later, is_overtaken, is_unread, outdated_jobs, overtaken_failure, related_ids
from ragstone.ingest.embed import Embedded
from ragstone.ingest.enrich.near_duplicates import duplicate_failure
from ragstone.ingest.parsers.draft import is_picture
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.uploads import SOURCE as UPLOAD
from ragstone.ingest.work import JobBatch, RunReport, WorkItem

NO_WORDS = "no text was found in it"
Refused = tuple[Prepared, Failure]
Settle = Callable[[JobBatch], Awaitable[None]]
"""Ends the job of a batch that has ended without being stored."""


async def store(
    ledger: Ledger, tenant: str, kb: KnowledgeBase, wave: Sequence[Prepared], embedded: Embedded, report: RunReport
) -> tuple[list[Prepared], Sequence[Refused]]:
    """Write a wave and return the documents that are live now, and those that an index elsewhere refuses.

    Documents that were deleted, cancelled or read again since are left out.
    """
    with report.times.measure("store", len(wave)) as out:
        ahead = await _stage_ahead(ledger, tenant, kb, wave, embedded, report) if ledger.has_followers else None
        refused = ahead.refused if ahead else ()
        accepted = _without([document for document, _ in refused], wave)
        finished = _find_finished(accepted)
        dropped = {batch.ticket: await find_dropped(ledger, tenant, batch) for batch in finished if batch.ticket}
        with ExitStack() as ending:
            for batch in finished:
                ending.enter_context(batch.ending())
            async with ledger.transaction(tenant) as tx:
                live = await tx.live_contents(
                    [identity for document in accepted for identity in related_ids(document.work)]
                )
                late = [document for document in accepted if is_overtaken(document.work, document.content_hash, live)]
                wanted = await _select_wanted(tx, _without(late, accepted))
                stored = await _activate_staged(tx, ahead, accepted, wanted) if ahead else []
                fresh = _without(stored, wanted)
                if ahead:
                    # A version that went live since was read earlier, and has replaced the staged one.
                    fresh = [document for document in fresh if is_later(document.work, live)]
                if fresh:
                    staged = await _stage(tx, kb, wave, fresh, embedded, report)
                    await tx.activate_all(staged.kb, staged.versions_of(fresh))
                stored += fresh
                await tx.supersede(_find_outdated_jobs(stored, late))
                await complete_jobs(
                    tx, {batch.ticket: batch.final_progress() for batch in finished if batch.ticket}, dropped
                )
        out.append(len(stored))
    _count(stored, late, accepted, report)
    return stored, refused


def _count(stored: Sequence[Prepared], late: Sequence[Prepared], wave: Sequence[Prepared], report: RunReport) -> None:
    """Record the outcome of each document of a wave."""
    for document in wave:
        document.work.batch.waiting -= 1
    for document in stored:
        document.work.batch.stored += 1
    for document in late:
        report.add_failure(overtaken_failure(document.work))
    for document in _without([*stored, *late], wave):
        uri = document.work.item.uri
        reason = f"{uri} was deleted, cancelled or taken over while it was being read"
        report.add_failure(Failure(uri, "gone", reason))


def _find_outdated_jobs(stored: Sequence[Prepared], late: Sequence[Prepared]) -> dict[str, ReadTime | None]:
    """Return the jobs that would bring back older content of a document."""
    work_items = [document.work for document in stored]
    waiting = {work.waiting_job: work.read for work in work_items if work.waiting_job}
    return {**waiting, **outdated_jobs(document.work for document in late)}


def _without(excluded: Sequence[Prepared], wave: Sequence[Prepared]) -> list[Prepared]:
    left_out = {id(document) for document in excluded}
    return [document for document in wave if id(document) not in left_out]


@dataclass(frozen=True, slots=True)
class _Staged:
    """Versions that are written and not visible yet."""

    kb: KnowledgeBase
    numbers: Mapping[int, int]
    """Version numbers by the identity of the prepared document."""
    refused: Sequence[Refused] = ()

    def versions_of(self, documents: Sequence[Prepared]) -> list[tuple[str, int]]:
        """Return document id and version number of those that are staged."""
        return [
            (document.work.document_id, self.numbers[id(document)])
            for document in documents
            if id(document) in self.numbers
        ]


async def _stage_ahead(
    ledger: Ledger, tenant: str, kb: KnowledgeBase, wave: Sequence[Prepared], embedded: Embedded, report: RunReport
) -> _Staged:
    """Stage a wave and send it to an external index, so that it goes live there and here at once."""
    async with ledger.transaction(tenant) as tx:
        wanted = await _select_wanted(tx, wave)
        staged = await _stage(tx, kb, wave, wanted, embedded, report)
    try:
        refused = await _find_refused(ledger, tenant, staged, wanted)
    except RagstoneError:
        async with ledger.transaction(tenant) as tx:
            await tx.discard_all(staged.kb, staged.versions_of(wanted))
        raise
    if refused:
        async with ledger.transaction(tenant) as tx:
            await tx.discard_all(staged.kb, staged.versions_of([document for document, _ in refused]))
    return replace(staged, refused=refused)


async def _find_refused(ledger: Ledger, tenant: str, staged: _Staged, documents: Sequence[Prepared]) -> list[Refused]:
    """Send staged documents to an external index and return those that it refuses, found by halves."""
    try:
        await ledger.prepare(tenant, staged.kb, staged.versions_of(documents))
    except PointRefused as error:
        if len(documents) == 1:
            return [(documents[0], failure_of(documents[0].work.item.uri, error))]
        half = len(documents) // 2
        first = await _find_refused(ledger, tenant, staged, documents[:half])
        return first + await _find_refused(ledger, tenant, staged, documents[half:])
    return []


async def _activate_staged(
    tx: Transaction, staged: _Staged, wave: Sequence[Prepared], wanted: Sequence[Prepared]
) -> list[Prepared]:
    """Activate the staged documents that are wanted, discard the rest, and return those that are live now."""
    live: list[Prepared] = []
    for document in wanted:
        for version in staged.versions_of([document]):
            try:
                await tx.activate(staged.kb, *version)
            except NotFoundError:
                continue  # deleted while it was on its way to the index, or a newer version went live
            live.append(document)
    if unwanted := staged.versions_of(_without(live, wave)):
        await tx.discard_all(staged.kb, unwanted)
    return live


async def _stage(
    tx: Transaction,
    opened: KnowledgeBase,
    wave: Sequence[Prepared],
    wanted: Sequence[Prepared],
    embedded: Embedded,
    report: RunReport,
) -> _Staged:
    kb = await tx.present(opened)
    vectors = embedded.vectors
    foreign: Matrix | None = None
    if vectors is not None and kb.space and not embedded.fit(kb.space):
        # The wave before opened the Space while a fallback embedded this one, or the kb has just been moved.
        answered, live = embedded.model, kb.space.model
        if answered == live:
            answered, live = f"{answered} ({vectors.shape[1]} dimensions)", f"{live} ({kb.space.dimension})"
        report.note_foreign_model(answered, live)
        vectors, foreign = None, vectors
    if vectors is not None and wanted:
        kb = await tx.open_space(kb, embedded.model, vectors.shape[1])
    chosen = {id(document) for document in wanted}
    versions: dict[int, NewVersion] = {}
    rows: list[slice] = []
    start = 0
    for document in wave:
        end = start + len(document.chunks)
        if id(document) in chosen:
            versions[id(document)] = _version(document, None if vectors is None else vectors[start:end])
            rows.append(slice(start, end))
        start = end
    numbers = await tx.stage_all(kb, list(versions.values()))
    if foreign is not None:
        # Kept in the Space of their own model, which is searched again only if the kb is moved back.
        staged = [(version.document_id, number) for version, number in zip(versions.values(), numbers, strict=True)]
        await tx.keep_vectors(kb, embedded.model, staged, [foreign[part] for part in rows])
    return _Staged(kb, dict(zip(versions, numbers, strict=True)))


async def _select_wanted(tx: Transaction, wave: Sequence[Prepared]) -> list[Prepared]:
    """Return the documents of jobs that are still held, without those deleted since they were read."""
    work_items = [document.work for document in wave]
    held = await tx.holding([work.batch.ticket for work in work_items if work.batch.ticket])
    needed = [work.document_id for work in work_items if work.known] + [work.parent_id for work in work_items]
    there = set(await tx.existing([identity for identity in needed if identity]))
    wanted: list[Prepared] = []
    for document in wave:
        work = document.work
        if work.batch.ticket and work.batch.ticket not in held:
            continue
        if work.known and work.document_id not in there:
            continue
        if not work.parent_id or work.parent_id in there:
            wanted.append(document)
            there.add(work.document_id)
    return wanted


def _find_finished(wave: Sequence[Prepared]) -> list[JobBatch]:
    """Return the batches whose last documents are in this wave, without those of which some may be taken in later."""
    batches = {id(document.work.batch): document.work.batch for document in wave}.values()
    here = Counter(id(document.work.batch) for document in wave)
    return [batch for batch in batches if batch.waiting == here[id(batch)] and not batch.passing]


async def find_dropped(ledger: Ledger, tenant: str, batch: JobBatch) -> list[str]:
    """Return the documents of an archive that it has no longer, without those in parts of it that were not read."""
    if not batch.was_opened:
        return []
    there = ledger.of(tenant)
    dropped = [child for child in await there.children(batch.document_id) if child not in batch.members]
    unread = {failure.external_id for failure in batch.failures if failure.external_id}
    if not unread:
        return dropped
    found = [await there.document(child) for child in dropped]
    return [document.id for document in found if document and not is_unread(document.external_id, unread)]


async def complete_jobs(
    tx: Transaction, finished: Mapping[Ticket, JobProgress], dropped: Mapping[Ticket, Sequence[str]]
) -> None:
    """Complete jobs whose tickets are still good, and delete what their archives have no longer."""
    await delete_dropped(tx, dropped)
    await tx.complete_all(finished)


async def delete_dropped(tx: Transaction, dropped: Mapping[Ticket, Sequence[str]]) -> None:
    """Delete what archives have no longer, where the tickets of their jobs are still good."""
    for ticket in await tx.holding([ticket for ticket, children in dropped.items() if children]):
        for child in dropped[ticket]:
            await tx.delete(child)


def _version(document: Prepared, vectors: Matrix | None) -> NewVersion:
    item = document.work.item
    return NewVersion(
        document_id=document.work.document_id,
        source=item.source,
        external_id=item.external_id,
        uri=item.uri,
        title=document.parsed.title,
        content_hash=document.content_hash,
        text=document.parsed.text,
        media_type=document.parsed.media_type,
        metadata=document.metadata,
        recipe=document.recipe,
        modified_at=item.modified_at,
        chunks=document.chunks,
        terms=document.terms,
        vectors=vectors,
        parent_id=document.work.parent_id,
        signature=document.signature,
        bands=document.bands,
        read=document.work.read,
    )


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Counts how each document ended; the job of a batch is settled with its last document."""

    ledger: Ledger
    tenant: str
    report: RunReport
    settle: Settle

    async def record_stored(self, document: Prepared) -> None:
        """Count a live document; its job has ended in the transaction that stored it."""
        work = document.work
        await self._finish_parents(work)
        self.report.updated += work.known
        self.report.added += not work.known
        self.report.chunks += len(document.chunks)
        self.report.note_remarks(work.item.uri, document.parsed.warnings)
        self.report.note_progress(work.item.uri)

    async def record_failure(self, work: WorkItem, failure: Failure) -> None:
        """Count a document that failed. The live version of a file that was emptied is removed."""
        if is_emptied(work, failure):
            failure = await self._remove_emptied(work, failure)
        failure = excuse_picture(work, failure)
        self.report.add_failure(failure)
        work.batch.fail(failure)
        if failure.code in PASSING:
            # Its parents stay unfinished, so that they are read again, and it with them.
            await self.close_batch(work.batch)
        else:
            await self._end(work)

    async def record_unchanged(self, work: WorkItem) -> None:
        """Count a document that is live already."""
        self.report.unchanged += 1
        self.report.note_progress(work.item.uri)
        work.batch.stored += 1
        await self._end(work)

    async def record_duplicate(self, document: Prepared, other: str) -> None:
        """Count a document that is left out because it nearly equals another one."""
        uri = document.work.item.uri
        self.report.duplicates += 1
        self.report.cut -= len(document.chunks)
        self.report.warnings.append(f"{uri}: left out, since it is nearly the same as document {other}")
        self.report.note_progress(uri)
        document.work.batch.failures.append(duplicate_failure(uri, other))
        await self._end(document.work)

    async def settle_late(self, wave: Sequence[Prepared]) -> None:
        """Settle the jobs whose other documents all ended while this wave, with their last ones, was stored."""
        for batch in {id(document.work.batch): document.work.batch for document in wave}.values():
            if batch.has_ended and not batch.is_ending:
                await self.settle(batch)

    async def close_batch(self, batch: JobBatch) -> None:
        """Wait for one document less, and settle the job of the batch after the last one."""
        batch.waiting -= 1
        if batch.has_ended:
            await self.settle(batch)

    async def _remove_emptied(self, work: WorkItem, failure: Failure) -> Failure:
        """Remove the live version of an emptied file, unless the file was read again since."""
        queued = (await self.ledger.of(self.tenant).under_way([work.document_id])).get(work.document_id, UnderWay())
        async with self.ledger.transaction(self.tenant) as tx:
            live = await tx.live_contents(related_ids(work))
            overtaken = is_overtaken(work, content_hash(work.item.content), live)
            if overtaken or work.read.precedes(queued.read):
                await tx.supersede(outdated_jobs([work]))
                return overtaken_failure(work)
            if not await _withdraw(tx, work):
                return failure
        self.report.removed += 1
        return replace(failure, error=f"{failure.error}; what it said before was removed")

    async def _end(self, work: WorkItem) -> None:
        await self._finish_parents(work)
        await self.close_batch(work.batch)

    async def _finish_parents(self, work: WorkItem) -> None:
        """Mark parents as finished whose last attachment has ended."""
        for parent in work.pending_parents:
            parent.waiting -= 1
            if not parent.waiting:
                async with self.ledger.transaction(self.tenant) as tx:
                    await tx.set_recipe(parent.document_id, parent.content_hash, parent.recipe)


async def _withdraw(tx: Transaction, work: WorkItem) -> bool:
    ticket = work.batch.ticket
    if ticket is None or work.parent_id:
        return (ticket is None or await tx.holds(ticket)) and await tx.delete(work.document_id)
    # Its job stays in the ledger, to show what became of the document.
    return await tx.holds(ticket) and await tx.withdraw(work.document_id)


def is_emptied(work: WorkItem, failure: Failure) -> bool:
    """Return whether the file of a live document is empty now."""
    return failure.code == EmptyDocument.code and work.known


def excuse_picture(work: WorkItem, failure: Failure) -> Failure:
    """Return a picture without words as skipped, not failed, unless it was uploaded by itself."""
    if failure.code == NoTextSeen.code and is_picture(failure.uri) and work.item.source != UPLOAD:
        return Failure(failure.uri, SKIPPED, NO_WORDS)
    return failure
