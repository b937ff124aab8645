"""BM25 in memory over any ledger, for a database that has no such index of its own, or instead of it.

The postings follow the ledger's change feed: a search first catches up with what was committed, so it is never
stale. They can be saved to a file, which spares the next process from reading every chunk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from ragstone.core.errors import InputError
from ragstone.core.filters import Filter
from ragstone.core.types import Candidate, KnowledgeBase
from ragstone.language.terms import terms_asked
from ragstone.stores.indexes import LIVE, Following, IndexCache, TransactionalIndex, allowed_numbers, catch_up
from ragstone.stores.ledger.documents import read_sequence
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.lexical.bm25_file import DEFAULT_PATH, Origin, load_index, save_index
from ragstone.stores.lexical.builtin import BuiltinIndexWriter
from ragstone.stores.lexical.postings import AskedTerms, PostingsMatrix
from ragstone.stores.sql.database import Connection

MAX_TERMS = 64
LOAD_ROWS = 10_000


class ResidentBm25Index:
    """Implements `core.protocols.LexicalIndex`."""

    def __init__(self, ledger: SqlLedger, cache: IndexCache) -> None:
        self._ledger = ledger
        self._cache = cache
        self._turns: WeakValueDictionary[tuple[str, int], asyncio.Lock] = WeakValueDictionary()

    @staticmethod
    def writers() -> Sequence[TransactionalIndex]:
        """Return the writers of the database's own index, which is kept usable beside this one."""
        return (BuiltinIndexWriter(),)

    async def search(
        self, tenant: str, kb: KnowledgeBase, query: str, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        terms = terms_asked(query, kb.languages)[:MAX_TERMS]
        if not terms:
            return []
        async with self._turn(tenant, kb):
            # Loading goes on when this search has no time left, or each would begin again.
            return await asyncio.shield(self._ledger.read(tenant, self._search, kb.id, terms, k, where))

    async def save_index(self, tenant: str, kb: KnowledgeBase, path: Path = DEFAULT_PATH) -> None:
        """Write a kb's index to a file."""
        async with self._turn(tenant, kb):
            await self._ledger.read(tenant, self._save, kb.id, path)

    async def load_index(self, tenant: str, kb: KnowledgeBase, path: Path = DEFAULT_PATH) -> None:
        """Take a kb's index from a file; what was committed since is made up for by the next search."""
        async with self._turn(tenant, kb):
            await self._ledger.read(tenant, self._load, kb, path)

    def _turn(self, tenant: str, kb: KnowledgeBase) -> asyncio.Lock:
        # Waited for here, so that no connection is held while another search reads all the chunks.
        return self._turns.setdefault((tenant, kb.id), asyncio.Lock())

    def _search(
        self, connection: Connection, tenant_id: str, kb_id: int, terms: AskedTerms, k: int, where: Filter | None
    ) -> list[Candidate]:
        allowed = allowed_numbers(connection, tenant_id, kb_id, where) if where else None
        following = self._following(tenant_id, kb_id)
        with following.lock:
            self._follow(connection, tenant_id, kb_id, following)
            return following.resident.best(terms, k, allowed)

    def _save(self, connection: Connection, tenant_id: str, kb_id: int, path: Path) -> None:
        following = self._following(tenant_id, kb_id)
        with following.lock:
            self._follow(connection, tenant_id, kb_id, following)
            save_index(following.resident, path, Origin(tenant_id, kb_id, following.sequence))

    def _load(self, connection: Connection, tenant_id: str, kb: KnowledgeBase, path: Path) -> None:
        index, origin = load_index(path)
        newest = read_sequence(connection, tenant_id)
        if (origin.tenant_id, origin.kb_id) != (tenant_id, kb.id) or not 0 <= origin.sequence <= newest:
            raise InputError(
                f"{path} is not the index of knowledge base '{kb.name}' as this ledger knows it",
                hint="save it again from this one",
            )
        following = self._following(tenant_id, kb.id)
        with following.lock:
            following.resident, following.sequence = index, origin.sequence
        self._cache.trim()

    def _following(self, tenant_id: str, kb_id: int) -> Following[PostingsMatrix]:
        return self._cache.get(("bm25", tenant_id, kb_id), PostingsMatrix)

    def _follow(self, connection: Connection, tenant_id: str, kb_id: int, following: Following[PostingsMatrix]) -> None:
        def load(postings: PostingsMatrix, which: str, values: Sequence[Any]) -> None:
            _load_terms(connection, tenant_id, kb_id, postings, which, values)

        before = following.sequence
        catch_up(connection, tenant_id, kb_id, following, PostingsMatrix, load)
        if following.sequence != before:
            self._cache.trim()


def _load_terms(
    connection: Connection, tenant_id: str, kb_id: int, postings: PostingsMatrix, which: str, values: Sequence[Any]
) -> None:
    """Read analysed texts, some at a time: a client may hold all that it was sent."""
    last = 0
    while True:
        rows = connection.execute(
            "SELECT c.seq, c.id, t.terms FROM chunks c "
            f"JOIN terms t ON t.tenant_id = c.tenant_id AND t.chunk_seq = c.seq {LIVE} "
            f"WHERE c.tenant_id = ? AND c.kb_id = ? AND c.seq > ? AND {which} ORDER BY c.seq LIMIT ?",
            (tenant_id, kb_id, last, *values, LOAD_ROWS),
        ).fetchall()
        if not rows:
            return
        numbers, ids, packed = zip(*rows, strict=True)
        postings.put(numbers, ids, [connection.dialect.unpack(terms) for terms in packed])
        last = numbers[-1]
