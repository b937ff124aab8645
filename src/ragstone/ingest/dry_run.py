"""What a run would do: files are sorted and read as the run would, and nothing is written or embedded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragstone.core.errors import RagstoneError
from ragstone.core.ledger import Ledger
from ragstone.core.types import Failure, IngestReport, Item, KnowledgeBase, Stats, failure_of
from ragstone.ingest.diff import Arrivals, Entry, Listing, opened, some
from ragstone.ingest.outcomes import Resemblances, is_emptied, spared
from ragstone.ingest.prepare import Prepared, Preparer, attached, met_a_defect, unusable
from ragstone.ingest.report import OnProgress, Tally
from ragstone.ingest.work import Task
from ragstone.settings.tree import LimitSettings

EMPTY = Stats(documents=0, chunks=0, tokens=0, unembedded=0, sequence=0, bytes=0, model="")


async def preview(
    ledger: Ledger,
    preparer: Preparer,
    tenant: str,
    kb: KnowledgeBase | None,
    items: Iterable[Item | Failure],
    listings: Sequence[Listing],
    limits: LimitSettings,
    on_progress: OnProgress | None = None,
) -> IngestReport:
    """Counts of what would be added, updated, unchanged, removed, moved and left out, and what would fail."""
    tally = Tally(on_progress)
    arrivals = Arrivals(ledger, preparer, tenant, kb, tally, dry=True) if kb else None
    for listing in listings if arrivals else ():
        assert arrivals is not None
        await arrivals.expect(listing)
    look = _Look(preparer, tally, arrivals, Resemblances(ledger, tenant, kb))
    entries = opened(items, limits, tally.under_way)
    while batch := await asyncio.to_thread(some, entries):
        await look.at(batch)
    if arrivals:
        await arrivals.end()
    return tally.report(await ledger.stats(tenant, kb) if kb else EMPTY)


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at what there is."""

    preparer: Preparer
    tally: Tally
    arrivals: Arrivals | None
    """None for a kb that is not there yet: all is new to it."""
    resemblances: Resemblances

    async def at(self, batch: Sequence[Entry]) -> None:
        """Sort and read what a run would."""
        tasks = []
        for entry in batch:
            if isinstance(entry, Failure):
                self.tally.fail(entry)
            elif isinstance(entry, Task):
                if failure := unusable(entry.item):
                    self.tally.fail(failure)
                else:
                    tasks.append(entry)
        await self._take(tasks)

    async def _take(self, tasks: Sequence[Task]) -> None:
        todo, current = await self._sorted(tasks)
        for task in current:
            self.tally.unchanged += 1
            self.tally.ended(task.item.uri)
        found = await asyncio.gather(*(self._read(task) for task in todo))
        for task, read in zip(todo, found, strict=True):
            if isinstance(read, Failure):
                self.tally.removed += is_emptied(task, read)
                self.tally.fail(spared(task, read))
            else:
                await self._count(read)

    async def _sorted(self, tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
        if self.arrivals:
            return await self.arrivals.changed(tasks)
        return [replace(task, document_id=task.item.external_id) for task in tasks], []

    async def _read(self, task: Task) -> Prepared | Failure:
        try:
            return await self.preparer.outline(task, _NoParts(), self.tally.times)
        except RagstoneError as error:
            return failure_of(task.item.uri, error)
        except Exception as error:
            return met_a_defect(task.item.uri, error)

    async def _count(self, document: Prepared) -> None:
        task = document.task
        if await self._is_left_out(document):
            self.tally.duplicates += 1
        else:
            self.tally.updated += task.known
            self.tally.added += not task.known
            self.resemblances.remember(document)
        self.tally.ended(task.item.uri)
        await self._take([Task(item, task.group) for item in attached(document, task.document_id)])

    async def _is_left_out(self, document: Prepared) -> bool:
        if self.preparer.near_duplicates != "skip" or document.task.known or document.attachments:
            return False
        live = await self.resemblances.live([document])
        return self.resemblances.twin(document, live.get(document.task.document_id, {})) is not None


class _NoParts:
    """Nothing is kept of a document that is only looked at."""

    async def load(self, part: str) -> bytes | None:
        return None

    async def save(self, part: str, data: bytes) -> None:
        pass
