"""The retrieval log of a tenant: what was searched for, and the first passages that were found."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from ragstone.core.activity import LoggedSearch, SearchFacts, Shown
from ragstone.core.clock import canonical
from ragstone.stores.activity.removal import remove_old_searches
from ragstone.stores.ledger.documents import existing
from ragstone.stores.ledger.repository import TenantRepository, in_log, in_log_or
from ragstone.stores.sql.database import Connection, in_parts, keep_newest, marks

MOST_SEARCHES = 100_000
"""Of a tenant, the newest: as many as are kept, and looked at together."""
COLUMNS = (
    "moment, query, mode, retrieval_time_ms, document_results_count, top_score, similarity, coverage, missing, "
    "conversation, query_type, sources_queried, sources_returned, database_results_count, "
    "internet_results_count, total_results, embedding_time_ms, success, error_message"
)


class RetrievalLog(TenantRepository):
    """Keeps searches by the kb's id; one for a kb that never was has the name that was asked for."""

    @in_log
    def add(self, connection: Connection, tenant_id: str, searches: Sequence[LoggedSearch], oldest: datetime) -> None:
        """Write searches, and drop those from before `oldest` and beyond the newest `MOST_SEARCHES`."""
        own = [search for search in searches if search.tenant_id == tenant_id]  # the name may be another's now
        put_searches(connection, tenant_id, own)
        remove_old_searches(connection, tenant_id, oldest)
        keep_newest(connection, tenant_id, "retrieval_log", ("id",), "moment, id", MOST_SEARCHES)

    @in_log_or(list)
    def searches(
        self,
        connection: Connection,
        tenant_id: str,
        kb: str,
        since: datetime | None = None,
        limit: int = MOST_SEARCHES,
        *,
        success: bool | None = None,
        conversation: str | None = None,
    ) -> list[LoggedSearch]:
        """Return searches of a kb, newest first: all, those that failed or not, or those of one conversation."""
        wanted = {"success": None if success is None else int(success), "conversation": conversation}
        chosen = {name: value for name, value in wanted.items() if value is not None}
        found = connection.execute(
            f"SELECT id, {COLUMNS} FROM retrieval_log WHERE tenant_id = ? AND moment >= ? AND (kb_id IN "
            "(SELECT id FROM knowledge_bases WHERE tenant_id = ? AND name = ?) OR kb_name = ?)"
            + "".join(f" AND {name} = ?" for name in chosen)
            + " ORDER BY moment DESC, id DESC LIMIT ?",
            (tenant_id, canonical(since) if since else "", tenant_id, kb, kb, *chosen.values(), limit),
        ).fetchall()
        shown = _shown_in(connection, tenant_id, [row[0] for row in found])
        return [_search(tenant_id, kb, row[1:], tuple(shown[row[0]])) for row in found]

    @in_log_or(list)
    def facts(
        self, connection: Connection, tenant_id: str, since: datetime, kb: str | None = None
    ) -> list[SearchFacts]:
        """Return the figures of the searches since a moment, newest first; of all kbs, or of one."""
        within = (
            " AND (kb_id IN (SELECT id FROM knowledge_bases WHERE tenant_id = ? AND name = ?) OR kb_name = ?)"
            if kb is not None
            else ""
        )
        found = connection.execute(
            "SELECT moment, mode, retrieval_time_ms, total_results, sources_queried, sources_returned, "
            "embedding_time_ms, success, error_message FROM retrieval_log WHERE tenant_id = ? AND moment >= ?"
            f"{within} ORDER BY moment DESC, id DESC LIMIT ?",
            (tenant_id, canonical(since), *((tenant_id, kb, kb) if kb is not None else ()), MOST_SEARCHES),
        ).fetchall()
        return [_facts(row) for row in found]

    @in_log_or(list)
    def page(self, connection: Connection, tenant_id: str, after: int, limit: int) -> list[tuple[int, LoggedSearch]]:
        """Return searches of all kbs with their numbers, in order of these and behind `after`."""
        found = connection.execute(
            f"SELECT l.id, coalesce(k.name, l.kb_name), {COLUMNS} FROM retrieval_log l "
            "LEFT JOIN knowledge_bases k ON k.tenant_id = l.tenant_id AND k.id = l.kb_id "
            "WHERE l.tenant_id = ? AND l.id > ? ORDER BY l.id LIMIT ?",
            (tenant_id, after, limit),
        ).fetchall()
        shown = _shown_in(connection, tenant_id, [row[0] for row in found])
        return [(number, _search(tenant_id, kb, facts, tuple(shown[number]))) for number, kb, *facts in found]


def put_searches(connection: Connection, tenant_id: str, searches: Iterable[LoggedSearch]) -> None:
    """Write searches of kbs that are there, or that failed; of what they found, documents that are there."""
    named = connection.execute("SELECT name, id FROM knowledge_bases WHERE tenant_id = ?", (tenant_id,))
    kbs = dict(named.fetchall())
    kept = [search for search in searches if search.kb in kbs or not search.success]
    found = existing(connection, tenant_id, [hit.document_id for search in kept for hit in search.shown])
    values = marks(("tenant_id", "kb_id", "kb_name", *COLUMNS.split()))
    for search in kept:
        kb_id = kbs.get(search.kb)
        (search_id,) = connection.execute(
            f"INSERT INTO retrieval_log (tenant_id, kb_id, kb_name, {COLUMNS}) VALUES ({values}) RETURNING id",
            (tenant_id, kb_id, "" if kb_id else search.kb, *_values(search)),
        ).fetchone()
        connection.executemany(
            "INSERT INTO retrieval_log_hits (tenant_id, search_id, rank, chunk_id, document_id, score) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            [
                (tenant_id, search_id, hit.rank, hit.chunk_id, hit.document_id, hit.score)
                for hit in search.shown
                if hit.document_id in found
            ],
        )


def _values(search: LoggedSearch) -> tuple[object, ...]:
    return (
        *(canonical(search.moment), search.query, search.mode, search.latency_ms, search.num_results),
        *(search.top_score, search.similarity, search.coverage, " ".join(search.missing)),
        *(search.conversation, search.query_type),
        *(json.dumps(search.sources_queried), json.dumps(search.sources_returned)),
        *(search.database_results_count, search.internet_results_count, search.total_results),
        *(search.embedding_time_ms, int(search.success), search.error_message),
    )


def _search(tenant_id: str, kb: str, row: Sequence[Any], shown: tuple[Shown, ...]) -> LoggedSearch:
    facts = dict(zip(COLUMNS.split(", "), row, strict=True))
    del facts["total_results"]
    return LoggedSearch(
        tenant_id=tenant_id,
        kb=kb,
        shown=shown,
        moment=datetime.fromisoformat(facts.pop("moment")),
        latency_ms=facts.pop("retrieval_time_ms"),
        num_results=facts.pop("document_results_count"),
        missing=tuple(facts.pop("missing").split()),
        sources_queried=tuple(json.loads(facts.pop("sources_queried"))),
        sources_returned=tuple(json.loads(facts.pop("sources_returned"))),
        success=bool(facts.pop("success")),
        **facts,
    )


def _facts(row: Sequence[Any]) -> SearchFacts:
    moment, mode, ms, results, asked, helpful, embedding_ms, success, problem = row
    return SearchFacts(
        datetime.fromisoformat(moment),
        mode,
        ms,
        results,
        tuple(json.loads(asked)),
        tuple(json.loads(helpful)),
        embedding_ms,
        bool(success),
        problem,
    )


def _shown_in(connection: Connection, tenant_id: str, search_ids: Sequence[int]) -> dict[int, list[Shown]]:
    shown: dict[int, list[Shown]] = defaultdict(list)
    for part in in_parts(search_ids):
        for search_id, *hit in connection.execute(
            "SELECT search_id, rank, chunk_id, document_id, score FROM retrieval_log_hits WHERE tenant_id = ? "
            f"AND search_id IN ({marks(part)}) ORDER BY search_id, rank",
            (tenant_id, *part),
        ):
            shown[search_id].append(Shown(*hit))
    return shown
