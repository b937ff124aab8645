"""Jobs, how they ended, and what a worker did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from ragstone.core.jobs import JobKind, JobState, Notice
from ragstone.core.types import Json
from ragstone.schemas.schema import Moment, Schema


class JobSchema(Schema):
    """A job; `progress` is a percentage, `error` is empty unless something went wrong."""

    id: str
    document_id: str
    uri: str
    state: JobState
    stage: str
    progress: int
    attempts: int
    error: str
    error_code: str
    hint: str
    remarks: list[str]
    kind: JobKind
    kb: str
    source: str
    priority: int
    size: int
    worker: str
    pages: int
    pages_total: int
    chunks: int
    chunks_total: int
    eta_seconds: float | None
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a job; how far it is stands beside what it is."""
        names = ["stage", "remarks", "pages", "pages_total", "chunks", "chunks_total", "eta_seconds"]
        own = {name: getattr(source.progress, name) for name in names}
        progress = 100 if source.state == "completed" else source.progress.percent
        if source.kind == "task":
            own["document_id"] = ""  # the name of a folder, and of no document
        return super().of(source, progress=progress, hint=source.progress.advice, **own, **values)

    @classmethod
    def restore(cls, data: dict[str, Json]) -> Mapping[str, Json]:
        """Return the fields of a job, with how far it is in one place."""
        names = ("stage", "remarks", "hint", "pages", "pages_total", "chunks", "chunks_total", "eta_seconds")
        progress = {name: data[name] for name in names if name in data}
        return {**data, "progress": {**progress, "percent": data.get("progress", 0)}}


class QueuedJobsSchema(Schema):
    """Jobs that were queued."""

    jobs: list[JobSchema]


class JobListSchema(Schema):
    """Some jobs, newest first, and how many there are in each state."""

    jobs: list[JobSchema]
    counts: dict[str, int]


class CancelledJobsSchema(Schema):
    """Jobs that were cancelled, could not be, or do not exist."""

    cancelled: list[str]
    not_cancelled: list[str]
    not_found: list[str]


class RetriedJobsSchema(Schema):
    """Jobs that were queued once more, could not be, or do not exist."""

    retried: list[str]
    not_retried: list[str]
    not_found: list[str]


class NoticeSchema(Schema):
    """The end of an upload or a sync."""

    id: int
    kind: Literal["completed", "failed", "warning"]
    job_id: str
    document_id: str
    uri: str
    message: str
    created_at: Moment
    read: bool


class NoticeListSchema(Schema):
    """Notices, newest first."""

    notices: list[NoticeSchema]


class WebhookSchema(Schema):
    """A notice as it is posted to an address of the operator."""

    event: str
    tenant: str
    job_id: str
    document_id: str
    uri: str
    message: str
    at: Moment

    @classmethod
    def of_notice(cls, tenant: str, notice: Notice) -> Self:
        """Build the shape of a tenant's notice."""
        event = f"job.{notice.kind}" if notice.job_id else notice.kind
        return cls.of(notice, event=event, tenant=tenant, at=notice.created_at)


class WorkerSchema(Schema):
    """The jobs that a worker did until it ended."""

    stopped: bool
    completed: int
    failed: int
