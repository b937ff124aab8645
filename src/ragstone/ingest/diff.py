"""Compare what a source brings with what is live: new, changed, unchanged, gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NamedTuple

from ragstone.core.clock import Reading, reading_now
from ragstone.core.errors import LeaseLost
from ragstone.core.ids import content_hash, document_id
from ragstone.core.jobs import Ticket, UnderWay
from ragstone.core.ledger import Ledger, Transaction
from ragstone.core.types import Failure, Item, KnowledgeBase, LiveContent
from ragstone.ingest.prepare import Preparer
from ragstone.ingest.report import RunReport
from ragstone.ingest.sources.files.archives import expand
from ragstone.ingest.work import JobBatch, Watch, WorkItem
from ragstone.settings.tree import LimitSettings


async def assign_ids(
    ledger: Ledger, tenant: str, seed: str, kb: KnowledgeBase, source: str, external_ids: Sequence[str]
) -> dict[str, str]:
    """Ids by what the source calls the documents; `seed` is what those of the tenant's new ones are derived from."""
    found: dict[str, str] = {}
    unknown = list(dict.fromkeys(external_ids))
    for turn in count():
        found.update(await ledger.identities(tenant, kb, source, unknown))
        root = f"{seed}/{kb.id}/{turn}" if turn else seed
        new = {one: document_id(root, kb.name, source, one) for one in unknown if one not in found}
        taken = await ledger.existing(tenant, list(new.values())) if new else set()
        found.update({one: identity for one, identity in new.items() if identity not in taken})
        # Somebody was faster, and it is known now; or what had this place before took the id along to another one.
        unknown = [one for one, identity in new.items() if identity in taken]
        if not unknown:
            break
    return found


Live = Mapping[str, LiveContent]


def with_read_time(item: Item) -> Item:
    """The item of somebody who has just come by it, unless it says when it was read."""
    return item if item.read else replace(item, read=reading_now())


def related_ids(work: WorkItem) -> list[str]:
    """A document and what it came in with."""
    return [one for one in (work.document_id, work.parent_id) if one]


def is_overtaken(work: WorkItem, content_hash: str, live: Live) -> bool:
    """Whether something else is live that was read after this: of the document, or of what it came in with."""
    return _is_other_since(live.get(work.document_id), content_hash, work.read) or _is_other_since(
        live.get(work.parent_id), work.parent_hash, work.read
    )


def overtaken_failure(work: WorkItem) -> Failure:
    """What is said of it."""
    uri = work.item.uri
    return Failure(uri, "overtaken", f"{uri} was read again since, and that is what is live")


def outdated_jobs(late: Iterable[WorkItem]) -> dict[str, Reading | None]:
    """Jobs of documents that were read again since; the others of an archive are still its job's business."""
    tickets = [work.batch.ticket for work in late if not work.parent_id]
    return {ticket.job_id: None for ticket in tickets if ticket}


def is_later(work: WorkItem, live: Live) -> bool:
    """Whether the document is live as it was read before this."""
    return work.document_id in live and live[work.document_id].read.precedes(work.read)


def _is_other_since(live: LiveContent | None, content_hash: str, read: Reading) -> bool:
    return live is not None and live.content_hash != content_hash and read.precedes(live.read)


MEMBER = "!/"
"""Stands between an archive's or a mailbox's external id and that of what is in it."""


@dataclass(frozen=True, slots=True)
class SourceListing:
    """All that a source has: documents of it that are not listed are gone."""

    source: str
    listed: frozenset[str]
    under: str = ""
    """Only documents whose external id begins so are the listing's business."""
    is_there: Callable[[str], bool] = lambda _: False
    """Tells of what is not listed whether it is there all the same, and only not of a kind that is listed."""
    read: Reading = field(default_factory=reading_now)
    """When it was about to be listed."""


class _Missing(NamedTuple):
    """A document that a listing does not have."""

    identity: str
    listed: Reading

    async def is_back(self, tx: Transaction) -> bool:
        """Whether somebody has read it after it was found missing."""
        live = (await tx.live_contents([self.identity])).get(self.identity)
        return live is not None and self.listed.precedes(live.read)


@dataclass
class SourceDiff:
    """Sorts the items of one run."""

    ledger: Ledger
    preparer: Preparer
    tenant: str
    kb: KnowledgeBase
    report: RunReport
    ticket: Ticket | None = None
    """Of the job that this is done for: without it nothing is moved or removed."""
    seed: str = ""
    """What ids of new documents are derived from; the tenant's name unless it has changed."""
    dry: bool = False
    """Whether what is moved and gone is only counted."""
    _missing: dict[tuple[str, str], _Missing] = field(default_factory=dict)
    _lost: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _seen: set[tuple[str, str]] = field(default_factory=set)

    async def expect_listing(self, listing: SourceListing) -> None:
        """Find out what is no longer there: it is gone, or it was moved and turns up among what comes after this."""
        there = await self.ledger.belongings(self.tenant, self.kb, listing.source, listing.under)
        # What was no archive when it was read, cut off perhaps, and is one now, is no document itself.
        archives = {one.partition(MEMBER)[0] for one in listing.listed if MEMBER in one}
        for external_id, (identity, hashed) in there.items():
            container = external_id.partition(MEMBER)[0]
            listed = external_id in listing.listed and external_id not in archives
            if not listed and (container in listing.listed or not listing.is_there(container)):
                self._missing[listing.source, external_id] = _Missing(identity, listing.read)
                if hashed and container not in listing.listed:
                    self._lost.setdefault((listing.source, hashed), []).append(external_id)

    async def expect_removals(self, source: str, external_ids: Sequence[str]) -> None:
        """Know of what is about to be removed: it may have moved, and then turns up among what comes after this."""
        read = reading_now()
        leaving = await self.ledger.find(self.tenant, self.kb, source, external_ids)
        for external_id, document in leaving.items():
            self._missing[source, external_id] = _Missing(document.id, read)
            self._lost.setdefault((source, document.content_hash), []).append(external_id)

    async def compare(self, work_items: Sequence[WorkItem]) -> tuple[list[WorkItem], list[WorkItem]]:
        """The tasks there is something to do for, and those there is not."""
        live = {}
        for source, ids in _by_source(work_items):
            found = await self.ledger.find(self.tenant, self.kb, source, ids)
            live.update({(source, external_id): document for external_id, document in found.items()})
        todo, current = [], []
        for work in work_items:
            item = work.item
            self._seen.add((item.source, item.external_id))
            known = live.get((item.source, item.external_id))
            if self.preparer.is_current(item, known):
                current.append(replace(work, document_id=known.id if known else ""))
            elif known:
                todo.append(replace(work, document_id=known.id, known=True))
            else:
                todo.append(await self._match_move(work))
        return await self._replace_queued(await self._assign_ids(todo), current)

    async def _replace_queued(
        self, todo: list[WorkItem], current: list[WorkItem]
    ) -> tuple[list[WorkItem], list[WorkItem]]:
        """The same, if nothing else is on its way: what waits and was read before this must not go live."""
        ids = [work.document_id for work in (*todo, *current) if work.batch.ticket is None]
        waiting = await self.ledger.under_way(self.tenant, ids) if ids else {}
        if not waiting:
            return todo, current
        late = [replace(work, known=True) for work in current if _is_other(work, waiting)]
        current = [work for work in current if not _is_other(work, waiting)]
        todo = [replace(work, waiting_job=_earlier(work, waiting).job_id) for work in (*todo, *late)]
        return todo, current

    async def remove_missing(self) -> None:
        """Remove what is gone: neither listed nor seen inside something that is."""
        for place, missing in self._missing.items():
            if place in self._seen:
                continue
            if self.dry:
                self.report.removed += 1
                continue
            async with self.ledger.transaction(self.tenant) as tx:
                await self._check_lease(tx)
                # Another run may have found it at another place, or something else may be here by now.
                if await tx.identify(self.kb, *place) == missing.identity and not await missing.is_back(tx):
                    self.report.removed += await tx.delete(missing.identity)

    async def _match_move(self, work: WorkItem) -> WorkItem:
        """The same bytes left one place and turned up at another: the document moved, and keeps its id."""
        item = work.item
        lost = self._lost.get((item.source, content_hash(item.content))) if self._lost else None
        if work.document_id or not lost:
            return work
        place = (item.source, lost.pop(0))
        moved = self._missing[place].identity
        if not self.dry and not await self._move(moved, place, item):
            return work
        del self._missing[place]
        self.report.moved += 1
        return replace(work, document_id=moved, known=True)

    async def _move(self, identity: str, place: tuple[str, str], item: Item) -> bool:
        async with self.ledger.transaction(self.tenant) as tx:
            await self._check_lease(tx)
            # Another run may have moved it already, or may have taken in what is at the new place.
            still_there = await tx.identify(self.kb, *place) == identity
            return still_there and await tx.move(identity, item.external_id, item.uri)

    async def _assign_ids(self, work_items: list[WorkItem]) -> list[WorkItem]:
        """The tasks with the ids that their documents have, or will have."""
        names: dict[tuple[str, str], str] = {}
        for source, ids in _by_source([work for work in work_items if not work.document_id]):
            found = await assign_ids(self.ledger, self.tenant, self.seed or self.tenant, self.kb, source, ids)
            names.update({(source, one): identity for one, identity in found.items()})
        return [
            work
            if work.document_id
            else replace(work, document_id=names[work.item.source, work.item.external_id])
            for work in work_items
        ]

    async def _check_lease(self, tx: Transaction) -> None:
        if self.ticket and not await tx.holds(self.ticket):
            raise LeaseLost("another worker has this job by now")


def _earlier(work: WorkItem, waiting: Mapping[str, UnderWay]) -> UnderWay:
    """The job that is to make the document of something that was read before."""
    job = waiting.get(work.document_id, UnderWay())
    return UnderWay() if work.read.precedes(job.read) else job


def _is_other(work: WorkItem, waiting: Mapping[str, UnderWay]) -> bool:
    hashed = _earlier(work, waiting).content_hash
    return bool(hashed) and hashed != content_hash(work.item.content)


def _by_source(work_items: Sequence[WorkItem]) -> list[tuple[str, list[str]]]:
    """External ids by source."""
    ids: dict[str, list[str]] = {}
    for work in work_items:
        ids.setdefault(work.item.source, []).append(work.item.external_id)
    return list(ids.items())


WorkEntry = WorkItem | Failure | JobBatch
"""A group stands behind the last of its tasks."""
LOOK_UP = 32
LOOK_UP_BYTES = 64 * 1024 * 1024


def expand_items(
    items: Iterable[Item | Failure | WorkItem], limits: LimitSettings, watch: Watch | None = None
) -> Iterator[WorkEntry]:
    """Tasks in order, each group closed behind its last."""
    for one in items:
        if isinstance(one, Failure):
            yield one
            continue
        work = one if isinstance(one, WorkItem) else WorkItem(with_read_time(one), JobBatch(watch=watch))
        yield from _members(work, limits)
        yield work.batch


def _members(work: WorkItem, limits: LimitSettings) -> Iterator[WorkEntry]:
    for member in expand(work.item, limits):
        if member is work.item:
            yield work
        elif isinstance(member, Failure):
            work.batch.fail(member)
            yield member
        else:
            yield WorkItem(member, work.batch, parent_id=work.document_id)


def next_batch(entries: Iterable[WorkEntry]) -> list[WorkEntry]:
    """A few entries, fewer when they are large: all of them are in memory at once."""
    batch: list[WorkEntry] = []
    size = 0
    for entry in entries:
        batch.append(entry)
        size += len(entry.item.content) if isinstance(entry, WorkItem) else 0
        if len(batch) == LOOK_UP or size >= LOOK_UP_BYTES:
            break
    return batch
