"""Verdicts on claims as JSON, the same on the command line, over HTTP and for agents."""

from __future__ import annotations

from ragstone.core.answers import ClaimPart, Evidence, Verdict
from ragstone.core.wire import JsonObject


def verify_json(verdict: Verdict) -> JsonObject:
    """A verdict with up to three pieces of evidence."""
    return {
        "claim": verdict.claim,
        "status": verdict.status,
        "confidence": verdict.confidence,
        "stance": verdict.stance,
        "evidence": [evidence_json(item) for item in verdict.evidence],
        "support": verdict.support,
        "sources": verdict.sources,
        "parts": [part_json(part) for part in verdict.parts],
        "checker": verdict.checker,
        "degraded": list(verdict.degraded),
    }


def evidence_json(item: Evidence) -> JsonObject:
    """A sentence, what it means for the claim, and where it stands."""
    return {
        "text": item.text,
        "source": item.source,
        "relevance": item.relevance,
        "stance": item.stance,
        "support": item.support,
        "refutation": item.refutation,
        "failed": list(item.failed),
        "document_id": item.document_id,
        "chunk_id": item.chunk_id,
        "title": item.title,
        "uri": item.uri,
        "page": item.page,
        "section": item.section,
        "start": item.start,
        "end": item.end,
    }


def part_json(part: ClaimPart) -> JsonObject:
    """One statement of a compound claim."""
    return {"text": part.text, "status": part.status, "stance": part.stance, "support": part.support}
