"""BM25 in the points of the vector database: a sparse vector beside the dense one, and no postings anywhere else.

What holds for the other arm holds here: what is to go live is written there first, and every hit is looked up in the
ledger. While the engine is behind or away, what the ledger's own database has answers: FTS5, or PostgreSQL's `ts_rank`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.core.errors import SettingsError, StoreError
from ragstone.core.filters import Filter
from ragstone.core.search import add_note
from ragstone.core.types import Candidate, KnowledgeBase
from ragstone.core.vectors import VectorPartition, WordProvider, Words
from ragstone.language.terms import terms_asked
from ragstone.stores.indexes import IndexCache, TransactionalIndex
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.sqlite.file import SqliteDialect
from ragstone.stores.lexical import postgres_fts
from ragstone.stores.lexical.builtin import BuiltinIndexWriter
from ragstone.stores.lexical.postings import AskedTerms, words_asked
from ragstone.stores.lexical.sqlite import search_fts
from ragstone.stores.sql.database import Connection
from ragstone.stores.vectors.derived.index import DerivedIndex

MAX_TERMS = 64


class QdrantLexicalIndex:
    """Implements `core.protocols.LexicalIndex` over a vector database that holds words as well."""

    def __init__(self, ledger: SqlLedger, cache: IndexCache, derived: DerivedIndex) -> None:
        provider = derived.provider
        if not isinstance(provider, WordProvider) or not provider.capabilities.sparse:
            raise SettingsError(f"{provider.name} holds no words", hint="set another store.lexical")
        self._ledger = ledger
        self._derived = derived
        self._provider = provider

    @staticmethod
    def writers() -> Sequence[TransactionalIndex]:
        """Return the writers of the database's own index, which is kept usable beside this one."""
        return (BuiltinIndexWriter(),)

    async def search(
        self, tenant: str, kb: KnowledgeBase, query: str, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        terms = terms_asked(query, kb.languages)[:MAX_TERMS]
        if not terms or k < 1:
            return []
        partition = await self._derived.ready(tenant, kb.space) if kb.space else None
        if partition is not None:
            try:
                found = await self._ask(tenant, partition, kb, words_asked(terms), k, where)
            except StoreError as error:
                # Both arms would be lost at once.
                add_note(f"{self._provider.name} could not be asked, and the ledger answers in its place: {error}")
            else:
                if found is not None:
                    return found
        return await self._ledger.read(tenant, _search_own, kb, query, terms, k, where)

    async def _ask(
        self, tenant: str, partition: VectorPartition, kb: KnowledgeBase, words: Words, k: int, where: Filter | None
    ) -> list[Candidate] | None:
        """Return the engine's best that are live in the ledger; None when it cannot give as many as there may be."""
        inside = where if self._derived.can_filter(partition, where) else None
        found, cut = await self._derived.found_live(
            tenant, kb, k, where, lambda asked: self._provider.search_words(partition, words, asked, inside)
        )
        return None if cut and len(found) < k else found


def _search_own(
    connection: Connection,
    tenant_id: str,
    kb: KnowledgeBase,
    query: str,
    terms: AskedTerms,
    k: int,
    where: Filter | None,
) -> list[Candidate]:
    """Return what the ledger's own database finds by word."""
    if isinstance(connection.dialect, SqliteDialect):
        return search_fts(connection, tenant_id, kb.id, terms, k, where)
    asked = query[: postgres_fts.MAX_CHARS]
    return postgres_fts.search_text(connection, tenant_id, kb, asked, k, where)
