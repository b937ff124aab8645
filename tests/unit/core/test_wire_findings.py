"""Verdicts, research, checked receipts and streams as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ragstone.core import erasure
from ragstone.core.answers import (
    Answer,
    AnswerReady,
    CheckedCitation,
    CheckedSentence,
    Citation,
    CitationsReady,
    ClaimPart,
    Evidence,
    Finding,
    ReceiptReport,
    Research,
    Round,
    Sentence,
    SentenceReady,
    Status,
    Verdict,
)
from ragstone.core.health import Finding as StoreFinding
from ragstone.core.types import Hit, Metadata
from ragstone.core.wire_answers import event_json, receipt_report_json
from ragstone.core.wire_claims import verify_json
from ragstone.core.wire_erasure import receipt_json
from ragstone.core.wire_research import findings_json, research_json, sources_json

EVIDENCE = Evidence(
    text="A dog pays half.", source="guide", relevance=0.8, stance="supported", support=0.9, refutation=0.0,
    failed=("number",), document_id="d1", chunk_id="c1", title="Fares", uri="fares.md", page=2, section="Dogs",
    start=4, end=20,
)  # fmt: skip
VERDICT = Verdict(
    "Dogs pay half.", "VERIFIED", "supported", 0.9, (EVIDENCE,),
    (ClaimPart("Dogs pay half.", "VERIFIED", "supported", 0.9),), 1, "checks", ("dense",),
)  # fmt: skip
CITATION = Citation(1, "A dog pays half.", "c1", "d1", "Fares", "fares.md", None, "Dogs", 4, 20)
SENTENCE = Sentence("A dog pays half.", "supported", (1,))
STANDS = CheckedCitation(1, "stands", "d1", "Fares", "fares.md", "A dog pays half.", 4, 20)
REPORT = ReceiptReport(
    "Do dogs pay?", "2026-01-31", (), (STANDS,), (CheckedSentence("A dog pays half.", True, ""),)
)


def _same_after_json(value: dict[str, Any]) -> bool:
    return bool(json.loads(json.dumps(value)) == value)


@pytest.mark.parametrize(
    ("status", "confidence"), [("VERIFIED", "high"), ("LIKELY", "medium"), ("UNVERIFIED", "low")]
)
def test_a_verdict_says_how_sure_it_is(status: Status, confidence: str) -> None:
    assert verify_json(replace(VERDICT, status=status))["confidence"] == confidence


def test_a_verdict() -> None:
    shape = verify_json(VERDICT)
    assert shape == {
        "claim": "Dogs pay half.",
        "status": "VERIFIED",
        "confidence": "high",
        "stance": "supported",
        "evidence": [
            {
                "text": "A dog pays half.",
                "source": "guide",
                "relevance": 0.8,
                "stance": "supported",
                "support": 0.9,
                "refutation": 0.0,
                "failed": ["number"],
                "document_id": "d1",
                "chunk_id": "c1",
                "title": "Fares",
                "uri": "fares.md",
                "page": 2,
                "section": "Dogs",
                "start": 4,
                "end": 20,
            }
        ],
        "support": 0.9,
        "sources": 1,
        "parts": [{"text": "Dogs pay half.", "status": "VERIFIED", "stance": "supported", "support": 0.9}],
        "checker": "checks",
        "degraded": ["dense"],
    }
    assert _same_after_json(shape)


def _finding(text: str, *, relevance: float, about: bool = True, metadata: Metadata | None = None) -> Finding:
    hit = Hit(text, f"d-{text}", "T", f"{text}.md", "S", None, text, 0.5, {}, metadata or {}, 0, len(text))
    return Finding(hit, relevance, ("fares",), about)


FARES = _finding(
    "fares", relevance=0.9, metadata={"source": "guide", "date": "2026", "url": "https://g.example"}
)
TIDES = _finding("tides", relevance=0.5)
DOGS = _finding("dogs", relevance=0.4, about=False, metadata={"source": "guide"})
RESEARCH = Research(
    "fares", (FARES, TIDES, DOGS), ("fares", "dog fares"), (Round(("dog fares",), 3, 2),), ("cats",),
    "sufficient", 12.5, ("rerank",),
)  # fmt: skip


def test_research_is_grouped_by_source_best_first() -> None:
    assert sources_json(RESEARCH) == {
        "guide": [
            {"text": "fares", "date": "2026", "url": "https://g.example", "relevance": 0.9},
            {"text": "dogs", "date": None, "url": None, "relevance": 0.4},
        ],
        "tides.md": [{"text": "tides", "date": None, "url": None, "relevance": 0.5}],
    }
    assert list(RESEARCH.by_source) == ["guide", "tides.md"]


def test_agents_get_only_what_is_surely_about_the_topic() -> None:
    shape = findings_json(RESEARCH)
    assert (shape["topic"], shape["searchesPerformed"]) == ("fares", 2)
    assert shape["findings"] == [
        {"content": "fares", "source": "fares.md", "section": "S"},
        {"content": "tides", "source": "tides.md", "section": "S"},
    ]


def test_research_in_full() -> None:
    shape = research_json(RESEARCH)
    assert _same_after_json(shape)
    findings = shape.pop("findings")
    assert [(one["text"], one["about"], one["source"]) for one in findings] == [
        ("fares", True, "guide"),
        ("tides", True, "tides.md"),
        ("dogs", False, "guide"),
    ]
    assert shape == {
        "topic": "fares",
        "sources": sources_json(RESEARCH),
        "searches": 2,
        "queries": ["fares", "dog fares"],
        "rounds": [{"queries": ["dog fares"], "found": 3, "new": 2}],
        "uncovered": ["cats"],
        "stopped": "sufficient",
        "degraded": ["rerank"],
        "took_ms": 12.5,
    }


def test_a_receipt_holds_when_it_is_intact_and_every_sentence_stands() -> None:
    fallen = replace(REPORT, sentences=(*REPORT.sentences, CheckedSentence("Cats too.", False, "gone")))
    forged = replace(REPORT, tampering=("its digest is another",))
    assert [(one.intact, one.holds) for one in (REPORT, fallen, forged)] == [
        (True, True),
        (True, False),
        (False, False),
    ]


def test_a_receipt_that_was_checked() -> None:
    shape = receipt_report_json(REPORT)
    assert (shape["question"], shape["moment"], shape["holds"], shape["intact"]) == (
        "Do dogs pay?",
        "2026-01-31",
        True,
        True,
    )
    assert shape["tampering"] == []
    assert shape["sentences"] == [{"text": "A dog pays half.", "holds": True, "reason": ""}]
    (citation,) = shape["citations"]
    assert (citation["n"], citation["state"], citation["start"], citation["end"]) == (1, "stands", 4, 20)
    assert _same_after_json(shape)


def test_each_event_of_a_stream_says_what_it_is() -> None:
    answer = Answer("Do dogs pay?", "A dog pays half. [1]", (SENTENCE,), (CITATION,), "answered")
    sentence = event_json(SentenceReady(SENTENCE, "A dog pays half. [1]"))
    assert sentence == {
        "event": "sentence",
        "text": "A dog pays half.",
        "support": "supported",
        "citations": [1],
        "marked": "A dog pays half. [1]",
    }
    citations = event_json(CitationsReady((CITATION,)))
    assert citations["event"] == "citations"
    assert [one["quote"] for one in citations["citations"]] == ["A dog pays half."]
    last = event_json(AnswerReady(answer))
    assert (last["event"], last["answer"], last["status"]) == ("answer", "A dog pays half. [1]", "answered")


ERASED = erasure.Receipt(
    "acme", erasure.Target("document", "d1"), {"ledger": {"chunks": 2}}, {"ledger": {"chunks": 0}}, 0, True, (),
    datetime(2026, 1, 31, tzinfo=UTC),
)  # fmt: skip


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
    assert replace(ERASED, **change).complete is complete


def test_a_receipt_of_an_erasure() -> None:
    assert receipt_json(ERASED) == {
        "tenant": "acme",
        "target": {"kind": "document", "name": "d1"},
        "removed": {"ledger": {"chunks": 2}},
        "remaining": {"ledger": {"chunks": 0}},
        "requery": 0,
        "scrubbed": True,
        "complete": True,
        "unfinished": [],
        "moment": "2026-01-31T00:00:00+00:00",
    }


def test_what_a_look_at_a_store_found_is_not_repaired_unless_it_says_so() -> None:
    assert not StoreFinding("qdrant", "orphans", "warn", "3 points").repaired
