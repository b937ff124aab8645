"""Votes, conversations and golden queries."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from ragstone.core.errors import NotFoundError
from ragstone.core.remedies import Action, Remedy
from ragstone.schemas.activity import (
    AddedGoldenSchema,
    ConversationListSchema,
    ForgottenConversationSchema,
    GoldenQueriesSchema,
    NotedVotesSchema,
    RemovedSchema,
    TurnListSchema,
    VoteListSchema,
)
from ragstone.serve.http.identity import KeyedRoute, Reader, Writer
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import reply
from ragstone.serve.http.requests import GoldenBody, Limit, MakeGoldenBody, VoteBody

router = APIRouter(route_class=KeyedRoute, prefix="/v1", responses=PROBLEMS)


@router.post("/feedback", status_code=201, response_model=NotedVotesSchema, tags=["feedback"])
async def vote(body: VoteBody, workspace: Reader) -> Response:
    """Say that passages were useful for a query, or were not."""
    noted = await workspace.feedback.vote(body.query, body.chunk_ids, body.vote, voter=body.voter, kb=body.kb)
    return reply(NotedVotesSchema.of(vote=body.vote, noted=noted), 201)


@router.get("/feedback", response_model=VoteListSchema, tags=["feedback"])
async def list_votes(workspace: Reader, limit: Limit = 100, kb: str | None = None) -> Response:
    """List votes, newest first."""
    return reply(VoteListSchema.of(feedback=await workspace.feedback.votes(limit=limit, kb=kb)))


@router.get("/conversations", response_model=ConversationListSchema, tags=["conversations"])
async def list_conversations(workspace: Reader, limit: Limit = 100, kb: str | None = None) -> Response:
    """List conversations, newest first."""
    return reply(ConversationListSchema.of(conversations=await workspace.conversations.list(limit=limit, kb=kb)))


@router.get("/conversations/{name:path}", response_model=TurnListSchema, tags=["conversations"])
async def show_conversation(name: str, workspace: Reader, kb: str | None = None) -> Response:
    """Show the turns of a conversation."""
    turns = await workspace.conversations.turns(name, kb=kb)
    return reply(TurnListSchema.of(conversation=name, turns=turns))


@router.delete("/conversations/{name:path}", response_model=ForgottenConversationSchema, tags=["conversations"])
async def forget_conversation(name: str, workspace: Writer, kb: str | None = None) -> Response:
    """Forget a conversation."""
    turns = await workspace.conversations.forget(name, kb=kb)
    return reply(ForgottenConversationSchema.of(forgotten=name, turns=turns))


@router.get("/golden", response_model=GoldenQueriesSchema, tags=["evaluation"])
async def list_golden(workspace: Reader, kb: str | None = None) -> Response:
    """List the golden queries of a knowledge base."""
    return reply(GoldenQueriesSchema.of(golden=await workspace.feedback.golden(kb=kb)))


@router.post("/golden", status_code=201, response_model=AddedGoldenSchema, tags=["evaluation"])
async def add_golden(body: GoldenBody, workspace: Writer) -> Response:
    """Keep a question with the documents that answer it."""
    await workspace.feedback.add_golden(body.query, body.document_ids, kb=body.kb)
    return reply(AddedGoldenSchema.of(added=body.query), 201)


@router.post("/golden/make", response_model=GoldenQueriesSchema, tags=["evaluation"])
async def make_golden(body: MakeGoldenBody, workspace: Writer) -> Response:
    """Make golden queries from documents, by the configured LLM or from their own words, and keep them."""
    return reply(GoldenQueriesSchema.of(golden=await workspace.feedback.make_golden(body.count, kb=body.kb)))


@router.delete("/golden", response_model=RemovedSchema, tags=["evaluation"])
async def remove_golden(workspace: Writer, query: str | None = None, kb: str | None = None) -> Response:
    """Remove a golden query, or all of a knowledge base."""
    removed = await workspace.feedback.remove_golden(query, kb=kb)
    if query is not None and not removed:
        raise NotFoundError(f"no golden query {query!r:.80}", remedy=Remedy(Action.LIST_GOLDEN))
    return reply(RemovedSchema.of(removed=removed))
