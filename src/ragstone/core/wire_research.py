"""Research as JSON: in full for programs, and in the two shapes that agents know."""

from __future__ import annotations

from ragstone.core.answers import Finding, Research, Round
from ragstone.core.wire import JsonObject


def research_json(research: Research) -> JsonObject:
    """Everything that was found and how; `sources` groups the findings by where they are from."""
    return {
        "topic": research.topic,
        "sources": sources_json(research),
        "findings": [finding_json(finding) for finding in research.findings],
        "searches": len(research.queries),
        "queries": list(research.queries),
        "rounds": [round_json(one) for one in research.rounds],
        "uncovered": list(research.uncovered),
        "stopped": research.stopped,
        "degraded": list(research.degraded),
        "took_ms": research.took_ms,
    }


def sources_json(research: Research) -> JsonObject:
    """What `research_topic` answers: text, date, url and relevance, grouped by source."""
    return {
        source: [
            {
                "text": finding.hit.text,
                "date": finding.hit.metadata.get("date"),
                "url": finding.hit.metadata.get("url"),
                "relevance": finding.relevance,
            }
            for finding in findings
        ]
        for source, findings in research.by_source.items()
    }


def findings_json(research: Research) -> JsonObject:
    """What `researchTopic` answers: it has no field for relevance, so only what is surely about the topic."""
    return {
        "topic": research.topic,
        "searchesPerformed": len(research.queries),
        "findings": [
            {"content": finding.hit.text, "source": finding.hit.uri, "section": finding.hit.section}
            for finding in research.findings
            if finding.about
        ],
    }


def finding_json(finding: Finding) -> JsonObject:
    """One passage, where it stands and what found it."""
    hit = finding.hit
    return {
        "chunk_id": hit.chunk_id,
        "document_id": hit.document_id,
        "title": hit.title,
        "uri": hit.uri,
        "section": hit.section,
        "page": hit.page,
        "text": hit.text,
        "source": finding.source,
        "relevance": finding.relevance,
        "about": finding.about,
        "queries": list(finding.queries),
    }


def round_json(one: Round) -> JsonObject:
    """One wave of sub-queries."""
    return {"queries": list(one.queries), "found": one.found, "new": one.new}
