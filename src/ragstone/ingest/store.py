"""STORE: a wave of documents becomes visible, each whole or not at all, and jobs end in the same transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragstone.core.clock import Reading
from ragstone.core.errors import NotFoundError, RagstoneError
from ragstone.core.jobs import JobProgress, Ticket
from ragstone.core.ledger import Ledger, Transaction
from ragstone.core.types import Failure, KnowledgeBase, Matrix, NewVersion
from ragstone.ingest.diff import is_later, is_overtaken, outdated_jobs, overtaken, related
from ragstone.ingest.embed import Embedded
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.report import Tally


async def store(
    ledger: Ledger,
    tenant: str,
    kb: KnowledgeBase,
    wave: Sequence[Prepared],
    embedded: Embedded,
    tally: Tally,
) -> list[Prepared]:
    """Write a wave; the documents that are live now. Left out is what was deleted, cancelled or overtaken meanwhile."""
    with tally.times.measure("store", len(wave)) as out:
        ahead = await _stage_ahead(ledger, tenant, kb, wave, embedded, tally) if ledger.mirrored else None
        async with ledger.transaction(tenant) as tx:
            live = await tx.live_contents([one for document in wave for one in related(document.task)])
            late = [one for one in wave if is_overtaken(one.task, one.content_hash, live)]
            wanted = await _wanted(tx, _without(late, wave))
            stored = await _activate_left(tx, ahead, wave, wanted) if ahead else []
            fresh = _without(stored, wanted)
            if ahead:
                # What was read before and went live meanwhile has taken away what was staged.
                fresh = [one for one in fresh if is_later(one.task, live)]
            stored += await _store_at_once(tx, kb, wave, fresh, embedded, tally)
            await tx.supersede(_outdated(stored, late))
            await tx.complete_all(_finished(wave))
        out.append(len(stored))
    _count(stored, late, wave, tally)
    return stored


def _count(
    stored: Sequence[Prepared], late: Sequence[Prepared], wave: Sequence[Prepared], tally: Tally
) -> None:
    """Say of each document of a wave what became of it."""
    for document in wave:
        document.task.group.waiting -= 1
    for document in stored:
        document.task.group.stored += 1
    for document in late:
        tally.fail(overtaken(document.task))
    for document in _without([*stored, *late], wave):
        uri = document.task.item.uri
        reason = f"{uri} was deleted, cancelled or taken over while it was being read"
        tally.fail(Failure(uri, "gone", reason))


def _outdated(stored: Sequence[Prepared], late: Sequence[Prepared]) -> dict[str, Reading | None]:
    """Jobs that would make of a document what it was before."""
    waiting = {one.task.waiting_job: one.task.read for one in stored if one.task.waiting_job}
    return {**waiting, **outdated_jobs(one.task for one in late)}


def _without(some: Sequence[Prepared], wave: Sequence[Prepared]) -> list[Prepared]:
    """A wave but for some of it."""
    left_out = {id(document) for document in some}
    return [document for document in wave if id(document) not in left_out]


@dataclass(frozen=True, slots=True)
class _Staged:
    """Versions that are written and that nobody sees yet."""

    kb: KnowledgeBase
    numbers: Mapping[int, int]
    """Version numbers by the identity of the prepared document."""

    def chosen(self, wanted: Sequence[Prepared]) -> list[tuple[str, int]]:
        """Document id and version number of those that are still wanted."""
        return [(one.task.document_id, self.numbers[id(one)]) for one in wanted if id(one) in self.numbers]


async def _store_at_once(
    tx: Transaction,
    kb: KnowledgeBase,
    wave: Sequence[Prepared],
    wanted: list[Prepared],
    embedded: Embedded,
    tally: Tally,
) -> list[Prepared]:
    """Write and show in one transaction; what is live now."""
    if wanted:
        staged = await _stage(tx, kb, wave, wanted, embedded, tally)
        await tx.activate_all(staged.kb, staged.chosen(wanted))
    return wanted


async def _stage_ahead(
    ledger: Ledger,
    tenant: str,
    kb: KnowledgeBase,
    wave: Sequence[Prepared],
    embedded: Embedded,
    tally: Tally,
) -> _Staged:
    """What goes live in one place goes live in all: an index elsewhere has it before anyone can ask for it."""
    async with ledger.transaction(tenant) as tx:
        wanted = await _wanted(tx, wave)
        staged = await _stage(tx, kb, wave, wanted, embedded, tally)
    versions = staged.chosen(wanted)
    try:
        await ledger.prepare(tenant, staged.kb, versions)
    except RagstoneError:
        async with ledger.transaction(tenant) as tx:
            await tx.discard_all(staged.kb, versions)
        raise
    return staged


async def _activate_left(
    tx: Transaction, staged: _Staged, wave: Sequence[Prepared], wanted: Sequence[Prepared]
) -> list[Prepared]:
    """Make live what is wanted and still there, and remove the rest; what is live now."""
    live: list[Prepared] = []
    for document in wanted:
        for version in staged.chosen([document]):
            try:
                await tx.activate(staged.kb, *version)
            except NotFoundError:
                continue  # deleted while it was on its way to the index, or a newer version went live
            live.append(document)
    if unwanted := staged.chosen(_without(live, wave)):
        await tx.discard_all(staged.kb, unwanted)
    return live


async def _stage(
    tx: Transaction,
    opened: KnowledgeBase,
    wave: Sequence[Prepared],
    wanted: Sequence[Prepared],
    embedded: Embedded,
    tally: Tally,
) -> _Staged:
    kb = await tx.present(opened)
    vectors = embedded.vectors
    foreign: Matrix | None = None
    if vectors is not None and kb.space and kb.space.model != embedded.model:
        # The wave before opened the Space while a fallback embedded this one, or the kb has just been moved.
        tally.foreign(embedded.model, kb.space.model)
        vectors, foreign = None, vectors
    if vectors is not None and wanted:
        kb = await tx.open_space(kb, embedded.model, vectors.shape[1])
    chosen = {id(document) for document in wanted}
    versions: dict[int, NewVersion] = {}
    rows: list[slice] = []
    start = 0
    for document in wave:
        end = start + len(document.chunks)
        if id(document) in chosen:
            versions[id(document)] = _version(document, None if vectors is None else vectors[start:end])
            rows.append(slice(start, end))
        start = end
    numbers = await tx.stage_all(kb, list(versions.values()))
    if foreign is not None:
        # Should the kb be moved back, they are where they belong; until then nobody looks there.
        staged = [(one.document_id, number) for one, number in zip(versions.values(), numbers, strict=True)]
        await tx.keep_vectors(kb, embedded.model, staged, [foreign[part] for part in rows])
    return _Staged(kb, dict(zip(versions, numbers, strict=True)))


async def _wanted(tx: Transaction, wave: Sequence[Prepared]) -> list[Prepared]:
    """Not what somebody else has by now. What existed when it was read and does not now must not come back."""
    tasks = [document.task for document in wave]
    held = await tx.holding([task.group.ticket for task in tasks if task.group.ticket])
    needed = [task.document_id for task in tasks if task.known] + [task.parent_id for task in tasks]
    there = set(await tx.existing([identity for identity in needed if identity]))
    wanted: list[Prepared] = []
    for document in wave:
        task = document.task
        if task.group.ticket and task.group.ticket not in held:
            continue
        if task.known and task.document_id not in there:
            continue
        if not task.parent_id or task.parent_id in there:
            wanted.append(document)
            there.add(task.document_id)
    return wanted


def _finished(wave: Sequence[Prepared]) -> dict[Ticket, JobProgress]:
    """Whoever stores the last documents of a job ends it."""
    groups = {id(document.task.group): document.task.group for document in wave}.values()
    here = Counter(id(document.task.group) for document in wave)
    return {
        group.ticket: group.finished()
        for group in groups
        if group.ticket and group.waiting == here[id(group)]
    }


def _version(document: Prepared, vectors: Matrix | None) -> NewVersion:
    item = document.task.item
    return NewVersion(
        document_id=document.task.document_id,
        source=item.source,
        external_id=item.external_id,
        uri=item.uri,
        title=document.parsed.title,
        content_hash=document.content_hash,
        text=document.parsed.text,
        media_type=document.parsed.media_type,
        metadata=document.metadata,
        recipe=document.recipe,
        modified_at=item.modified_at,
        chunks=document.chunks,
        terms=document.terms,
        vectors=vectors,
        parent_id=document.task.parent_id,
        signature=document.signature,
        bands=document.bands,
        read=document.task.read,
    )
