"""Web results that a tenant was given, kept so that the same search need not be paid for twice."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from ragstone.core.clock import canonical, now, parse_moment
from ragstone.core.errors import RagstoneError, TenantGone
from ragstone.core.ids import content_hash
from ragstone.core.search import KeptResults, WebResult
from ragstone.stores.activity.removal import remove_old_web_results
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.repository import TenantRepository, in_snapshot_or, in_transaction
from ragstone.stores.sql.database import Connection, keep_newest

logger = logging.getLogger(__name__)
LONGEST_QUERY = 500
MOST_ROWS = 20_000
"""Of a tenant, the last to expire."""
WRITE_SECONDS = 2.0
"""A search waits no longer for its results to be kept."""


class WebResultRepository(TenantRepository):
    """Implements `WebResultCache`. Its own trouble is logged, never raised; for 0 hours nothing is kept."""

    def __init__(self, ledger: SqlLedger, tenant: str, hours: float, clock: Callable[[], datetime] = now) -> None:
        super().__init__(ledger, tenant)
        self._hours = timedelta(hours=hours)
        self._clock = clock

    async def get(self, provider: str, query: str, k: int) -> KeptResults | None:
        """Return what was found the last time, fresh or not."""
        if not self._hours:
            return None
        try:
            found = await self._read(provider, query, k)
            if found is None:
                return None
            expires = parse_moment(found[1])
            results = tuple(WebResult(**result) for result in json.loads(found[0]))
            is_fresh = expires is not None and expires > self._clock()
            return KeptResults(results, is_fresh, parse_moment(found[2]))
        except (RagstoneError, ValueError, TypeError) as error:
            logger.warning("cannot read kept web results: %s", error)
            return None

    async def put(self, provider: str, query: str, k: int, results: Sequence[WebResult]) -> None:
        """Keep results in place of earlier ones."""
        if not self._hours:
            return
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._write(provider, query, k, results)
        except TenantGone:
            return  # nothing is kept for a tenant that does not exist
        except (RagstoneError, TimeoutError) as error:
            logger.warning("cannot keep web results: %s", str(error) or "the ledger is busy")

    @in_snapshot_or(lambda: None)
    def _read(
        self, connection: Connection, tenant_id: str, provider: str, query: str, k: int
    ) -> tuple[str, str, str] | None:
        row: tuple[str, str, str] | None = connection.execute(
            "SELECT results, expires_at, search_timestamp FROM web_results WHERE tenant_id = ? AND query_hash = ?",
            (tenant_id, _hash(tenant_id, provider, query, k)),
        ).fetchone()
        return row

    @in_transaction
    def _write(
        self, connection: Connection, tenant_id: str, provider: str, query: str, k: int, results: Sequence[WebResult]
    ) -> None:
        moment = self._clock()
        packed = json.dumps([asdict(result) for result in results])
        connection.execute(
            "INSERT INTO web_results (tenant_id, query_hash, query_text, results, result_count, "
            "search_provider, search_timestamp, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (tenant_id, query_hash) DO UPDATE SET results = excluded.results, "
            "result_count = excluded.result_count, search_timestamp = excluded.search_timestamp, "
            "expires_at = excluded.expires_at",
            (
                *(tenant_id, _hash(tenant_id, provider, query, k), query[:LONGEST_QUERY], packed),
                *(len(results), provider, canonical(moment), canonical(moment + self._hours)),
            ),
        )
        remove_old_web_results(connection, tenant_id, moment)
        keep_newest(connection, tenant_id, "web_results", ("query_hash",), "expires_at", MOST_ROWS)


def _hash(tenant_id: str, provider: str, query: str, k: int) -> str:
    """Name the tenant as well, so that no other is given what this one found."""
    return content_hash(json.dumps([tenant_id, provider, " ".join(query.split()), k]))
