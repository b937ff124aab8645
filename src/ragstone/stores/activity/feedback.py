"""Votes on passages, and golden queries with the documents that answer them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from ragstone.core.activity import GoldenQuery, Origin, PassageVote, same_query
from ragstone.core.clock import canonical
from ragstone.core.errors import unknown_kb
from ragstone.core.ids import content_hash
from ragstone.stores.ledger.documents import read_kb
from ragstone.stores.ledger.repository import TenantRepository, in_snapshot_or, in_transaction
from ragstone.stores.sql.database import Connection, keep_newest

MOST_VOTES = 100_000
"""Of a tenant, the newest."""


class FeedbackRepository(TenantRepository):
    """Keeps what people made of passages; all of it goes with the document or the kb."""

    @in_transaction
    def add_votes(self, connection: Connection, tenant_id: str, kb: str, votes: Sequence[PassageVote]) -> None:
        """Write down votes; a voter's later word on the same passage replaces the earlier one."""
        kb_id = self._kb(connection, tenant_id, kb)
        put_votes(connection, tenant_id, kb_id, votes)

    @in_snapshot_or(list)
    def votes(self, connection: Connection, tenant_id: str, kb: str, limit: int = MOST_VOTES) -> list[PassageVote]:
        """Return the votes on passages of a kb, newest first."""
        found = connection.execute(
            "SELECT v.moment, v.query, v.chunk_id, v.document_id, v.vote, v.voter FROM votes v "
            "JOIN knowledge_bases k ON k.tenant_id = v.tenant_id AND k.id = v.kb_id "
            "WHERE v.tenant_id = ? AND k.name = ? "
            "ORDER BY v.moment DESC, v.query_hash, v.chunk_id, v.voter LIMIT ?",
            (tenant_id, kb, limit),
        )
        return [PassageVote(datetime.fromisoformat(moment), kb, *facts) for moment, *facts in found]

    @in_transaction
    def add_golden(self, connection: Connection, tenant_id: str, kb: str, queries: Sequence[GoldenQuery]) -> None:
        """Keep golden queries with those of their documents that are there."""
        kb_id = self._kb(connection, tenant_id, kb)
        put_golden(connection, tenant_id, kb_id, queries)

    @in_snapshot_or(list)
    def golden(self, connection: Connection, tenant_id: str, kb: str) -> list[GoldenQuery]:
        """Return the golden queries of a kb in the order of their words."""
        found: dict[tuple[str, Origin], list[str]] = defaultdict(list)
        for query, document_id, origin in connection.execute(
            "SELECT g.query, g.document_id, g.origin FROM golden_queries g JOIN knowledge_bases k "
            "ON k.tenant_id = g.tenant_id AND k.id = g.kb_id WHERE g.tenant_id = ? AND k.name = ? "
            "ORDER BY g.query, g.document_id",
            (tenant_id, kb),
        ):
            found[query, origin].append(document_id)
        return [GoldenQuery(kb, query, tuple(ids), origin) for (query, origin), ids in found.items()]

    @in_transaction
    def remove_golden(self, connection: Connection, tenant_id: str, kb: str, query: str | None) -> int:
        """Remove one golden query or all of a kb, and return how many went."""
        found = read_kb(connection, tenant_id, kb)
        if found is None:
            return 0
        narrowed, given = ("", ()) if query is None else (" AND query_hash = ?", (content_hash(query),))
        chosen = f"FROM golden_queries WHERE tenant_id = ? AND kb_id = ?{narrowed}"
        values = (tenant_id, found.id, *given)
        row = connection.execute(f"SELECT count(DISTINCT query_hash) {chosen}", values).fetchone()
        connection.execute(f"DELETE {chosen}", values)
        return int(row[0])

    def _kb(self, connection: Connection, tenant_id: str, kb: str) -> int:
        found = read_kb(connection, tenant_id, kb)
        if found is None:
            raise unknown_kb(kb, self._tenant)
        return found.id


def put_votes(connection: Connection, tenant_id: str, kb_id: int, votes: Iterable[PassageVote]) -> None:
    """Write votes on documents that are there over earlier ones of the same voters; keep the newest `MOST_VOTES`."""
    connection.executemany(
        "INSERT INTO votes (tenant_id, kb_id, query_hash, chunk_id, voter, document_id, moment, query, vote) "
        "SELECT ?, ?, ?, ?, ?, id, ?, ?, ? FROM documents WHERE tenant_id = ? AND id = ? "
        "ON CONFLICT (tenant_id, kb_id, query_hash, chunk_id, voter) "
        "DO UPDATE SET document_id = excluded.document_id, moment = excluded.moment, query = excluded.query, "
        "vote = excluded.vote WHERE excluded.moment >= votes.moment",
        [
            (
                *(tenant_id, kb_id, content_hash(same_query(vote.query)), vote.chunk_id, vote.voter),
                *(canonical(vote.moment), vote.query, vote.vote, tenant_id, vote.document_id),
            )
            for vote in votes
        ],
    )
    key = ("kb_id", "query_hash", "chunk_id", "voter")
    keep_newest(connection, tenant_id, "votes", key, "moment", MOST_VOTES)


def put_golden(connection: Connection, tenant_id: str, kb_id: int, queries: Iterable[GoldenQuery]) -> None:
    """Write golden queries with those of their documents that are there; known ones stay as they are."""
    connection.executemany(
        "INSERT INTO golden_queries (tenant_id, kb_id, query_hash, document_id, query, origin) "
        "SELECT ?, ?, ?, id, ?, ? FROM documents WHERE tenant_id = ? AND id = ? ON CONFLICT DO NOTHING",
        [
            (*(tenant_id, kb_id, content_hash(query.query), query.query, query.origin), *(tenant_id, document_id))
            for query in queries
            for document_id in query.document_ids
        ],
    )
