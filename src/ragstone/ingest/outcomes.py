"""Record how each document of a run ends, and find near duplicates."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ragstone.core.errors import EmptyDocument, NoTextSeen
from ragstone.core.ids import content_hash
from ragstone.core.jobs import NEAR_DUPLICATE, UnderWay
from ragstone.core.ledger import Ledger, Transaction
from ragstone.core.types import SKIPPED, Failure, KnowledgeBase
from ragstone.ingest.diff import is_overtaken, outdated_jobs, overtaken_failure, related_ids
from ragstone.ingest.enrich.near_duplicates import NEAR, similarity
from ragstone.ingest.parsers.dispatch import is_picture
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.uploads import SOURCE as UPLOAD
from ragstone.ingest.work import JobBatch, RunReport, WorkItem

REMEMBERED = 50_000
"""Documents of one run that are compared with each other before they are live."""


class Twin(NamedTuple):
    """The live document that another one resembles most."""

    document_id: str
    similarity: float


class NearDuplicates:
    """Finds near duplicates among live documents and those that came earlier in the same run."""

    def __init__(self, ledger: Ledger, tenant: str, kb: KnowledgeBase | None) -> None:
        """Without a kb, documents are compared with those of the run only."""
        self._ledger = ledger
        self._tenant = tenant
        self._kb = kb
        self._run: dict[int, dict[str, bytes]] = {}
        self._count = 0

    async def load_candidates(self, wave: Sequence[Prepared]) -> Mapping[str, Mapping[str, bytes]]:
        """Return, for each document of a wave, the signatures of live ones that may resemble it."""
        bands = {document.work.document_id: document.bands for document in wave if document.bands}
        return await self._ledger.resembling(self._tenant, self._kb, bands) if bands and self._kb else {}

    def find_twin(self, document: Prepared, live: Mapping[str, bytes]) -> Twin | None:
        """Return the document that this one is nearly equal to: a live one, or an earlier one of the run."""
        own = document.work.document_id
        found = dict(live)
        for band in document.bands:
            found.update(self._run.get(band, {}))
        found.pop(own, None)
        best = max(
            (Twin(identity, similarity(document.signature, other)) for identity, other in found.items()),
            key=lambda twin: (twin.similarity, twin.document_id),
            default=None,
        )
        return best if best and best.similarity >= NEAR else None

    def remember(self, document: Prepared) -> None:
        """Keep its signature to compare later documents of the run with it."""
        if self._count < REMEMBERED:
            self._count += 1
            for band in document.bands:
                self._run.setdefault(band, {})[document.work.document_id] = document.signature


def mark_duplicate(document: Prepared, other: Twin) -> Prepared:
    """Return the document with a note of which one it resembles."""
    note = {"near_duplicate_of": other.document_id, "near_duplicate_similarity": round(other.similarity, 2)}
    return replace(document, metadata={**document.metadata, **note})


def duplicate_failure(uri: str, other: str) -> Failure:
    """Return the reason for leaving a document out; `twin_of` reads the other one's id from it."""
    return Failure(uri, NEAR_DUPLICATE, f"{uri} is nearly the same as document {other}")


def twin_of(error: str) -> str:
    """Return the id of the document that another one was left out for."""
    return error.rpartition(" ")[2]


NO_WORDS = "no text was found in it"

Settle = Callable[[JobBatch], Awaitable[None]]
"""Ends the job of a batch that has ended without being stored."""


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
        self.report.warnings += [f"{work.item.uri}: {warning}" for warning in document.parsed.warnings]
        self.report.note_progress(work.item.uri)

    async def record_failure(self, work: WorkItem, failure: Failure) -> None:
        """Count a document that failed. The live version of a file that was emptied is removed."""
        if is_emptied(work, failure):
            failure = await self._remove_emptied(work, failure)
        failure = excuse_picture(work, failure)
        self.report.add_failure(failure)
        work.batch.fail(failure)
        await self._end(work)

    async def record_unchanged(self, work: WorkItem) -> None:
        """Count a document that is live already."""
        self.report.unchanged += 1
        self.report.note_progress(work.item.uri)
        work.batch.stored += 1
        if work.parent_id and not work.pending_parents:
            work.batch.members.add(work.document_id)
        await self._end(work)

    async def record_duplicate(self, document: Prepared, other: str) -> None:
        """Count a document that is left out because it nearly equals another one."""
        uri = document.work.item.uri
        self.report.duplicates += 1
        self.report.warnings.append(f"{uri}: left out, since it is nearly the same as document {other}")
        self.report.note_progress(uri)
        document.work.batch.failures.append(duplicate_failure(uri, other))
        await self._end(document.work)

    async def close_batch(self, batch: JobBatch) -> None:
        """Wait for one document less, and settle the job of the batch after the last one."""
        batch.waiting -= 1
        if batch.has_ended:
            await self.settle(batch)

    async def _remove_emptied(self, work: WorkItem, failure: Failure) -> Failure:
        """Remove the live version of an emptied file, unless the file was read again since."""
        queued = (await self.ledger.under_way(self.tenant, [work.document_id])).get(work.document_id, UnderWay())
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
