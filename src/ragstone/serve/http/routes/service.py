"""The customer-service agent: messages, its configuration, and a chart of what it did."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ragstone.agents.service.agent import ServiceAgent, change_agent, read_agent
from ragstone.core.agents.replies import ReplyEvent, ReplyReady
from ragstone.core.clock import now
from ragstone.schemas.schema import Schema
from ragstone.schemas.service import (
    AgentConfigurationSchema,
    ChatReplyEventSchema,
    ChatReplySchema,
    ChatSentenceEventSchema,
)
from ragstone.serve.chart import draw_analytics
from ragstone.serve.http.identity import Admin, KeyedRoute, Reader, TenantAdmin
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import begin_events, reply, stream_events, wants_events
from ragstone.serve.http.requests import AgentBody, MessageBody
from ragstone.serve.http.routes.monitoring import Days

router = APIRouter(route_class=KeyedRoute, prefix="/v1", tags=["agent"], responses=PROBLEMS)
SVG = "image/svg+xml"


@router.post("/chat", response_model=ChatReplySchema, responses={200: {"content": {"text/event-stream": {}}}})
async def chat(body: MessageBody, workspace: Reader, request: Request) -> Response:
    """Answer a customer's message from documents, the shop's data and, where allowed, the web.

    With `Accept: text/event-stream` the sentences come as events while they are made; the last event is the reply.
    Without `conversation` a new one begins, and the reply names it.
    """
    agent = ServiceAgent(workspace, kb=body.kb)
    if wants_events(request):
        events = await begin_events(agent.stream(body.message, body.conversation))
        return stream_events(request, _write_events(events))
    return reply(ChatReplySchema.of(await agent.reply(body.message, body.conversation)))


async def _write_events(events: AsyncGenerator[ReplyEvent]) -> AsyncGenerator[tuple[str, Schema]]:
    async with aclosing(events):
        async for event in events:
            if isinstance(event, ReplyReady):
                yield "reply", ChatReplyEventSchema.of(event.reply, event="reply")
            else:
                yield ("sentence", ChatSentenceEventSchema.of(event.sentence, event="sentence", marked=event.text))


@router.get("/agent", response_model=AgentConfigurationSchema)
async def show_agent(workspace: Reader) -> Response:
    """Show the configuration of the customer-service agent."""
    return reply(AgentConfigurationSchema.of(await read_agent(workspace)))


@router.patch("/agent", response_model=AgentConfigurationSchema)
async def set_agent(body: AgentBody, workspace: TenantAdmin) -> Response:
    """Change fields of the configuration of the customer-service agent."""
    changed = await change_agent(workspace, body.model_dump(exclude_unset=True, exclude_none=True))
    return reply(AgentConfigurationSchema.of(changed))


@router.get("/analytics/chart.svg", response_class=Response, responses={200: {"content": {SVG: {}}}})
async def draw_chart(workspace: Admin, days: Days = 30, kb: str | None = None) -> Response:
    """Draw retrievals, their time, sources and costs of the last days."""
    summary = await workspace.analytics.summary(days=days, kb=kb)
    chart = draw_analytics(summary, await workspace.analytics.days(days=days, kb=kb), now().date())
    return Response(chart, media_type=SVG, headers={"Content-Security-Policy": "default-src 'none'; sandbox"})
