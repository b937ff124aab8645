"""Compare what a source brings with what is live: new, changed, unchanged, gone."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NamedTuple

from ragstone.core.clock import ReadTime, current_read_time
from ragstone.core.errors import LeaseLost
from ragstone.core.ids import content_hash, document_id
from ragstone.core.jobs import Ticket, UnderWay
from ragstone.core.ledger import Ledger, Transaction
from ragstone.core.types import Document, Failure, Item, KnowledgeBase, LiveContent
from ragstone.ingest.prepare import Preparer
from ragstone.ingest.sources.files.read import expand, is_container
from ragstone.ingest.sources.files.walk import keep_shown_path
from ragstone.ingest.work import JobBatch, RunReport, SourceListing, Watch, WorkItem
from ragstone.settings.tree import LimitSettings

Live = Mapping[str, LiveContent]
MEMBER = "!/"
"""Stands between an archive's or a mailbox's external id and that of what is in it."""
WorkEntry = WorkItem | Failure | JobBatch
"""A batch stands behind its last item."""
LOOK_UP = 32
LOOK_UP_BYTES = 64 * 1024 * 1024


async def assign_ids(
    ledger: Ledger, tenant: str, seed: str, kb: KnowledgeBase, source: str, external_ids: Sequence[str]
) -> dict[str, str]:
    """Return document ids by external id; ids of new documents are derived from `seed`."""
    found: dict[str, str] = {}
    unknown = list(dict.fromkeys(external_ids))
    for turn in count():
        found.update(await ledger.of(tenant).identities(kb, source, unknown))
        root = f"{seed}/{kb.id}/{turn}" if turn else seed
        new = {name: document_id(root, kb.name, source, name) for name in unknown if name not in found}
        taken = await ledger.of(tenant).existing(list(new.values())) if new else set()
        found.update({name: identity for name, identity in new.items() if identity not in taken})
        # Another run was faster, and the document is known now; or a document that moved away kept the id.
        unknown = [name for name, identity in new.items() if identity in taken]
        if not unknown:
            break
    return found


def with_read_time(item: Item) -> Item:
    """Return the item, read just now unless it says when."""
    return item if item.read else replace(item, read=current_read_time())


def related_ids(work: WorkItem) -> list[str]:
    """Return the ids of a document and of its parent."""
    return [identity for identity in (work.document_id, work.parent_id) if identity]


def is_overtaken(work: WorkItem, content_hash: str, live: Live) -> bool:
    """Return whether other content of the document or of its parent is live that was read later."""
    return _is_other_since(live.get(work.document_id), content_hash, work.read) or _is_other_since(
        live.get(work.parent_id), work.parent_hash, work.read
    )


def overtaken_failure(work: WorkItem) -> Failure:
    """Return the failure of a document that was read again since."""
    uri = work.item.uri
    return Failure(uri, "overtaken", f"{uri} was read again since, and that is what is live")


def outdated_jobs(late: Iterable[WorkItem]) -> dict[str, ReadTime | None]:
    """Return the jobs of documents that were read again since; members of an archive leave its job alone."""
    tickets = [work.batch.ticket for work in late if not work.parent_id]
    return {ticket.job_id: None for ticket in tickets if ticket}


def is_later(work: WorkItem, live: Live) -> bool:
    """Return whether the live version of the document was read before this."""
    return work.document_id in live and live[work.document_id].read.precedes(work.read)


def _is_other_since(live: LiveContent | None, content_hash: str, read: ReadTime) -> bool:
    return live is not None and live.content_hash != content_hash and read.precedes(live.read)


def is_unread(external_id: str, unread: Container[str]) -> bool:
    """Return whether a document, or something that it is in, is among what could not be read."""
    parts = external_id.split(MEMBER)
    return any(MEMBER.join(parts[:depth]) in unread for depth in range(1, len(parts) + 1))


class _Missing(NamedTuple):
    """A document that a listing does not have."""

    identity: str
    listed: ReadTime

    async def is_back(self, tx: Transaction) -> bool:
        """Return whether it was read again after it was found missing."""
        live = (await tx.live_contents([self.identity])).get(self.identity)
        return live is not None and self.listed.precedes(live.read)


@dataclass
class SourceDiff:
    """Sorts the items of one run into changed and unchanged, and finds documents that moved or are gone."""

    ledger: Ledger
    preparer: Preparer
    tenant: str
    kb: KnowledgeBase
    report: RunReport
    ticket: Ticket | None = None
    """The job of this run: once another worker has it, nothing is moved or removed."""
    seed: str = ""
    """Seed of the ids of new documents; the tenant's name unless the tenant was renamed."""
    dry: bool = False
    """Only count what moved and what is gone."""
    _missing: dict[tuple[str, str], _Missing] = field(default_factory=dict)
    _lost: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _unread: set[str] = field(default_factory=set)
    """External ids of files, and of what is in them, that could not be read."""

    async def expect_listing(self, listing: SourceListing) -> None:
        """Note which documents are not listed: they are gone, or moved and turn up among later items."""
        there = await self.ledger.of(self.tenant).source_documents(self.kb, listing.source, listing.under)
        # A file that was read as a document, perhaps cut off, and is an archive now is no document any more.
        archives = {name.partition(MEMBER)[0] for name in listing.listed if MEMBER in name}
        for external_id, (identity, hashed) in there.items():
            container = external_id.partition(MEMBER)[0]
            listed = external_id in listing.listed and external_id not in archives
            if not listed and (container in listing.listed or not listing.is_there(container)):
                self._missing[listing.source, external_id] = _Missing(identity, listing.read)
                if hashed and container not in listing.listed:
                    self._lost.setdefault((listing.source, hashed), []).append(external_id)

    def note_unread(self, failure: Failure) -> None:
        """Note what could not be read: what it held before is not known to be gone."""
        self._unread.add(failure.external_id)

    async def expect_removals(self, source: str, external_ids: Sequence[str]) -> None:
        """Note which documents are about to be removed: they may have moved and turn up among later items."""
        read = current_read_time()
        leaving = await self.ledger.of(self.tenant).find(self.kb, source, external_ids)
        for external_id, document in leaving.items():
            self._missing[source, external_id] = _Missing(document.id, read)
            self._lost.setdefault((source, document.content_hash), []).append(external_id)

    async def compare(self, work_items: Sequence[WorkItem]) -> tuple[list[WorkItem], list[WorkItem]]:
        """Return the new and changed items, and the unchanged ones."""
        live = {}
        for source, ids in _by_source(work_items):
            found = await self.ledger.of(self.tenant).find(self.kb, source, ids)
            live.update({(source, external_id): document for external_id, document in found.items()})
        todo, current = [], []
        for work in work_items:
            known = live.get((work.item.source, work.item.external_id))
            work = replace(work, item=keep_shown_path(work.item, known.uri if known else ""))
            item = work.item
            self._seen.add((item.source, item.external_id))
            if item.content and is_container(item.uri):
                self._unread.add(item.external_id)  # it is called an archive and is none: perhaps it is damaged
            if known and self.preparer.is_current(item, known) and await self._show_under(known, item):
                current.append(replace(work, document_id=known.id))
            elif known:
                todo.append(replace(work, document_id=known.id, known=True))
            else:
                todo.append(await self._match_move(work))
        return await self._replace_queued(await self._assign_ids(todo), current)

    async def _show_under(self, known: Document, item: Item) -> bool:
        """Show a live document under another path; False when its attachments must be read to follow it."""
        if known.uri == item.uri:
            return True
        if known.metadata.get("has_attachments"):
            return False
        return self.dry or await self._move(known.id, (item.source, item.external_id), item)

    async def _replace_queued(
        self, todo: list[WorkItem], current: list[WorkItem]
    ) -> tuple[list[WorkItem], list[WorkItem]]:
        """Replace queued jobs for older content of the same documents, which must not go live any more."""
        ids = [work.document_id for work in (*todo, *current) if work.batch.ticket is None]
        waiting = await self.ledger.of(self.tenant).under_way(ids) if ids else {}
        if not waiting:
            return todo, current
        late = [replace(work, known=True) for work in current if _is_other(work, waiting)]
        current = [work for work in current if not _is_other(work, waiting)]
        todo = [replace(work, waiting_job=_earlier(work, waiting).job_id) for work in (*todo, *late)]
        return todo, current

    async def remove_missing(self) -> None:
        """Delete the documents that are gone: neither listed nor seen inside something that is, which was read."""
        for place, missing in self._missing.items():
            if place in self._seen or is_unread(place[1], self._unread):
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
        """Return the item under the id of a missing document with the same bytes, if there is one: it moved."""
        item = work.item
        lost = self._lost.get((item.source, content_hash(item.content))) if self._lost else None
        if work.document_id or work.parent_id or not lost:  # what came in with another goes with that
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
        """Return the items with the ids that their documents have or will have."""
        names: dict[tuple[str, str], str] = {}
        for source, ids in _by_source([work for work in work_items if not work.document_id]):
            found = await assign_ids(self.ledger, self.tenant, self.seed or self.tenant, self.kb, source, ids)
            names.update({(source, name): identity for name, identity in found.items()})
        return [
            work if work.document_id else replace(work, document_id=names[work.item.source, work.item.external_id])
            for work in work_items
        ]

    async def _check_lease(self, tx: Transaction) -> None:
        if self.ticket and not await tx.holds(self.ticket):
            raise LeaseLost("another worker has taken over this job")


def _earlier(work: WorkItem, waiting: Mapping[str, UnderWay]) -> UnderWay:
    """Return the queued job for content of the document that was read earlier."""
    job = waiting.get(work.document_id, UnderWay())
    return UnderWay() if work.read.precedes(job.read) else job


def _is_other(work: WorkItem, waiting: Mapping[str, UnderWay]) -> bool:
    hashed = _earlier(work, waiting).content_hash
    return bool(hashed) and hashed != content_hash(work.item.content)


def _by_source(work_items: Sequence[WorkItem]) -> list[tuple[str, list[str]]]:
    """Return external ids by source."""
    ids: dict[str, list[str]] = {}
    for work in work_items:
        ids.setdefault(work.item.source, []).append(work.item.external_id)
    return list(ids.items())


def expand_items(
    items: Iterable[Item | Failure | WorkItem], limits: LimitSettings, watch: Watch | None = None
) -> Iterator[WorkEntry]:
    """Yield work items in order, the members of archives one by one, and each batch behind its last item."""
    for entry in items:
        if isinstance(entry, Failure):
            yield entry
            continue
        work = entry if isinstance(entry, WorkItem) else WorkItem(with_read_time(entry), JobBatch(watch=watch))
        yield from _expand_members(work, limits)
        yield work.batch


def _expand_members(work: WorkItem, limits: LimitSettings) -> Iterator[WorkEntry]:
    work.batch.was_opened = True  # also if nothing is in it
    for member in expand(work.item, limits):
        if member is work.item:
            work.batch.was_opened = False
            yield work
        elif isinstance(member, Failure):
            work.batch.fail(member)
            yield member
        else:
            yield WorkItem(member, work.batch, parent_id=work.document_id)


def next_batch(entries: Iterable[WorkEntry]) -> list[WorkEntry]:
    """Return a few entries, fewer when they are large: all of them are in memory at once."""
    batch: list[WorkEntry] = []
    size = 0
    for entry in entries:
        batch.append(entry)
        size += len(entry.item.content) if isinstance(entry, WorkItem) else 0
        if len(batch) == LOOK_UP or size >= LOOK_UP_BYTES:
            break
    return batch
