"""Count what a run would do: files are compared and read as in a run, and nothing is written or embedded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from ragstone.core.documents import FileKind, IngestReport
from ragstone.core.errors import InputError, RagstoneError
from ragstone.core.ledger import Ledger
from ragstone.core.types import Failure, Item, KnowledgeBase, Parsed, Stats, failure_of
from ragstone.ingest.diff import SourceDiff, WorkEntry, expand_items, next_batch
from ragstone.ingest.enrich.near_duplicates import NearDuplicates
from ragstone.ingest.prepare import Prepared, Preparer, attachment_items, defect_failure, find_unusable
from ragstone.ingest.sources.files.read import read_files
from ragstone.ingest.stage_times import StageTimes
from ragstone.ingest.store import excuse_picture, is_emptied
from ragstone.ingest.work import JobBatch, OnProgress, RunReport, SourceListing, WorkItem
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
    """Return the report that a run of these items would give."""
    report = RunReport(on_progress)
    diff = SourceDiff(ledger, preparer, tenant, kb, report, dry=True) if kb else None
    if diff:
        for listing in listings:
            await diff.expect_listing(listing)
    run = _DryRun(preparer, report, diff, NearDuplicates(ledger, tenant, kb))
    entries = expand_items(items, limits, report.note_progress)
    while fetched := await asyncio.to_thread(next_batch, entries):
        await run.read_all(fetched)
    if diff:
        await diff.remove_missing()
    return report.finish(await ledger.of(tenant).stats(kb) if kb else EMPTY)


async def read_file(preparer: Preparer, path: Path, limits: LimitSettings) -> Parsed:
    """Return the text of one file as `ingest` would read it; nothing is written."""
    item = await asyncio.to_thread(_read_item, path, limits)
    return (await preparer.outline(WorkItem(item, JobBatch()), _NoParts(), StageTimes())).parsed


def _read_item(path: Path, limits: LimitSettings) -> Item:
    """Return the one document of a file, or raise `InputError`."""
    if path.is_dir():
        raise InputError(f"{path} is a folder", hint="name a file in it")
    found = [*islice(read_files([path], limits), 2)]
    if len(found) != 1:
        what = "several documents" if found else "no document"
        raise InputError(f"{path} holds {what}", hint="name a file that is one document")
    if isinstance(found[0], Failure):
        raise InputError(found[0].error, hint=found[0].advice)
    return found[0]


@dataclass(frozen=True, slots=True)
class _DryRun:
    preparer: Preparer
    report: RunReport
    diff: SourceDiff | None
    """None for a kb that does not exist yet: all documents are new to it."""
    near_duplicates: NearDuplicates

    async def read_all(self, fetched: Sequence[WorkEntry]) -> None:
        """Compare, read and count the items."""
        work_items = []
        for entry in fetched:
            if isinstance(entry, Failure):
                self.report.add_failure(entry)
                if self.diff:
                    self.diff.note_unread(entry)
            elif isinstance(entry, WorkItem):
                if failure := find_unusable(entry.item):
                    self.report.add_failure(failure)
                else:
                    work_items.append(entry)
        await self._read_changed(work_items)

    async def _read_changed(self, work_items: Sequence[WorkItem]) -> None:
        changed, current = await self._compare(work_items)
        for work in current:
            self.report.unchanged += 1
            self.report.note_progress(work.item.uri)
        documents = await asyncio.gather(*(self._read(work) for work in changed))
        for work, document in zip(changed, documents, strict=True):
            if isinstance(document, Failure):
                self.report.removed += is_emptied(work, document)
                self.report.add_failure(excuse_picture(work, document))
            else:
                await self._count(document)

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
        self.report.files.append(FileKind(work.item.uri, document.parsed.media_type))
        if await self._is_left_out(document):
            self.report.duplicates += 1
        else:
            self.report.updated += work.known
            self.report.added += not work.known
            self.report.note_remarks(work.item.uri, document.parsed.warnings)
            self.near_duplicates.remember(work.document_id, document.signature, document.bands)
        self.report.note_progress(work.item.uri)
        children = attachment_items(document, work.document_id)
        await self._read_changed([WorkItem(item, work.batch) for item in children])

    async def _is_left_out(self, document: Prepared) -> bool:
        if self.preparer.near_duplicates != "skip" or document.work.known or document.attachments:
            return False
        identity, bands = document.work.document_id, document.bands
        live = await self.near_duplicates.load_candidates({identity: bands})
        return self.near_duplicates.find_twin(identity, document.signature, bands, live.get(identity, {})) is not None


class _NoParts:
    """Saves nothing of a document that is only read."""

    async def load(self, part: str) -> bytes | None:
        return None

    async def save(self, part: str, data: bytes) -> None:
        pass
