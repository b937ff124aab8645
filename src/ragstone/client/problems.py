"""Errors of the service as the errors that the engine itself raises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ragstone.core.errors import AccessDenied, InputError, NotFoundError, RagstoneError, RemoteError
from ragstone.core.types import Json
from ragstone.fetch.calls import parse_retry_after

BY_STATUS: Mapping[int, type[RagstoneError]] = {401: AccessDenied, 403: AccessDenied, 404: NotFoundError}
"""The kinds of codes that only the service has, such as `unauthenticated`."""


def read_problem(status: int, data: Json, headers: Mapping[str, str]) -> RagstoneError:
    """Return the error that an answer with a status of 400 or more stands for."""
    problem = data if isinstance(data, dict) else {}
    error = _make_error(
        str(problem.get("code") or ""),
        str(problem.get("detail") or f"the service answered {status}"),
        str(problem.get("hint") or ""),
        BY_STATUS.get(status, RemoteError if status >= 500 or status == 429 else InputError),
    )
    _allow_retry(error, parse_retry_after(headers.get("retry-after")))
    error.request_id = str(problem.get("request_id") or headers.get("x-request-id", ""))
    return error


def read_error_event(data: Json) -> RagstoneError:
    """Return the error that ends a stream of events."""
    said = data.get("error", {}) if isinstance(data, dict) else {}
    code = str(said.get("code") or "")
    other = AccessDenied if code == "unauthenticated" else RemoteError
    error = _make_error(code, str(said.get("message") or "the service failed"), str(said.get("hint") or ""), other)
    _allow_retry(error, said.get("retry_after"))
    return error


def _make_error(code: str, message: str, hint: str, otherwise: type[RagstoneError]) -> RagstoneError:
    error = _KINDS.get(code, otherwise)(message, hint=hint)
    if code:
        error.code = code
    return error


def _allow_retry(error: RagstoneError, seconds: float | None) -> None:
    if seconds is not None:
        error.retry_after = seconds
        error.retryable = True


def _list_kinds(kind: type[RagstoneError]) -> Iterator[type[RagstoneError]]:
    yield kind
    for narrower in kind.__subclasses__():
        if narrower.__module__ == kind.__module__:  # those that adapters raise for themselves have no code of their own
            yield from _list_kinds(narrower)


_KINDS = {kind.code: kind for kind in _list_kinds(RagstoneError)}
