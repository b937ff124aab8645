"""What tools answer, as JSON: the shapes that agents were written for."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.agents.compress import compressed
from ragstone.core.answers import Verdict, source_of
from ragstone.core.types import Hit, Json, SearchResult
from ragstone.core.wire import JsonObject

MOST_EVIDENCE = 3


def knowledge_json(found: SearchResult) -> list[JsonObject]:
    """Text, source, date, url and relevance of each passage, and the document it is part of."""
    return [
        {
            "text": compressed(hit.text, found.query),
            "source": source_of(hit),
            "date": hit.metadata.get("date"),
            "url": hit.metadata.get("url"),
            "relevance": hit.score,
            "parent_doc_id": hit.document_id,
        }
        for hit in found.hits
    ]


def docs_json(found: SearchResult) -> JsonObject:
    """Content, file path, section and relevance in percent of each passage."""
    return {
        "results": [
            {
                "content": compressed(hit.text, found.query),
                "source": hit.uri,
                "section": hit.section,
                "relevance": f"{100 * hit.score:.0f}%",
            }
            for hit in found.hits
        ]
    }


def claim_json(verdict: Verdict) -> JsonObject:
    """Status, confidence and up to three pieces of evidence; the stance says what silence would hide.

    `failed` of a piece says in what it differs from the claim, such as a number.
    """
    return {
        "status": verdict.status,
        "confidence": verdict.confidence,
        "stance": verdict.stance,
        "evidence": [
            {
                "text": item.text,
                "source": item.source,
                "relevance": item.relevance,
                "stance": item.stance,
                "failed": list(item.failed),
            }
            for item in verdict.evidence[:MOST_EVIDENCE]
        ],
    }


def packaged(value: Json) -> Json:
    """Passages under the names they have in a tool message; anything else as it is."""
    if not isinstance(value, list):
        return value
    return [
        {
            "chunk_text": item["text"],
            "source": item["source"],
            "date": item["date"],
            "relevance_score": item["relevance"],
            "parent_doc_id": item["parent_doc_id"],
            "url": item["url"],
        }
        for item in value
    ]


def citations(hits: Sequence[Hit]) -> list[str]:
    """How an agent names its sources: path and section, each once."""
    return list(dict.fromkeys(f"{hit.uri} > {hit.section}" if hit.section else hit.uri for hit in hits))
