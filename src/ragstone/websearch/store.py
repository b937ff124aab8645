"""Web results kept in a small file of their own: losing it costs a few searches and nothing else."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from ragstone.core.clock import canonical, now, parse_moment
from ragstone.core.ids import content_hash
from ragstone.core.web import WebResult

logger = logging.getLogger(__name__)
T = TypeVar("T")
LONGEST_QUERY = 500
MOST_ROWS = 20_000
KEPT_STALE = timedelta(days=30)
"""How long results that are no longer fresh are kept, for when the engine wants no more requests."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS internet_search_cache (
    query_hash CHAR(64) PRIMARY KEY,
    tenant_id VARCHAR(72) NOT NULL,
    query_text VARCHAR(500) NOT NULL,
    results TEXT NOT NULL,
    result_count INTEGER NOT NULL,
    search_provider VARCHAR(50) NOT NULL,
    search_timestamp VARCHAR(25) NOT NULL,
    expires_at VARCHAR(25) NOT NULL
);
CREATE INDEX IF NOT EXISTS internet_search_cache_expires_at ON internet_search_cache (expires_at);
CREATE INDEX IF NOT EXISTS internet_search_cache_tenant ON internet_search_cache (tenant_id);
"""


@dataclass(frozen=True, slots=True)
class Search:
    """A search as the cache tells it from others: whose, with which engine, for what, and how many."""

    tenant_id: str
    provider: str
    query: str
    k: int

    @property
    def hash(self) -> str:
        """Names the tenant as well, so that nobody is given what another one found."""
        words = " ".join(self.query.split())
        return content_hash(json.dumps([self.tenant_id, self.provider, words, self.k]))


@dataclass(frozen=True, slots=True)
class Kept:
    """Results and whether they are still as good as new."""

    results: tuple[WebResult, ...]
    fresh: bool


class WebResultStore:
    """Keeps results in one SQLite file that several processes may use. Its own trouble is logged, never raised.

    For 0 hours nothing is kept, nor for a tenant that does not exist: nobody could remove it again.
    """

    def __init__(self, path: Path, hours: float, clock: Callable[[], datetime] = now) -> None:
        self._path = path
        self._hours = timedelta(hours=hours)
        self._clock = clock
        self._guard = threading.Lock()

    async def get(self, search: Search) -> Kept | None:
        """What was found the last time, fresh or not."""
        if not (self._hours and search.tenant_id):
            return None
        return await self._do(lambda: self._read(search), None)

    async def put(self, search: Search, results: Sequence[WebResult]) -> None:
        if self._hours and search.tenant_id:
            await self._do(lambda: self._write(search, results), None)

    async def forget(self, tenant_id: str) -> None:
        """Remove all that a tenant has looked for."""
        await self._do(lambda: self._delete(tenant_id), None)

    async def _do(self, work: Callable[[], T], otherwise: T) -> T:
        try:
            return await asyncio.to_thread(work)
        except (sqlite3.OperationalError, OSError) as error:
            logger.warning("the cache of web results cannot be used: %s", error)
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            logger.warning("the cache of web results is damaged and made anew: %s", error)
            await asyncio.to_thread(self._path.unlink, missing_ok=True)
        return otherwise

    def _read(self, search: Search) -> Kept | None:
        if not self._path.exists():
            return None
        with self._opened() as connection:
            row = connection.execute(
                "SELECT results, expires_at FROM internet_search_cache WHERE query_hash = ? AND tenant_id = ?",
                (search.hash, search.tenant_id),
            ).fetchone()
        if row is None:
            return None
        expires = parse_moment(row[1])
        fresh = expires is not None and expires > self._clock()
        return Kept(tuple(WebResult(**one) for one in json.loads(row[0])), fresh)

    def _write(self, search: Search, results: Sequence[WebResult]) -> None:
        moment = self._clock()
        packed = json.dumps([asdict(one) for one in results])
        with self._opened() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO internet_search_cache VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    search.hash,
                    search.tenant_id,
                    search.query[:LONGEST_QUERY],
                    packed,
                    len(results),
                    search.provider,
                    canonical(moment),
                    canonical(moment + self._hours),
                ),
            )
            connection.execute(
                "DELETE FROM internet_search_cache WHERE expires_at < ? OR query_hash IN "
                "(SELECT query_hash FROM internet_search_cache ORDER BY expires_at DESC LIMIT -1 OFFSET ?)",
                (canonical(moment - KEPT_STALE), MOST_ROWS),
            )

    def _delete(self, tenant_id: str) -> None:
        if self._path.exists():
            with self._opened() as connection:
                connection.execute("DELETE FROM internet_search_cache WHERE tenant_id = ?", (tenant_id,))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._guard, closing(sqlite3.connect(self._path, timeout=5)) as connection, connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.executescript(SCHEMA)
            yield connection
