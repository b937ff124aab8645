"""What shapes say depends on the results that they are made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.schemas import examples as of

from ragstone.core.answers import CheckedSentence, Status
from ragstone.core.errors import QuotaExceeded
from ragstone.core.jobs import JobState, SourceFailures
from ragstone.schemas.answers import VerdictSchema
from ragstone.schemas.errors import ErrorSchema
from ragstone.schemas.jobs import JobSchema, WebhookSchema
from ragstone.schemas.research import SourcedResearchSchema


@pytest.mark.parametrize(("status", "confidence"), [("VERIFIED", "high"), ("LIKELY", "medium"), ("UNVERIFIED", "low")])
def test_a_verdict_says_how_sure_it_is(status: Status, confidence: str) -> None:
    assert VerdictSchema.of(replace(of.VERDICT, status=status)).confidence == confidence


@pytest.mark.parametrize(("state", "progress"), [("completed", 100), ("failed", 55)])
def test_only_a_completed_job_is_at_a_hundred_percent(state: JobState, progress: int) -> None:
    assert JobSchema.of(replace(of.JOB, state=state)).progress == progress


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "new"),
        ({"last_run_at": of.MOMENT}, "ok"),
        ({"last_run_at": of.MOMENT, "last_error": "no such host"}, "failed"),
        ({"last_run_at": of.MOMENT, "last_error": "no such host", "paused": True}, "paused"),
        ({"last_run_at": of.MOMENT, "source_failures": SourceFailures(2)}, "partly"),
        ({"last_run_at": of.MOMENT, "source_failures": SourceFailures(2, total=True)}, "failing"),
        ({"last_run_at": of.MOMENT, "source_failures": SourceFailures(2, total=True), "last_error": "down"}, "failed"),
        ({"source_failures": SourceFailures(2)}, "new"),
    ],
)
def test_the_state_of_a_source(changes: dict[str, Any], state: str) -> None:
    fresh = replace(of.SOURCE, last_run_at=None, source_failures=SourceFailures())
    assert replace(fresh, **changes).state == state


def test_a_webhook_names_the_job_that_ended() -> None:
    assert WebhookSchema.of_notice("acme", of.NOTICE).as_json() == {
        "event": "job.failed",
        "tenant": "acme",
        "job_id": "j1",
        "document_id": "d1",
        "uri": "fares.md",
        "message": "it is cut",
        "at": "2026-01-31T09:30:15+00:00",
    }
    warning = replace(of.NOTICE, kind="warning", job_id="")
    assert WebhookSchema.of_notice("acme", warning).event == "warning"


@pytest.mark.parametrize(("seconds", "told"), [(0.0, 0), (12.2, 13), (60, 60)])
def test_a_wait_is_rounded_up(seconds: float, told: int) -> None:
    error = QuotaExceeded("too many", hint="wait", retry_after=seconds)
    assert ErrorSchema.of_error(error).error.retry_after == told


def test_research_is_grouped_by_source_best_first() -> None:
    assert list(SourcedResearchSchema.of_research(of.RESEARCH).root) == ["guides/fares.md", "wiki"]


def test_a_receipt_holds_when_it_is_intact_and_every_sentence_stands() -> None:
    stands = replace(of.CHECKED, tampering=(), differences=(), sentences=(CheckedSentence("A dog pays.", True, ""),))
    fallen = replace(stands, sentences=(*stands.sentences, CheckedSentence("Cats too.", False, "gone")))
    forged = replace(stands, tampering=("its digest is another",))
    assert [(report.intact, report.holds) for report in (stands, fallen, forged)] == [
        (True, True),
        (True, False),
        (False, False),
    ]


@pytest.mark.parametrize(
    ("change", "complete"),
    [
        ({}, True),
        ({"remaining": {"qdrant": {"points": 1}}}, False),
        ({"requery": 1}, False),
        ({"requery": None}, False),
        ({"unfinished": ("qdrant is away",)}, False),
    ],
)
def test_an_erasure_is_complete_when_nothing_is_left_anywhere(change: dict[str, Any], complete: bool) -> None:
    assert replace(of.RECEIPTS[0], **change).complete is complete
