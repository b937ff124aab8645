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
from ragstone.ingest.diff import is_later, is_overtaken, outdated_jobs, overtaken_failure, related_ids
from ragstone.ingest.embed import Embedded
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.report import RunReport


async def store(
    ledger: Ledger,
    tenant: str,
    kb: KnowledgeBase,
    wave: Sequence[Prepared],
    embedded: Embedded,
    report: RunReport,
) -> list[Prepared]:
    """Write a wave; the documents that are live now. Left out is what was deleted, cancelled or overtaken meanwhile."""
    with report.times.measure("store", len(wave)) as out:
        ahead = await _stage_ahead(ledger, tenant, kb, wave, embedded, report) if ledger.mirrored else None
        async with ledger.transaction(tenant) as tx:
            live = await tx.live_contents([one for document in wave for one in related_ids(document.work)])
            late = [one for one in wave if is_overtaken(one.work, one.content_hash, live)]
            wanted = await _select_wanted(tx, _without(late, wave))
            stored = await _activate_left(tx, ahead, wave, wanted) if ahead else []
            fresh = _without(stored, wanted)
            if ahead:
                # What was read before and went live meanwhile has taken away what was staged.
                fresh = [one for one in fresh if is_later(one.work, live)]
            stored += await _store_at_once(tx, kb, wave, fresh, embedded, report)
            await tx.supersede(_find_outdated_jobs(stored, late))
            await tx.complete_all(_finished_jobs(wave))
        out.append(len(stored))
    _count(stored, late, wave, report)
    return stored


def _count(
    stored: Sequence[Prepared], late: Sequence[Prepared], wave: Sequence[Prepared], report: RunReport
) -> None:
    """Say of each document of a wave what became of it."""
    for document in wave:
        document.work.batch.waiting -= 1
    for document in stored:
        document.work.batch.stored += 1
    for document in late:
        report.add_failure(overtaken_failure(document.work))
    for document in _without([*stored, *late], wave):
        uri = document.work.item.uri
        reason = f"{uri} was deleted, cancelled or taken over while it was being read"
        report.add_failure(Failure(uri, "gone", reason))


def _find_outdated_jobs(stored: Sequence[Prepared], late: Sequence[Prepared]) -> dict[str, Reading | None]:
    """Jobs that would make of a document what it was before."""
    waiting = {one.work.waiting_job: one.work.read for one in stored if one.work.waiting_job}
    return {**waiting, **outdated_jobs(one.work for one in late)}


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

    def versions_of(self, wanted: Sequence[Prepared]) -> list[tuple[str, int]]:
        """Document id and version number of those that are still wanted."""
        return [(one.work.document_id, self.numbers[id(one)]) for one in wanted if id(one) in self.numbers]


async def _store_at_once(
    tx: Transaction,
    kb: KnowledgeBase,
    wave: Sequence[Prepared],
    wanted: list[Prepared],
    embedded: Embedded,
    report: RunReport,
) -> list[Prepared]:
    """Write and show in one transaction; what is live now."""
    if wanted:
        staged = await _stage(tx, kb, wave, wanted, embedded, report)
        await tx.activate_all(staged.kb, staged.versions_of(wanted))
    return wanted


async def _stage_ahead(
    ledger: Ledger,
    tenant: str,
    kb: KnowledgeBase,
    wave: Sequence[Prepared],
    embedded: Embedded,
    report: RunReport,
) -> _Staged:
    """What goes live in one place goes live in all: an index elsewhere has it before anyone can ask for it."""
    async with ledger.transaction(tenant) as tx:
        wanted = await _select_wanted(tx, wave)
        staged = await _stage(tx, kb, wave, wanted, embedded, report)
    versions = staged.versions_of(wanted)
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
        for version in staged.versions_of([document]):
            try:
                await tx.activate(staged.kb, *version)
            except NotFoundError:
                continue  # deleted while it was on its way to the index, or a newer version went live
            live.append(document)
    if unwanted := staged.versions_of(_without(live, wave)):
        await tx.discard_all(staged.kb, unwanted)
    return live


async def _stage(
    tx: Transaction,
    opened: KnowledgeBase,
    wave: Sequence[Prepared],
    wanted: Sequence[Prepared],
    embedded: Embedded,
    report: RunReport,
) -> _Staged:
    kb = await tx.present(opened)
    vectors = embedded.vectors
    foreign: Matrix | None = None
    if vectors is not None and kb.space and kb.space.model != embedded.model:
        # The wave before opened the Space while a fallback embedded this one, or the kb has just been moved.
        report.note_foreign_model(embedded.model, kb.space.model)
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


async def _select_wanted(tx: Transaction, wave: Sequence[Prepared]) -> list[Prepared]:
    """Not what somebody else has by now. What existed when it was read and does not now must not come back."""
    work_items = [document.work for document in wave]
    held = await tx.holding([work.batch.ticket for work in work_items if work.batch.ticket])
    needed = [work.document_id for work in work_items if work.known] + [work.parent_id for work in work_items]
    there = set(await tx.existing([identity for identity in needed if identity]))
    wanted: list[Prepared] = []
    for document in wave:
        work = document.work
        if work.batch.ticket and work.batch.ticket not in held:
            continue
        if work.known and work.document_id not in there:
            continue
        if not work.parent_id or work.parent_id in there:
            wanted.append(document)
            there.add(work.document_id)
    return wanted


def _finished_jobs(wave: Sequence[Prepared]) -> dict[Ticket, JobProgress]:
    """Whoever stores the last documents of a job ends it."""
    batches = {id(document.work.batch): document.work.batch for document in wave}.values()
    here = Counter(id(document.work.batch) for document in wave)
    return {
        batch.ticket: batch.final_progress()
        for batch in batches
        if batch.ticket and batch.waiting == here[id(batch)]
    }


def _version(document: Prepared, vectors: Matrix | None) -> NewVersion:
    item = document.work.item
    return NewVersion(
        document_id=document.work.document_id,
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
        parent_id=document.work.parent_id,
        signature=document.signature,
        bands=document.bands,
        read=document.work.read,
    )
