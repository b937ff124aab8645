"""Models, embeddings and chat completions, and errors as clients of that API read them."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import Any

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ragstone.core.errors import NotFoundError
from ragstone.core.search import Question
from ragstone.core.types import Json, KnowledgeBase
from ragstone.engine.workspace import Workspace
from ragstone.schemas.errors import ErrorSchema
from ragstone.schemas.openai import (
    ApiErrorDetailSchema,
    ApiErrorSchema,
    ChatCompletionSchema,
    ChatModelListSchema,
    ChatModelSchema,
    EmbeddingListSchema,
    EmbeddingSchema,
    EmbeddingUsageSchema,
)
from ragstone.schemas.schema import Schema
from ragstone.serve.http.identity import KeyedRoute, Reader
from ragstone.serve.http.openai.bodies import ChatBody, EmbeddingBody
from ragstone.serve.http.openai.chat import Completion
from ragstone.serve.http.problems import ProblemSchema, tell_problems_of
from ragstone.serve.http.replies import begin_events, reply, stream_events

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


NAME = "ragstone"
"""The model that answers from the knowledge base of the settings; `ragstone/KB` from another one."""
OWNER = "ragstone"
PATHS = ("/v1/models", "/v1/embeddings", "/v1/chat/completions")
ERRORS: dict[int | str, dict[str, Any]] = {status: {"model": ApiErrorSchema} for status in ("4XX", "5XX")}
EVENTS: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
DONE = "data: [DONE]\n\n"
router = APIRouter(route_class=KeyedRoute, prefix="/v1", tags=["openai"], responses=ERRORS)
for path in PATHS:
    tell_problems_of(path, tell_problem)


@router.get("/models", response_model=ChatModelListSchema)
async def list_models(workspace: Reader) -> Response:
    """List what the caller can talk to, and the embedding model."""
    names = [f"{NAME}/{kb.name}" for kb in await workspace.knowledge_bases.list()]
    with suppress(NotFoundError):  # there is no kb that is meant where none is named
        await workspace.knowledge_bases.get()
        names.insert(0, NAME)
    names.append(_embedding_model(workspace))
    return reply(ChatModelListSchema.model_construct(data=[_model(name) for name in names]))


@router.get("/models/{model:path}", response_model=ChatModelSchema)
async def show_model(model: str, workspace: Reader) -> Response:
    """Show one model."""
    if model != _embedding_model(workspace):
        await _find_kb(workspace, model)
    return reply(_model(model))


@router.post("/embeddings", response_model=EmbeddingListSchema)
async def embed(body: EmbeddingBody, workspace: Reader) -> Response:
    """Return the vectors of the caller's texts."""
    if body.model != _embedding_model(workspace):
        raise _unknown(body.model)
    made = await workspace.embed(body.texts, body.input_type)
    if body.dimensions not in (None, made.vectors.shape[1]):
        raise HTTPException(400, f"the model has {made.vectors.shape[1]} dimensions, and these cannot be changed")
    vectors = made.vectors.astype("<f4")
    usage = EmbeddingUsageSchema.of(prompt_tokens=made.tokens, total_tokens=made.tokens)
    data = [
        EmbeddingSchema.model_construct(
            index=index,
            embedding=base64.b64encode(row.tobytes()).decode() if body.encoding_format == "base64" else row.tolist(),
        )
        for index, row in enumerate(vectors)
    ]
    return reply(EmbeddingListSchema.model_construct(data=data, model=made.model, usage=usage))


@router.post("/chat/completions", response_model=ChatCompletionSchema, responses=EVENTS)
async def complete(body: ChatBody, workspace: Reader, request: Request) -> Response:
    """Answer the last message from a knowledge base, in the light of those before it.

    With `stream` the sentences come as they are made; the chunk that ends the reply has the citations.
    """
    kb = await _find_kb(workspace, body.model)
    question = Question(body.question, kb=kb.name, earlier=body.earlier)
    told = Completion(body.model, body.messages, workspace.settings.answer.citation_format)
    if not body.stream:
        return reply(await told.whole(await workspace.ask(question)))
    events = await begin_events(workspace.stream(question))
    usage = bool(body.stream_options and body.stream_options.include_usage)
    return stream_events(request, told.chunks(events, usage=usage), write=_write, end=DONE)


async def _find_kb(workspace: Workspace, model: str) -> KnowledgeBase:
    """Return the knowledge base that a model answers from, or raise what says that there is none."""
    name, _, kb = model.partition("/")
    if name != NAME or model == f"{NAME}/":
        raise _unknown(model)
    return await workspace.knowledge_bases.get(kb or None)


def _write(name: str, shape: Schema) -> str:
    """Return an event without a name; an error in the shape that clients look for."""
    if isinstance(shape, ErrorSchema):
        shape = tell_error(shape.error.message, code=shape.error.code, hint=shape.error.hint)
    return f"data: {json.dumps(shape.as_json())}\n\n"


def _unknown(model: str) -> HTTPException:
    return HTTPException(404, f"there is no model '{model:.100}' for this: GET /v1/models lists those that there are")


def _embedding_model(workspace: Workspace) -> str:
    return workspace.settings.embedding.model


def _model(name: str) -> ChatModelSchema:
    return ChatModelSchema.model_construct(id=name, created=0, owned_by=OWNER)
