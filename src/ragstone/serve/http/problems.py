"""Errors as HTTP tells them: `application/problem+json` with a status, a code and what to do next."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from math import ceil
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ragstone.core import errors
from ragstone.core.errors import RagstoneError
from ragstone.core.types import Json
from ragstone.schemas.designs import DesignErrorSchema
from ragstone.schemas.schema import Schema
from ragstone.serve.http.rates import rate_headers

logger = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
MOST_WRONG = 100
"""Parts of a request that an answer names: a body may have a million, and each costs many times its size."""
STATUSES: Mapping[type, int] = {
    errors.CollectionBusy: 409,
    errors.CollectionExists: 409,
    errors.SlotTaken: 409,
    errors.InputError: 422,
    errors.KbGone: 409,
    errors.NotFoundError: 404,
    errors.QuotaExceeded: 429,
    errors.BudgetSpent: 429,
    errors.Overloaded: 503,
    errors.TenantSuspended: 403,
    errors.AccessDenied: 403,
    errors.UnsupportedFormat: 415,
    errors.ParserLimit: 413,
    errors.ParseError: 422,
    errors.ModelUnavailable: 503,
    errors.ModelMismatch: 409,
    errors.ModelError: 502,
    errors.StoreBusy: 503,
    errors.StoreFull: 507,
    errors.StoreError: 503,
    errors.SearchFailed: 503,
    errors.RateLimited: 503,
    errors.AddressRefused: 422,
    errors.RemoteError: 502,
    errors.SourceError: 422,
    errors.LeaseLost: 409,
    errors.JobNotDone: 409,
    errors.SettingsError: 503,
}
"""The status of an error is that of its nearest kind here."""
CODES = {
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "body_timeout",
    413: "too_large",
    421: "unknown_host",
    429: "too_many_wrong_keys",
}
"""The codes of what is refused before anything of ours is asked."""
DESIGN_PATHS = frozenset({"/ingest", "/search", "/health"})
"""The routes of a design that has an error shape of its own."""


class ProblemSchema(Schema):
    """An error of the service."""

    type: str
    """`about:blank`: the code says which kind of problem it is."""
    title: str
    status: int
    detail: str
    code: str
    hint: str
    request_id: str
    errors: list[dict[str, Any]] | None = Field(default=None, exclude_if=lambda found: found is None)
    """The parts of the request that are wrong, at most a hundred: `loc` and `msg` of each."""


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemSchema, "content": {MEDIA_TYPE: {}}} for status in ("4XX", "5XX")
}
"""The responses that a route describes for errors."""
TellProblem = Callable[[ProblemSchema], tuple[int, Json]]
"""Gives the status and the body of an answer that tells of a problem."""


def _tell_design(problem: ProblemSchema) -> tuple[int, Json]:
    shape = DesignErrorSchema.of(status="error", error=problem.detail, code=problem.code.upper())
    return problem.status, shape.as_json()


_shapes: dict[str, TellProblem] = dict.fromkeys(DESIGN_PATHS, _tell_design)


def status_of(error: RagstoneError) -> int:
    """Return the HTTP status of an error."""
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), 500)


def make_problem(
    request: Request,
    status: int,
    detail: str,
    *,
    code: str = "",
    hint: str = "",
    headers: Mapping[str, str] | None = None,
    wrong: Sequence[Mapping[str, Any]] | None = None,
) -> Response:
    """Return the response for a problem, in the shape that callers of the path know."""
    problem: ProblemSchema = ProblemSchema.of(
        type="about:blank",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code or CODES.get(status, "invalid_request" if status < 500 else "internal"),
        hint=hint,
        request_id=request.state.request_id,
        errors=None if wrong is None else [dict(part) for part in wrong],
    )
    sent = dict(headers or {})
    path = request.url.path
    for prefix, tell in _shapes.items():
        if path == prefix or path.startswith(f"{prefix}/"):
            status, content = tell(problem)
            return Response(json.dumps(content), status, headers=sent, media_type="application/json")
    return Response(json.dumps(problem.as_json()), status, headers=sent, media_type=MEDIA_TYPE)


def tell_problems_of(prefix: str, tell: TellProblem) -> None:
    """Have errors of a path, and of those below it, answered in another shape than that of a problem."""
    _shapes[prefix] = tell


def _retry_headers(request: Request, error: RagstoneError) -> dict[str, str]:
    """Return when to come back, and the limit that was reached, if it is one of a minute."""
    if error.retry_after is None:
        return {}
    seconds = ceil(error.retry_after)
    headers = {"Retry-After": str(seconds)}
    if isinstance(error, errors.QuotaExceeded) and error.limit is not None:
        request.state.told_limit = True
        headers |= rate_headers(error.limit, 0, seconds)
    return headers


def tell_error(request: Request, error: RagstoneError) -> Response:
    """Return the response for an error."""
    headers = _retry_headers(request, error)
    status = status_of(error)
    if status >= 500:
        logger.warning("a request cannot be served: %s", error, extra={"facts": {"code": error.code}})
    return make_problem(request, status, str(error), code=error.code, hint=error.advice, headers=headers)


def handle_problems(app: FastAPI) -> None:
    """Have every error of the application answered as a problem."""

    @app.exception_handler(RagstoneError)
    async def tell_failure(request: Request, error: RagstoneError) -> Response:
        return tell_error(request, error)

    @app.exception_handler(RequestValidationError)
    async def tell_wrong_request(request: Request, error: RequestValidationError) -> Response:
        if error.body and isinstance(error.body, bytes):  # which nothing has read as JSON
            hint = "send the header Content-Type: application/json"
            return make_problem(request, 422, "the body was not sent as JSON", code="invalid_input", hint=hint)
        # Without the input itself: it may be a document, or hold a secret.
        wrong = [{"loc": list(part["loc"]), "msg": part["msg"]} for part in error.errors()[:MOST_WRONG]]
        detail = _describe_first(error)
        return make_problem(request, 422, detail, code="invalid_input", hint="see /docs for the fields", wrong=wrong)

    @app.exception_handler(HTTPException)
    async def refuse(request: Request, error: HTTPException) -> Response:
        return tell_refusal(request, error)


def _describe_first(error: RequestValidationError) -> str:
    """Return the first part of a request that is wrong, in a line."""
    first = next(iter(error.errors()), None)
    if first is None:
        return "invalid request"
    if first["type"] == "json_invalid":
        return f"the body is not valid JSON (character {first['loc'][-1]})"
    return f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}"


def tell_refusal(request: Request, error: HTTPException) -> Response:
    """Return the response for what is refused before anything of ours is asked."""
    code, hint, detail = getattr(error, "code", ""), getattr(error, "hint", ""), str(error.detail)
    if isinstance(error.__cause__, UnicodeDecodeError):
        detail = f"the body is not UTF-8 (byte {error.__cause__.start})"
    if error.status_code in (404, 405) and error.detail == HTTPStatus(error.status_code).phrase:
        hint = "/docs lists all routes"  # The words are those of the framework: no route has this path and method.
    return make_problem(request, error.status_code, detail, code=code, hint=hint, headers=error.headers)
