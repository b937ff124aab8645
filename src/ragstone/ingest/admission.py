"""Whether there is room for what is being taken in: asked before the work is done, and held until it is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext

from ragstone.core.errors import QuotaExceeded
from ragstone.core.ledger import Ledger
from ragstone.core.tenants import Admission
from ragstone.core.types import Failure, failure_of
from ragstone.ingest.prepare import Prepared
from ragstone.ingest.work import WorkItem

Refuse = Callable[[WorkItem, Failure], Awaitable[None]]
"""Ends a document that there is no room for."""


class Unlimited:
    """Lets everything in: for a pipeline that nobody limits."""

    async def write(self, tenant: str) -> str:
        return ""

    async def seed(self, tenant: str) -> str:
        return tenant

    async def limited(self, tenant: str) -> bool:
        return False

    async def expect(self, tenant: str, *, documents: int = 0) -> None: ...

    def taking_in(
        self, tenant: str, *, documents: int = 0, chunks: int = 0, size: int = 0, queued: bool = False
    ) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def paying(self, tenant: str) -> AbstractAsyncContextManager[None]:
        return nullcontext()


async def check_room(gate: Admission, tenant: str, work: WorkItem) -> None:
    """Raise `QuotaExceeded` for a new document that cannot be stored whatever it holds."""
    try:
        await gate.expect(tenant, documents=0 if work.known else 1)
    except QuotaExceeded as error:
        raise _of(work, error) from error


@asynccontextmanager
async def reserve_room(
    gate: Admission, ledger: Ledger, tenant: str, wave: Sequence[Prepared], refuse: Refuse
) -> AsyncIterator[list[Prepared]]:
    """The documents of a wave that fit, and room for them while the block runs; the others are refused."""
    if not await gate.limited(tenant):
        yield list(wave)
        return
    async with AsyncExitStack() as held:
        try:
            await held.enter_async_context(await _room(gate, ledger, tenant, wave))
            fitting = list(wave)
        except QuotaExceeded:
            fitting = []
            for document in wave:
                try:
                    await held.enter_async_context(await _room(gate, ledger, tenant, [document]))
                except QuotaExceeded as error:
                    refused = _of(document.work, error)
                    await refuse(document.work, failure_of(document.work.item.uri, refused))
                else:
                    fitting.append(document)
        yield fitting


async def _room(
    gate: Admission, ledger: Ledger, tenant: str, documents: Sequence[Prepared]
) -> AbstractAsyncContextManager[None]:
    chunks = 0
    for document in documents:
        before = await ledger.document(tenant, document.work.document_id) if document.work.known else None
        chunks += max(0, len(document.chunks) - (before.chunks if before else 0))
    return gate.taking_in(
        tenant,
        documents=sum(not document.work.known for document in documents),
        chunks=chunks,
        # For a moment there are both versions of a document, so the one that is replaced makes no room.
        size=sum(len(document.parsed.text.encode("utf-8", "replace")) for document in documents),
    )


def _of(work: WorkItem, error: QuotaExceeded) -> QuotaExceeded:
    return QuotaExceeded(
        f"{work.item.uri}: {error}", hint=error.hint, remedy=error.remedy, retry_after=error.retry_after
    )
