"""What a run would do: files are sorted and read as the run would, and nothing is written or embedded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragstone.core.errors import RagstoneError
from ragstone.core.ledger import Ledger
from ragstone.core.types import Failure, IngestReport, Item, KnowledgeBase, Stats, failure_of
from ragstone.ingest.diff import SourceDiff, SourceListing, WorkEntry, expand_items, next_batch
from ragstone.ingest.outcomes import NearDuplicates, excuse_picture, is_emptied
from ragstone.ingest.prepare import Prepared, Preparer, attachment_items, defect_failure, find_unusable
from ragstone.ingest.report import OnProgress, RunReport
from ragstone.ingest.work import WorkItem
from ragstone.settings.tree import LimitSettings

EMPTY = Stats(documents=0, chunks=0, tokens=0, unembedded=0, sequence=0, bytes=0, model="")


async def dry_run(
    ledger: Ledger,
    preparer: Preparer,
    tenant: str,
    kb: KnowledgeBase | None,
    items: Iterable[Item | Failure],
    listings: Sequence[SourceListing],
    limits: LimitSettings,
    on_progress: OnProgress | None = None,
) -> IngestReport:
    """Counts of what would be added, updated, unchanged, removed, moved and left out, and what would fail."""
    report = RunReport(on_progress)
    diff = SourceDiff(ledger, preparer, tenant, kb, report, dry=True) if kb else None
    for listing in listings if diff else ():
        assert diff is not None
        await diff.expect_listing(listing)
    run = _DryRun(preparer, report, diff, NearDuplicates(ledger, tenant, kb))
    entries = expand_items(items, limits, report.note_progress)
    while batch := await asyncio.to_thread(next_batch, entries):
        await run.sort_in(batch)
    if diff:
        await diff.remove_missing()
    return report.finish(await ledger.stats(tenant, kb) if kb else EMPTY)


@dataclass(frozen=True, slots=True)
class _DryRun:
    """One look at what there is."""

    preparer: Preparer
    report: RunReport
    diff: SourceDiff | None
    """None for a kb that is not there yet: all is new to it."""
    near_duplicates: NearDuplicates

    async def sort_in(self, batch: Sequence[WorkEntry]) -> None:
        """Sort and read what a run would."""
        work_items = []
        for entry in batch:
            if isinstance(entry, Failure):
                self.report.add_failure(entry)
            elif isinstance(entry, WorkItem):
                if failure := find_unusable(entry.item):
                    self.report.add_failure(failure)
                else:
                    work_items.append(entry)
        await self._compare_and_read(work_items)

    async def _compare_and_read(self, work_items: Sequence[WorkItem]) -> None:
        todo, current = await self._compare(work_items)
        for work in current:
            self.report.unchanged += 1
            self.report.note_done(work.item.uri)
        found = await asyncio.gather(*(self._read(work) for work in todo))
        for work, read in zip(todo, found, strict=True):
            if isinstance(read, Failure):
                self.report.removed += is_emptied(work, read)
                self.report.add_failure(excuse_picture(work, read))
            else:
                await self._count(read)

    async def _compare(self, work_items: Sequence[WorkItem]) -> tuple[list[WorkItem], list[WorkItem]]:
        if self.diff:
            return await self.diff.compare(work_items)
        return [replace(work, document_id=work.item.external_id) for work in work_items], []

    async def _read(self, work: WorkItem) -> Prepared | Failure:
        try:
            return await self.preparer.outline(work, _NoParts(), self.report.times)
        except RagstoneError as error:
            return failure_of(work.item.uri, error)
        except Exception as error:
            return defect_failure(work.item.uri, error)

    async def _count(self, document: Prepared) -> None:
        work = document.work
        if await self._is_left_out(document):
            self.report.duplicates += 1
        else:
            self.report.updated += work.known
            self.report.added += not work.known
            self.near_duplicates.remember(document)
        self.report.note_done(work.item.uri)
        await self._compare_and_read(
            [WorkItem(item, work.batch) for item in attachment_items(document, work.document_id)]
        )

    async def _is_left_out(self, document: Prepared) -> bool:
        if self.preparer.near_duplicates != "skip" or document.work.known or document.attachments:
            return False
        live = await self.near_duplicates.load_candidates([document])
        return self.near_duplicates.find_twin(document, live.get(document.work.document_id, {})) is not None


class _NoParts:
    """Nothing is kept of a document that is only looked at."""

    async def load(self, part: str) -> bytes | None:
        return None

    async def save(self, part: str, data: bytes) -> None:
        pass
