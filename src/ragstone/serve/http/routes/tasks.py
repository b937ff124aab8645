"""Exports, imports, evaluations and tunings: queued, done by a worker, their results downloaded."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, File, Form, UploadFile
from starlette.responses import Response

from ragstone.core.jobs import Job
from ragstone.schemas.jobs import JobSchema
from ragstone.serve.http.identity import TenantAdmin
from ragstone.serve.http.problems import PROBLEMS
from ragstone.serve.http.replies import reply, send_file
from ragstone.serve.http.requests import EvaluationBody, ExportBody, TuningBody

router = APIRouter(prefix="/v1", responses=PROBLEMS)
RESULTS: dict[int | str, dict[str, Any]] = {200: {"content": {"application/zip": {}, "application/json": {}}}}


@router.post("/exports", status_code=202, response_model=JobSchema, tags=["archives"])
async def export(body: ExportBody, workspace: TenantAdmin) -> Response:
    """Queue the writing of all knowledge bases, or some, into an archive; it is the result of the job."""
    return _queued(await workspace.tasks.export(kbs=body.kbs, files=body.files))


@router.post("/imports", status_code=202, response_model=JobSchema, tags=["archives"])
async def import_archive(
    workspace: TenantAdmin,
    file: Annotated[UploadFile, File(description="An archive that an export has made.")],
    kb: Annotated[list[str] | None, Form(description="Only these knowledge bases.")] = None,
    overwrite: Annotated[bool, Form(description="Replace documents that differ.")] = False,
) -> Response:
    """Queue the import of an archive, all of it checked first; the result of the job says what came in."""
    return _queued(await workspace.tasks.import_archive(await file.read(), kbs=kb, overwrite=overwrite))


@router.post("/evaluations", status_code=202, response_model=JobSchema, tags=["evaluation"])
async def evaluate(body: EvaluationBody, workspace: TenantAdmin) -> Response:
    """Queue a measurement of search on labelled queries; the figures are the result of the job."""
    job = await workspace.tasks.evaluate(body.labels, systems=body.systems, limit=body.limit, kb=body.kb)
    return _queued(job)


@router.post("/tunings", status_code=202, response_model=JobSchema, tags=["evaluation"])
async def tune(body: TuningBody, workspace: TenantAdmin) -> Response:
    """Queue a search for better settings; those that it finds are the result of the job and are not applied."""
    job = await workspace.tasks.tune(body.labels, budget_ms=body.budget_ms, limit=body.limit, kb=body.kb)
    return _queued(job)


@router.get("/jobs/{job_id}/result", response_class=Response, responses=RESULTS, tags=["jobs"])
async def download_result(job_id: str, workspace: TenantAdmin) -> Response:
    """Return the archive of an export, or the figures of an import, evaluation or tuning as JSON."""
    made = await workspace.tasks.result(job_id)
    return send_file(made.content, made.filename, made.media_type)


def _queued(job: Job) -> Response:
    return reply(JobSchema.of(job), 202, {"Location": f"/v1/jobs/{job.id}"})
