"""Knowledge bases."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from ragstone.schemas.embeddings import SpaceListSchema
from ragstone.schemas.erasure import DeletedKbSchema
from ragstone.schemas.jobs import JobSchema
from ragstone.schemas.knowledge_bases import KbListSchema, KbSchema, RenamedKbSchema, StatsSchema
from ragstone.serve.http.identity import Admin, KeyedRoute, Reader
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import reply, reply_queued
from ragstone.serve.http.requests import ReembedBody, RenameBody, refuse_unknown_model

router = APIRouter(route_class=KeyedRoute, prefix="/v1", responses=PROBLEMS)


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


@router.get("/kbs/{kb}/spaces", response_model=SpaceListSchema, tags=["knowledge bases"])
async def list_spaces(kb: str, workspace: Reader) -> Response:
    """List the embedding spaces of a knowledge base, oldest generation first."""
    return reply(SpaceListSchema.of(kb=kb, spaces=await workspace.embeddings.spaces(kb=kb)))


@router.post("/kbs/{kb}/reembed", status_code=202, response_model=JobSchema, tags=["knowledge bases"])
async def reembed(kb: str, body: ReembedBody, workspace: Admin) -> Response:
    """Queue a job that makes all embeddings again, by another model or the same, while searches go on."""
    refuse_unknown_model("model", body.model, workspace.settings)
    job = await workspace.embeddings.queue(body.model, kb=kb)
    return reply_queued(job)
