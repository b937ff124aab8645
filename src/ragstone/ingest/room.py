"""Reserve room for documents that are about to be stored, and refuse those that exceed a quota."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from ragstone.core.errors import QuotaExceeded
from ragstone.core.ledger import Ledger
from ragstone.core.tenants import EMPTY, Admission, Stock
from ragstone.core.types import Failure, failure_of
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.work import WorkItem

Refuse = Callable[[WorkItem, Failure], Awaitable[None]]
"""Ends a document that exceeds a quota."""


async def check_room(gate: Admission, tenant: str, work: WorkItem) -> None:
    """Raise `QuotaExceeded` for a new document that cannot be stored, whatever its size."""
    try:
        await gate.expect(tenant, documents=0 if work.known else 1)
    except QuotaExceeded as error:
        raise _name_document(work, error) from error


@asynccontextmanager
async def reserve_room(
    gate: Admission,
    ledger: Ledger,
    tenant: str,
    wave: Sequence[Prepared],
    refuse: Refuse,
    before: asyncio.Task[None] | None = None,
) -> AsyncIterator[list[Prepared]]:
    """Yield the documents of a wave that fit the quotas, and reserve room while the block runs; refuse the others.

    `before` stores the wave before, which counts twice until it has given back the room that was reserved for it.
    """
    if not await gate.is_limited(tenant):
        yield list(wave)
        return
    async with AsyncExitStack() as reserved:
        try:
            await reserved.enter_async_context(await _room(gate, ledger, tenant, wave))
            fitting = list(wave)
        except QuotaExceeded:
            if before:
                await before
            fitting = []
            for document in wave:
                try:
                    await reserved.enter_async_context(await _room(gate, ledger, tenant, [document]))
                except QuotaExceeded as error:
                    refused = _name_document(document.work, error)
                    await refuse(document.work, failure_of(document.work.item.uri, refused))
                else:
                    fitting.append(document)
        yield fitting


async def _room(
    gate: Admission, ledger: Ledger, tenant: str, documents: Sequence[Prepared]
) -> AbstractAsyncContextManager[None]:
    chunks, sizes = 0, [len(document.parsed.text.encode("utf-8", "replace")) for document in documents]
    waiting = EMPTY
    for document, size in zip(documents, sizes, strict=True):
        work = document.work
        if work.batch.ticket and work.document_id == work.batch.document_id:
            waiting = Stock(waiting.documents + (not work.known), 0, waiting.bytes + min(size, work.batch.size))
        before = await ledger.of(tenant).document(document.work.document_id) if document.work.known else None
        chunks += max(0, len(document.chunks) - (before.chunks if before else 0))
    return gate.taking_in(
        tenant,
        documents=sum(not document.work.known for document in documents),
        chunks=chunks,
        # For a moment both versions of a document exist, so the one that is replaced makes no room.
        size=sum(sizes),
        waiting=waiting,
    )


def _name_document(work: WorkItem, error: QuotaExceeded) -> QuotaExceeded:
    return QuotaExceeded(
        f"{work.item.uri}: {error}", hint=error.hint, remedy=error.remedy, retry_after=error.retry_after
    )
