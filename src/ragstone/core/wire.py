"""Results as JSON: the shapes that programs rely on, the same on the command line and over HTTP.

Fields may be added, never renamed. Counts are integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from math import ceil

from ragstone.core.analysis import analysis_json
from ragstone.core.answers import Answer, Citation
from ragstone.core.clock import canonical
from ragstone.core.documents import ChunkRecord
from ragstone.core.errors import RagstoneError
from ragstone.core.types import (
    Document,
    Explanation,
    Failure,
    Hit,
    IngestReport,
    Json,
    KnowledgeBase,
    LiveChunk,
    SearchResult,
    Stage,
    Stats,
)
from ragstone.core.web import result_json

JsonObject = dict[str, Json]


def search_json(result: SearchResult) -> JsonObject:
    """Hits, best first, with the trace of how they were found."""
    return {
        "query": result.query,
        "rewritten_query": result.rewritten_query,
        "mode": result.mode,
        "hits": [hit_json(hit) for hit in result.hits],
        "trace": [stage_json(stage) for stage in result.trace],
        "degraded": list(result.degraded),
        "took_ms": result.took_ms,
        "route": result.route,
        "web": [result_json(one) for one in result.web],
        "records": [hit_json(hit) for hit in result.records],
        "analysis": analysis_json(result.analysis) if result.analysis else None,
    }


def hit_json(hit: Hit) -> JsonObject:
    """One passage that was found."""
    return {
        "chunk_id": hit.chunk_id,
        "document_id": hit.document_id,
        "title": hit.title,
        "uri": hit.uri,
        "section": hit.section,
        "page": hit.page,
        "text": hit.text,
        "score": hit.score,
        "scores": dict(hit.scores),
        "metadata": {**dict(hit.placement), **hit.metadata},
        "start": hit.start,
        "end": hit.end,
        "context": hit.context,
    }


def stage_json(stage: Stage) -> JsonObject:
    """What one stage did; `skipped` says what it did not do and why, and is empty when it did all."""
    return {
        "stage": stage.stage,
        "ms": stage.ms,
        "in": stage.entered,
        "out": stage.left,
        "skipped": stage.skipped,
    }


def ask_json(answer: Answer) -> JsonObject:
    """An answer; each sentence names its citations by number, and `unanswered` lists the parts left open."""
    return {
        "question": answer.question,
        "answer": answer.answer,
        "sentences": [
            {"text": sentence.text, "support": sentence.support, "citations": list(sentence.citations)}
            for sentence in answer.sentences
        ],
        "citations": [citation_json(citation) for citation in answer.citations],
        "status": answer.status,
        "degraded": list(answer.degraded),
        "contradictions": [asdict(contradiction) for contradiction in answer.contradictions],
        "unanswered": list(answer.unanswered),
    }


def citation_json(citation: Citation) -> JsonObject:
    """A quote and where it stands."""
    return {
        "n": citation.n,
        "quote": citation.quote,
        "document_id": citation.document_id,
        "title": citation.title,
        "uri": citation.uri,
        "page": citation.page,
        "section": citation.section,
        "start": citation.start,
        "end": citation.end,
        "chunk_id": citation.chunk_id,
        "site": citation.site,
    }


def ingest_json(report: IngestReport) -> JsonObject:
    """What an ingest run did; `documents` and `chunks` count what the kb holds after it."""
    return {
        "added": report.added,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "failed": [failure_json(failure) for failure in report.failed],
        "documents": report.documents,
        "chunks": report.chunks,
        "seconds": report.seconds,
        "warnings": list(report.warnings),
        "skipped_chunks": report.skipped_chunks,
        "degraded": list(report.degraded),
        "removed": report.removed,
        "moved": report.moved,
        "duplicates": report.duplicates,
        "skipped": report.skipped,
        "stages": [stage_json(stage) for stage in report.stages],
    }


def failure_json(failure: Failure) -> JsonObject:
    """An item that could not be ingested, and why."""
    return {"uri": failure.uri, "code": failure.code, "error": failure.error, "hint": failure.advice}


def explain_json(explanation: Explanation) -> JsonObject:
    """Where a document stood at each stage, and where it was lost."""
    return {
        "query": explanation.query,
        "document_id": explanation.document_id,
        "title": explanation.title,
        "found": explanation.found,
        "lost_at": explanation.lost_at,
        "reason": explanation.reason,
        "stages": [dict(stage) for stage in explanation.stages],
    }


def document_json(document: Document) -> JsonObject:
    """A document as the ledger knows it, without its text."""
    return {
        "id": document.id,
        "kb": document.kb,
        "source": document.source,
        "external_id": document.external_id,
        "uri": document.uri,
        "title": document.title,
        "media_type": document.media_type,
        "version": document.version,
        "chunks": document.chunks,
        "tokens": document.tokens,
        "embedded": document.embedded,
        "content_hash": document.content_hash,
        "metadata": dict(document.metadata),
        "modified_at": _moment(document.modified_at),
        "created_at": _moment(document.created_at),
        "updated_at": _moment(document.updated_at),
    }


def documents_json(documents: Sequence[Document], following: str | None) -> JsonObject:
    """A page of documents; `next` is what to pass as `after` for the following page, null on the last."""
    return {"documents": [document_json(document) for document in documents], "next": following}


def chunk_json(live: LiveChunk) -> JsonObject:
    """One live chunk of a document."""
    chunk = live.chunk
    return {
        "chunk_id": live.id,
        "index": chunk.index,
        "kind": chunk.kind,
        "section": " > ".join(chunk.section),
        "page": chunk.page,
        "start": chunk.start,
        "end": chunk.end,
        "tokens": chunk.tokens,
        "context": chunk.context,
        "text": chunk.text,
    }


def chunk_record_json(record: ChunkRecord) -> JsonObject:
    """One live chunk of a document under the names that others know."""
    return {
        "id": record.id,
        "document_id": record.document_id,
        "content": record.content,
        "chunk_index": record.chunk_index,
        "token_count": record.token_count,
        "embedding_model": record.embedding_model,
        "embedding_id": record.embedding_id,
        "page_number": record.page_number,
        "section_title": record.section_title,
        "metadata": dict(record.metadata),
        "created_at": _moment(record.created_at),
    }


def kb_json(kb: KnowledgeBase, stats: Stats) -> JsonObject:
    """A kb with its counts."""
    return {
        "name": kb.name,
        "documents": stats.documents,
        "chunks": stats.chunks,
        "model": kb.space.model if kb.space else None,
        "dimension": kb.space.dimension if kb.space else None,
        "generation": kb.space.generation if kb.space else None,
    }


def stats_json(kb: str, stats: Stats) -> JsonObject:
    """Counts of a kb's live content."""
    return {
        "kb": kb,
        "documents": stats.documents,
        "chunks": stats.chunks,
        "tokens": stats.tokens,
        "unembedded": stats.unembedded,
        "sequence": stats.sequence,
        "bytes": stats.bytes,
        "model": stats.model,
    }


def error_json(error: RagstoneError) -> JsonObject:
    """An error, as it is told to programs."""
    return error_object(error.code, str(error), error.advice, error.retry_after)


def error_object(code: str, message: str, hint: str = "", retry_after: float | None = None) -> JsonObject:
    """The shape of every error, for those that are not a `RagstoneError`; `retry_after` is in whole seconds."""
    shape: JsonObject = {"code": code, "message": message, "hint": hint}
    if retry_after is not None:
        # Rounded up: whoever waits as long as this must not come too early.
        shape["retry_after"] = ceil(retry_after)
    return {"error": shape}


def _moment(moment: datetime | None) -> str | None:
    return canonical(moment) if moment else None
