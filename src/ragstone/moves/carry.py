"""A tenant of one ledger becomes what it is in another, while that other goes on being used.

Each round looks at what every document is on both sides and writes what differs. Rounds go on until one began and ended
with nothing changed, so whoever runs it again after a crash, or an hour later, writes only what is new.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from ragstone.core.errors import InputError, NotFoundError, StoreBusy
from ragstone.core.types import KnowledgeBase
from ragstone.moves.compare import plain
from ragstone.moves.parts import DOCUMENTS, grouped
from ragstone.moves.pending import carry_jobs
from ragstone.moves.reports import NONE, OnMove
from ragstone.moves.restore import OpenedKb, Restorer
from ragstone.moves.sources import put_source
from ragstone.moves.standing import carry_standing
from ragstone.stores.blobs import Blobs
from ragstone.stores.ledger.ledger import SqlLedger, UnknownTenant
from ragstone.stores.ledger.origin import is_untouched
from ragstone.stores.ledger.whole import Head, WholeDocument
from ragstone.stores.ledger.whole_reads import START, read_heads, read_kb_facts, read_whole
from ragstone.stores.opening import Stores

ROUNDS = 20


class Carrier:
    """Carries one tenant from `here` to `there`."""

    def __init__(self, here: Stores, there: Stores, tenant: str, origin: str, tell: OnMove) -> None:
        self._here = here
        self._there = there
        self._tenant = tenant
        self._origin = origin
        self._tell = tell
        self._restorer = Restorer(there.ledger, tenant, origin=origin)
        self.differences = NONE
        """What of the tenant itself is not there as it was here when it was last carried."""

    @property
    def written(self) -> int:
        """Documents that had to be written."""
        return self._restorer.done.written

    async def check(self) -> None:
        """Refuse a tenant that somebody else has written to: what is not here would be removed there."""
        try:
            untouched = await self._there.ledger.read(self._tenant, is_untouched, self._origin)
        except UnknownTenant:
            return
        if not untouched:
            raise InputError(
                f"tenant '{self._tenant}' is in use there: it has content that did not come from here",
                hint="move to an empty store, or merge the two with ragstone export and ragstone import",
            )

    async def follow(self) -> None:
        """Round after round, until nothing has changed meanwhile."""
        for _ in range(ROUNDS):
            sequence = await self._here.ledger.sequence(self._tenant)
            changed = await self._round()
            if not changed and sequence == await self._here.ledger.sequence(self._tenant):
                return
        raise StoreBusy(
            f"documents of tenant '{self._tenant}' come in faster than they are carried",
            hint="pause its sources and run the same again: it goes on where it was",
        )

    async def finish(self) -> None:
        """What hangs on the documents: sources with their cursors, jobs that wait, and what the tenant may do."""
        await self._carry_sources()
        await carry_jobs(self._here, self._there, self._tenant)
        self.differences = await carry_standing(self._here, self._there, self._tenant)

    async def _round(self) -> int:
        before = self._restorer.done.written
        kbs = await self._here.ledger.kbs(self._tenant)
        gone = {kb.name for kb in await self._there.ledger.kbs(self._tenant)} - {kb.name for kb in kbs}
        for name in sorted(gone):
            await self._restorer.remove_kb(name)
        removed = 0
        for kb in kbs:
            removed += await self._carry_kb(kb)
        await self._restorer.look_around()
        return self._restorer.done.written - before + removed + len(gone)

    async def _carry_kb(self, kb: KnowledgeBase) -> int:
        here = self._here.ledger
        facts, spaces = await here.read(self._tenant, read_kb_facts, kb)
        opened = await self._restorer.open(facts)
        fresh, gone = await self._differing(kb, spaces, opened)
        for start in range(0, len(gone), DOCUMENTS):
            await self._restorer.remove(gone[start : start + DOCUMENTS])
        blobs = await here.blobs(self._tenant)
        done, total = 0, sum(head.chunks for head in fresh)
        for group in grouped(fresh):
            ids = [head.id for head in group]
            documents = await here.read(self._tenant, read_whole, spaces, ids)
            await self._restorer.take(opened, documents, lambda document: _original(blobs, document))
            done += sum(head.chunks for head in group)
            self._tell(f"{self._tenant}/{kb.name}", done, total)
        return len(gone)

    async def _differing(
        self, kb: KnowledgeBase, spaces: Sequence[int], opened: OpenedKb
    ) -> tuple[list[Head], list[str]]:
        """What is to be written there, and what is to go from there."""
        ours = all_heads(self._here.ledger, self._tenant, kb, spaces)
        numbers = [space.id for space in opened.spaces if space]
        theirs = all_heads(self._there.ledger, self._tenant, opened.kb, numbers)
        fresh: list[Head] = []
        gone: list[str] = []
        one, other = await anext(ours, None), await anext(theirs, None)
        while one or other:
            if other and (one is None or other.key < one.key):
                gone.append(other.id)
                other = await anext(theirs, None)
            elif one and (other is None or one.key < other.key):
                fresh.append(one)
                one = await anext(ours, None)
            elif one and other:
                if plain(one.facts) != plain(other.facts):
                    fresh.append(one)
                if one.id != other.id:
                    gone.append(other.id)
                one, other = await anext(ours, None), await anext(theirs, None)
        return fresh, gone

    async def _carry_sources(self) -> None:
        kept = set()
        for record in await self._here.book.all(self._tenant):
            kb = await self._there.ledger.kb(self._tenant, record.kb)
            if kb:
                await put_source(self._there, self._tenant, OpenedKb(kb, ()), record)
                kept.add((record.kb, record.name))
        for record in await self._there.book.all(self._tenant):
            if (record.kb, record.name) not in kept:
                await self._there.book.remove(self._tenant, record.id)


async def all_heads(
    ledger: SqlLedger, tenant: str, kb: KnowledgeBase, spaces: Sequence[int]
) -> AsyncIterator[Head]:
    """The heads of all documents of a kb in order of their keys."""
    after = START
    while heads := await ledger.read(tenant, read_heads, kb, spaces, after, DOCUMENTS):
        for head in heads:
            yield head
        after = heads[-1].key


def _original(blobs: Blobs, document: WholeDocument) -> bytes | None:
    try:
        return blobs.get(document.id, document.file.name) if document.file else None
    except NotFoundError:
        return None
