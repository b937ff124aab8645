"""One ingest run: FETCH → EXTRACT → NORMALIZE → CHUNK → ENRICH → EMBED → STORE → VERIFY.

Three things go on at once: the next documents are read, parsed and cut while a wave of chunks is with the
model, and the wave before is being written. A wave gathers the chunks of several documents, so that the
model's batches are full even when documents are small; each document still becomes visible whole or not at all.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ragstone.core.documents import IngestReport
from ragstone.core.errors import KbGone, LeaseLost, RagstoneError, TenantGone
from ragstone.core.ids import content_hash
from ragstone.core.ledger import Ledger
from ragstone.core.tenants import Admission
from ragstone.core.types import Failure, Item, KnowledgeBase, failure_of
from ragstone.ingest.diff import SourceDiff, WorkEntry, expand_items, is_overtaken, next_batch, related_ids
from ragstone.ingest.embed import ChunkQueue, LedgerPartStore, ModelChoice, WaveEmbedder
from ragstone.ingest.enrich.near_duplicates import NearDuplicates
from ragstone.ingest.prepare import Prepared, Preparer, attachment_items, defect_failure, find_unusable, recipe_key
from ragstone.ingest.room import check_room, reserve_room
from ragstone.ingest.store import Outcomes, Settle, store
from ragstone.ingest.uploads import scan
from ragstone.ingest.verify import Verifier
from ragstone.ingest.work import (
    ChunkSizes,
    JobBatch,
    OnProgress,
    ParentDocument,
    PinnedKb,
    RunReport,
    SourceListing,
    WorkItem,
)
from ragstone.settings.tree import LimitSettings

logger = logging.getLogger(__name__)
IN_FLIGHT = 4
"""Waves that are embedded or written while one more is gathered: enough that the model never waits for the disk."""


async def _settle_nothing(_batch: JobBatch) -> None:
    """Settle a batch that belongs to no job."""


class IngestPipeline:
    """Turns items into live documents."""

    def __init__(
        self,
        ledger: Ledger,
        preparer: Preparer,
        choice: ModelChoice,
        verifier: Verifier,
        limits: LimitSettings,
        gate: Admission,
        scan_command: Sequence[str] = (),
        on_report: Callable[[IngestReport], None] | None = None,
    ) -> None:
        """`on_report` hears of each run that has ended."""
        self._ledger = ledger
        self._preparer = preparer
        self._choice = choice
        self._verifier = verifier
        self._limits = limits
        self._scan_command = scan_command
        self._gate = gate
        self._on_report = on_report

    async def run(
        self,
        tenant: str,
        kb_name: str | KnowledgeBase,
        items: Iterable[Item | Failure | WorkItem],
        on_progress: OnProgress | None = None,
        *,
        listings: Sequence[SourceListing] = (),
        settle: Settle = _settle_nothing,
    ) -> IngestReport:
        """Ingest all items; one that fails is reported and the rest go on.

        A kb that is given as a `KnowledgeBase` must exist already.
        """
        report = RunReport(on_progress, sizes=ChunkSizes.from_limits(self._limits))
        await self._gate.write(tenant)
        kb = await self._open_kb(tenant, kb_name, create=settle is _settle_nothing)
        pinned = PinnedKb(self._ledger, tenant, kb)
        await self._choice.embedder(tenant, kb)
        tenant_id = await self._gate.write(tenant)
        seed = await self._gate.seed(tenant)
        diff = SourceDiff(self._ledger, self._preparer, tenant, kb, report, seed=seed)
        for listing in listings:
            await diff.expect_listing(listing)
        run = _Run(
            self._ledger,
            self._gate,
            tenant_id,
            pinned,
            diff,
            self._scan_command,
            self._preparer,
            NearDuplicates(self._ledger, tenant, kb),
            WaveEmbedder(pinned, self._choice, self._gate, report),
            self._verifier,
            Outcomes(self._ledger, tenant, report, settle),
            report,
        )
        await run.run(expand_items(items, self._limits, report.note_progress))
        ended = report.finish(await self._ledger.of(tenant).stats(kb))
        if self._on_report:
            self._on_report(ended)
        counts = {"stored": ended.added + ended.updated, "unchanged": ended.unchanged, "failed": len(ended.failed)}
        logger.info("ingested documents", extra={"facts": {**counts, "seconds": round(ended.seconds, 3)}})
        return ended

    async def _open_kb(self, tenant: str, name: str | KnowledgeBase, *, create: bool) -> KnowledgeBase:
        if isinstance(name, KnowledgeBase):
            return await PinnedKb(self._ledger, tenant, name).current()
        if not create:
            found = await self._ledger.of(tenant).kb(name)
            if found is None:
                raise LeaseLost(f"knowledge base '{name}' was deleted, and its jobs with it")
            return found
        async with self._ledger.transaction(tenant) as tx:
            return await tx.open_kb(name)


@dataclass(frozen=True, slots=True)
class _Run:
    """One run: a producer prepares documents and queues their chunks, a consumer embeds and stores them."""

    ledger: Ledger
    gate: Admission
    tenant_id: str
    """The tenant's id when the run began."""
    pinned: PinnedKb
    diff: SourceDiff
    scan_command: Sequence[str]
    preparer: Preparer
    near_duplicates: NearDuplicates
    embedder: WaveEmbedder
    verifier: Verifier
    outcomes: Outcomes
    report: RunReport
    queue: ChunkQueue = field(default_factory=ChunkQueue)
    gone: list[KbGone] = field(default_factory=list)
    """The reason, once nothing more can be stored."""

    @property
    def tenant(self) -> str:
        return self.pinned.tenant

    async def run(self, entries: Iterator[WorkEntry]) -> None:
        producer = asyncio.create_task(self._produce(entries))
        try:
            await self._consume()
            await producer
        finally:
            producer.cancel()
            await asyncio.gather(producer, return_exceptions=True)
        if not self.gone:
            await self.diff.remove_missing()

    async def _produce(self, entries: Iterator[WorkEntry]) -> None:
        """Fetch, compare and prepare until the entries end."""
        try:
            while fetched := await self._fetch(entries):
                await self._prepare_changed(await self._admit(fetched))
        finally:
            self.queue.end()

    # FETCH

    async def _fetch(self, entries: Iterator[WorkEntry]) -> list[WorkEntry]:
        with self.report.times.measure("fetch", 0) as out:
            fetched = await asyncio.to_thread(next_batch, entries)
            out.append(sum(isinstance(entry, WorkItem) for entry in fetched))
        return fetched

    async def _admit(self, fetched: Sequence[WorkEntry]) -> list[WorkItem]:
        """Return the items, which are waited for from now on; end batches that are complete."""
        work_items = []
        for entry in fetched:
            if isinstance(entry, JobBatch):
                await self.outcomes.close_batch(entry)
            elif isinstance(entry, Failure):
                self.report.add_failure(entry)
                self.diff.note_unread(entry)
            else:
                entry.batch.waiting += 1
                work_items.append(entry)
        return work_items

    async def _keep_usable(self, work_items: Sequence[WorkItem]) -> list[WorkItem]:
        """Return the items that can be documents; end the others."""
        usable = []
        for work in work_items:
            if failure := find_unusable(work.item):
                self.diff.note_unread(failure)
                await self.outcomes.record_failure(work, failure)
            else:
                usable.append(work)
        return usable

    # EXTRACT, NORMALIZE, CHUNK, ENRICH

    async def _prepare_changed(self, work_items: Sequence[WorkItem]) -> set[str]:
        """Prepare new and changed documents, queue their chunks, and return the ids of all documents."""
        changed, current = await self.diff.compare(await self._keep_usable(work_items))
        for work in (*changed, *current):
            if work.parent_id and not work.pending_parents:
                work.batch.members.add(work.document_id)
        for work in current:
            self.report.read_bytes += work.size
            await self.outcomes.record_unchanged(work)
        preparing = [asyncio.create_task(self._prepare(work)) for work in changed]
        try:
            for work, pending in zip(changed, preparing, strict=True):
                document = await pending
                self.report.read_bytes += work.size
                if isinstance(document, Failure):
                    await self.outcomes.record_failure(work, document)
                else:
                    self.report.note_cut(work.size, len(document.chunks))
                    await self._enqueue(document)
        finally:
            for pending in preparing:
                pending.cancel()
            await asyncio.gather(*preparing, return_exceptions=True)
        return {work.document_id for work in (*changed, *current)}

    async def _prepare(self, work: WorkItem) -> Prepared | Failure:
        key = recipe_key(content_hash(work.item.content), self.preparer.recipe(work.item))
        parts = LedgerPartStore(self.ledger, self.tenant, work, key)
        uri = work.item.uri
        if self.gone:
            return _kb_gone_failure(work, self.gone[0])
        try:
            await check_room(self.gate, self.tenant, work)
            if self.scan_command and isinstance(work.item.content, bytes):
                await scan(self.scan_command, work.item.content, uri)
            async with self.gate.paying(self.tenant):
                return await self.preparer.prepare(work, parts, self.report.times)
        except RagstoneError as error:
            work.batch.retryable |= error.retryable
            return failure_of(uri, error)
        except Exception as error:
            # A defect costs one document, which is named with the reason; the rest of the run goes on.
            return defect_failure(uri, error)

    async def _enqueue(self, document: Prepared) -> None:
        """Queue the chunks of a document, and those of its attachments behind them."""
        work = document.work
        work.note_stage("embed", chunks_total=len(document.chunks))
        work.batch.remarks += document.parsed.warnings
        work.batch.remarks += self.report.sizes.add(work.item.uri, document.chunks)
        parents: tuple[ParentDocument, ...] = ()
        if document.attachments:
            waiting = len(document.attachments) + 1
            parent = ParentDocument(work.document_id, document.content_hash, document.recipe, waiting)
            parents = (parent,)
            # Without its recipe: if this run ends half-way, the next one must not take the mail for finished.
            document = replace(document, recipe="", work=replace(work, pending_parents=(*work.pending_parents, parent)))
        await self.queue.put(document)
        if document.attachments or work.known:
            await self._prepare_attachments(document, parents)

    async def _prepare_attachments(self, document: Prepared, parents: tuple[ParentDocument, ...]) -> None:
        work = document.work
        children = [
            WorkItem(
                item, work.batch, parent_id=work.document_id, parent_hash=document.content_hash, pending_parents=parents
            )
            for item in attachment_items(document, work.document_id)
        ]
        work.batch.waiting += len(children)
        present = await self._prepare_changed(children)
        if work.known:
            # An earlier version may have had attachments that this one does not have any more.
            await self._drop_children(document, keep=present)

    async def _drop_children(self, document: Prepared, keep: set[str]) -> None:
        work = document.work
        for child in await self.ledger.of(self.tenant).children(work.document_id):
            if child in keep:
                continue
            async with self.ledger.transaction(self.tenant) as tx:
                holds = work.batch.ticket is None or await tx.holds(work.batch.ticket)
                live = await tx.live_contents(related_ids(work))
                if holds and not is_overtaken(work, document.content_hash, live):
                    await tx.delete(child)

    # EMBED, STORE, VERIFY

    async def _consume(self) -> None:
        """Embed and store waves in order; the model gets the next one before it has finished the last."""
        flying: deque[asyncio.Task[None]] = deque()
        stored: asyncio.Task[None] | None = None
        try:
            while wave := await self.queue.next_wave():
                unique = await self._mark_duplicates(wave)
                stored = asyncio.create_task(self._embed_store_verify(unique, stored))
                flying.append(stored)
                if len(flying) > IN_FLIGHT:
                    await flying.popleft()
            await asyncio.gather(*flying)
        finally:
            for task in flying:
                task.cancel()
            await asyncio.gather(*flying, return_exceptions=True)

    async def _mark_duplicates(self, wave: Sequence[Prepared]) -> list[Prepared]:
        """Return the wave with near duplicates of other documents marked or left out."""
        if self.preparer.near_duplicates == "off":
            return list(wave)
        live = await self.near_duplicates.load_candidates({doc.work.document_id: doc.bands for doc in wave})
        kept = []
        for document in wave:
            work, signed = document.work, (document.work.document_id, document.signature, document.bands)
            twin = self.near_duplicates.find_twin(*signed, live.get(work.document_id, {}))
            # A document that is live already, or brings attachments, is never left out.
            can_skip = not (work.known or document.attachments)
            if twin and can_skip and self.preparer.near_duplicates == "skip":
                await self.outcomes.record_duplicate(document, twin.document_id)
                continue
            kept.append(replace(document, metadata={**document.metadata, **twin.note()}) if twin else document)
            self.near_duplicates.remember(*signed)
        return kept

    async def _embed_store_verify(self, wave: Sequence[Prepared], before: asyncio.Task[None] | None) -> None:
        refuse = self.outcomes.record_failure
        async with reserve_room(self.gate, self.ledger, self.tenant, wave, refuse, before) as fitting:
            if not fitting:
                if before:
                    await before
                return
            try:
                embedded = await self.embedder.embed(fitting)
                if before:
                    await before
                if await self.gate.write(self.tenant) != self.tenant_id:
                    # The name may belong to another tenant by now, or writing would create one.
                    raise TenantGone(f"tenant '{self.tenant}' was renamed or deleted meanwhile")
                embedded = await self.embedder.ensure_current(fitting, embedded)
                stored, refused = await store(self.ledger, self.tenant, self.pinned.kb, fitting, embedded, self.report)
            except KbGone as error:
                # There may be another kb of the same name by now, which gets nothing of this run.
                self.gone.append(error)
                for document in fitting:
                    await self.outcomes.record_failure(document.work, _kb_gone_failure(document.work, error))
                return
        await self.outcomes.settle_late(fitting)
        for document, failure in refused:
            await self.outcomes.record_failure(document.work, failure)
        for document in stored:
            await self.outcomes.record_stored(document)
        await self.verifier.check(self.tenant, self.pinned.kb, fitting, embedded, stored, self.report)


def _kb_gone_failure(work: WorkItem, error: KbGone) -> Failure:
    work.batch.retryable = error.retryable
    return failure_of(work.item.uri, error, f"{work.item.uri}: {error}")
