"""Errors as clients of the OpenAI API read them."""

from __future__ import annotations

from ragstone.core.types import Json
from ragstone.schemas.openai import ApiErrorDetailSchema, ApiErrorSchema
from ragstone.serve.http.problems import ProblemSchema

TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def tell_problem(problem: ProblemSchema) -> tuple[int, Json]:
    """Return the status and the body for a problem; what is 422 elsewhere is 400 there."""
    status = 400 if problem.status == 422 else problem.status
    return status, tell_error(
        problem.detail,
        code=problem.code,
        hint=problem.hint,
        request_id=problem.request_id,
        kind=TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error"),
        param=_param(problem),
    ).as_json()


def tell_error(
    message: str,
    *,
    code: str,
    hint: str = "",
    request_id: str = "",
    kind: str = "server_error",
    param: str | None = None,
) -> ApiErrorSchema:
    """Return an error in that shape."""
    detail = ApiErrorDetailSchema.of(
        message=message, type=kind, param=param, code=code, hint=hint, request_id=request_id
    )
    return ApiErrorSchema.of(error=detail)


def _param(problem: ProblemSchema) -> str | None:
    """Return the field that is wrong, as `messages.0.content`."""
    steps = problem.errors[0]["loc"][1:] if problem.errors else []
    return ".".join(str(step) for step in steps if isinstance(step, int) or step.isidentifier()) or None
