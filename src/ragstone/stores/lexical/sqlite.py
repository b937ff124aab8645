"""BM25 by FTS5, in the ledger's own file.

One contentless FTS5 table per kb holds the analysed text of live chunks only, so its statistics are those of
that kb and of what can be found. The text it was built from is kept in `terms`, for taking a chunk out again.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import zlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ragstone.core.filters import Filter, Scalar
from ragstone.core.types import Candidate, KnowledgeBase
from ragstone.language.terms import terms_asked
from ragstone.stores.indexes import LIVE, Following, IndexCache, TransactionalIndex, allowed_numbers, behind, catch_up
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.ledger.sqlite.tenant_file import TenantFile
from ragstone.stores.lexical.postings import AskedTerms, PostingsMatrix, weigh_word
from ragstone.stores.sql.database import Connection, in_parts, marks
from ragstone.stores.sql.filters import condition

logger = logging.getLogger(__name__)
MAX_TERMS = 64
LOAD_ROWS = 20_000
INLINE_CHANGES = 2_000
EVERYTHING = -1
# The analyzer has already cut the text: FTS5 only has to split at blanks.
TOKENIZER = "unicode61 remove_diacritics 0 categories ''L* N* M* P* S* Co''"


class Fts5Writer:
    """Keeps the FTS5 tables in step with the ledger, inside its transactions."""

    def open(self, connection: Connection, kb_id: int) -> None:
        connection.execute(
            f"CREATE VIRTUAL TABLE {_table(kb_id)} USING fts5(terms, content='', tokenize='{TOKENIZER}')"
        )

    def add(self, connection: Connection, kb_id: int, rows: Sequence[tuple[int, str]]) -> None:
        connection.executemany(f"INSERT INTO {_table(kb_id)} (rowid, terms) VALUES (?, ?)", rows)

    def remove(self, connection: Connection, kb_id: int, rows: Sequence[tuple[int, str]]) -> None:
        table = _table(kb_id)
        connection.executemany(f"INSERT INTO {table} ({table}, rowid, terms) VALUES ('delete', ?, ?)", rows)

    def drop(self, connection: Connection, kb_id: int) -> None:
        connection.execute(f"DROP TABLE {_table(kb_id)}")


class SqliteLexicalIndex:
    """Implements `core.protocols.LexicalIndex`.

    The first search of a process is answered by FTS5, which needs no loading. From the second on, postings in
    memory answer, once a background thread has read them; both give the same scores.
    """

    def __init__(self, ledger: SqliteLedger, cache: IndexCache) -> None:
        self._ledger = ledger
        self._cache = cache
        self._seen: set[tuple[str, int]] = set()
        self._loading: set[tuple[str, int]] = set()
        self._guard = threading.Lock()

    @staticmethod
    def writers() -> Sequence[TransactionalIndex]:
        """Return the writers that keep this index in step with the ledger."""
        return (Fts5Writer(),)

    async def search(
        self, tenant: str, kb: KnowledgeBase, query: str, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        terms = terms_asked(query, kb.languages)[:MAX_TERMS]
        if not terms:
            return []
        async with self._ledger.file(tenant) as file:
            return await file.read(lambda db: self._search(db, file, kb.id, terms, k, where))

    def _search(
        self, connection: Connection, file: TenantFile, kb_id: int, terms: AskedTerms, k: int, where: Filter | None
    ) -> list[Candidate]:
        following = self._following(connection, file, kb_id)
        if following is None:
            return search_fts(connection, file.tenant_id, kb_id, terms, k, where)
        allowed = allowed_numbers(connection, file.tenant_id, kb_id, where) if where else None
        with following.lock:
            before = following.sequence
            _follow(connection, file.tenant_id, kb_id, following)
            found = following.resident.best(terms, k, allowed)
        if following.sequence != before:
            self._cache.trim()
        return found

    def _following(self, connection: Connection, file: TenantFile, kb_id: int) -> Following[PostingsMatrix] | None:
        """Return the postings in memory; None, and have them read in the background, while they are far behind."""
        key = (file.tenant_id, kb_id)
        with self._guard:
            first, loading = key not in self._seen, key in self._loading
            self._seen.add(key)
        if first:
            return None
        following = self._cache.get(("postings", *key), PostingsMatrix)
        if behind(connection, file.tenant_id, following) <= INLINE_CHANGES:
            return following
        if not loading:
            with self._guard:
                self._loading.add(key)
            file.read_later(lambda db: self._load(db, key, following))
        return None

    def _load(self, connection: Connection, key: tuple[str, int], following: Following[PostingsMatrix]) -> None:
        # On a copy, so that searches of what is already loaded are not held up.
        ahead: Following[PostingsMatrix] = Following(PostingsMatrix())
        try:
            _follow(connection, *key, ahead)
            with following.lock:
                following.resident, following.sequence = ahead.resident, ahead.sequence
            self._cache.trim()
        except (sqlite3.Error, zlib.error) as error:
            # FTS5 goes on answering.
            logger.warning("postings of kb %s were not loaded: %s", key[1], error)
        finally:
            with self._guard:
                self._loading.discard(key)


def _follow(connection: Connection, tenant_id: str, kb_id: int, following: Following[PostingsMatrix]) -> None:
    def load(postings: PostingsMatrix, which: str, values: Sequence[Any]) -> None:
        cursor = connection.execute(
            f"SELECT c.seq, c.id, t.terms FROM chunks c JOIN terms t ON t.chunk_seq = c.seq {LIVE} "
            f"WHERE c.kb_id = ? AND {which}",
            (kb_id, *values),
        )
        while rows := cursor.fetchmany(LOAD_ROWS):
            numbers, ids, packed = zip(*rows, strict=True)
            postings.put(numbers, ids, [zlib.decompress(terms).decode() for terms in packed])

    catch_up(connection, tenant_id, kb_id, following, PostingsMatrix, load)


def search_fts(
    connection: Connection, tenant_id: str, kb_id: int, terms: AskedTerms, k: int, where: Filter | None
) -> list[Candidate]:
    """Return the k best chunks by FTS5 itself, with nothing in memory."""
    table = _table(kb_id)
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
        return []
    if any(len(variants) > 1 for variants in terms):
        return _search_variants(connection, tenant_id, kb_id, terms, k, where)
    parameters: list[Scalar] = [" OR ".join(_quote(term) for variants in terms for term in variants)]
    allowed = ""
    if where:
        parameters += [tenant_id, kb_id]
        allowed = (
            f"AND rowid IN (SELECT c.seq FROM chunks c {LIVE} "
            f"WHERE c.tenant_id = ? AND c.kb_id = ? AND {condition(where, parameters)})"
        )

    def rank(limit: int) -> list[Candidate]:
        rows = connection.execute(
            f"SELECT c.id, f.score FROM (SELECT rowid, bm25({table}) AS score FROM {table} WHERE {table} MATCH ? "
            f"{allowed} ORDER BY score LIMIT ?) f JOIN chunks c ON c.seq = f.rowid",
            (*parameters, limit),
        )
        found = [Candidate(chunk_id, -score) for chunk_id, score in rows]
        return sorted(found, key=lambda candidate: (-candidate.score, candidate.chunk_id))

    found = rank(k + 1)
    if len(found) > k and found[k].score == found[k - 1].score:
        # FTS5 knows no ids: which of the equals it left out is chance, so all are read.
        found = rank(EVERYTHING)
    return found[:k]


def _search_variants(
    connection: Connection, tenant_id: str, kb_id: int, asked: AskedTerms, k: int, where: Filter | None
) -> list[Candidate]:
    """Return the k best chunks where a word has several terms: FTS5 weighs each alone, and they are one word."""
    table = _table(kb_id)
    (chunks,) = connection.execute(f"SELECT count(*) FROM {table}_docsize").fetchone()
    scores: defaultdict[int, float] = defaultdict(float)
    for variants in asked:
        lists = [
            connection.execute(f"SELECT rowid, -bm25({table}) FROM {table} WHERE {table} MATCH ?", (_quote(term),))
            for term in variants
        ]
        found = [rows for rows in (cursor.fetchall() for cursor in lists) if rows]
        weight = weigh_word(chunks, sum(map(len, found)))
        for rows in found:
            share = weight / weigh_word(chunks, len(rows))
            for number, score in rows:
                scores[number] += share * score
    allowed = set(allowed_numbers(connection, tenant_id, kb_id, where).tolist()) if where else scores.keys()
    kept = [number for number in scores if number in allowed]
    ids: dict[int, str] = {}
    for part in in_parts(kept):
        ids.update(connection.execute(f"SELECT seq, id FROM chunks WHERE seq IN ({marks(part)})", part))
    ranked = sorted((-scores[number], ids[number]) for number in kept if number in ids)
    return [Candidate(chunk_id, -score) for score, chunk_id in ranked[:k]]


def _quote(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _table(kb_id: int) -> str:
    return f"lexical_{int(kb_id)}"
