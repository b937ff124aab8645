"""One ingest run: FETCH → EXTRACT → NORMALIZE → CHUNK → ENRICH → EMBED → STORE → VERIFY.

Three things go on at once: the next documents are read, parsed and cut while a wave of chunks is with the
model, and the wave before is being written. A wave gathers the chunks of several documents, so that the
model's batches are full even when documents are small; each document still becomes visible whole or not at all.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ragstone.core.errors import KbGone, LeaseLost, RagstoneError, TenantGone
from ragstone.core.ids import content_hash
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import Embedder
from ragstone.core.tenants import Admission
from ragstone.core.types import Failure, IngestReport, Item, KnowledgeBase, failure_of
from ragstone.ingest.admission import Unlimited, check_room, reserve_room
from ragstone.ingest.diff import (
    SourceDiff,
    SourceListing,
    WorkEntry,
    expand_items,
    is_overtaken,
    next_batch,
    related_ids,
)
from ragstone.ingest.embed import ChunkQueue, LedgerPartStore, ModelChoice, WaveEmbedder
from ragstone.ingest.outcomes import NearDuplicates, Outcomes, Settle, mark_duplicate
from ragstone.ingest.prepare import (
    Prepared,
    Preparer,
    attachment_items,
    defect_failure,
    find_unusable,
    recipe_key,
)
from ragstone.ingest.report import ChunkSizes, OnProgress, RunReport, note_stage
from ragstone.ingest.scan import scan
from ragstone.ingest.store import store
from ragstone.ingest.verify import Verifier
from ragstone.ingest.work import JobBatch, ParentDocument, PinnedKb, WorkItem
from ragstone.settings.tree import LimitSettings

logger = logging.getLogger(__name__)
IN_FLIGHT = 4
"""Waves that are embedded or written while one more is gathered: enough that the model never waits for the disk."""


async def _ignore(_batch: JobBatch) -> None:
    """Nobody waits for a run that is not a job's."""


class IngestPipeline:
    """Turns items into live documents."""

    def __init__(
        self,
        ledger: Ledger,
        preparer: Preparer,
        embedder: Embedder,
        verifier: Verifier,
        limits: LimitSettings,
        scan_command: Sequence[str] = (),
        gate: Admission | None = None,
        choice: ModelChoice | None = None,
    ) -> None:
        self._ledger = ledger
        self._preparer = preparer
        self._choice = choice or ModelChoice(preparer.model, embedder)
        self._verifier = verifier
        self._limits = limits
        self._scan_command = scan_command
        self._gate = gate or Unlimited()

    async def run(
        self,
        tenant: str,
        kb_name: str | KnowledgeBase,
        items: Iterable[Item | Failure | WorkItem],
        on_progress: OnProgress | None = None,
        *,
        listings: Sequence[SourceListing] = (),
        settle: Settle = _ignore,
    ) -> IngestReport:
        """Ingest all items; one that fails is reported and the rest go on.

        A kb that is given as such has to be there already.
        """
        report = RunReport(on_progress, sizes=ChunkSizes.from_limits(self._limits))
        await self._gate.write(tenant)
        kb = await self._kb(tenant, kb_name, make=settle is _ignore)
        pinned = PinnedKb(self._ledger, tenant, kb)
        await self._choice.embedder(tenant, kb)
        run = _Run(
            self._ledger,
            self._preparer,
            WaveEmbedder(pinned, self._choice, self._gate, report),
            self._verifier,
            pinned,
            report,
            ChunkQueue(),
            Outcomes(self._ledger, tenant, report, settle),
            self._scan_command,
            NearDuplicates(self._ledger, tenant, kb),
            self._gate,
            await self._gate.write(tenant),
        )
        seed = await self._gate.seed(tenant)
        diff = SourceDiff(self._ledger, self._preparer, tenant, kb, report, seed=seed)
        for listing in listings:
            await diff.expect_listing(listing)
        producer = asyncio.create_task(
            run.produce(expand_items(items, self._limits, report.note_progress), diff)
        )
        try:
            await run.consume()
            await producer
        finally:
            producer.cancel()
            await asyncio.gather(producer, return_exceptions=True)
        if not run.gone:
            await diff.remove_missing()
        ended = report.finish(await self._ledger.stats(tenant, kb))
        logger.info(
            "ingested %d, failed %d in %.1f s", ended.added + ended.updated, len(ended.failed), ended.seconds
        )
        return ended

    async def _kb(self, tenant: str, name: str | KnowledgeBase, *, make: bool) -> KnowledgeBase:
        if isinstance(name, KnowledgeBase):
            return await PinnedKb(self._ledger, tenant, name).current()
        if not make:
            found = await self._ledger.kb(tenant, name)
            if found is None:
                raise LeaseLost(f"knowledge base '{name}' was deleted, and its jobs with it")
            return found
        async with self._ledger.transaction(tenant) as tx:
            return await tx.open_kb(name)


@dataclass(frozen=True, slots=True)
class _Run:
    """One run at work: what is read goes onto the belt, what comes off it is embedded and stored."""

    ledger: Ledger
    preparer: Preparer
    embedder: WaveEmbedder
    verifier: Verifier
    pinned: PinnedKb
    report: RunReport
    queue: ChunkQueue
    outcomes: Outcomes
    scan_command: Sequence[str]
    near_duplicates: NearDuplicates
    gate: Admission
    tenant_id: str
    """Whose name `tenant` was when the run began."""
    gone: list[KbGone] = field(default_factory=list)
    """Why nothing more can be stored, once that is so."""

    @property
    def tenant(self) -> str:
        return self.pinned.tenant

    async def produce(self, entries: Iterable[WorkEntry], diff: SourceDiff) -> None:
        """Read, sort, extract and cut until the entries end."""
        upcoming = iter(entries)
        try:
            while batch := await self._fetch(upcoming):
                tasks = []
                for entry in batch:
                    if isinstance(entry, JobBatch):
                        await self.outcomes.close_batch(entry)
                    elif isinstance(entry, Failure):
                        self.report.add_failure(entry)
                    elif failure := find_unusable(entry.item):
                        entry.batch.waiting += 1
                        await self.outcomes.record_failure(entry, failure)
                    else:
                        entry.batch.waiting += 1
                        tasks.append(entry)
                todo, current = await diff.compare(tasks)
                for task in current:
                    await self.outcomes.record_unchanged(task)
                await self._prepare_all(todo, diff)
        finally:
            self.queue.end()

    async def _fetch(self, upcoming: Iterable[WorkEntry]) -> list[WorkEntry]:
        with self.report.times.measure("fetch", 0) as out:
            batch = await asyncio.to_thread(next_batch, upcoming)
            out.append(sum(isinstance(entry, WorkItem) for entry in batch))
        return batch

    async def _prepare_all(self, tasks: Sequence[WorkItem], diff: SourceDiff) -> None:
        waiting = [asyncio.create_task(self._prepare(task)) for task in tasks]
        try:
            for task, pending in zip(tasks, waiting, strict=True):
                document = await pending
                if isinstance(document, Failure):
                    await self.outcomes.record_failure(task, document)
                else:
                    await self._hand_over(document, diff)
        finally:
            for pending in waiting:
                pending.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _prepare(self, task: WorkItem) -> Prepared | Failure:
        recipe = recipe_key(content_hash(task.item.content), self.preparer.recipe(task.item))
        parts = LedgerPartStore(self.ledger, self.tenant, task, recipe)
        uri = task.item.uri
        if self.gone:
            return _kb_gone_failure(task, self.gone[0])
        try:
            await check_room(self.gate, self.tenant, task)
            if self.scan_command and isinstance(task.item.content, bytes):
                await scan(self.scan_command, task.item.content, uri)
            async with self.gate.paying(self.tenant):
                return await self.preparer.prepare(task, parts, self.report.times)
        except RagstoneError as error:
            task.batch.retryable = error.retryable
            return failure_of(uri, error)
        except Exception as error:
            # A defect of ours costs one document, named with its reason; the rest of the run goes on.
            return defect_failure(uri, error)

    async def _hand_over(self, document: Prepared, diff: SourceDiff) -> None:
        """Onto the belt, and its attachments behind it."""
        task = document.work
        note_stage(task, "embed", chunks_total=len(document.chunks))
        task.batch.remarks += document.parsed.warnings
        task.batch.remarks += self.report.sizes.add(task.item.uri, document.chunks)
        if task.parent_id and not task.pending_parents:
            task.batch.members.add(task.document_id)
        if document.attachments:
            members = len(document.attachments) + 1
            parent = ParentDocument(task.document_id, document.content_hash, document.recipe, members)
            # Should this end half-way, the next run must not take the mail for finished.
            document = replace(
                document, recipe="", work=replace(task, pending_parents=(*task.pending_parents, parent))
            )
            await self.queue.put(document)
            await self._prepare_attachments(document, parent, diff)
            return
        await self.queue.put(document)
        if task.known:
            await self._prepare_attachments(document, None, diff)

    async def _prepare_attachments(
        self, document: Prepared, parent: ParentDocument | None, diff: SourceDiff
    ) -> None:
        task = document.work
        children = [
            WorkItem(
                item,
                task.batch,
                parent_id=task.document_id,
                parent_hash=document.content_hash,
                pending_parents=(parent,) if parent else (),
            )
            for item in attachment_items(document, task.document_id)
        ]
        task.batch.waiting += len(children)
        todo, current = await diff.compare(children)
        for child in current:
            await self.outcomes.record_unchanged(child)
        await self._prepare_all(todo, diff)
        if task.known:
            # An earlier version may have brought what this one does not have any more.
            await self._drop_children(document, {child.document_id for child in (*todo, *current)})

    async def _drop_children(self, document: Prepared, but: set[str]) -> None:
        task = document.work
        for child in await self.ledger.children(self.tenant, task.document_id):
            if child in but:
                continue
            async with self.ledger.transaction(self.tenant) as tx:
                holds = task.batch.ticket is None or await tx.holds(task.batch.ticket)
                live = await tx.live_contents(related_ids(task))
                if holds and not is_overtaken(task, document.content_hash, live):
                    await tx.delete(child)

    async def consume(self) -> None:
        """Embed and store waves in order; the model gets the next one before it has finished the last."""
        flying: deque[asyncio.Task[None]] = deque()
        stored: asyncio.Task[None] | None = None
        try:
            while wave := await self.queue.next_wave():
                stored = asyncio.create_task(self._embed_and_store(await self._mark_duplicates(wave), stored))
                flying.append(stored)
                if len(flying) > IN_FLIGHT:
                    await flying.popleft()
            await asyncio.gather(*flying)
        finally:
            for task in flying:
                task.cancel()
            await asyncio.gather(*flying, return_exceptions=True)

    async def _mark_duplicates(self, wave: Sequence[Prepared]) -> list[Prepared]:
        """The wave, what nearly equals another document marked or left out."""
        if self.preparer.near_duplicates == "off":
            return list(wave)
        live = await self.near_duplicates.load_candidates(wave)
        kept = []
        for document in wave:
            task = document.work
            other = self.near_duplicates.find_twin(document, live.get(task.document_id, {}))
            # What is live already, or brings something of its own, is not left out.
            alone = not (task.known or document.attachments)
            if other and alone and self.preparer.near_duplicates == "skip":
                await self.outcomes.record_duplicate(document, other.document_id)
                continue
            kept.append(mark_duplicate(document, other) if other else document)
            self.near_duplicates.remember(kept[-1])
        return kept

    async def _embed_and_store(self, wave: Sequence[Prepared], before: asyncio.Task[None] | None) -> None:
        async with reserve_room(
            self.gate, self.ledger, self.tenant, wave, self.outcomes.record_failure
        ) as fitting:
            if not fitting:
                if before:
                    await before
                return
            try:
                embedded = await self.embedder.embed(fitting)
                if before:
                    await before
                await self._check_tenant()
                embedded = await self.embedder.ensure_current(fitting, embedded)
                stored = await store(self.ledger, self.tenant, self.pinned.kb, fitting, embedded, self.report)
            except KbGone as error:
                # Under its name there may be another kb by now: nothing of this run is to go there.
                self.gone.append(error)
                for document in fitting:
                    await self.outcomes.record_failure(document.work, _kb_gone_failure(document.work, error))
                return
        for document in stored:
            await self.outcomes.record_stored(document)
        await self.verifier.check(self.tenant, self.pinned.kb, fitting, embedded, stored, self.report)

    async def _check_tenant(self) -> None:
        # Under a name that was given away since, another tenant would be made, or written to.
        if await self.gate.write(self.tenant) != self.tenant_id:
            raise TenantGone(f"tenant '{self.tenant}' was renamed or deleted meanwhile")


def _kb_gone_failure(task: WorkItem, error: KbGone) -> Failure:
    task.batch.retryable = error.retryable
    return failure_of(task.item.uri, error, f"{task.item.uri}: {error}")
