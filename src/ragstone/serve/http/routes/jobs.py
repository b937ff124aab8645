"""Jobs, and notices of how they ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from ragstone.core.jobs import ACTIVE, JobState
from ragstone.engine.workspace import Workspace
from ragstone.schemas.jobs import JobListSchema, JobSchema, NoticeListSchema
from ragstone.schemas.schema import Schema
from ragstone.serve.http.identity import Reader, Writer
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import reply, stream_events, wants_events
from ragstone.serve.http.requests import Limit, NoticesBody

router = APIRouter(prefix="/v1", responses=PROBLEMS)
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
