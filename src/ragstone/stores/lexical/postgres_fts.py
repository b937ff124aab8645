"""PostgreSQL's own text search over `content_tsv`, ranked by `ts_rank`.

It is offered where a profile asks for it and is not BM25: `ts_rank` knows how often and how close together words
stand in a chunk, but not how rare they are. Words are cut and stemmed by the database's `english` configuration. The
words of other languages are found among the terms that this project's analyzer stored, ranked by the same function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragstone.core.filters import Filter
from ragstone.core.types import Candidate, KnowledgeBase
from ragstone.language.terms import MARK, terms_asked
from ragstone.stores.indexes import LIVE, IndexCache, TransactionalIndex
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.lexical.builtin import BuiltinIndexWriter
from ragstone.stores.sql.database import Connection
from ragstone.stores.sql.partitions import part

MAX_TERMS = 64
MAX_CHARS = 8_000
STORED = "array_to_tsvector(array_remove(string_to_array(t.terms, ' '), ''))"
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
        return await self._ledger.read(tenant, search_text, kb, query[:MAX_CHARS], k, where)


def search_text(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, query: str, k: int, where: Filter | None
) -> list[Candidate]:
    """Return the k chunks that `ts_rank` puts first, of those that hold any word of the query."""
    lexemes = connection.execute(LEXEMES, (query,)).fetchone()[0][:MAX_TERMS]
    found = _rank(connection, tenant_id, kb, "c.content_tsv", lexemes, k, where)
    for language in kb.languages:
        words = terms_asked(query, (language,))[:MAX_TERMS]
        marked = [term for terms in words for term in terms if MARK in term]
        found += _rank(connection, tenant_id, kb, STORED, marked, k, where)
    best: dict[str, float] = {}
    for chunk_id, rank in found:
        best[chunk_id] = max(rank, best.get(chunk_id, rank))
    ranked = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
    return [Candidate(chunk_id, rank) for chunk_id, rank in ranked[:k]]


def _rank(
    connection: Connection,
    tenant_id: str,
    kb: KnowledgeBase,
    vector: str,
    lexemes: Sequence[str],
    k: int,
    where: Filter | None,
) -> list[Candidate]:
    if not lexemes:
        return []
    asked = any_of(lexemes)
    parameters: list[Any] = [asked, tenant_id, kb.id]
    if vector == STORED:
        # The index is on the terms as a list, and on marked ones only.
        joined = f"JOIN {part('terms', tenant_id)} t ON t.tenant_id = c.tenant_id AND t.chunk_seq = c.seq"
        matches = "t.terms LIKE '%~%' AND string_to_array(t.terms, ' ') && ?::text[]"
        parameters.append(list(lexemes))
    else:
        joined, matches = "", f"{vector} @@ ?::tsquery"
        parameters.append(asked)
    filtered = f"AND {connection.dialect.condition(where, parameters)}" if where else ""
    rows = connection.execute(
        f"SELECT c.id, ts_rank({vector}, ?::tsquery)::float8 AS rank FROM {part('chunks', tenant_id)} c "
        f"{joined} {LIVE} WHERE d.tenant_id = ? AND c.kb_id = ? AND {matches} {filtered} "
        "ORDER BY rank DESC, c.id LIMIT ?",
        (*parameters, k),
    )
    return [Candidate(chunk_id, rank) for chunk_id, rank in rows]


def any_of(lexemes: Sequence[str]) -> str:
    """Return a `tsquery` that any of the words satisfies. Quoted, so that no character of theirs is an operator."""
    return " | ".join("'" + word.replace("\\", "\\\\").replace("'", "''") + "'" for word in lexemes)
