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
from ragstone.ingest.admission import OpenGate, expect_room, room_for
from ragstone.ingest.diff import Arrivals, Entry, Listing, is_overtaken, opened, related, some
from ragstone.ingest.embed import Belt, LedgerParts, ModelChoice, WaveEmbedder
from ragstone.ingest.outcomes import Endings, Resemblances, Settle, marked
from ragstone.ingest.prepare import Prepared, Preparer, attached, made_from, met_a_defect, unusable
from ragstone.ingest.report import ChunkSizes, OnProgress, Tally, at_stage
from ragstone.ingest.scan import scan
from ragstone.ingest.store import store
from ragstone.ingest.verify import Verifier
from ragstone.ingest.work import Family, Group, Scope, Task
from ragstone.settings.tree import LimitSettings

logger = logging.getLogger(__name__)
IN_FLIGHT = 4
"""Waves that are embedded or written while one more is gathered: enough that the model never waits for the disk."""


async def _nobody(_group: Group) -> None:
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
        self._gate = gate or OpenGate()

    async def run(
        self,
        tenant: str,
        kb_name: str | KnowledgeBase,
        items: Iterable[Item | Failure | Task],
        on_progress: OnProgress | None = None,
        *,
        listings: Sequence[Listing] = (),
        settle: Settle = _nobody,
    ) -> IngestReport:
        """Ingest all items; one that fails is reported and the rest go on.

        A kb that is given as such has to be there already.
        """
        tally = Tally(on_progress, sizes=ChunkSizes.asked_by(self._limits))
        await self._gate.write(tenant)
        kb = await self._kb(tenant, kb_name, make=settle is _nobody)
        scope = Scope(self._ledger, tenant, kb)
        await self._choice.embedder(tenant, kb)
        run = _Run(
            self._ledger,
            self._preparer,
            WaveEmbedder(scope, self._choice, self._gate, tally),
            self._verifier,
            scope,
            tally,
            Belt(),
            Endings(self._ledger, tenant, tally, settle),
            self._scan_command,
            Resemblances(self._ledger, tenant, kb),
            self._gate,
            await self._gate.write(tenant),
        )
        seed = await self._gate.seed(tenant)
        arrivals = Arrivals(self._ledger, self._preparer, tenant, kb, tally, seed=seed)
        for listing in listings:
            await arrivals.expect(listing)
        producer = asyncio.create_task(run.produce(opened(items, self._limits, tally.under_way), arrivals))
        try:
            await run.consume()
            await producer
        finally:
            producer.cancel()
            await asyncio.gather(producer, return_exceptions=True)
        if not run.gone:
            await arrivals.end()
        report = tally.report(await self._ledger.stats(tenant, kb))
        logger.info(
            "ingested %d, failed %d in %.1f s",
            report.added + report.updated,
            len(report.failed),
            report.seconds,
        )
        return report

    async def _kb(self, tenant: str, name: str | KnowledgeBase, *, make: bool) -> KnowledgeBase:
        if isinstance(name, KnowledgeBase):
            return await Scope(self._ledger, tenant, name).now()
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
    scope: Scope
    tally: Tally
    belt: Belt
    endings: Endings
    scan_command: Sequence[str]
    resemblances: Resemblances
    gate: Admission
    tenant_id: str
    """Whose name `tenant` was when the run began."""
    gone: list[KbGone] = field(default_factory=list)
    """Why nothing more can be stored, once that is so."""

    @property
    def tenant(self) -> str:
        return self.scope.tenant

    async def produce(self, entries: Iterable[Entry], arrivals: Arrivals) -> None:
        """Read, sort, extract and cut until the entries end."""
        upcoming = iter(entries)
        try:
            while batch := await self._fetch(upcoming):
                tasks = []
                for entry in batch:
                    if isinstance(entry, Group):
                        await self.endings.closed(entry)
                    elif isinstance(entry, Failure):
                        self.tally.fail(entry)
                    elif failure := unusable(entry.item):
                        entry.group.waiting += 1
                        await self.endings.failed(entry, failure)
                    else:
                        entry.group.waiting += 1
                        tasks.append(entry)
                todo, current = await arrivals.changed(tasks)
                for task in current:
                    await self.endings.unchanged(task)
                await self._prepare_all(todo, arrivals)
        finally:
            self.belt.end()

    async def _fetch(self, upcoming: Iterable[Entry]) -> list[Entry]:
        with self.tally.times.measure("fetch", 0) as out:
            batch = await asyncio.to_thread(some, upcoming)
            out.append(sum(isinstance(entry, Task) for entry in batch))
        return batch

    async def _prepare_all(self, tasks: Sequence[Task], arrivals: Arrivals) -> None:
        waiting = [asyncio.create_task(self._prepared(task)) for task in tasks]
        try:
            for task, pending in zip(tasks, waiting, strict=True):
                document = await pending
                if isinstance(document, Failure):
                    await self.endings.failed(task, document)
                else:
                    await self._hand_over(document, arrivals)
        finally:
            for pending in waiting:
                pending.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _prepared(self, task: Task) -> Prepared | Failure:
        recipe = made_from(content_hash(task.item.content), self.preparer.recipe(task.item))
        parts = LedgerParts(self.ledger, self.tenant, task, recipe)
        uri = task.item.uri
        if self.gone:
            return _lost(task, self.gone[0])
        try:
            await expect_room(self.gate, self.tenant, task)
            if self.scan_command and isinstance(task.item.content, bytes):
                await scan(self.scan_command, task.item.content, uri)
            async with self.gate.paying(self.tenant):
                return await self.preparer.prepare(task, parts, self.tally.times)
        except RagstoneError as error:
            task.group.retryable = error.retryable
            return failure_of(uri, error)
        except Exception as error:
            # A defect of ours costs one document, named with its reason; the rest of the run goes on.
            return met_a_defect(uri, error)

    async def _hand_over(self, document: Prepared, arrivals: Arrivals) -> None:
        """Onto the belt, and its attachments behind it."""
        task = document.task
        at_stage(task, "embed", chunks_total=len(document.chunks))
        task.group.remarks += document.parsed.warnings
        task.group.remarks += self.tally.sizes.add(task.item.uri, document.chunks)
        if task.parent_id and not task.families:
            task.group.members.add(task.document_id)
        if document.attachments:
            members = len(document.attachments) + 1
            family = Family(task.document_id, document.content_hash, document.recipe, members)
            # Should this end half-way, the next run must not take the mail for finished.
            document = replace(document, recipe="", task=replace(task, families=(*task.families, family)))
            await self.belt.put(document)
            await self._attachments(document, family, arrivals)
            return
        await self.belt.put(document)
        if task.known:
            await self._attachments(document, None, arrivals)

    async def _attachments(self, document: Prepared, family: Family | None, arrivals: Arrivals) -> None:
        task = document.task
        children = [
            Task(
                item,
                task.group,
                parent_id=task.document_id,
                parent_hash=document.content_hash,
                families=(family,) if family else (),
            )
            for item in attached(document, task.document_id)
        ]
        task.group.waiting += len(children)
        todo, current = await arrivals.changed(children)
        for child in current:
            await self.endings.unchanged(child)
        await self._prepare_all(todo, arrivals)
        if task.known:
            # An earlier version may have brought what this one does not have any more.
            await self._drop_children(document, {child.document_id for child in (*todo, *current)})

    async def _drop_children(self, document: Prepared, but: set[str]) -> None:
        task = document.task
        for child in await self.ledger.children(self.tenant, task.document_id):
            if child in but:
                continue
            async with self.ledger.transaction(self.tenant) as tx:
                holds = task.group.ticket is None or await tx.holds(task.group.ticket)
                live = await tx.live_contents(related(task))
                if holds and not is_overtaken(task, document.content_hash, live):
                    await tx.delete(child)

    async def consume(self) -> None:
        """Embed and store waves in order; the model gets the next one before it has finished the last."""
        flying: deque[asyncio.Task[None]] = deque()
        stored: asyncio.Task[None] | None = None
        try:
            while wave := await self.belt.wave():
                stored = asyncio.create_task(self._embed_and_store(await self._compared(wave), stored))
                flying.append(stored)
                if len(flying) > IN_FLIGHT:
                    await flying.popleft()
            await asyncio.gather(*flying)
        finally:
            for task in flying:
                task.cancel()
            await asyncio.gather(*flying, return_exceptions=True)

    async def _compared(self, wave: Sequence[Prepared]) -> list[Prepared]:
        """The wave, what nearly equals another document marked or left out."""
        if self.preparer.near_duplicates == "off":
            return list(wave)
        live = await self.resemblances.live(wave)
        kept = []
        for document in wave:
            task = document.task
            other = self.resemblances.twin(document, live.get(task.document_id, {}))
            # What is live already, or brings something of its own, is not left out.
            alone = not (task.known or document.attachments)
            if other and alone and self.preparer.near_duplicates == "skip":
                await self.endings.skipped(document, other.document_id)
                continue
            kept.append(marked(document, other) if other else document)
            self.resemblances.remember(kept[-1])
        return kept

    async def _embed_and_store(self, wave: Sequence[Prepared], before: asyncio.Task[None] | None) -> None:
        async with room_for(self.gate, self.ledger, self.tenant, wave, self.endings.failed) as fitting:
            if not fitting:
                if before:
                    await before
                return
            try:
                embedded = await self.embedder.embed(fitting)
                if before:
                    await before
                await self._check_tenant()
                embedded = await self.embedder.in_step(fitting, embedded)
                stored = await store(self.ledger, self.tenant, self.scope.kb, fitting, embedded, self.tally)
            except KbGone as error:
                # Under its name there may be another kb by now: nothing of this run is to go there.
                self.gone.append(error)
                for document in fitting:
                    await self.endings.failed(document.task, _lost(document.task, error))
                return
        for document in stored:
            await self.endings.stored(document)
        await self.verifier.check(self.tenant, self.scope.kb, fitting, embedded, stored, self.tally)

    async def _check_tenant(self) -> None:
        # Under a name that was given away since, another tenant would be made, or written to.
        if await self.gate.write(self.tenant) != self.tenant_id:
            raise TenantGone(f"tenant '{self.tenant}' was renamed or deleted meanwhile")


def _lost(task: Task, error: KbGone) -> Failure:
    task.group.retryable = error.retryable
    return failure_of(task.item.uri, error, f"{task.item.uri}: {error}")
