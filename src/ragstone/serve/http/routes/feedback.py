"""Feedback and conversations."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from ragstone.schemas.activity import (
    ConversationListSchema,
    ForgottenConversationSchema,
    NotedVotesSchema,
    TurnListSchema,
    VoteListSchema,
)
from ragstone.serve.http.identity import Reader, Writer
from ragstone.serve.http.replies import reply
from ragstone.serve.http.requests import Limit, VoteBody

router = APIRouter(prefix="/v1")


@router.post("/feedback", status_code=201, response_model=NotedVotesSchema, tags=["feedback"])
async def vote(body: VoteBody, workspace: Reader) -> Response:
    """Say that passages were useful for a query, or were not."""
    noted = await workspace.feedback.vote(body.query, body.chunk_ids, body.vote, kb=body.kb)
    return reply(NotedVotesSchema.of(vote=body.vote, noted=noted), 201)


@router.get("/feedback", response_model=VoteListSchema, tags=["feedback"])
async def list_votes(workspace: Reader, limit: Limit = 100, kb: str | None = None) -> Response:
    """List votes, newest first."""
    return reply(VoteListSchema.of(feedback=await workspace.feedback.votes(limit=limit, kb=kb)))


@router.get("/conversations", response_model=ConversationListSchema, tags=["conversations"])
async def list_conversations(workspace: Reader, limit: Limit = 100, kb: str | None = None) -> Response:
    """List conversations, newest first."""
    return reply(ConversationListSchema.of(conversations=await workspace.conversations.list(limit=limit, kb=kb)))


@router.get("/conversations/{name}", response_model=TurnListSchema, tags=["conversations"])
async def show_conversation(name: str, workspace: Reader, kb: str | None = None) -> Response:
    """Show the turns of a conversation."""
    turns = await workspace.conversations.turns(name, kb=kb)
    return reply(TurnListSchema.of(conversation=name, turns=turns))


@router.delete("/conversations/{name}", response_model=ForgottenConversationSchema, tags=["conversations"])
async def forget_conversation(name: str, workspace: Writer, kb: str | None = None) -> Response:
    """Forget a conversation."""
    turns = await workspace.conversations.forget(name, kb=kb)
    return reply(ForgottenConversationSchema.of(forgotten=name, turns=turns))
