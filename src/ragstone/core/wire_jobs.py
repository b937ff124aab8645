"""Jobs, sources and notices as JSON: like `ragstone.core.wire`, for what is worked on in the background."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from ragstone.core.clock import canonical
from ragstone.core.jobs import DocumentStatus, Job, Notice, SourceRecord
from ragstone.core.types import Json
from ragstone.core.wire import failure_json

JsonObject = dict[str, Json]
MASK = "**********"
SECRET_KEY = re.compile(r"(password|passwd|secret|token|api_?key|credential)s?$", re.IGNORECASE)
IN_ADDRESS = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]*(?=@)")


def job_json(job: Job) -> JsonObject:
    """A job; `progress` is a percentage, `error` is empty unless something went wrong."""
    how_far = job.progress
    return {
        "id": job.id,
        "document_id": job.document_id,
        "uri": job.uri,
        "state": job.state,
        "stage": how_far.stage,
        "progress": 100 if job.state == "completed" else how_far.percent,
        "attempts": job.attempts,
        "error": job.error,
        "error_code": job.error_code,
        "hint": how_far.advice,
        "remarks": list(how_far.remarks),
        "kind": job.kind,
        "kb": job.kb,
        "source": job.source,
        "priority": job.priority,
        "size": job.size,
        "worker": job.worker,
        "pages": how_far.pages,
        "pages_total": how_far.pages_total,
        "chunks": how_far.chunks,
        "chunks_total": how_far.chunks_total,
        "eta_seconds": how_far.eta_seconds,
        "created_at": _moment(job.created_at),
        "started_at": _moment(job.started_at),
        "finished_at": _moment(job.finished_at),
    }


def jobs_json(jobs: Sequence[Job], counts: Mapping[str, int]) -> JsonObject:
    """Some jobs, newest first, and how many there are in each state."""
    return {"jobs": [job_json(job) for job in jobs], "counts": dict(counts)}


def status_json(status: DocumentStatus) -> JsonObject:
    """What has become of a document, and its newest job."""
    return {
        "document_id": status.document_id,
        "job_id": status.job.id if status.job else None,
        "status": status.status,
        "uri": status.uri,
        "title": status.title,
        "chunk_count": status.chunk_count,
        "total_tokens": status.total_tokens,
        "processed_at": _moment(status.processed_at),
        "processing_error": status.processing_error,
        "job": job_json(status.job) if status.job else None,
        **record_json(status),
    }


def record_json(status: DocumentStatus) -> JsonObject:
    """What is known of a document as a file that somebody uploaded."""
    return {
        "filename": status.filename,
        "file_type": status.file_type,
        "file_size": status.file_size,
        "file_path": status.file_path,
        "status": status.status,
        "processing_error": status.processing_error,
        "description": status.description,
        "category": status.category,
        "tags": list(status.tags),
        "chunk_count": status.chunk_count,
        "total_tokens": status.total_tokens,
        "uploaded_at": _moment(status.uploaded_at),
        "processed_at": _moment(status.processed_at),
        "embedding_model": status.embedding_model,
    }


def source_json(source: SourceRecord) -> JsonObject:
    """A configured source; secrets in its configuration are masked."""
    return {
        "id": source.id,
        "kb": source.kb,
        "name": source.name,
        "kind": source.kind,
        "config": masked(dict(source.config)),
        "schedule": source.schedule,
        "state": source_state(source),
        "paused": source.paused,
        "last_run_at": _moment(source.last_run_at),
        "next_run_at": _moment(source.next_run_at),
        "last_error": source.last_error,
        "failures": source.shortfall.count,
        "failed": [failure_json(failure) for failure in source.shortfall.first],
        "created_at": _moment(source.created_at),
    }


def source_state(source: SourceRecord) -> str:
    """`paused`, `new` before its first run, then how it does.

    `failed` when its last run was broken off, `failing` when nothing of it could be taken in, `partly` when something
    could not, else `ok`.
    """
    if source.paused:
        return "paused"
    if source.last_run_at is None:
        return "new"
    if source.last_error:
        return "failed"
    if source.shortfall.count:
        return "failing" if source.shortfall.total else "partly"
    return "ok"


def notice_json(notice: Notice) -> JsonObject:
    """How something ended."""
    return {
        "id": notice.id,
        "kind": notice.kind,
        "job_id": notice.job_id,
        "document_id": notice.document_id,
        "uri": notice.uri,
        "message": notice.message,
        "created_at": _moment(notice.created_at),
        "read": notice.read,
    }


def masked(value: Json, key: str = "") -> Json:
    """Settings with passwords hidden also where they hide: in options and inside addresses."""
    match value:
        case dict():
            return {name: masked(inner, str(name)) for name, inner in value.items()}
        case list():
            return [masked(inner, key) for inner in value]
        case str() if SECRET_KEY.search(key):
            return MASK
        case str():
            return IN_ADDRESS.sub(rf"\1:{MASK}", value)
        case _:
            return value


def _moment(moment: datetime | None) -> str | None:
    return canonical(moment) if moment else None
