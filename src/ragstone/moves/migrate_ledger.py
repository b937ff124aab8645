"""MIGRATE to another ledger: a tenant with all its kbs is carried there and compared, and nothing is changed here."""

from __future__ import annotations

from ragstone.core.errors import InputError
from ragstone.core.types import KnowledgeBase
from ragstone.moves.carry import Carrier
from ragstone.moves.compare import compare_kb
from ragstone.moves.reports import NONE, Differences, OnMove, TenantMove
from ragstone.moves.searches import Agreement, K, Samples, agree, judged
from ragstone.stores.ledger.ledger import UnknownTenant
from ragstone.stores.opening import Stores

ATTEMPTS = 3
WORDS = 8
"""Of a chunk that is searched for by word."""
BM25_TOLERANCE = 1e-2


async def move_to_ledger(
    here: Stores, there: Stores, tenant: str, *, by_word: bool, exact: bool, tell: OnMove
) -> TenantMove:
    """Carry a tenant and compare; what was written here meanwhile is carried too, and compared again.

    `by_word` says that both sides score words alike, `exact` that both look at every vector.
    """
    origin = await here.ledger.read(tenant, lambda _, tenant_id: tenant_id)
    await _refuse_same(there, tenant, origin)
    carrier = Carrier(here, there, tenant, origin, tell)
    await carrier.check()
    for _ in range(ATTEMPTS):
        await carrier.follow()
        await carrier.finish()
        sequence = await here.ledger.sequence(tenant)
        move = await _compared(here, there, tenant, carrier, by_word=by_word, exact=exact, tell=tell)
        if not move.differences.count or sequence == await here.ledger.sequence(tenant):
            break
    return move


async def _refuse_same(there: Stores, tenant: str, origin: str) -> None:
    try:
        known = await there.ledger.read(tenant, lambda _, tenant_id: tenant_id)
    except UnknownTenant:
        return
    if known == origin:
        raise InputError(f"tenant '{tenant}' is there already: that is the ledger in use")


async def _compared(
    here: Stores, there: Stores, tenant: str, carrier: Carrier, *, by_word: bool, exact: bool, tell: OnMove
) -> TenantMove:
    kbs = await here.ledger.kbs(tenant)
    documents = chunks = vectors = 0
    differences, total = carrier.differences, Agreement()
    for kb in kbs:
        samples = Samples()
        compared = await compare_kb(here.ledger, there.ledger, tenant, kb, samples, tell)
        documents += compared.documents
        chunks += compared.chunks
        vectors += compared.vectors
        differences += compared.differences
        agreement, wrong = await _searched(here, there, tenant, kb, samples, by_word=by_word, exact=exact)
        total += agreement
        differences += wrong
    return TenantMove(
        *(tenant, len(kbs), documents, chunks, vectors, carrier.written, total.searches, total.share),
        differences,
    )


async def _searched(
    here: Stores,
    there: Stores,
    tenant: str,
    kb: KnowledgeBase,
    samples: Samples,
    *,
    by_word: bool,
    exact: bool,
) -> tuple[Agreement, Differences]:
    """Ask both for the same, by meaning and by word."""
    other = await there.ledger.kb(tenant, kb.name)
    if other is None:
        return Agreement(), NONE
    by_meaning, lexical = Agreement(), Agreement()
    for text, vector in samples.chosen:
        by_meaning += agree(
            await here.vectors.search(tenant, kb, vector, K),
            await there.vectors.search(tenant, other, vector, K),
        )
        if by_word:
            query = " ".join(text.split()[:WORDS])
            lexical += agree(
                await here.lexical.search(tenant, kb, query, K),
                await there.lexical.search(tenant, other, query, K),
                tolerance=BM25_TOLERANCE,
            )
    wrong = judged(by_meaning, exact=exact, what=f"the search by meaning in '{kb.name}'")
    wrong += judged(lexical, exact=True, what=f"the search by word in '{kb.name}'")
    return by_meaning + lexical, wrong
