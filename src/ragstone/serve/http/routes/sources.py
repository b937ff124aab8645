"""Sources: set up, synced, removed."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from ragstone.core.errors import InputError, SettingsError
from ragstone.schemas.erasure import RemovedSourceSchema
from ragstone.schemas.jobs import JobSchema
from ragstone.schemas.sources import SourceListSchema, SourceSchema
from ragstone.serve.http.identity import Admin, KeyedRoute, Reader, Writer
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import reply, reply_queued
from ragstone.serve.http.requests import SourceBody

router = APIRouter(route_class=KeyedRoute, prefix="/v1", responses=PROBLEMS)


@router.get("/sources", response_model=SourceListSchema, tags=["sources"])
async def list_sources(workspace: Reader, kb: str | None = None) -> Response:
    """List the sources, or those of one knowledge base."""
    return reply(SourceListSchema.of(sources=await workspace.sources.list(kb=kb)))


@router.post("/sources", status_code=201, response_model=SourceSchema, tags=["sources"])
async def add_source(body: SourceBody, workspace: Admin) -> Response:
    """Set up a source."""
    try:
        made = await workspace.sources.add(body.kind, body.name, body.config, schedule=body.schedule, kb=body.kb)
    except SettingsError as error:  # of the source, which are the caller's: those of the service are in order
        raise InputError(str(error), hint=error.advice) from error
    return reply(SourceSchema.of(made), 201, {"Location": f"/v1/sources/{made.name}"})


@router.get("/sources/{name}", response_model=SourceSchema, tags=["sources"])
async def show_source(name: str, workspace: Reader, kb: str | None = None) -> Response:
    """Show a source and how its last sync went."""
    return reply(SourceSchema.of(await workspace.sources.get(name, kb=kb)))


@router.post("/sources/{name}/sync", status_code=202, response_model=JobSchema, tags=["sources"])
async def sync_source(name: str, workspace: Writer, afresh: bool = False, kb: str | None = None) -> Response:
    """Queue a sync; `afresh` reads the source from its beginning."""
    job = await workspace.sources.sync(name, afresh=afresh, kb=kb)
    return reply_queued(job)


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
