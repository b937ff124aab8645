"""Jobs, and notices of how they ended; exports, imports, evaluations and tunings, which workers do as jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from ragstone.core.jobs import ACTIVE, JobState
from ragstone.engine.workspace import Workspace
from ragstone.schemas.jobs import JobListSchema, JobSchema, NoticeListSchema
from ragstone.schemas.schema import Schema
from ragstone.serve.http.identity import KeyedRoute, Reader, TenantAdmin, Writer
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import reply, reply_queued, send_file, stream_events, wants_events
from ragstone.serve.http.requests import EvaluationBody, ExportBody, Limit, NoticesBody, TuningBody, exact_form

router = APIRouter(route_class=KeyedRoute, prefix="/v1", responses=PROBLEMS)
RESULTS: dict[int | str, dict[str, Any]] = {200: {"content": {"application/zip": {}, "application/json": {}}}}
POLL_SECONDS = 0.5
"""The time after which a stream of a job's progress looks at the job again."""


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


@router.post("/notices/read", response_model=NoticeListSchema, tags=["jobs"])
async def mark_notices(body: NoticesBody, workspace: Writer) -> Response:
    """Mark notices as read; those that are left are in the answer."""
    await workspace.jobs.mark_read(body.ids)
    return reply(NoticeListSchema.of(notices=await workspace.jobs.notices(unread=True)))


@router.post("/exports", status_code=202, response_model=JobSchema, tags=["archives"])
async def export(body: ExportBody, workspace: TenantAdmin) -> Response:
    """Queue the writing of all knowledge bases, or some, into an archive; it is the result of the job."""
    return reply_queued(await workspace.tasks.export(kbs=body.kbs, files=body.files))


@router.post(
    "/imports", status_code=202, response_model=JobSchema, tags=["archives"], dependencies=[exact_form(several="kb")]
)
async def import_archive(
    workspace: TenantAdmin,
    file: Annotated[UploadFile, File(description="An archive that an export has made.")],
    kb: Annotated[list[str] | None, Form(description="Only these knowledge bases.")] = None,
    overwrite: Annotated[bool, Form(description="Replace documents that differ.")] = False,
) -> Response:
    """Queue the import of an archive, all of it checked first; the result of the job says what came in."""
    return reply_queued(await workspace.tasks.import_archive(await file.read(), kbs=kb, overwrite=overwrite))


@router.post("/evaluations", status_code=202, response_model=JobSchema, tags=["evaluation"])
async def evaluate(body: EvaluationBody, workspace: TenantAdmin) -> Response:
    """Queue a measurement of search on labelled queries; the figures are the result of the job."""
    job = await workspace.tasks.evaluate(body.labels, systems=body.systems, limit=body.limit, kb=body.kb)
    return reply_queued(job)


@router.post("/tunings", status_code=202, response_model=JobSchema, tags=["evaluation"])
async def tune(body: TuningBody, workspace: TenantAdmin) -> Response:
    """Queue a search for better settings; those that it finds are the result of the job and are not applied."""
    job = await workspace.tasks.tune(body.labels, budget_ms=body.budget_ms, limit=body.limit, kb=body.kb)
    return reply_queued(job)


@router.get("/jobs/{job_id}/result", response_class=Response, responses=RESULTS, tags=["jobs"])
async def download_result(job_id: str, workspace: TenantAdmin) -> Response:
    """Return the archive of an export, or the figures of an import, evaluation or tuning as JSON."""
    made = await workspace.tasks.result(job_id)
    return send_file(made.content, made.filename, made.media_type)
