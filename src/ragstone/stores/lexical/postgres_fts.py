"""PostgreSQL's own text search over `content_tsv`, ranked by `ts_rank`.

It is offered where a profile asks for it and is not BM25: `ts_rank` knows how often and how close together words
stand in a chunk, but not how rare they are. Words are cut and stemmed by the database's `english` configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragstone.core.filters import Filter
from ragstone.core.types import Candidate, KnowledgeBase
from ragstone.stores.indexes import LIVE, IndexCache, TransactionalIndex
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.lexical.builtin import BuiltinIndexWriter
from ragstone.stores.sql.database import Connection
from ragstone.stores.sql.partitions import part

MAX_TERMS = 64
MAX_CHARS = 8_000
LEXEMES = "SELECT coalesce(tsvector_to_array(to_tsvector('english', ?)), '{}')"


class PostgresFtsIndex:
    """Implements `core.protocols.LexicalIndex`, but for its scores: they are `ts_rank`'s."""

    def __init__(self, ledger: SqlLedger, cache: IndexCache) -> None:
        self._ledger = ledger

    @staticmethod
    def writers() -> Sequence[TransactionalIndex]:
        """Return the writers of the database's own index, which is kept usable beside this one."""
        return (BuiltinIndexWriter(),)

    async def search(
        self, tenant: str, kb: KnowledgeBase, query: str, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        return await self._ledger.read(tenant, search_text, kb.id, query[:MAX_CHARS], k, where)


def search_text(
    connection: Connection, tenant_id: str, kb_id: int, query: str, k: int, where: Filter | None
) -> list[Candidate]:
    """Return the k chunks that `ts_rank` puts first, of those that hold any word of the query."""
    lexemes = connection.execute(LEXEMES, (query,)).fetchone()[0][:MAX_TERMS]
    if not lexemes:
        return []
    asked = any_of(lexemes)
    parameters: list[Any] = [asked, tenant_id, kb_id, asked]
    filtered = f"AND {connection.dialect.condition(where, parameters)}" if where else ""
    rows = connection.execute(
        f"SELECT c.id, ts_rank(c.content_tsv, ?::tsquery)::float8 AS rank FROM {part('chunks', tenant_id)} c {LIVE} "
        f"WHERE d.tenant_id = ? AND c.kb_id = ? AND c.content_tsv @@ ?::tsquery {filtered} "
        "ORDER BY rank DESC, c.id LIMIT ?",
        (*parameters, k),
    )
    return [Candidate(chunk_id, rank) for chunk_id, rank in rows]


def any_of(lexemes: Sequence[str]) -> str:
    """Return a `tsquery` that any of the words satisfies. Quoted, so that no character of theirs is an operator."""
    return " | ".join("'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in lexemes)
