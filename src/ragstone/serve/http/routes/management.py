"""Knowledge bases, sources, jobs, feedback, conversations and usage of a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from ragstone.core.clock import now
from ragstone.core.jobs import ACTIVE, JobState
from ragstone.core.keys import NewApiKey, read_scopes
from ragstone.engine.workspace import Workspace
from ragstone.schemas.activity import (
    ConversationListSchema,
    ForgottenConversationSchema,
    NotedVotesSchema,
    TurnListSchema,
    VoteListSchema,
)
from ragstone.schemas.erasure import DeletedKbSchema, RemovedSourceSchema
from ragstone.schemas.jobs import JobListSchema, JobSchema, NoticeListSchema
from ragstone.schemas.knowledge_bases import KbListSchema, KbSchema, RenamedKbSchema, StatsSchema
from ragstone.schemas.schema import Schema
from ragstone.schemas.sources import SourceListSchema, SourceSchema
from ragstone.schemas.tenants import ApiKeyListSchema, ApiKeySchema, AuditSchema, IssuedKeySchema, UsageSchema
from ragstone.serve.http.identity import Admin, Reader, TenantAdmin, Writer
from ragstone.serve.http.replies import reply, stream_events, wants_events
from ragstone.serve.http.requests import KeyBody, RenameBody, SourceBody, VoteBody

router = APIRouter(prefix="/v1")
POLL_SECONDS = 0.5
"""The time after which a stream of a job's progress looks at the job again."""
Limit = Annotated[int, Query(ge=1, le=1000)]


@router.get("/kbs", response_model=KbListSchema, tags=["knowledge bases"])
async def list_kbs(workspace: Reader) -> Response:
    """List the knowledge bases with their counts."""
    found = [
        KbSchema.of_kb(kb, await workspace.knowledge_bases.stats(kb.name))
        for kb in await workspace.knowledge_bases.list()
    ]
    return reply(KbListSchema.of(kbs=found))


@router.get("/kbs/{kb}", response_model=StatsSchema, tags=["knowledge bases"])
async def show_kb(kb: str, workspace: Reader) -> Response:
    """Show the counts of a knowledge base."""
    return reply(StatsSchema.of(await workspace.knowledge_bases.stats(kb), kb=kb))


@router.patch("/kbs/{kb}", response_model=RenamedKbSchema, tags=["knowledge bases"])
async def rename_kb(kb: str, body: RenameBody, workspace: Admin) -> Response:
    """Rename a knowledge base; its content and all ids stay the same."""
    renamed = await workspace.knowledge_bases.rename(kb, body.name)
    return reply(RenamedKbSchema.of(renamed=kb, name=renamed.name))


@router.delete("/kbs/{kb}", response_model=DeletedKbSchema, tags=["knowledge bases"])
async def delete_kb(kb: str, workspace: Admin) -> Response:
    """Delete a knowledge base with everything in it, and return a receipt."""
    documents = (await workspace.knowledge_bases.stats(kb)).documents
    receipts = await workspace.erase("kb", kb)
    return reply(DeletedKbSchema.of(deleted=kb, documents=documents, receipts=receipts))


@router.get("/sources", response_model=SourceListSchema, tags=["sources"])
async def list_sources(workspace: Reader, kb: str | None = None) -> Response:
    """List the sources, or those of one knowledge base."""
    return reply(SourceListSchema.of(sources=await workspace.sources.list(kb=kb)))


@router.post("/sources", status_code=201, response_model=SourceSchema, tags=["sources"])
async def add_source(body: SourceBody, workspace: Admin) -> Response:
    """Set up a source."""
    made = await workspace.sources.add(body.kind, body.name, body.config, schedule=body.schedule, kb=body.kb)
    return reply(SourceSchema.of(made), 201, {"Location": f"/v1/sources/{made.name}"})


@router.get("/sources/{name}", response_model=SourceSchema, tags=["sources"])
async def show_source(name: str, workspace: Reader, kb: str | None = None) -> Response:
    """Show a source and how its last sync went."""
    return reply(SourceSchema.of(await workspace.sources.get(name, kb=kb)))


@router.post("/sources/{name}/sync", status_code=202, response_model=JobSchema, tags=["sources"])
async def sync_source(name: str, workspace: Writer, afresh: bool = False, kb: str | None = None) -> Response:
    """Queue a sync; `afresh` reads the source from its beginning."""
    job = await workspace.sources.sync(name, afresh=afresh, kb=kb)
    return reply(JobSchema.of(job), 202, {"Location": f"/v1/jobs/{job.id}"})


@router.post("/sources/{name}/pause", response_model=SourceSchema, tags=["sources"])
async def pause_source(name: str, workspace: Admin, kb: str | None = None) -> Response:
    """Pause the schedule of a source."""
    await workspace.sources.pause(name, kb=kb)
    return reply(SourceSchema.of(await workspace.sources.get(name, kb=kb)))


@router.post("/sources/{name}/resume", response_model=SourceSchema, tags=["sources"])
async def resume_source(name: str, workspace: Admin, kb: str | None = None) -> Response:
    """Resume the schedule of a source."""
    await workspace.sources.resume(name, kb=kb)
    return reply(SourceSchema.of(await workspace.sources.get(name, kb=kb)))


@router.delete("/sources/{name}", response_model=RemovedSourceSchema, tags=["sources"])
async def remove_source(name: str, workspace: Admin, keep_documents: bool = False, kb: str | None = None) -> Response:
    """Remove a source with its documents, or leave these there."""
    if keep_documents:
        kept = await workspace.sources.remove(name, keep_documents=True, kb=kb)
        return reply(RemovedSourceSchema.of(removed=name, documents=kept, receipts=[]))
    await workspace.sources.get(name, kb=kb)
    receipts = await workspace.erase("source", name, kb=kb)
    documents = sum(receipt.removed.get("ledger", {}).get("documents", 0) for receipt in receipts)
    return reply(RemovedSourceSchema.of(removed=name, documents=documents, receipts=receipts))


@router.get("/jobs", response_model=JobListSchema, tags=["jobs"])
async def list_jobs(
    workspace: Reader,
    state: Annotated[list[JobState] | None, Query()] = None,
    source: str | None = None,
    limit: Limit = 100,
) -> Response:
    """List jobs, newest first, and how many there are in each state."""
    found = await workspace.jobs.list(states=state or (), source=source, limit=limit)
    return reply(JobListSchema.of(jobs=found, counts=await workspace.jobs.counts(source=source)))


@router.get(
    "/jobs/{job_id}", response_model=JobSchema, responses={200: {"content": {"text/event-stream": {}}}}, tags=["jobs"]
)
async def show_job(job_id: str, workspace: Reader, request: Request) -> Response:
    """Show a job; with `Accept: text/event-stream`, an event for each change until it has ended."""
    job = await workspace.jobs.get(job_id)
    if wants_events(request):
        return stream_events(request, _job_events(workspace, job_id))
    return reply(JobSchema.of(job))


async def _job_events(workspace: Workspace, job_id: str) -> AsyncGenerator[tuple[str, Schema]]:
    before = None
    while True:
        job = await workspace.jobs.get(job_id)
        if job != before:
            yield "job", JobSchema.of(job)
        if job.state not in ACTIVE:
            return
        before = job
        await asyncio.sleep(POLL_SECONDS)


@router.post("/jobs/{job_id}/cancel", response_model=JobSchema, tags=["jobs"])
async def cancel_job(job_id: str, workspace: Writer) -> Response:
    """Cancel a job that has not ended."""
    await workspace.jobs.cancel(job_id)
    return reply(JobSchema.of(await workspace.jobs.get(job_id)))


@router.post("/jobs/{job_id}/retry", response_model=JobSchema, tags=["jobs"])
async def retry_job(job_id: str, workspace: Writer) -> Response:
    """Queue a failed job once more."""
    await workspace.jobs.retry(job_id)
    return reply(JobSchema.of(await workspace.jobs.get(job_id)))


@router.get("/notices", response_model=NoticeListSchema, tags=["jobs"])
async def list_notices(workspace: Reader, unread: bool = False, limit: Limit = 100) -> Response:
    """List notices of uploads and syncs that ended, newest first."""
    return reply(NoticeListSchema.of(notices=await workspace.jobs.notices(unread=unread, limit=limit)))


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


@router.get("/usage", response_model=UsageSchema, tags=["tenant"])
async def show_usage(workspace: Reader) -> Response:
    """Show what the tenant has and has used."""
    return reply(UsageSchema.of(await workspace.usage()))


@router.get("/audit", response_model=AuditSchema, tags=["tenant"])
async def list_audit(workspace: Admin, action: str | None = None, limit: Limit = 100) -> Response:
    """List the audit record of the tenant, newest first."""
    return reply(AuditSchema.of(audit=await workspace.audit.list(action=action, limit=limit)))


@router.get("/keys", response_model=ApiKeyListSchema, tags=["tenant"])
async def list_keys(workspace: TenantAdmin, request: Request) -> Response:
    """List the API keys of the tenant."""
    return reply(ApiKeyListSchema.of(keys=await request.app.state.engine.keys.all(workspace.tenant)))


@router.post("/keys", status_code=201, response_model=IssuedKeySchema, tags=["tenant"])
async def create_key(body: KeyBody, workspace: TenantAdmin, request: Request) -> Response:
    """Create an API key of the tenant. It is in this answer once and not stored."""
    expires = now() + timedelta(days=body.days) if body.days else None
    wanted = NewApiKey(workspace.tenant, read_scopes(body.scopes), body.name, tuple(body.kbs), expires)
    return reply(IssuedKeySchema.of_issued(await request.app.state.engine.keys.create(wanted)), 201)


@router.delete("/keys/{key_id}", response_model=ApiKeySchema, tags=["tenant"])
async def revoke_key(key_id: str, workspace: TenantAdmin, request: Request) -> Response:
    """Have an API key of the tenant refused from now on."""
    return reply(ApiKeySchema.of(await request.app.state.engine.keys.revoke(key_id, tenant=workspace.tenant)))
