"""Traces of requests and their searches, sent to a collector of OpenTelemetry.

Needs the `telemetry` extra: pip install "ragstone[telemetry]". Spans are sent by a thread of their own, from a queue
with a limit. A collector that fails or hangs costs spans, never a request.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from contextvars import ContextVar, Token
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    format_trace_id,
    set_span_in_context,
)

import ragstone
from ragstone.core.search import SearchResult
from ragstone.settings.web import TelemetrySettings

logger = logging.getLogger(__name__)
QUEUED_SPANS = 2048
"""Spans that wait to be sent; further ones push out the oldest."""
BATCH_SPANS = 256
SEND_EVERY_MS = 2000
SEND_SECONDS = 5.0
"""The time that sending a batch may take, with all attempts."""
CLOSE_SECONDS = 1.5
"""The time that sending the last spans may take when the service stops."""
NS_PER_MS = 1_000_000
LIBRARY_LOGGERS = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal")

_current: ContextVar[Any] = ContextVar("ragstone_span", default=None)


class RequestTracing:
    """Makes the spans of a service and sends them."""

    def __init__(self, settings: TelemetrySettings) -> None:
        for name in LIBRARY_LOGGERS:  # they write a line for every batch and span that is lost
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._sender = SpanSender(settings)
        resource = Resource({"service.name": settings.service_name, "service.version": ragstone.__version__})
        sampler = ParentBased(TraceIdRatioBased(settings.share))
        self._provider = TracerProvider(sampler=sampler, resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(
            BatchSpanProcessor(
                self._sender,
                max_queue_size=QUEUED_SPANS,
                max_export_batch_size=BATCH_SPANS,
                schedule_delay_millis=SEND_EVERY_MS,
                export_timeout_millis=SEND_SECONDS * 1000,
            )
        )
        self._tracer = self._provider.get_tracer("ragstone", ragstone.__version__)

    def begin(self, trace_id: str = "", parent_id: str = "", flags: str = "00") -> RequestSpan:
        """Begin the span of a request, within the span that the caller has named if it has."""
        context = None
        if trace_id:
            sampled = TraceFlags(int(flags, 16) & TraceFlags.SAMPLED)
            parent = SpanContext(int(trace_id, 16), int(parent_id, 16), is_remote=True, trace_flags=sampled)
            context = set_span_in_context(NonRecordingSpan(parent))
        return RequestSpan(self._tracer.start_span("request", context, SpanKind.SERVER))

    def add_search(self, result: SearchResult) -> None:
        """Add the spans of a search that has just ended, and of its stages, to the request that asked for it.

        Times of stages are known and when they began is not: they are shown one after the other, within the search.
        """
        request = _current.get()
        if request is None or not request.is_recording():
            return
        ended = time.time_ns()
        begun = ended - int(result.took_ms * NS_PER_MS)
        facts = {
            "ragstone.search.mode": result.mode,
            "ragstone.search.results": len(result.hits) + len(result.records) + len(result.web),
            "ragstone.search.degraded": bool(result.degraded),
        }
        search = self._tracer.start_span("search", set_span_in_context(request), attributes=facts, start_time=begun)
        within, moment = set_span_in_context(search), begun
        for stage in result.trace:
            took = int(stage.ms * NS_PER_MS)
            moment = max(begun, min(moment, ended - took))
            facts = {
                "ragstone.stage.entered": stage.entered,
                "ragstone.stage.left": stage.left,
                "ragstone.stage.skipped": bool(stage.skipped),
            }
            span = self._tracer.start_span(f"search.{stage.stage}", within, attributes=facts, start_time=moment)
            moment += took
            span.end(moment)
        search.end(ended)

    async def close(self) -> None:
        """Send what is left, as far as there is time for it."""
        # A thread that does not keep the process alive: the library would wait for half a minute.
        sending = threading.Thread(target=self._provider.shutdown, name="ragstone-last-spans", daemon=True)
        sending.start()
        await asyncio.to_thread(sending.join, CLOSE_SECONDS)
        self._sender.shutdown()


class RequestSpan:
    """The span of a request. Searches that are made while it is entered are put under it."""

    def __init__(self, span: Any) -> None:
        self._span = span
        self.trace_id: str = format_trace_id(span.get_span_context().trace_id)

    def __enter__(self) -> None:
        self._token: Token[Any] = _current.set(self._span)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)

    def end(self, method: str, route: str, status: int, request_id: str, tenant: str | None) -> None:
        """End the span with what is known about the request."""
        self._span.update_name(f"{method} {route}")
        facts = {
            "http.request.method": method,
            "http.route": route,
            "http.response.status_code": status,
            "ragstone.request_id": request_id,
        }
        self._span.set_attributes(facts | ({"ragstone.tenant": tenant} if tenant else {}))
        if status >= 500:
            self._span.set_status(StatusCode.ERROR)
        self._span.end()


class SpanSender:
    """Sends spans to the collector, and says in the log when it no longer takes them and when it does again."""

    def __init__(self, settings: TelemetrySettings) -> None:
        headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
        self._exporter = OTLPSpanExporter(endpoint=settings.endpoint, headers=headers, timeout=SEND_SECONDS)
        self._endpoint = settings.endpoint
        self._is_failing = False
        self._closing = threading.Lock()

    def export(self, spans: Sequence[Any]) -> Any:
        """Send spans."""
        result = self._exporter.export(spans)
        failed = result is not SpanExportResult.SUCCESS
        if failed and not self._is_failing:
            logger.warning("%s takes no traces, they are lost until it does", self._endpoint)
        elif self._is_failing and not failed:
            logger.info("%s takes traces again", self._endpoint)
        self._is_failing = failed
        return result

    def shutdown(self) -> None:
        """Send nothing more; what is being sent is not tried again."""
        if self._closing.acquire(blocking=False):  # only once
            self._exporter.shutdown()
