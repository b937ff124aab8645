"""STORE: a wave of documents becomes visible, each whole or not at all, and jobs end in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.core.protocols import Ledger, Transaction
from ragstone.core.types import Failure, Matrix, NewVersion
from ragstone.ingest.embed import Embedded
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.tally import Tally
from ragstone.ingest.task import Group


async def store(
    ledger: Ledger, tenant: str, kb_name: str, wave: Sequence[Prepared], embedded: Embedded, tally: Tally
) -> list[Prepared]:
    """Write a wave; the documents that are live now. Left out is what was deleted or cancelled meanwhile."""
    with tally.times.measure("store", len(wave)) as out:
        async with ledger.transaction(tenant) as tx:
            wanted: list[Prepared] = []
            for document in wave:
                if await _is_wanted(tx, document, {one.task.document_id for one in wanted}):
                    wanted.append(document)
            if wanted:
                await _write_all(tx, kb_name, wave, wanted, embedded, tally)
            for group in _groups(wave):
                await _end_job(tx, group, wave)
        out.append(len(wanted))
    live = {id(document) for document in wanted}
    for document in wave:
        group = document.task.group
        group.waiting -= 1
        if id(document) in live:
            group.stored += 1
        else:
            uri = document.task.item.uri
            reason = f"{uri} was deleted, cancelled or taken over while it was being read"
            tally.fail(Failure(uri, "gone", reason))
    return wanted


async def _write_all(
    tx: Transaction,
    kb_name: str,
    wave: Sequence[Prepared],
    wanted: Sequence[Prepared],
    embedded: Embedded,
    tally: Tally,
) -> None:
    kb = await tx.open_kb(kb_name)
    vectors = embedded.vectors
    if vectors is not None and kb.space and kb.space.model != embedded.model:
        # The wave before opened the Space while a fallback embedded this one.
        tally.foreign(embedded.model, kb.space.model)
        vectors = None
    if vectors is not None:
        kb = await tx.open_space(kb, embedded.model, vectors.shape[1])
    chosen = {id(document) for document in wanted}
    start = 0
    for document in wave:
        end = start + len(document.chunks)
        if id(document) in chosen:
            version = _version(document, None if vectors is None else vectors[start:end])
            await tx.activate(kb, version.document_id, await tx.stage(kb, version))
        start = end


def _groups(wave: Sequence[Prepared]) -> list[Group]:
    return list({id(document.task.group): document.task.group for document in wave}.values())


async def _is_wanted(tx: Transaction, document: Prepared, with_it: set[str]) -> bool:
    """Not what somebody else has by now. What existed when it was read and does not now must not come back."""
    task = document.task
    if task.group.ticket and not await tx.holds(task.group.ticket):
        return False
    if task.known and not await tx.has_document(task.document_id):
        return False
    return not task.parent_id or task.parent_id in with_it or await tx.has_document(task.parent_id)


async def _end_job(tx: Transaction, group: Group, wave: Sequence[Prepared]) -> None:
    """Whoever stores the last documents of a job ends it."""
    here = sum(document.task.group is group for document in wave)
    if group.ticket and group.waiting == here and await tx.holds(group.ticket):
        await tx.complete(group.ticket, group.finished())


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
    )
