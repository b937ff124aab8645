"""Look at the files of collections: are they those of what is live, and has a build been cut short?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragstone.core.collections import is_draft
from ragstone.core.health import REPAIR, Finding
from ragstone.core.tenants import Tenant
from ragstone.stores.corpus_rows import live_chunk_ids
from ragstone.stores.corpus_upkeep import FileUpkeep
from ragstone.stores.lexical.bm25 import ResidentBm25Index
from ragstone.stores.residents import Residents

if TYPE_CHECKING:
    from ragstone.stores.opening import Stores

MEMORY_MB = 64


async def check_corpora(stores: Stores, tenants: Sequence[Tenant], *, repair: bool) -> list[Finding]:
    """All that can be said of collections that were built from a corpus."""
    upkeep = FileUpkeep(stores.ledger, stores.corpora, ResidentBm25Index(stores.ledger, Residents(MEMORY_MB)))
    findings = []
    built = 0
    for tenant in tenants:
        pairs = await asyncio.to_thread(stores.corpora.all_of, tenant.name, tenant.id)
        built += len(pairs)
        untrue = await _untrue(stores, tenant)
        if repair:
            await upkeep.refresh(tenant.name, drafts=True)
            left = await _untrue(stores, tenant)
            findings += [_finding(tenant, one, repaired=one not in left) for one in untrue]
        else:
            findings += [_finding(tenant, one, repaired=False) for one in untrue]
        findings += [
            Finding(
                "collections",
                "builds",
                "warn",
                f"tenant '{tenant.name}': '{kb.name}' is being built, or its build was cut short",
                f"the next build of its collection removes it, or: ragstone kb delete {kb.name}",
            )
            for kb in await stores.ledger.kbs(tenant.name)
            if is_draft(kb.name)
        ]
    said = (
        f"{built} built from a corpus, files as they should be" if built else "none was built from a corpus"
    )
    return findings or [Finding("collections", "files", "ok", said)]


async def _untrue(stores: Stores, tenant: Tenant) -> list[str]:
    """Collections whose files are not those of what is live."""
    found = []
    for pair in await asyncio.to_thread(stores.corpora.all_of, tenant.name, tenant.id):
        kb = await stores.ledger.kb(tenant.name, pair.collection)
        live = await stores.ledger.read(tenant.name, live_chunk_ids, kb) if kb else None
        if live is None or await asyncio.to_thread(pair.ids) != (live, live):
            found.append(pair.collection)
    return found


def _finding(tenant: Tenant, collection: str, *, repaired: bool) -> Finding:
    detail = f"tenant '{tenant.name}': those of collection '{collection}' are not what is live"
    if repaired:
        return Finding("collections", "files", "ok", detail, "written anew", repaired=True)
    return Finding("collections", "files", "warn", detail, REPAIR)
