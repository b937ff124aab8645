"""Every shape that programs rely on, with fixed values, is what its golden file has."""

from __future__ import annotations

from typing import Any

import pytest
from tests.golden_files import check_golden
from tests.unit.schemas import examples as of

from ragstone.agents import results
from ragstone.core import (
    analysis,
    audit,
    web,
    wire,
    wire_activity,
    wire_answers,
    wire_claims,
    wire_erasure,
    wire_jobs,
    wire_research,
    wire_tenants,
)
from ragstone.evaluate.metrics import Interval
from ragstone.evaluate.report import Comparison, Judgement, Report, report_json
from ragstone.evaluate.runner import Row
from ragstone.evaluate.spaces import Agreement, SpaceComparison, comparison_json
from ragstone.evaluate.tune import Trial, Tuning, tuning_json
from ragstone.settings import targets as target_settings

INTERVAL = Interval(1 / 3, -1 / 7, 1.0, 0.95)
METRICS = ("ndcg@10", "recall@10", "recall@100", "mrr@10", "p@5", "hit@10")
ROW = Row("hybrid", dict.fromkeys(METRICS, 2 / 3), {}, (1 / 3, 2 / 3, 1.0), ("dense",))
TARGET = target_settings.Target(above=0.5, alert=0.25)
EVALUATED = Report(
    "stones", 24, 3, (ROW,), {"embedding": "mini@1", "reranker": None}, "default",
    (Comparison("hybrid", "dense", "ndcg@10", INTERVAL),),
    (Judgement("recall@10", TARGET, 1 / 3), Judgement("p@5", TARGET, None)),
)  # fmt: skip
TUNED = Tuning(
    "stones", 12, 12, {"retrieval.fusion": "rrf"}, (Trial({}, 1 / 3, 2 / 3, True),), ROW, ROW, INTERVAL, 500.0
)
COMPARISON = SpaceComparison(
    "golden", 3, {"mrr@10": 1 / 3}, {"mrr@10": 2 / 3}, INTERVAL,
    (Agreement("prompt caching", ("c1", "c2"), ("c2",)),), ("slow",), ("old",),
)  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {
    "search": {
        "search": wire.search_json(of.SEARCH),
        "nothing": wire.search_json(of.BARE_SEARCH),
        "explain": wire.explain_json(of.EXPLANATION),
        "web": web.web_json(of.WEB),
        "analysis": analysis.analysis_json(of.ANALYSIS),
    },
    "answers": {
        "ask": wire.ask_json(of.ANSWER),
        "no evidence": wire.ask_json(of.NO_ANSWER),
        "stream": [wire_answers.event_json(event) for event in of.EVENTS],
        "receipt checked": wire_answers.receipt_report_json(of.CHECKED),
    },
    "claims": {
        "verify": wire_claims.verify_json(of.VERDICT),
        "research": wire_research.research_json(of.RESEARCH),
    },
    "tools": {
        "search_knowledge": results.knowledge_json(of.SEARCH),
        "message": results.packaged(results.knowledge_json(of.SEARCH)),
        "searchDocs": results.docs_json(of.SEARCH),
        "verify_claim": results.claim_json(of.VERDICT),
        "research_topic": wire_research.sources_json(of.RESEARCH),
        "researchTopic": wire_research.findings_json(of.RESEARCH),
    },
    "documents": {
        "ingest": wire.ingest_json(of.INGESTED),
        "documents": wire.documents_json([of.DOCUMENT], "d1"),
        "status": wire_jobs.status_json(of.STATUS),
        "status without job": wire_jobs.status_json(of.BARE_STATUS),
        "chunk": wire.chunk_json(of.CHUNK),
        "chunk record": wire.chunk_record_json(of.RECORD),
        "kbs": [wire.kb_json(kb, of.STATS) for kb in of.KBS],
        "stats": wire.stats_json("demo", of.STATS),
    },
    "jobs": {
        "jobs": wire_jobs.jobs_json([of.JOB, of.DONE], {"running": 1, "failed": 7}),
        "source": wire_jobs.source_json(of.SOURCE),
        "notice": wire_jobs.notice_json(of.NOTICE),
    },
    "tenants": {
        "tenants": wire_tenants.tenants_json([of.TENANT]),
        "usage": wire_tenants.usage_json(of.USAGE),
        "receipts": [wire_erasure.receipt_json(receipt) for receipt in of.RECEIPTS],
        "audit": audit.audit_json(of.ENTRY),
    },
    "activity": {
        "vote": wire_activity.feedback_json(of.VOTE),
        "search": wire_activity.logged_json(of.LOGGED, 0.5),
        "report": wire_activity.report_json(of.REPORT),
        "golden": wire_activity.golden_json(of.GOLDEN),
        "gap": wire_activity.gap_json(of.GAP),
        "conversation": wire_activity.conversation_json(of.TALK),
        "turn": wire_activity.turn_json(of.TURN),
    },
    "evaluation": {
        "eval": {**report_json(EVALUATED), "machine": {}},
        "tune": tuning_json(TUNED),
        "comparison": comparison_json(COMPARISON),
    },
    "errors": {
        "error": wire.error_json(of.NOT_FOUND),
        "error with a wait": wire.error_json(of.NO_ROOM),
        "internal": wire.error_object("internal", "it failed"),
    },
}


@pytest.mark.parametrize("family", SHAPES)
def test_shapes_are_what_they_were(family: str) -> None:
    check_golden(family, SHAPES[family])
