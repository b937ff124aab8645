"""Answers while they are made, and receipts checked again, as JSON: like `ragstone.core.wire`."""

from __future__ import annotations

from dataclasses import asdict

from ragstone.core.answers import AnswerEvent, AnswerReady, CitationsReady, ReceiptReport
from ragstone.core.types import Json
from ragstone.core.wire import ask_json, citation_json

JsonObject = dict[str, Json]


def event_json(event: AnswerEvent) -> JsonObject:
    """One event of a stream; `event` says which: `sentence`, `citations` or `answer`."""
    if isinstance(event, AnswerReady):
        return {"event": "answer", **ask_json(event.answer)}
    if isinstance(event, CitationsReady):
        return {"event": "citations", "citations": [citation_json(one) for one in event.citations]}
    sentence = event.sentence
    return {
        "event": "sentence",
        "text": sentence.text,
        "support": sentence.support,
        "citations": list(sentence.citations),
        "marked": event.text,
    }


def receipt_report_json(report: ReceiptReport) -> JsonObject:
    """What of an answer still holds."""
    return {
        "question": report.question,
        "moment": report.moment,
        "holds": report.holds,
        "intact": report.intact,
        "tampering": list(report.tampering),
        "differences": list(report.differences),
        "sentences": [asdict(sentence) for sentence in report.sentences],
        "citations": [asdict(citation) for citation in report.citations],
        "unanswered": list(report.unanswered),
    }
