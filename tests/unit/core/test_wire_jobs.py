from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ragstone.core import wire_jobs as wire
from ragstone.core.jobs import DocumentStatus, Job, JobProgress, Notice, Shortfall, SourceRecord

MOMENT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
STAMP = "2026-01-31T09:30:00+00:00"
JOB = Job(
    id="j1", kind="document", kb="demo", state="running", priority=5, document_id="d1", source="wiki",
    external_id="fares.md", uri="wiki/fares.md", content_hash="ab", size=120, facts={"original": "o"},
    progress=JobProgress("embed", pages=2, pages_total=3, chunks=4, chunks_total=8, percent=55, eta_seconds=1.5),
    attempts=1, token=3, worker="host:7:ab", error_code="", error="",
    created_at=MOMENT, started_at=MOMENT, finished_at=None,
)  # fmt: skip
SOURCE = SourceRecord(
    id="s1", kb="demo", name="wiki", kind="files", config={"path": "/wiki"}, schedule="daily", cursor={"at": 3},
    paused=False, next_run_at=MOMENT, last_run_at=None, last_error="", created_at=MOMENT,
)  # fmt: skip


def _same_after_json(value: dict[str, Any]) -> bool:
    return bool(json.loads(json.dumps(value)) == value)


def test_a_job() -> None:
    shape = wire.job_json(JOB)
    assert shape == {
        "id": "j1",
        "document_id": "d1",
        "uri": "wiki/fares.md",
        "state": "running",
        "stage": "embed",
        "progress": 55,
        "attempts": 1,
        "error": "",
        "error_code": "",
        "hint": "",
        "remarks": [],
        "kind": "document",
        "kb": "demo",
        "source": "wiki",
        "priority": 5,
        "size": 120,
        "worker": "host:7:ab",
        "pages": 2,
        "pages_total": 3,
        "chunks": 4,
        "chunks_total": 8,
        "eta_seconds": 1.5,
        "created_at": STAMP,
        "started_at": STAMP,
        "finished_at": None,
    }
    assert _same_after_json(shape)


@pytest.mark.parametrize(("state", "progress"), [("completed", 100), ("failed", 55)])
def test_only_a_completed_job_is_at_a_hundred_percent(state: Any, progress: int) -> None:
    assert wire.job_json(replace(JOB, state=state))["progress"] == progress


def test_jobs_come_with_the_counts_of_all() -> None:
    shape = wire.jobs_json([JOB], {"running": 1, "failed": 7})
    assert shape == {"jobs": [wire.job_json(JOB)], "counts": {"running": 1, "failed": 7}}


@pytest.mark.parametrize(("job", "job_id"), [(JOB, "j1"), (None, None)])
def test_a_status(job: Job | None, job_id: str | None) -> None:
    status = DocumentStatus(
        *("d1", "failed", "fares.md", "Fares", 0, 0, None, "it is cut", job),
        *("fares.md", "md", 12, "documents/t1/d1/f1", "What it costs", "prices", ("ferry",), MOMENT, "mini"),
    )
    assert wire.status_json(status) == {
        "document_id": "d1",
        "job_id": job_id,
        "status": "failed",
        "uri": "fares.md",
        "title": "Fares",
        "chunk_count": 0,
        "total_tokens": 0,
        "processed_at": None,
        "processing_error": "it is cut",
        "job": wire.job_json(job) if job else None,
        "filename": "fares.md",
        "file_type": "md",
        "file_size": 12,
        "file_path": "documents/t1/d1/f1",
        "description": "What it costs",
        "category": "prices",
        "tags": ["ferry"],
        "uploaded_at": STAMP,
        "embedding_model": "mini",
    }


def test_a_source() -> None:
    shape = wire.source_json(SOURCE)
    assert shape == {
        "id": "s1",
        "kb": "demo",
        "name": "wiki",
        "kind": "files",
        "config": {"path": "/wiki"},
        "schedule": "daily",
        "state": "new",
        "paused": False,
        "last_run_at": None,
        "next_run_at": STAMP,
        "last_error": "",
        "failures": 0,
        "failed": [],
        "created_at": STAMP,
    }
    assert _same_after_json(shape)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "new"),
        ({"last_run_at": MOMENT}, "ok"),
        ({"last_run_at": MOMENT, "last_error": "no such host"}, "failed"),
        ({"last_run_at": MOMENT, "last_error": "no such host", "paused": True}, "paused"),
        ({"last_run_at": MOMENT, "shortfall": Shortfall(2)}, "partly"),
        ({"last_run_at": MOMENT, "shortfall": Shortfall(2, total=True)}, "failing"),
        ({"last_run_at": MOMENT, "shortfall": Shortfall(2, total=True), "last_error": "no host"}, "failed"),
        ({"shortfall": Shortfall(2)}, "new"),
    ],
)
def test_the_state_of_a_source(changes: dict[str, Any], state: str) -> None:
    assert wire.source_state(replace(SOURCE, **changes)) == state


def test_secrets_of_a_source_are_masked() -> None:
    config = {"host": "mail.example", "password": "hush", "urls": ["https://me:hush@feeds.example/all"]}
    shape = wire.source_json(replace(SOURCE, config=config))
    assert shape["config"] == {
        "host": "mail.example",
        "password": "**********",
        "urls": ["https://me:**********@feeds.example/all"],
    }


def test_a_notice() -> None:
    notice = Notice(4, "failed", "j1", "d1", "fares.md", "it is cut", MOMENT, read=True)
    assert wire.notice_json(notice) == {
        "id": 4,
        "kind": "failed",
        "job_id": "j1",
        "document_id": "d1",
        "uri": "fares.md",
        "message": "it is cut",
        "created_at": STAMP,
        "read": True,
    }
