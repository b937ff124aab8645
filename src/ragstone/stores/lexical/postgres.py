"""BM25 in the PostgreSQL ledger's own tables: one statement over the postings of the query's terms.

The postings are those of live chunks, written in the ledger's transactions, and the statistics those of the kb: the
scores are the same as of any other BM25 index here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragstone.core.filters import Filter
from ragstone.core.types import Candidate, KnowledgeBase
from ragstone.language.terms import terms_asked
from ragstone.stores.indexes import LIVE, IndexCache, TransactionalIndex
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.lexical.postings import IDF_FLOOR, K1, AskedTerms, B
from ragstone.stores.sql.database import Connection
from ragstone.stores.sql.partitions import note_growth, part

MAX_TERMS = 64
SCALE = 1e12
"""Gains are added up as whole numbers of this part: in any order they give the same sum, so that equals tie."""

SEARCH = """
WITH asked AS MATERIALIZED (
    SELECT t.n, p.chunk_seq, p.count::float8 AS count, p.length::float8 AS length
    FROM (VALUES (?::bigint, ?::text[], ?::int[])) q (kb_id, terms, words)
    CROSS JOIN LATERAL unnest(q.terms, q.words) AS t (term, n)
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
        """Return the writers that keep this index in step with the ledger."""
        return (PostingsWriter(),)

    async def search(
        self, tenant: str, kb: KnowledgeBase, query: str, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        terms = terms_asked(query, kb.languages)[:MAX_TERMS]
        if not terms:
            return []
        found = await self._ledger.read(tenant, search_postings, kb.id, terms, k, where)
        if found is None:
            await self._ledger.write(tenant, _complete, kb.id)
            found = await self._ledger.read(tenant, search_postings, kb.id, terms, k, where)
        return found or []

    async def rebuild(self, tenant: str, kb: KnowledgeBase) -> bool:
        """Rebuild a kb's postings; searches go on, writers of the tenant wait."""
        await self._ledger.write(tenant, rebuild_postings, kb.id)
        return True


def search_postings(
    connection: Connection, tenant_id: str, kb_id: int, asked: AskedTerms, k: int, where: Filter | None
) -> list[Candidate] | None:
    """Return the k best chunks; None when the kb exists and its postings do not."""
    words = [(term, n) for n, terms in enumerate(asked) for term in terms]
    parameters: list[Any] = [kb_id, [term for term, _ in words], [n for _, n in words], tenant_id, kb_id]
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


ADD = """
INSERT INTO postings (tenant_id, kb_id, term, chunk_seq, count, length)
SELECT ?, ?, w.term, r.seq, count(*), r.length
FROM (
    SELECT seq, terms, 1 + length(terms) - length(replace(terms, ' ', '')) AS length
    FROM unnest(?::bigint[], ?::text[]) AS given (seq, terms) OFFSET 0
) r CROSS JOIN LATERAL string_to_table(r.terms, ' ') AS w (term)
GROUP BY r.seq, r.length, w.term
"""
"""OFFSET keeps the length from being worked out again for every word."""

REMOVE = """
DELETE FROM postings p
USING (
    SELECT DISTINCT seq, w.term FROM unnest(?::bigint[], ?::text[]) AS given (seq, terms)
    CROSS JOIN LATERAL string_to_table(terms, ' ') AS w (term)
) gone
WHERE p.tenant_id = ? AND p.kb_id = ? AND p.term = gone.term AND p.chunk_seq = gone.seq
"""

REBUILT_TOGETHER = 2_000


class PostingsWriter:
    """Implements `TransactionalIndex`. Chunks that a kb has been indexed without are left to the next rebuild."""

    def open(self, connection: Connection, kb_id: int) -> None:
        _open(connection, tenant_of(connection), kb_id)

    def add(self, connection: Connection, kb_id: int, rows: Sequence[tuple[int, str]]) -> None:
        if rows and _count(connection, tenant_id := tenant_of(connection), kb_id, rows, 1):
            _insert(connection, tenant_id, kb_id, rows)
            note_growth(connection, tenant_id, rows)

    def remove(self, connection: Connection, kb_id: int, rows: Sequence[tuple[int, str]]) -> None:
        if rows and _count(connection, tenant_id := tenant_of(connection), kb_id, rows, -1):
            numbers, texts = (list(column) for column in zip(*rows, strict=True))
            connection.execute(REMOVE, (numbers, texts, tenant_id, kb_id))

    def drop(self, connection: Connection, kb_id: int) -> None:
        forget_postings(connection, kb_id)


def forget_postings(connection: Connection, kb_id: int) -> None:
    """Drop the postings of a kb, if it has any."""
    tenant_id = tenant_of(connection)
    dropped = connection.execute("DELETE FROM lexical_statistics WHERE tenant_id = ? AND kb_id = ?", (tenant_id, kb_id))
    if dropped.rowcount:
        connection.execute("DELETE FROM postings WHERE tenant_id = ? AND kb_id = ?", (tenant_id, kb_id))


def rebuild_postings(connection: Connection, tenant_id: str, kb_id: int) -> None:
    """Rebuild the postings of a kb from the analysed texts of its live chunks."""
    forget_postings(connection, kb_id)
    _open(connection, tenant_id, kb_id)
    last = 0
    while True:
        rows = connection.execute(
            "SELECT c.seq, t.terms FROM chunks c "
            f"JOIN terms t ON t.tenant_id = c.tenant_id AND t.chunk_seq = c.seq {LIVE} "
            "WHERE c.tenant_id = ? AND c.kb_id = ? AND c.seq > ? ORDER BY c.seq LIMIT ?",
            (tenant_id, kb_id, last, REBUILT_TOGETHER),
        ).fetchall()
        if not rows:
            return
        _count(connection, tenant_id, kb_id, rows, 1)
        _insert(connection, tenant_id, kb_id, rows)
        last = rows[-1][0]


def _open(connection: Connection, tenant_id: str, kb_id: int) -> None:
    connection.execute(
        "INSERT INTO lexical_statistics (tenant_id, kb_id, chunks, length) VALUES (?, ?, 0, 0)", (tenant_id, kb_id)
    )


def _count(connection: Connection, tenant_id: str, kb_id: int, rows: Sequence[tuple[int, str]], sign: int) -> bool:
    """Count chunks in or out; False when the kb has no postings to keep in step."""
    length = sum(text.count(" ") + 1 for _, text in rows if text)
    counted = connection.execute(
        "UPDATE lexical_statistics SET chunks = chunks + ?, length = length + ? WHERE tenant_id = ? AND kb_id = ?",
        (sign * len(rows), sign * length, tenant_id, kb_id),
    )
    return bool(counted.rowcount)


def _insert(connection: Connection, tenant_id: str, kb_id: int, rows: Sequence[tuple[int, str]]) -> None:
    numbers, texts = (list(column) for column in zip(*rows, strict=True))
    connection.execute(ADD, (tenant_id, kb_id, numbers, texts))


def tenant_of(connection: Connection) -> str:
    """Return the tenant of this transaction, as a value: a plan with an expression would name every partition."""
    return str(connection.execute("SELECT current_setting('ragstone.tenant')").fetchone()[0])
