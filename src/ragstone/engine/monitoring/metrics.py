"""Measurements that an engine takes of itself, for `/metrics`."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ragstone.core.documents import IngestReport
from ragstone.core.errors import RagstoneError
from ragstone.core.protocols import Queue
from ragstone.core.search import SearchResult, SourceKind
from ragstone.engine.monitoring.instruments import Counter, Histogram, render

logger = logging.getLogger(__name__)
MOST_TENANTS = 200
"""Tenants with a series of their own; the others are counted together."""
COUNTED_EVERY = 10.0
COUNT_SECONDS = 2.0
"""Seconds after which the jobs are counted again, and for which that may go on."""
STATES = ("pending", "running", "failed")
EMBED_QUERY = "embed_query"
NOTED: Mapping[SourceKind, str] = {"documents": "documents:", "database": "database:", "internet": "web:"}
"""The beginning of what a search notes about a source that failed."""


class Metrics:
    """The instruments of an engine."""

    def __init__(self) -> None:
        self.on_search: Callable[[SearchResult], None] | None = None
        """Hears of every search that is recorded."""
        self.http_requests = Counter(
            "ragstone_http_requests_total", "HTTP requests.", ("method", "route", "status"), most=2000
        )
        self.http_seconds = Histogram("ragstone_http_request_seconds", "Time of HTTP requests.", ("route",))
        self.search_seconds = Histogram("ragstone_search_seconds", "Time of searches by mode.", ("mode",))
        self.stage_seconds = Histogram(
            "ragstone_search_stage_seconds", "Time of the stages of searches.", ("mode", "stage")
        )
        self.searches = Counter("ragstone_searches_total", "Searches: found, nothing or failed.", ("mode", "outcome"))
        self.degraded = Counter(
            "ragstone_degraded_searches_total", "Searches of which a part failed or was left out.", ("mode",)
        )
        self.answer_seconds = Histogram("ragstone_answer_seconds", "Time of ask, verify and research.", ("action",))
        self.cache_lookups = Counter("ragstone_cache_lookups_total", "Looks into a cache.", ("cache", "result"))
        self.source_searches = Counter(
            "ragstone_source_searches_total", "Searches of a source: ok or failed.", ("source", "result")
        )
        self.embedding_seconds = Histogram(
            "ragstone_embedding_seconds", "Time of making vectors: of a query, or of the chunks of a run.", ("role",)
        )
        self.documents = Counter(
            "ragstone_documents_total", "Documents that were stored, unchanged, skipped or failed.", ("result",)
        )
        self.ingest_seconds = Counter(
            "ragstone_ingest_stage_seconds_total", "Time spent in the stages of ingestion.", ("stage",)
        )
        self.ingest_items = Counter(
            "ragstone_ingest_stage_items_total", "Items that entered the stages of ingestion.", ("stage",)
        )
        self.cost = Counter("ragstone_cost_usd_total", "Costs in US dollars.", ("tenant", "kind"), most=MOST_TENANTS)
        self.tokens = Counter(
            "ragstone_tokens_total",
            "Tokens that models read and wrote, and web searches.",
            ("tenant", "kind"),
            most=MOST_TENANTS,
        )
        self.jobs = Counter(
            "ragstone_jobs", "Jobs of all tenants, whichever process does them.", ("state",), kind="gauge"
        )
        self.uncounted = Counter(
            "ragstone_jobs_uncounted_tenants", "Tenants whose jobs could not be counted in time.", kind="gauge"
        )
        self.worker_up = Counter(
            "ragstone_worker_up", "Whether the worker of this process runs; absent without one.", kind="gauge"
        )
        self.memory = Counter("process_resident_memory_bytes", "Resident memory.", kind="gauge")
        self.cpu = Counter("process_cpu_seconds_total", "Processor time.")
        self.files = Counter("process_open_fds", "Open files and sockets.", kind="gauge")
        self.started = Counter("process_start_time_seconds", "Start of the process, since the epoch.", kind="gauge")
        self.build = Counter("ragstone_build_info", "The version, as a label.", ("version",), kind="gauge")
        self.started.set(value=time.time())

    @property
    def instruments(self) -> tuple[Counter | Histogram, ...]:
        """All instruments, in the order in which they are shown."""
        return tuple(value for value in vars(self).values() if isinstance(value, Counter | Histogram))

    def render(self) -> str:
        """Return the text of all instruments."""
        self._measure_process()
        return render(self.instruments)

    def record_search(self, result: SearchResult) -> None:
        """Record a search that ended, with its stages."""
        mode, results = result.mode, len(result.hits) + len(result.records) + len(result.web)
        self.search_seconds.observe(mode, seconds=result.took_ms / 1000)
        self.searches.add(mode, "found" if results else "nothing")
        if result.degraded:
            self.degraded.add(mode)
        is_cached = False
        for stage in result.trace:
            seconds = stage.ms / 1000
            self.stage_seconds.observe(mode, stage.stage, seconds=seconds)
            is_cached = is_cached or stage.stage == "cache"
            if stage.stage == EMBED_QUERY:
                self.embedding_seconds.observe("query", seconds=seconds)
        if result.route != "none":
            self.cache_lookups.add("search", "hit" if is_cached else "miss")
            self._record_sources(result)
        if self.on_search:
            self.on_search(result)

    def _record_sources(self, result: SearchResult) -> None:
        analysis = result.analysis
        asked: list[SourceKind] = ["documents"] if analysis is None or "documents" in analysis.sources else []
        for stage in result.trace:
            if stage.stage == "database":
                asked.append("database")
            elif stage.stage == "web" and not stage.skipped:
                asked.append("internet")
        for source in asked:
            failed = any(note.startswith(NOTED[source]) for note in result.degraded)
            self.source_searches.add(source, "failed" if failed else "ok")

    def record_failed_search(self, mode: str, seconds: float) -> None:
        """Record a search that raised an error."""
        self.search_seconds.observe(mode, seconds=seconds)
        self.searches.add(mode, "failed")
        self.source_searches.add("documents", "failed")

    def record_ingest(self, report: IngestReport) -> None:
        """Record a run of ingestion."""
        stored = report.added + report.updated
        counts = {"stored": stored, "unchanged": report.unchanged, "failed": len(report.failed)}
        for result, count in {**counts, "skipped": report.skipped + report.duplicates}.items():
            if count:
                self.documents.add(result, amount=count)
        for stage in report.stages:
            self.ingest_seconds.add(stage.stage, amount=stage.ms / 1000)
            self.ingest_items.add(stage.stage, amount=stage.entered)
            if stage.stage == "embed" and stage.entered:
                self.embedding_seconds.observe("document", seconds=stage.ms / 1000)

    def record_cost(self, tenant: str, kind: str, usd: float, units: float = 0.0) -> None:
        """Record what a tenant is charged, and the tokens or queries for it."""
        self.cost.add(tenant, kind, amount=usd)
        if units:
            self.tokens.add(tenant, kind, amount=units)

    @contextmanager
    def time_answer(self, action: str) -> Iterator[None]:
        """Record the time of the block, also if it fails."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.answer_seconds.observe(action, seconds=time.perf_counter() - started)

    def _measure_process(self) -> None:
        times = os.times()
        self.cpu.set(value=times.user + times.system)
        self.memory.set(value=resident_bytes())
        with suppress(OSError):
            self.files.set(value=len(list(Path("/proc/self/fd").iterdir())))


class QueueMeter:
    """Counts the jobs of all tenants, now and then: each has a ledger of its own, and probes must cost little."""

    def __init__(self, queue: Queue, metrics: Metrics) -> None:
        self._queue = queue
        self._metrics = metrics
        self._counted_at = float("-inf")
        self._turn = asyncio.Lock()

    async def measure(self) -> None:
        """Count the jobs, unless that was done just now; what cannot be read in time is left out and said so."""
        async with self._turn:
            if time.monotonic() - self._counted_at < COUNTED_EVERY:
                return
            self._counted_at = time.monotonic()
            totals, left = dict.fromkeys(STATES, 0), 0
            try:
                async with asyncio.timeout(COUNT_SECONDS):
                    tenants = list(await self._queue.work_signals())
                    left = len(tenants)
                    for tenant in tenants:
                        for state, count in (await self._queue.of(tenant).counts()).items():
                            totals[state] = totals.get(state, 0) + count
                        left -= 1
            except (RagstoneError, TimeoutError) as error:
                logger.warning("cannot count the jobs of all tenants: %s", str(error) or "it takes too long")
                left = max(left, 1)
            for state, count in totals.items():
                self._metrics.jobs.set(state, value=count)
            self._metrics.uncounted.set(value=left)


def resident_bytes() -> int:
    """Return the resident memory of this process; where the system does not tell, the most that it ever was."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
