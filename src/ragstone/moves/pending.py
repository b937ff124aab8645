"""Work that has not been done where it was queued is queued where its tenant goes."""

from __future__ import annotations

from ragstone.core.jobs import ACTIVE, Job, NewJob, Priority
from ragstone.stores.opening import Stores

MOST = 1_000_000


async def carry_jobs(here: Stores, there: Stores, tenant: str) -> int:
    """Queue there what waits or runs here, instead of what was queued there before; how many jobs it were."""
    for stale in await there.queue.jobs(tenant, ACTIVE, limit=MOST):
        await there.queue.cancel(tenant, stale.id)
    carried = 0
    for job in reversed(await here.queue.jobs(tenant, ACTIVE, limit=MOST)):
        carried += await _carry(here, there, tenant, job)
    if carried:
        await there.queue.ring(tenant)
    return carried


async def _carry(here: Stores, there: Stores, tenant: str, job: Job) -> bool:
    kb = await there.ledger.kb(tenant, job.kb)
    if kb is None:
        return False
    facts = dict(job.facts)
    if facts.get("original"):
        (content,) = await here.ledger.originals(tenant, [(job.document_id, facts["original"])])
        if content is None:
            return False  # it was done or deleted meanwhile
        (facts["original"],) = await there.ledger.keep_originals(tenant, [(job.document_id, content)])
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
