"""Search, answers, claims and research."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ragstone.core.answers import AnswerEvent
from ragstone.schemas.answers import AnswerSchema, CheckedTextSchema, VerdictSchema, event_schema
from ragstone.schemas.receipts import AnsweredReceiptSchema, ReceiptReportSchema, ReceiptSchema
from ragstone.schemas.research import ResearchSchema
from ragstone.schemas.schema import Schema
from ragstone.schemas.search import ExplanationSchema, SearchSchema
from ragstone.serve.http.identity import KeyedRoute, Reader
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import begin_events, reply, stream_events, wants_events
from ragstone.serve.http.requests import (
    AskBody,
    ExplainBody,
    ReceiptBody,
    ResearchBody,
    SearchBody,
    VerifyBody,
    VerifyTextBody,
)

router = APIRouter(route_class=KeyedRoute, prefix="/v1", tags=["search"], responses=PROBLEMS)


@router.post("/search", response_model=SearchSchema)
async def search(body: SearchBody, workspace: Reader) -> Response:
    """Find the passages that matter for a query, best first."""
    return reply(SearchSchema.of(await workspace.search(body.as_query())))


@router.post("/ask", response_model=AnswerSchema, responses={200: {"content": {"text/event-stream": {}}}})
async def ask(body: AskBody, workspace: Reader, request: Request) -> Response:
    """Answer a question with the source of every sentence.

    With `Accept: text/event-stream` the sentences come as events while they are made; the last event is the answer.
    """
    if wants_events(request):
        events = await begin_events(workspace.stream(body.as_question()))
        return stream_events(request, _write_events(events))
    return reply(AnswerSchema.of(await workspace.ask(body.as_question())))


async def _write_events(events: AsyncGenerator[AnswerEvent]) -> AsyncGenerator[tuple[str, Schema]]:
    async with aclosing(events):
        async for event in events:
            shape = event_schema(event)
            yield shape.event, shape


@router.post("/verify", response_model=VerdictSchema)
async def verify(body: VerifyBody, workspace: Reader) -> Response:
    """Check a claim against the knowledge base."""
    verdict = await workspace.verify(body.claim, k=body.k, mode=body.mode, where=body.where, kb=body.kb)
    return reply(VerdictSchema.of(verdict))


@router.post("/verify/text", response_model=CheckedTextSchema)
async def verify_text(body: VerifyTextBody, workspace: Reader) -> Response:
    """Check each sentence of a text that states something: which are confirmed, which refuted, which open."""
    options = body.model_dump(exclude={"text"})
    checked = await workspace.verify_text(body.text, **options)
    return reply(CheckedTextSchema.of(checked))


@router.post("/research", response_model=ResearchSchema)
async def research(body: ResearchBody, workspace: Reader) -> Response:
    """Collect passages about a topic, searching for several aspects of it."""
    values = body.model_dump()
    return reply(ResearchSchema.of(await workspace.research(values.pop("topic"), **values)))


@router.post("/explain", response_model=ExplanationSchema)
async def explain(body: ExplainBody, workspace: Reader) -> Response:
    """Explain why a document is in the result of a query, or at which stage it was lost."""
    query = SearchBody(**body.model_dump(exclude={"document_id"})).as_query()
    return reply(ExplanationSchema.of(await workspace.explain(query, body.document_id)))


@router.post("/receipts", response_model=AnsweredReceiptSchema)
async def ask_with_receipt(body: AskBody, workspace: Reader) -> Response:
    """Answer a question, with a receipt that `/v1/receipts/check` takes later."""
    answer = await workspace.ask(body.as_question())
    receipt = ReceiptSchema.model_validate(await workspace.receipts.make(answer, kb=body.kb))
    return reply(AnsweredReceiptSchema.of(answer=AnswerSchema.of(answer), receipt=receipt))


@router.post("/receipts/check", response_model=ReceiptReportSchema)
async def check_receipt(body: ReceiptBody, workspace: Reader) -> Response:
    """Check whether a receipt is as it was made, and which of its sentences the documents still bear out."""
    return reply(ReceiptReportSchema.of(await workspace.receipts.check(body.receipt)))
