from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from ragstone.core import wire
from ragstone.core.answers import Answer, Citation, Sentence
from ragstone.core.errors import NotFoundError, QuotaExceeded
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import (
    Chunk,
    Document,
    Explanation,
    Failure,
    Hit,
    IngestReport,
    KnowledgeBase,
    LiveChunk,
    SearchResult,
    Space,
    Stage,
    Stats,
)

MOMENT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
HIT = Hit(
    "c1",
    "d1",
    "Fares",
    "guides/fares.md",
    "Fares > Dogs",
    None,
    "A dog pays.",
    0.75,
    {"dense": 0.5},
    {"year": 2026},
    3,
    14,
)
CITATION = Citation(1, "A dog pays.", "c1", "d1", "Fares", "guides/fares.md", 2, "Dogs", 3, 14)
STATS = Stats(documents=2, chunks=5, tokens=90, unembedded=1, sequence=7, bytes=4096, model="m@1")


def _same_after_json(value: dict[str, Any]) -> bool:
    return bool(json.loads(json.dumps(value)) == value)


def test_search() -> None:
    result = SearchResult(
        "dogs", "dogs", "fast", (HIT,), (Stage("dense", 1.5, 1, 20), Stage("rerank", 0.0, 5, 5, "no time")),
        ("dense: model failed",), 12.5,
    )  # fmt: skip
    shape = wire.search_json(result)
    assert shape == {
        "query": "dogs",
        "rewritten_query": "dogs",
        "mode": "fast",
        "hits": [
            {
                "chunk_id": "c1",
                "document_id": "d1",
                "title": "Fares",
                "uri": "guides/fares.md",
                "section": "Fares > Dogs",
                "page": None,
                "text": "A dog pays.",
                "score": 0.75,
                "scores": {"dense": 0.5},
                "metadata": {"year": 2026},
                "start": 3,
                "end": 14,
                "context": "",
            }
        ],
        "trace": [
            {"stage": "dense", "ms": 1.5, "in": 1, "out": 20, "skipped": ""},
            {"stage": "rerank", "ms": 0.0, "in": 5, "out": 5, "skipped": "no time"},
        ],
        "degraded": ["dense: model failed"],
        "took_ms": 12.5,
        "route": "retrieve",
        "web": [],
        "records": [],
        "analysis": None,
    }
    assert _same_after_json(shape)


def test_ask() -> None:
    answer = Answer(
        "Do dogs pay?", "A dog pays. [1]", (Sentence("A dog pays.", "quoted", (1,)),), (CITATION,), "answered"
    )
    shape = wire.ask_json(answer)
    assert shape == {
        "question": "Do dogs pay?",
        "answer": "A dog pays. [1]",
        "sentences": [{"text": "A dog pays.", "support": "quoted", "citations": [1]}],
        "citations": [
            {
                "n": 1,
                "quote": "A dog pays.",
                "document_id": "d1",
                "title": "Fares",
                "uri": "guides/fares.md",
                "page": 2,
                "section": "Dogs",
                "start": 3,
                "end": 14,
                "chunk_id": "c1",
                "site": "",
            }
        ],
        "status": "answered",
        "degraded": [],
        "contradictions": [],
        "unanswered": [],
    }
    assert _same_after_json(shape)


def test_an_answer_without_evidence() -> None:
    shape = wire.ask_json(Answer("Why?", "Nothing.", (), (), "no_evidence", ("llm: down",)))
    assert (shape["status"], shape["sentences"], shape["citations"]) == ("no_evidence", [], [])
    assert shape["degraded"] == ["llm: down"]


def test_an_answer_names_the_part_that_it_leaves_open() -> None:
    answer = Answer("When and who?", "In 1974. [1]", (), (), "answered", unanswered=("who runs it",))
    assert wire.ask_json(answer)["unanswered"] == ["who runs it"]


def test_ingest() -> None:
    report = IngestReport(
        1, 2, 3, (Failure("a.pdf", "parse_failed", "it is cut"),), 6, 40, 1.25, ("a remark",), 2,
        removed=4, moved=5, duplicates=6, stages=(Stage("chunk", 2.5, 3, 40),),
    )  # fmt: skip
    shape = wire.ingest_json(report)
    assert shape == {
        "added": 1,
        "updated": 2,
        "unchanged": 3,
        "failed": [{"uri": "a.pdf", "code": "parse_failed", "error": "it is cut", "hint": ""}],
        "documents": 6,
        "chunks": 40,
        "seconds": 1.25,
        "warnings": ["a remark"],
        "skipped_chunks": 2,
        "degraded": [],
        "removed": 4,
        "moved": 5,
        "duplicates": 6,
        "skipped": 0,
        "stages": [{"stage": "chunk", "ms": 2.5, "in": 3, "out": 40, "skipped": ""}],
    }
    assert _same_after_json(shape)


def test_explain() -> None:
    shape = wire.explain_json(
        Explanation("q", "d1", "Fares", False, "pack", "rank 12", ({"stage": "dense", "rank": 12},))
    )
    assert shape == {
        "query": "q",
        "document_id": "d1",
        "title": "Fares",
        "found": False,
        "lost_at": "pack",
        "reason": "rank 12",
        "stages": [{"stage": "dense", "rank": 12}],
    }


def test_error() -> None:
    error = NotFoundError("no document d9", remedy=Remedy(Action.LIST_DOCUMENTS))
    assert wire.error_json(error) == {
        "error": {
            "code": "not_found",
            "message": "no document d9",
            "hint": "list the documents",
        }
    }
    limited = wire.error_json(QuotaExceeded("too many", hint="wait", retry_after=12.2))
    assert limited == {
        "error": {"code": "quota_exceeded", "message": "too many", "hint": "wait", "retry_after": 13}
    }
    assert "retry_after" not in wire.error_json(QuotaExceeded("too many"))["error"]
    assert wire.error_object("usage", "what?") == {"error": {"code": "usage", "message": "what?", "hint": ""}}


def test_documents() -> None:
    document = Document(
        id="d1", kb="demo", source="files", external_id="/x/fares.md", uri="fares.md", title="Fares",
        content_hash="ab", version=2, chunks=5, tokens=90, media_type="text/markdown", metadata={"year": 2026},
        recipe="r", embedded=True, modified_at=None, created_at=MOMENT, updated_at=MOMENT,
    )  # fmt: skip
    shape = wire.documents_json([document], "d1")
    assert shape == {
        "documents": [
            {
                "id": "d1",
                "kb": "demo",
                "source": "files",
                "external_id": "/x/fares.md",
                "uri": "fares.md",
                "title": "Fares",
                "media_type": "text/markdown",
                "version": 2,
                "chunks": 5,
                "tokens": 90,
                "embedded": True,
                "content_hash": "ab",
                "metadata": {"year": 2026},
                "modified_at": None,
                "created_at": "2026-01-31T09:30:00+00:00",
                "updated_at": "2026-01-31T09:30:00+00:00",
            }
        ],
        "next": "d1",
    }
    assert _same_after_json(shape)


def test_chunk() -> None:
    chunk = Chunk(0, "A dog pays.", 3, 14, context="# Fares\n\n", page=1, section=("Fares", "Dogs"), tokens=4)
    live = LiveChunk("c1", "d1", 1, chunk, "Fares", "fares.md", "files", {})
    assert wire.chunk_json(live) == {
        "chunk_id": "c1",
        "index": 0,
        "kind": "paragraph",
        "section": "Fares > Dogs",
        "page": 1,
        "start": 3,
        "end": 14,
        "tokens": 4,
        "context": "# Fares\n\n",
        "text": "A dog pays.",
    }


@pytest.mark.parametrize(
    ("space", "model", "dimension", "generation"),
    [(None, None, None, None), (Space(1, "m@1", 384, 2, "live"), "m@1", 384, 2)],
)
def test_kb(space: Space | None, model: str | None, dimension: int | None, generation: int | None) -> None:
    assert wire.kb_json(KnowledgeBase(1, "demo", space), STATS) == {
        "name": "demo",
        "documents": 2,
        "chunks": 5,
        "model": model,
        "dimension": dimension,
        "generation": generation,
    }


def test_stats() -> None:
    assert wire.stats_json("demo", STATS) == {
        "kb": "demo",
        "documents": 2,
        "chunks": 5,
        "tokens": 90,
        "unembedded": 1,
        "sequence": 7,
        "bytes": 4096,
        "model": "m@1",
    }
