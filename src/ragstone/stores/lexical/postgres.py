"""BM25 in the PostgreSQL ledger's own tables: one statement over the postings of the query's terms.

The postings are those of live chunks, written in the ledger's transactions, and the statistics those of the kb: the
scores are the same as of any other BM25 index here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragstone.core.filters import Filter
from ragstone.core.types import Candidate, KnowledgeBase
from ragstone.language.analyzer import analyze_query
from ragstone.stores.index_cache import LIVE, IndexCache
from ragstone.stores.indexes import TransactionalIndex
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.lexical.postgres_writer import PostingsWriter, rebuild_postings
from ragstone.stores.sql.database import Connection
from ragstone.stores.sql.partitions import part

MAX_TERMS = 64
K1 = 1.2
B = 0.75
IDF_FLOOR = 1e-6
SCALE = 1e12
"""Gains are added up as whole numbers of this part: in any order they give the same sum, so that equals tie."""

SEARCH = """
WITH asked AS MATERIALIZED (
    SELECT t.n, p.chunk_seq, p.count::float8 AS count, p.length::float8 AS length
    FROM (VALUES (?::bigint, ?::text[])) q (kb_id, terms)
    CROSS JOIN LATERAL unnest(q.terms) WITH ORDINALITY AS t (term, n)
    CROSS JOIN LATERAL (SELECT * FROM {postings} WHERE kb_id = q.kb_id AND term = t.term) p
), whole AS (
    SELECT chunks::float8 AS chunks, greatest(length, 1)::float8 / greatest(chunks, 1) AS average
    FROM lexical_statistics WHERE tenant_id = ? AND kb_id = ?
), weights AS MATERIALIZED (
    SELECT f.n, {k1} * {b} / w.average AS slope, {scale} * ({k1} + 1)
        * greatest(ln((greatest(w.chunks - f.chunks, 0) + 0.5::float8) / (f.chunks + 0.5::float8)), {floor}) AS weight
    FROM (SELECT n, count(*)::float8 AS chunks FROM asked GROUP BY n) f CROSS JOIN whole w
), scored AS (
    SELECT a.chunk_seq,
        sum((w.weight * a.count / (a.count + {k1} * (1 - {b}) + w.slope * a.length))::bigint) AS score
    FROM asked a JOIN weights w ON w.n = a.n {allowed} GROUP BY a.chunk_seq
), best AS (
    SELECT chunk_seq, score FROM scored ORDER BY score DESC FETCH FIRST ? ROWS WITH TIES
)
SELECT c.id, best.score::float8 / {scale} FROM best JOIN {chunks} c ON c.tenant_id = ? AND c.seq = best.chunk_seq
ORDER BY best.score DESC, c.id LIMIT ?
"""


class PostgresLexicalIndex:
    """Implements `core.protocols.LexicalIndex`."""

    def __init__(self, ledger: SqlLedger, cache: IndexCache) -> None:
        self._ledger = ledger

    @staticmethod
    def writers() -> Sequence[TransactionalIndex]:
        """What the ledger has to keep in step for this index."""
        return (PostingsWriter(),)

    async def search(
        self, tenant: str, kb: KnowledgeBase, query: str, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        terms = analyze_query(query)[:MAX_TERMS]
        if not terms:
            return []
        found = await self._ledger.read(tenant, search_postings, kb.id, terms, k, where)
        if found is None:
            await self._ledger.write(tenant, _complete, kb.id)
            found = await self._ledger.read(tenant, search_postings, kb.id, terms, k, where)
        return found or []

    async def rebuild(self, tenant: str, kb: KnowledgeBase) -> bool:
        """Make a kb's postings anew; searches go on meanwhile, writers of the tenant wait."""
        await self._ledger.write(tenant, rebuild_postings, kb.id)
        return True


def search_postings(
    connection: Connection, tenant_id: str, kb_id: int, terms: Sequence[str], k: int, where: Filter | None
) -> list[Candidate] | None:
    """The k best chunks; None when the kb is there but its postings are not."""
    parameters: list[Any] = [kb_id, list(terms), tenant_id, kb_id]
    allowed = ""
    if where:
        parameters += [tenant_id, kb_id]
        allowed = (
            f"WHERE a.chunk_seq IN (SELECT c.seq FROM {part('chunks', tenant_id)} c {LIVE} "
            f"WHERE d.tenant_id = ? AND c.kb_id = ? AND {connection.dialect.condition(where, parameters)})"
        )
    statement = SEARCH.format(
        postings=part("postings", tenant_id),
        chunks=part("chunks", tenant_id),
        allowed=allowed,
        floor=IDF_FLOOR,
        scale=SCALE,
        k1=K1,
        b=B,
    )
    rows = connection.execute(statement, (*parameters, k, tenant_id, k)).fetchall()
    if not rows and _lacks_postings(connection, tenant_id, kb_id):
        return None
    return [Candidate(chunk_id, score) for chunk_id, score in rows]


def _lacks_postings(connection: Connection, tenant_id: str, kb_id: int) -> bool:
    row = connection.execute(
        "SELECT 1 FROM knowledge_bases k LEFT JOIN lexical_statistics s ON s.tenant_id = k.tenant_id "
        "AND s.kb_id = k.id WHERE k.tenant_id = ? AND k.id = ? AND s.kb_id IS NULL",
        (tenant_id, kb_id),
    ).fetchone()
    return row is not None


def _complete(connection: Connection, tenant_id: str, kb_id: int) -> None:
    # Another process may have been quicker.
    if _lacks_postings(connection, tenant_id, kb_id):
        rebuild_postings(connection, tenant_id, kb_id)
