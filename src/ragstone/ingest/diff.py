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
from ragstone.ingest.report import Tally
from ragstone.ingest.sources.files.archives import expand
from ragstone.ingest.work import Group, Task, Watch
from ragstone.settings.tree import LimitSettings


async def identified(
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


def just_read(item: Item) -> Item:
    """The item of somebody who has just come by it, unless it says when it was read."""
    return item if item.read else replace(item, read=reading_now())


def related(task: Task) -> list[str]:
    """A document and what it came in with."""
    return [one for one in (task.document_id, task.parent_id) if one]


def is_overtaken(task: Task, content_hash: str, live: Live) -> bool:
    """Whether something else is live that was read after this: of the document, or of what it came in with."""
    return _is_other_since(live.get(task.document_id), content_hash, task.read) or _is_other_since(
        live.get(task.parent_id), task.parent_hash, task.read
    )


def overtaken(task: Task) -> Failure:
    """What is said of it."""
    uri = task.item.uri
    return Failure(uri, "overtaken", f"{uri} was read again since, and that is what is live")


def outdated_jobs(late: Iterable[Task]) -> dict[str, Reading | None]:
    """Jobs of documents that were read again since; the others of an archive are still its job's business."""
    tickets = [task.group.ticket for task in late if not task.parent_id]
    return {ticket.job_id: None for ticket in tickets if ticket}


def is_later(task: Task, live: Live) -> bool:
    """Whether the document is live as it was read before this."""
    return task.document_id in live and live[task.document_id].read.precedes(task.read)


def _is_other_since(live: LiveContent | None, content_hash: str, read: Reading) -> bool:
    return live is not None and live.content_hash != content_hash and read.precedes(live.read)


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
    dry: bool = False
    """Whether what is moved and gone is only counted."""
    _gone: dict[tuple[str, str], _Missing] = field(default_factory=dict)
    _lost: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _seen: set[tuple[str, str]] = field(default_factory=set)

    async def expect(self, listing: Listing) -> None:
        """Find out what is no longer there: it is gone, or it was moved and turns up among what comes after this."""
        there = await self.ledger.belongings(self.tenant, self.kb, listing.source, listing.under)
        # What was no archive when it was read, cut off perhaps, and is one now, is no document itself.
        archives = {one.partition(MEMBER)[0] for one in listing.listed if MEMBER in one}
        for external_id, (identity, hashed) in there.items():
            container = external_id.partition(MEMBER)[0]
            listed = external_id in listing.listed and external_id not in archives
            if not listed and (container in listing.listed or not listing.is_there(container)):
                self._gone[listing.source, external_id] = _Missing(identity, listing.read)
                if hashed and container not in listing.listed:
                    self._lost.setdefault((listing.source, hashed), []).append(external_id)

    async def leave(self, source: str, external_ids: Sequence[str]) -> None:
        """Know of what is about to be removed: it may have moved, and then turns up among what comes after this."""
        read = reading_now()
        leaving = await self.ledger.find(self.tenant, self.kb, source, external_ids)
        for external_id, document in leaving.items():
            self._gone[source, external_id] = _Missing(document.id, read)
            self._lost.setdefault((source, document.content_hash), []).append(external_id)

    async def changed(self, tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
        """The tasks there is something to do for, and those there is not."""
        live = {}
        for source, ids in _by_source(tasks):
            found = await self.ledger.find(self.tenant, self.kb, source, ids)
            live.update({(source, external_id): document for external_id, document in found.items()})
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
                todo.append(await self._moved(task))
        return await self._ahead(await self._named(todo), current)

    async def _ahead(self, todo: list[Task], current: list[Task]) -> tuple[list[Task], list[Task]]:
        """The same, if nothing else is on its way: what waits and was read before this must not go live."""
        ids = [task.document_id for task in (*todo, *current) if task.group.ticket is None]
        waiting = await self.ledger.under_way(self.tenant, ids) if ids else {}
        if not waiting:
            return todo, current
        late = [replace(task, known=True) for task in current if _is_other(task, waiting)]
        current = [task for task in current if not _is_other(task, waiting)]
        todo = [replace(task, waiting_job=_earlier(task, waiting).job_id) for task in (*todo, *late)]
        return todo, current

    async def end(self) -> None:
        """Remove what is gone: neither listed nor seen inside something that is."""
        for place, missing in self._gone.items():
            if place in self._seen:
                continue
            if self.dry:
                self.tally.removed += 1
                continue
            async with self.ledger.transaction(self.tenant) as tx:
                await self._check(tx)
                # Another run may have found it at another place, or something else may be here by now.
                if await tx.identify(self.kb, *place) == missing.identity and not await missing.is_back(tx):
                    self.tally.removed += await tx.delete(missing.identity)

    async def _moved(self, task: Task) -> Task:
        """The same bytes left one place and turned up at another: the document moved, and keeps its id."""
        item = task.item
        lost = self._lost.get((item.source, content_hash(item.content))) if self._lost else None
        if task.document_id or not lost:
            return task
        place = (item.source, lost.pop(0))
        moved = self._gone[place].identity
        if not self.dry and not await self._move(moved, place, item):
            return task
        del self._gone[place]
        self.tally.moved += 1
        return replace(task, document_id=moved, known=True)

    async def _move(self, identity: str, place: tuple[str, str], item: Item) -> bool:
        async with self.ledger.transaction(self.tenant) as tx:
            await self._check(tx)
            # Another run may have moved it already, or may have taken in what is at the new place.
            still_there = await tx.identify(self.kb, *place) == identity
            return still_there and await tx.move(identity, item.external_id, item.uri)

    async def _named(self, tasks: list[Task]) -> list[Task]:
        """The tasks with the ids that their documents have, or will have."""
        names: dict[tuple[str, str], str] = {}
        for source, ids in _by_source([task for task in tasks if not task.document_id]):
            found = await identified(self.ledger, self.tenant, self.seed or self.tenant, self.kb, source, ids)
            names.update({(source, one): identity for one, identity in found.items()})
        return [
            task
            if task.document_id
            else replace(task, document_id=names[task.item.source, task.item.external_id])
            for task in tasks
        ]

    async def _check(self, tx: Transaction) -> None:
        if self.ticket and not await tx.holds(self.ticket):
            raise LeaseLost("another worker has this job by now")


def _earlier(task: Task, waiting: Mapping[str, UnderWay]) -> UnderWay:
    """The job that is to make the document of something that was read before."""
    job = waiting.get(task.document_id, UnderWay())
    return UnderWay() if task.read.precedes(job.read) else job


def _is_other(task: Task, waiting: Mapping[str, UnderWay]) -> bool:
    hashed = _earlier(task, waiting).content_hash
    return bool(hashed) and hashed != content_hash(task.item.content)


def _by_source(tasks: Sequence[Task]) -> list[tuple[str, list[str]]]:
    """External ids by source."""
    ids: dict[str, list[str]] = {}
    for task in tasks:
        ids.setdefault(task.item.source, []).append(task.item.external_id)
    return list(ids.items())


Entry = Task | Failure | Group
"""A group stands behind the last of its tasks."""
LOOK_UP = 32
LOOK_UP_BYTES = 64 * 1024 * 1024


def opened(
    items: Iterable[Item | Failure | Task], limits: LimitSettings, watch: Watch | None = None
) -> Iterator[Entry]:
    """Tasks in order, each group closed behind its last."""
    for one in items:
        if isinstance(one, Failure):
            yield one
            continue
        task = one if isinstance(one, Task) else Task(just_read(one), Group(watch=watch))
        yield from _members(task, limits)
        yield task.group


def _members(task: Task, limits: LimitSettings) -> Iterator[Entry]:
    for member in expand(task.item, limits):
        if member is task.item:
            yield task
        elif isinstance(member, Failure):
            task.group.fail(member)
            yield member
        else:
            yield Task(member, task.group, parent_id=task.document_id)


def some(entries: Iterable[Entry]) -> list[Entry]:
    """A few entries, fewer when they are large: all of them are in memory at once."""
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        batch.append(entry)
        size += len(entry.item.content) if isinstance(entry, Task) else 0
        if len(batch) == LOOK_UP or size >= LOOK_UP_BYTES:
            break
    return batch
