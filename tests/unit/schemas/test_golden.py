"""Every shape that programs rely on, with fixed values, is what its golden file has."""

from __future__ import annotations

import json
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest
from tests.golden_files import check_golden
from tests.unit.schemas import examples as of

from ragstone import schemas
from ragstone.agents import results
from ragstone.evaluate.metrics import Interval
from ragstone.evaluate.report import Comparison, Judgement, Report
from ragstone.evaluate.runner import SystemScores
from ragstone.evaluate.spaces import HitOverlap, SpaceComparison
from ragstone.evaluate.tune import Trial, Tuning
from ragstone.schemas.activity import (
    ConversationSchema,
    GapSchema,
    GoldenQuerySchema,
    LoggedSearchSchema,
    SearchReportSchema,
    TurnSchema,
    VoteSchema,
)
from ragstone.schemas.answers import AnswerSchema, CheckedTextSchema, VerdictSchema, event_schema
from ragstone.schemas.documents import (
    ChunkRecordSchema,
    ChunkSchema,
    DocumentPageSchema,
    DocumentStatusSchema,
    IngestSchema,
)
from ragstone.schemas.embeddings import SpaceComparisonSchema
from ragstone.schemas.erasure import ErasureReceiptSchema
from ragstone.schemas.errors import ErrorSchema
from ragstone.schemas.evaluation import EvaluationSchema, TuningSchema
from ragstone.schemas.jobs import JobListSchema, NoticeSchema
from ragstone.schemas.knowledge_bases import KbSchema, StatsSchema
from ragstone.schemas.receipts import ReceiptReportSchema
from ragstone.schemas.research import DocsResearchSchema, ResearchSchema, SourcedResearchSchema
from ragstone.schemas.schema import Schema
from ragstone.schemas.search import AnalysisSchema, ExplanationSchema, SearchSchema
from ragstone.schemas.sources import SourceSchema
from ragstone.schemas.tenants import AuditEntrySchema, TenantListSchema, UsageSchema
from ragstone.settings.targets import Target

INTERVAL = Interval(1 / 3, -1 / 7, 1.0, 0.95)
METRICS = ("ndcg@10", "recall@10", "recall@100", "mrr@10", "p@5", "hit@10")
ROW = SystemScores("hybrid", dict.fromkeys(METRICS, 2 / 3), {}, (1 / 3, 2 / 3, 1.0), ("dense",))
TARGET = Target(above=0.5, alert=0.25)
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
    (HitOverlap("prompt caching", ("c1", "c2"), ("c2",)),), ("slow",), ("old",),
)  # fmt: skip
SHAPES: dict[str, dict[str, Schema | list[Schema]]] = {
    "search": {
        "search": SearchSchema.of(of.SEARCH),
        "nothing": SearchSchema.of(of.BARE_SEARCH),
        "explain": ExplanationSchema.of(of.EXPLANATION),
        "analysis": AnalysisSchema.of(of.ANALYSIS),
    },
    "answers": {
        "ask": AnswerSchema.of(of.ANSWER),
        "no evidence": AnswerSchema.of(of.NO_ANSWER),
        "stream": [event_schema(event) for event in of.EVENTS],
        "receipt checked": ReceiptReportSchema.of(of.CHECKED),
    },
    "claims": {
        "verify": VerdictSchema.of(of.VERDICT),
        "check": CheckedTextSchema.of(of.CHECKED_TEXT),
        "research": ResearchSchema.of(of.RESEARCH),
    },
    "tools": {
        "search_knowledge": results.knowledge_answer(of.SEARCH),
        "message": results.tool_message(results.knowledge_answer(of.SEARCH).as_json()),
        "searchDocs": results.docs_answer(of.SEARCH),
        "verify_claim": results.claim_answer(of.VERDICT),
        "check_text": results.text_answer(of.CHECKED_TEXT),
        "research_topic": SourcedResearchSchema.of_research(of.RESEARCH),
        "researchTopic": DocsResearchSchema.of_research(of.RESEARCH),
    },
    "documents": {
        "ingest": IngestSchema.of(of.INGESTED),
        "documents": DocumentPageSchema.of(documents=[of.DOCUMENT], next="d1"),
        "status": DocumentStatusSchema.of(of.STATUS),
        "status without job": DocumentStatusSchema.of(of.BARE_STATUS),
        "chunk": ChunkSchema.of(of.CHUNK),
        "chunk record": ChunkRecordSchema.of(of.RECORD),
        "kbs": [KbSchema.of_kb(kb, of.STATS) for kb in of.KBS],
        "stats": StatsSchema.of(of.STATS, kb="demo"),
    },
    "jobs": {
        "jobs": JobListSchema.of(jobs=[of.JOB, of.DONE], counts={"running": 1, "failed": 7}),
        "source": SourceSchema.of(of.SOURCE),
        "notice": NoticeSchema.of(of.NOTICE),
    },
    "tenants": {
        "tenants": TenantListSchema.of(tenants=[of.TENANT]),
        "usage": UsageSchema.of(of.USAGE),
        "receipts": [ErasureReceiptSchema.of(receipt) for receipt in of.RECEIPTS],
        "audit": AuditEntrySchema.of(of.ENTRY),
    },
    "activity": {
        "vote": VoteSchema.of(of.VOTE),
        "search": LoggedSearchSchema.of(of.LOGGED, relevance=0.5, created_at=of.LOGGED.moment),
        "report": SearchReportSchema.of(of.REPORT),
        "golden": GoldenQuerySchema.of(of.GOLDEN),
        "gap": GapSchema.of(of.GAP),
        "conversation": ConversationSchema.of(of.TALK),
        "turn": TurnSchema.of(of.TURN),
    },
    "evaluation": {
        "eval": EvaluationSchema.of(EVALUATED, machine={}, failed=()),
        "tune": TuningSchema.of(TUNED, written=None),
        "comparison": SpaceComparisonSchema.of(COMPARISON),
    },
    "errors": {
        "error": ErrorSchema.of_error(of.NOT_FOUND),
        "error with a wait": ErrorSchema.of_error(of.NO_ROOM),
        "internal": ErrorSchema.of_words("internal", "it failed"),
    },
}
ALL = [
    value
    for module in iter_modules(schemas.__path__)
    for value in vars(import_module(f"ragstone.schemas.{module.name}")).values()
    if isinstance(value, type) and issubclass(value, Schema) and value.__module__.endswith(f".{module.name}")
]


def _json(shape: Schema | list[Schema]) -> Any:
    return [part.as_json() for part in shape] if isinstance(shape, list) else shape.as_json()


@pytest.mark.parametrize("family", SHAPES)
def test_shapes_are_what_they_were(family: str) -> None:
    check_golden(family, {name: _json(shape) for name, shape in SHAPES[family].items()})


@pytest.mark.parametrize("family", SHAPES)
def test_a_shape_reads_what_it_prints(family: str) -> None:
    for shape in SHAPES[family].values():
        for part in shape if isinstance(shape, list) else [shape]:
            printed = json.dumps(part.as_json())
            assert json.dumps(type(part).model_validate_json(printed).as_json()) == printed


@pytest.mark.parametrize("schema", ALL, ids=lambda schema: schema.__name__)
def test_every_shape_has_a_json_schema(schema: type[Schema]) -> None:
    described = schema.model_json_schema(mode="serialization")
    assert described["title"] == schema.__name__.removesuffix("Schema")
    assert {"properties", "items", "additionalProperties"} & set(described) or schema is Schema
    assert schema is Schema or schema.__doc__


def test_text_that_no_encoding_has_is_printed_as_it_is() -> None:
    shape = NoticeSchema.of(of.NOTICE, uri="caf\udce9.txt")
    assert shape.as_json()["uri"] == "caf\udce9.txt"
