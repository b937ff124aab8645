"""Move a ledger to another one, tenant by tenant, and go on after an interruption."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import fields
from functools import partial

from ragstone.core.activity import GoldenQuery, LoggedSearch, PassageVote, Turn
from ragstone.core.batches import batched
from ragstone.core.clock import now
from ragstone.core.errors import InputError, NotFoundError, StoreBusy
from ragstone.core.jobs import ACTIVE, Job, NewJob, Priority
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import KnowledgeBase
from ragstone.stores.activity.conversations import ConversationRepository, put_turn
from ragstone.stores.activity.feedback import FeedbackRepository, put_golden, put_votes
from ragstone.stores.activity.removal import remove_kb_rows
from ragstone.stores.activity.retrieval_log import RetrievalLog, put_searches
from ragstone.stores.blobs import Blobs
from ragstone.stores.control.quotas import SLACK
from ragstone.stores.control.tenant_rows import Standing, read_standing, write_standing
from ragstone.stores.factory import Stores
from ragstone.stores.ledger.documents import read_kb
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.originals import is_untouched
from ragstone.stores.ledger.repository import UnknownTenant
from ragstone.stores.ledger.snapshots import START, DocumentSnapshot, Head, read_heads, read_kb_facts, read_snapshots
from ragstone.stores.shop.carry import KINDS, empty_shop, key_of, put_page, read_page
from ragstone.stores.sql.database import Connection
from ragstone.transfer.compare.ledger import DOCUMENTS, compare_kb, group_heads, plain
from ragstone.transfer.compare.searches import K, Samples, SearchAgreement, agree, judge
from ragstone.transfer.migrate.keys import carry_keys
from ragstone.transfer.migrate.restore import OpenedKb, Restorer, put_source
from ragstone.transfer.reports import NONE, Differences, OnMove, TenantMove

MOST = 1_000_000


async def carry_jobs(here: Stores, there: Stores, tenant: str) -> int:
    """Queue there what waits or runs here, instead of what was queued there before; return the number of jobs."""
    for stale in await there.queue.of(tenant).jobs(ACTIVE, limit=MOST):
        await there.queue.of(tenant).cancel(stale.id)
    carried = 0
    for job in reversed(await here.queue.of(tenant).jobs(ACTIVE, limit=MOST)):
        carried += await _carry(here, there, tenant, job)
    if carried:
        await there.queue.signal_work(tenant)
    return carried


async def _carry(here: Stores, there: Stores, tenant: str, job: Job) -> bool:
    kb = await there.ledger.of(tenant).kb(job.kb)
    if kb is None:
        return False
    facts = dict(job.facts)
    if facts.get("original"):
        (content,) = await here.ledger.of(tenant).originals([(job.document_id, facts["original"])])
        if content is None:
            return False  # it was done or deleted in between
        (facts["original"],) = await there.ledger.of(tenant).keep_originals([(job.document_id, content)])
    async with there.ledger.transaction(tenant) as tx:
        await tx.enqueue(
            kb,
            NewJob(
                kind=job.kind,
                source=job.source,
                external_id=job.external_id,
                uri=job.uri,
                priority=Priority(job.priority),
                document_id=job.document_id,
                content_hash=job.content_hash,
                size=job.size,
                facts=facts,
                notify=job.priority == Priority.UPLOAD,
            ),
        )
    return True


async def carry_standing(here: Stores, there: Stores, tenant: str) -> Differences:
    """Carry a tenant's state, read it again there, and return the differences."""
    moment = now()
    ours = await here.ledger.control_read(lambda db: read_standing(db, tenant, moment), None)
    if ours is None:
        return NONE
    await there.ledger.control_write(lambda db: write_standing(db, tenant, ours, moment))
    theirs = await there.ledger.control_read(lambda db: read_standing(db, tenant, moment), None)
    return compare_standing(tenant, ours, theirs)


def compare_standing(tenant: str, ours: Standing, theirs: Standing | None) -> Differences:
    """Return the differences. The target may have spent more than the source, but not less."""
    if theirs is None:
        return Differences.of(f"tenant '{tenant}' is missing")
    found = [
        field.name
        for field in fields(ours)
        if field.name != "costs" and plain(getattr(ours, field.name)) != plain(getattr(theirs, field.name))
    ]
    if any(theirs.costs.get(kind, 0.0) < cost - SLACK for kind, cost in ours.costs.items()):
        found.append("costs")
    return Differences.of(*(f"tenant '{tenant}' differs in its {name}" for name in found))


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
        """Facts of the tenant itself that are not there as they were here when it was last copied."""

    @property
    def documents_written(self) -> int:
        """Return the number of documents that had to be written."""
        return self._restorer.done.documents_written

    async def check(self) -> None:
        """Refuse a tenant that somebody else has written to: what is not here would be removed there."""
        try:
            untouched = await self._there.ledger.read(self._tenant, is_untouched, self._origin)
        except UnknownTenant:
            return
        if not untouched:
            raise InputError(
                f"tenant '{self._tenant}' is in use there: it has content that did not come from here",
                hint="move to an empty store, or",
                remedy=Remedy(Action.MERGE_ARCHIVES),
            )

    async def follow(self) -> int:
        """Carry documents in rounds, until nothing has changed in between; return up to where in the change feed."""
        for _ in range(ROUNDS):
            sequence = await self._here.ledger.of(self._tenant).sequence()
            changed = await self._round()
            if not changed and sequence == await self._here.ledger.of(self._tenant).sequence():
                return sequence
        raise StoreBusy(
            f"documents of tenant '{self._tenant}' come in faster than they are carried",
            hint="pause its sources and run the same again: it goes on where it was",
        )

    async def finish(self) -> None:
        """Carry what hangs on the documents: sources, jobs that wait, what was asked, what the tenant may do."""
        await self._carry_sources()
        await carry_jobs(self._here, self._there, self._tenant)
        await carry_activity(self._here.ledger, self._there.ledger, self._tenant)
        await carry_shop(self._here.ledger, self._there.ledger, self._tenant)
        standing = await carry_standing(self._here, self._there, self._tenant)
        self.differences = standing + await carry_keys(self._here.ledger, self._there.ledger, self._tenant)

    async def _round(self) -> int:
        before = self._restorer.done.documents_written
        kbs = await self._here.ledger.of(self._tenant).kbs()
        gone = {kb.name for kb in await self._there.ledger.of(self._tenant).kbs()} - {kb.name for kb in kbs}
        for name in sorted(gone):
            await self._restorer.remove_kb(name)
        removed = 0
        for kb in kbs:
            removed += await self._carry_kb(kb)
        await self._restorer.look_around()
        return self._restorer.done.documents_written - before + removed + len(gone)

    async def _carry_kb(self, kb: KnowledgeBase) -> int:
        here = self._here.ledger
        facts, spaces = await here.read(self._tenant, read_kb_facts, kb)
        opened = await self._restorer.open(facts)
        fresh, gone = await self._differing(kb, spaces, opened)
        for part in batched(gone, DOCUMENTS):
            await self._restorer.remove(part)
        blobs = await here.blobs(self._tenant)
        done, total = 0, sum(head.chunks for head in fresh)
        for group in group_heads(fresh):
            ids = [head.id for head in group]
            documents = await here.read(self._tenant, read_snapshots, spaces, ids)
            await self._restorer.take(opened, documents, lambda document: _original(blobs, document))
            done += sum(head.chunks for head in group)
            self._tell(f"{self._tenant}/{kb.name}", done, total)
        return len(gone)

    async def _differing(
        self, kb: KnowledgeBase, spaces: Sequence[int], opened: OpenedKb
    ) -> tuple[list[Head], list[str]]:
        """Return the documents to write to the target, and the ids of those to remove from it."""
        ours = all_heads(self._here.ledger, self._tenant, kb, spaces)
        numbers = [space.id for space in opened.spaces if space]
        theirs = all_heads(self._there.ledger, self._tenant, opened.kb, numbers)
        fresh: list[Head] = []
        gone: list[str] = []
        mine, other = await anext(ours, None), await anext(theirs, None)
        while mine or other:
            if other and (mine is None or other.key < mine.key):
                gone.append(other.id)
                other = await anext(theirs, None)
            elif mine and (other is None or mine.key < other.key):
                fresh.append(mine)
                mine = await anext(ours, None)
            elif mine and other:
                if plain(mine.facts) != plain(other.facts):
                    fresh.append(mine)
                if mine.id != other.id:
                    gone.append(other.id)
                mine, other = await anext(ours, None), await anext(theirs, None)
        return fresh, gone

    async def _carry_sources(self) -> None:
        kept, there = set(), self._there.sources.of(self._tenant)
        for record in await self._here.sources.of(self._tenant).all():
            if record.damage:
                raise record.damage
            kb = await self._there.ledger.of(self._tenant).kb(record.kb)
            if kb:
                await put_source(self._there, self._tenant, OpenedKb(kb, ()), record)
                kept.add((record.kb, record.name))
        for record in await there.all():
            if (record.kb, record.name) not in kept:
                await there.remove(record.id)


async def all_heads(ledger: SqlLedger, tenant: str, kb: KnowledgeBase, spaces: Sequence[int]) -> AsyncIterator[Head]:
    """Yield the heads of all documents of a kb in order of their keys."""
    after = START
    while heads := await ledger.read(tenant, read_heads, kb, spaces, after, DOCUMENTS):
        for head in heads:
            yield head
        after = heads[-1].key


def _original(blobs: Blobs, document: DocumentSnapshot) -> bytes | None:
    try:
        return blobs.get(document.id, document.file.name) if document.file else None
    except NotFoundError:
        return None


ATTEMPTS = 3
WORDS = 8
"""Of a chunk that is searched for by word."""
BM25_TOLERANCE = 1e-2


async def move_to_ledger(
    here: Stores, there: Stores, tenant: str, *, by_word: bool, exact: bool, tell: OnMove
) -> TenantMove:
    """Carry a tenant and compare; what was written here in between is carried too, and compared again.

    `by_word` says that both sides score words alike, `exact` that both look at every vector.
    """
    origin = await here.ledger.read(tenant, lambda _, tenant_id: tenant_id)
    await _refuse_same(there, tenant, origin)
    carrier = Carrier(here, there, tenant, origin, tell)
    await carrier.check()
    for _ in range(ATTEMPTS):
        sequence = await carrier.follow()
        await carrier.finish()
        move = await _compare(here, there, tenant, carrier, by_word=by_word, exact=exact, tell=tell)
        if not move.differences.count or sequence == await here.ledger.of(tenant).sequence():
            break
    return move


async def _refuse_same(there: Stores, tenant: str, origin: str) -> None:
    try:
        known = await there.ledger.read(tenant, lambda _, tenant_id: tenant_id)
    except UnknownTenant:
        return
    if known == origin:
        raise InputError(f"tenant '{tenant}' is there already: that is the ledger in use")


async def _compare(
    here: Stores, there: Stores, tenant: str, carrier: Carrier, *, by_word: bool, exact: bool, tell: OnMove
) -> TenantMove:
    kbs = await here.ledger.of(tenant).kbs()
    documents = chunks = vectors = 0
    differences, total = carrier.differences, SearchAgreement()
    for kb in kbs:
        samples = Samples()
        compared = await compare_kb(here.ledger, there.ledger, tenant, kb, samples, tell)
        documents += compared.documents
        chunks += compared.chunks
        vectors += compared.vectors
        differences += compared.differences
        agreement, wrong = await _compare_searches(here, there, tenant, kb, samples, by_word=by_word, exact=exact)
        total += agreement
        differences += wrong
    return TenantMove(
        *(tenant, len(kbs), documents, chunks, vectors, carrier.documents_written, total.searches, total.share),
        differences,
    )


async def _compare_searches(
    here: Stores, there: Stores, tenant: str, kb: KnowledgeBase, samples: Samples, *, by_word: bool, exact: bool
) -> tuple[SearchAgreement, Differences]:
    """Search both for the same, by meaning and by word, and compare."""
    other = await there.ledger.of(tenant).kb(kb.name)
    if other is None:
        return SearchAgreement(), NONE
    by_meaning, lexical = SearchAgreement(), SearchAgreement()
    for text, vector in samples.chosen:
        by_meaning += agree(
            await here.vectors.search(tenant, kb, vector, K), await there.vectors.search(tenant, other, vector, K)
        )
        if by_word:
            query = " ".join(text.split()[:WORDS])
            lexical += agree(
                await here.lexical.search(tenant, kb, query, K),
                await there.lexical.search(tenant, other, query, K),
                tolerance=BM25_TOLERANCE,
            )
    wrong = judge(by_meaning, exact=exact, what=f"the search by meaning in '{kb.name}'")
    wrong += judge(lexical, exact=True, what=f"the search by word in '{kb.name}'")
    return by_meaning + lexical, wrong


PAGE = 500


async def carry_activity(here: SqlLedger, there: SqlLedger, tenant: str) -> None:
    """Write activity there as it is here, in place of what was carried before."""
    conversations, feedback = ConversationRepository(here, tenant), FeedbackRepository(here, tenant)
    for kb in await here.of(tenant).kbs():
        turns, votes = await conversations.all_turns(kb.name), await feedback.votes(kb.name)
        await there.write(tenant, _replace, kb.name, turns, votes, await feedback.golden(kb.name))
    log, after = RetrievalLog(here, tenant), 0
    page = await log.page(after, PAGE)
    if page:
        await there.write_log(tenant, _empty_log)
    while page:
        await there.write_log(tenant, partial(_append, [search for _, search in page]))
        after, _ = page[-1]
        page = await log.page(after, PAGE)


async def carry_shop(here: SqlLedger, there: SqlLedger, tenant: str) -> None:
    """Write the shop, and the settings and runs of agents, there as they are here, in place of what was carried."""
    await there.write(tenant, empty_shop)
    for kind in KINDS:
        after = ""
        while page := await here.read(tenant, read_page, kind, after):
            await there.write(tenant, put_page, page)
            after = key_of(page[-1])


def _replace(
    connection: Connection,
    tenant_id: str,
    name: str,
    turns: Sequence[Turn],
    votes: Sequence[PassageVote],
    golden: Sequence[GoldenQuery],
) -> None:
    kb = read_kb(connection, tenant_id, name)
    if kb is None:
        return  # deleted here and there since
    remove_kb_rows(connection, tenant_id, kb.id)
    for turn in turns:
        put_turn(connection, tenant_id, kb.id, turn)
    put_votes(connection, tenant_id, kb.id, votes)
    put_golden(connection, tenant_id, kb.id, golden)


def _empty_log(connection: Connection, tenant_id: str) -> None:
    connection.execute("DELETE FROM retrieval_log WHERE tenant_id = ?", (tenant_id,))


def _append(searches: Sequence[LoggedSearch], connection: Connection, tenant_id: str) -> None:
    put_searches(connection, tenant_id, searches)
