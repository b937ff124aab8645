"""Decide how each document of a run ends, duplicates included."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ragstone.core.errors import EmptyDocument, NoTextSeen
from ragstone.core.ids import content_hash
from ragstone.core.jobs import NEAR_DUPLICATE, UnderWay
from ragstone.core.ledger import Ledger, Transaction
from ragstone.core.types import SKIPPED, Failure, KnowledgeBase
from ragstone.ingest.diff import is_overtaken, outdated_jobs, overtaken, related
from ragstone.ingest.enrich.near_duplicates import NEAR, similarity
from ragstone.ingest.parsers.dispatch import is_picture
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.report import Tally
from ragstone.ingest.uploads import SOURCE as UPLOAD
from ragstone.ingest.work import Group, Task

REMEMBERED = 50_000
"""Documents of one run that are compared before they are live."""


class Twin(NamedTuple):
    """The live document that another one resembles most."""

    document_id: str
    similarity: float


class Resemblances:
    """Finds near duplicates among what is live and what came earlier in the same run."""

    def __init__(self, ledger: Ledger, tenant: str, kb: KnowledgeBase | None) -> None:
        """Without a kb only with what came earlier."""
        self._ledger = ledger
        self._tenant = tenant
        self._kb = kb
        self._run: dict[int, dict[str, bytes]] = {}
        self._count = 0

    async def live(self, wave: Sequence[Prepared]) -> Mapping[str, Mapping[str, bytes]]:
        """For each document of a wave the signatures of live ones that may resemble it, by document id."""
        bands = {document.task.document_id: document.bands for document in wave if document.bands}
        return await self._ledger.resembling(self._tenant, self._kb, bands) if bands and self._kb else {}

    def twin(self, document: Prepared, live: Mapping[str, bytes]) -> Twin | None:
        """Which other document this one is nearly equal to: a live one, or an earlier one of the run."""
        own = document.task.document_id
        found = dict(live)
        for band in document.bands:
            found.update(self._run.get(band, {}))
        found.pop(own, None)
        best = max(
            (Twin(identity, similarity(document.signature, other)) for identity, other in found.items()),
            key=lambda one: (one.similarity, one.document_id),
            default=None,
        )
        return best if best and best.similarity >= NEAR else None

    def remember(self, document: Prepared) -> None:
        """It is on its way: what comes after it may resemble it."""
        if self._count < REMEMBERED:
            self._count += 1
            for band in document.bands:
                self._run.setdefault(band, {})[document.task.document_id] = document.signature


def marked(document: Prepared, other: Twin) -> Prepared:
    """The document with a note of which one it resembles."""
    note = {"near_duplicate_of": other.document_id, "near_duplicate_similarity": round(other.similarity, 2)}
    return replace(document, metadata={**document.metadata, **note})


def left_out(uri: str, other: str) -> Failure:
    """Why a document is not there; `twin_of` reads the other one's id from it."""
    return Failure(uri, NEAR_DUPLICATE, f"{uri} is nearly the same as document {other}")


def twin_of(error: str) -> str:
    """The id of the document that another one was left out for."""
    return error.rpartition(" ")[2]


NO_WORDS = "no text was found in it"

Settle = Callable[[Group], Awaitable[None]]
"""Ends the job of a group that has ended without being stored."""


@dataclass(frozen=True, slots=True)
class Endings:
    """Counts how each task ended; the job of a group is settled with its last task."""

    ledger: Ledger
    tenant: str
    tally: Tally
    settle: Settle

    async def stored(self, document: Prepared) -> None:
        """It can be found; its job has ended in the transaction that stored it."""
        task = document.task
        await self._one_less(task)
        self.tally.updated += task.known
        self.tally.added += not task.known
        self.tally.chunks += len(document.chunks)
        self.tally.warnings += [f"{task.item.uri}: {warning}" for warning in document.parsed.warnings]
        self.tally.ended(task.item.uri)

    async def failed(self, task: Task, failure: Failure) -> None:
        """It cannot be a document, and this is why. What was emptied says nothing any more."""
        if is_emptied(task, failure):
            failure = await self._emptied(task, failure)
        failure = spared(task, failure)
        self.tally.fail(failure)
        task.group.fail(failure)
        await self._end(task)

    async def unchanged(self, task: Task) -> None:
        """It is live as it is."""
        self.tally.unchanged += 1
        self.tally.ended(task.item.uri)
        task.group.stored += 1
        if task.parent_id and not task.families:
            task.group.members.add(task.document_id)
        await self._end(task)

    async def skipped(self, document: Prepared, other: str) -> None:
        """It says nearly what another document says."""
        uri = document.task.item.uri
        self.tally.duplicates += 1
        self.tally.warnings.append(f"{uri}: left out, since it is nearly the same as document {other}")
        self.tally.ended(uri)
        document.task.group.failures.append(left_out(uri, other))
        await self._end(document.task)

    async def closed(self, group: Group) -> None:
        """One task less to wait for."""
        group.waiting -= 1
        if group.ended:
            await self.settle(group)

    async def _emptied(self, task: Task, failure: Failure) -> Failure:
        """Remove what a document said, unless its file was read again since."""
        queued = (await self.ledger.under_way(self.tenant, [task.document_id])).get(
            task.document_id, UnderWay()
        )
        async with self.ledger.transaction(self.tenant) as tx:
            live = await tx.live_contents(related(task))
            is_late = is_overtaken(task, content_hash(task.item.content), live)
            if is_late or task.read.precedes(queued.read):
                await tx.supersede(outdated_jobs([task]))
                return overtaken(task)
            if not await _withdrawn(tx, task):
                return failure
        self.tally.removed += 1
        return replace(failure, error=f"{failure.error}; what it said before was removed")

    async def _end(self, task: Task) -> None:
        await self._one_less(task)
        await self.closed(task.group)

    async def _one_less(self, task: Task) -> None:
        """Once all that came in together is there, what brought it is finished."""
        for family in task.families:
            family.waiting -= 1
            if not family.waiting:
                async with self.ledger.transaction(self.tenant) as tx:
                    await tx.set_recipe(family.document_id, family.content_hash, family.recipe)


async def _withdrawn(tx: Transaction, task: Task) -> bool:
    ticket = task.group.ticket
    if ticket is None or task.parent_id:
        return (ticket is None or await tx.holds(ticket)) and await tx.delete(task.document_id)
    # Its job stays, to say what became of it.
    return await tx.holds(ticket) and await tx.withdraw(task.document_id)


def is_emptied(task: Task, failure: Failure) -> bool:
    """Whether there is a document whose file says nothing any more."""
    return failure.code == EmptyDocument.code and task.known


def spared(task: Task, failure: Failure) -> Failure:
    """A picture without words is no failure, unless somebody has uploaded just that."""
    if failure.code == NoTextSeen.code and is_picture(failure.uri) and task.item.source != UPLOAD:
        return Failure(failure.uri, SKIPPED, NO_WORDS)
    return failure
