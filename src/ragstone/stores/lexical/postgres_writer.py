"""The writing end of PostgreSQL's BM25 index: postings of live chunks, and their statistics per kb.

A kb whose statistics are not there has no postings either: they were never made, or dropped when a change missed them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.stores.index_cache import LIVE
from ragstone.stores.sql.database import Connection
from ragstone.stores.sql.partitions import note_growth

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
    """Make the postings of a kb anew from the analysed texts of its live chunks."""
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
    """Whose rows this transaction may touch: as a value, since a plan with an expression would name every partition."""
    return str(connection.execute("SELECT current_setting('ragstone.tenant')").fetchone()[0])
