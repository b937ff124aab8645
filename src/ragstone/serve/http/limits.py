"""Around every request: its id, the size of its body and the time in which that must come, and a line in the log."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragstone.core.audit import acting_as, working_for
from ragstone.core.ids import opaque_id
from ragstone.core.keys import ApiKey, RequestAllowance
from ragstone.engine.monitoring.metrics import Metrics
from ragstone.serve.http.bodies import BodyRefused, LimitedBody
from ragstone.serve.http.problems import make_problem, tell_refusal
from ragstone.serve.http.rates import rate_headers

if TYPE_CHECKING:
    from ragstone.serve.http.tracing import RequestTracing

logger = logging.getLogger(__name__)
REQUEST_ID = re.compile(r"[0-9A-Za-z._:-]{1,64}")
TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
"""The header of the W3C that names the trace which a request is part of, the span within it, and flags."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BODY_SECONDS = 30.0
"""The longest pause between two parts of a body."""
TEXT_BYTES = 4 * 1024 * 1024
"""Of a body that is no form with files, and is parsed while nothing else runs: a million characters in UTF-8."""
LARGER = "limits.file_mb of the service sets the largest file"
LESS_TEXT = "send less at once; a file is sent as multipart/form-data, and JSON is shortest in UTF-8 without escapes"


class RequestGuard:
    """Wraps the application."""

    def __init__(
        self,
        app: ASGIApp,
        most_bytes: int,
        clock: Callable[[], float] = time.perf_counter,
        metrics: Metrics | None = None,
        tracing: RequestTracing | None = None,
    ) -> None:
        self._app = app
        self._tracing = tracing
        self._metrics = metrics or Metrics()
        self._most_bytes = most_bytes
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        request.state.request_id = _request_id(request)
        parent = TRACEPARENT.fullmatch(request.headers.get("traceparent", ""))
        span = self._tracing.begin(*parent.groups() if parent else ()) if self._tracing else None
        request.state.trace_id = span.trace_id if span else parent[1] if parent else None
        started, status = self._clock(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", request.state.request_id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                    *_rate_headers(request),
                ]
            await send(message)

        has_files = request.headers.get("content-type", "").lower().startswith("multipart/")
        most, hint = (self._most_bytes, LARGER) if has_files else (min(self._most_bytes, TEXT_BYTES), LESS_TEXT)
        body = LimitedBody(scope, receive, most, pause=BODY_SECONDS, hint=hint)
        try:
            with (
                acting_as(None, request.state.request_id),
                working_for(None, request.state.trace_id),
                span or nullcontext(),
            ):
                await self._app(scope, body.receive, answer)
        except BodyRefused as refused:
            if not status:
                await tell_refusal(request, refused)(scope, receive, answer)
        except Exception:
            with _as_request(request):
                logger.exception("the request failed")
            if not status:
                hint = "look for the request id in the log of the service"
                await make_problem(request, 500, "the service failed", hint=hint)(scope, receive, answer)
        finally:
            took = (self._clock() - started) * 1000
            _measure(self._metrics, request, status, took / 1000)
            if span:
                key: ApiKey | None = getattr(request.state, "key", None)
                tenant = key.tenant if key else None
                span.end(_method_of(request), _route_of(request), status or 499, request.state.request_id, tenant)
            with _as_request(request):
                facts = {"method": _method_of(request), "route": _route_of(request)}
                logger.info("request", extra={"facts": {**facts, "status": status, "ms": round(took, 1)}})


@contextmanager
def _as_request(request: Request) -> Iterator[None]:
    """Have log lines of the block carry the request, its key and the tenant of that."""
    key: ApiKey | None = getattr(request.state, "key", None)
    actor = f"key:{key.id}" if key else ""
    trace_id = request.state.trace_id
    with acting_as(actor, request.state.request_id), working_for(key.tenant if key else None, trace_id):
        yield


def _rate_headers(request: Request) -> list[tuple[bytes, bytes]]:
    """Return what a caller with a limited key is told about it; an error may have told more of another limit."""
    allowance: RequestAllowance | None = getattr(request.state, "allowance", None)
    if allowance is None or getattr(request.state, "told_limit", False):
        return []
    headers = rate_headers(allowance.limit, allowance.left, allowance.seconds)
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


def _measure(metrics: Metrics, request: Request, status: int, seconds: float) -> None:
    route = _route_of(request)
    metrics.http_requests.add(_method_of(request), route, str(status or 499))
    metrics.http_seconds.observe(route, seconds=seconds)


def _route_of(request: Request) -> str:
    """Return the template of the route of a request: paths hold ids and whatever callers put there."""
    return getattr(request.scope.get("route"), "path", "") or "(none)"


def _method_of(request: Request) -> str:
    return request.method if request.method in METHODS else "(other)"


def _request_id(request: Request) -> str:
    """Return the id that the caller has given the request, if it is one, or a new one."""
    given = request.headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else opaque_id()
