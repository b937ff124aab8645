"""What a source brings against what the ledger has: new, changed, unchanged, moved or gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ragstone.core.errors import LeaseLost
from ragstone.core.ids import content_hash, document_id, opaque_id
from ragstone.core.jobs import Ticket
from ragstone.core.ledger import Ledger, Transaction
from ragstone.core.types import Document, KnowledgeBase
from ragstone.ingest.prepare import Preparer
from ragstone.ingest.tally import Tally
from ragstone.ingest.task import Task

MEMBER = "!/"
"""Stands between an archive's or a mailbox's external id and that of what is in it."""


@dataclass(frozen=True, slots=True)
class Listing:
    """All that a source has: documents of it that are not listed are gone."""

    source: str
    listed: frozenset[str]
    under: str = ""
    """Only documents whose external id begins so are the listing's business."""
    is_there: Callable[[str], bool] = lambda _: False
    """Tells of what is not listed whether it is there all the same, and only not of a kind that is listed."""


@dataclass
class Arrivals:
    """Sorts the items of one run."""

    ledger: Ledger
    preparer: Preparer
    tenant: str
    kb: KnowledgeBase
    tally: Tally
    ticket: Ticket | None = None
    """Of the job that this is done for: without it nothing is moved or removed."""
    seed: str = ""
    """What ids of new documents are derived from; the tenant's name unless it has changed."""
    _gone: dict[tuple[str, str], str] = field(default_factory=dict)
    _lost: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _seen: set[tuple[str, str]] = field(default_factory=set)

    async def expect(self, listing: Listing) -> None:
        """Find out what is no longer there: it is gone, or it was moved and turns up among what comes after this."""
        there = await self.ledger.belongings(self.tenant, self.kb, listing.source, listing.under)
        for external_id, (identity, hashed) in there.items():
            container = external_id.partition(MEMBER)[0]
            if external_id not in listing.listed and (
                container in listing.listed or not listing.is_there(container)
            ):
                self._gone[listing.source, external_id] = identity
                if hashed and container not in listing.listed:
                    self._lost.setdefault((listing.source, hashed), []).append(external_id)

    async def changed(self, tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
        """The tasks there is something to do for, and those there is not."""
        live = await self._live(tasks)
        todo, current = [], []
        for task in tasks:
            item = task.item
            self._seen.add((item.source, item.external_id))
            known = live.get((item.source, item.external_id))
            if self.preparer.is_current(item, known):
                current.append(replace(task, document_id=known.id if known else ""))
            elif known:
                todo.append(replace(task, document_id=known.id, known=True))
            else:
                todo.append(await self._new(task))
        return todo, current

    async def end(self) -> None:
        """Remove what is gone: neither listed nor seen inside something that is."""
        for (source, external_id), identity in self._gone.items():
            if (source, external_id) in self._seen:
                continue
            async with self.ledger.transaction(self.tenant) as tx:
                await self._check(tx)
                self.tally.removed += await tx.delete(identity)

    async def _live(self, tasks: Sequence[Task]) -> dict[tuple[str, str], Document]:
        live = {}
        for source in {task.item.source for task in tasks}:
            ids = [task.item.external_id for task in tasks if task.item.source == source]
            found = await self.ledger.find(self.tenant, self.kb, source, ids)
            live.update({(source, external_id): document for external_id, document in found.items()})
        return live

    async def _new(self, task: Task) -> Task:
        item = task.item
        if task.document_id:
            return task
        lost = self._lost.get((item.source, content_hash(item.content)))
        if lost:
            # The same bytes left one place and turned up at another: the document moved, and keeps its id.
            moved = self._gone.pop((item.source, lost.pop(0)))
            async with self.ledger.transaction(self.tenant) as tx:
                await self._check(tx)
                await tx.move(moved, item.external_id, item.uri)
            self.tally.moved += 1
            return replace(task, document_id=moved, known=True)
        there = await self.ledger.identify(self.tenant, self.kb, item.source, item.external_id)
        if there:
            return replace(task, document_id=there)
        identity = document_id(self.seed or self.tenant, self.kb.name, item.source, item.external_id)
        if await self.ledger.status(self.tenant, identity):
            # A document that was moved away kept the id of this place.
            identity = opaque_id()
        return replace(task, document_id=identity)

    async def _check(self, tx: Transaction) -> None:
        if self.ticket and not await tx.holds(self.ticket):
            raise LeaseLost("another worker has this job by now")
