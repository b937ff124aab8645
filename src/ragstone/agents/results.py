"""Long passages in fewer words: the sentences that have to do with the query, word for word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragstone.core.answers import CheckedText, Verdict, source_of
from ragstone.core.errors import SearchFailed
from ragstone.core.search import SearchResult
from ragstone.core.types import Hit, Json
from ragstone.language.analyzer import analyze, analyze_query
from ragstone.language.sentences import sentence_spans
from ragstone.schemas.tools import (
    ClaimEvidenceSchema,
    ClaimSchema,
    DocsPassageSchema,
    DocsSchema,
    KnowledgeSchema,
    MessagePassageSchema,
    PassageSchema,
    TextCheckSchema,
    TextClaimSchema,
    ToolMessageSchema,
)

LONG = 2000
"""Characters up to which a passage is passed on whole."""
GAP = " … "


def compress_text(text: str, query: str, limit: int = LONG) -> str:
    """Return the text when it is short; of a long one the sentences nearest to the query, in order, gaps marked."""
    if len(text) <= limit:
        return text
    wanted = set(analyze_query(query))
    spans = sentence_spans(text)
    shared = [len(wanted.intersection(analyze(text[start:end]))) for start, end in spans]
    # Of equals the earlier: openings say what a passage is about.
    best = sorted(range(len(spans)), key=lambda index: (-shared[index], index))
    kept: list[int] = []
    left = limit
    for index in best:
        start, end = spans[index]
        if end - start + len(GAP) <= left:
            kept.append(index)
            left -= end - start + len(GAP)
    if not kept:
        return text[:limit].rstrip() + GAP.rstrip()
    return _join_spans(text, [spans[index] for index in sorted(kept)])


def _join_spans(text: str, spans: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    last = 0
    for start, end in spans:
        gap = text[last:start]
        parts.append(gap if parts and not gap.strip() else GAP if start else "")
        parts.append(text[start:end])
        last = end
    return "".join(parts).strip() + (GAP.rstrip() if text[last:].strip() else "")


MOST_EVIDENCE = 3


def knowledge_answer(found: SearchResult) -> KnowledgeSchema:
    """Return the passages with their sources, long ones compressed."""
    return KnowledgeSchema.of(
        root=[
            PassageSchema.of(
                text=compress_text(hit.text, found.query),
                source=source_of(hit),
                date=hit.metadata.get("date"),
                url=hit.metadata.get("url"),
                relevance=hit.score,
                parent_doc_id=hit.document_id,
            )
            for hit in found.hits
        ]
    )


def docs_answer(found: SearchResult) -> DocsSchema:
    """Return the passages with file path, section and relevance in percent."""
    return DocsSchema.of(
        results=[
            DocsPassageSchema.of(
                content=compress_text(hit.text, found.query),
                source=hit.uri,
                section=hit.section,
                relevance=f"{100 * hit.score:.0f}%",
            )
            for hit in found.hits
        ]
    )


def claim_answer(verdict: Verdict) -> ClaimSchema:
    """Return status, confidence and up to three pieces of evidence."""
    return ClaimSchema.of(verdict, evidence=verdict.evidence[:MOST_EVIDENCE])


def text_answer(checked: CheckedText) -> TextCheckSchema:
    """Return each sentence that was checked with its outcome and the best evidence about it."""
    claims = [
        TextClaimSchema.of(
            claim,
            claim=claim.verdict.claim,
            status=claim.verdict.status,
            evidence=[ClaimEvidenceSchema.of(item) for item in claim.verdict.evidence[:1]],
        )
        for claim in checked.claims
    ]
    return TextCheckSchema.of(checked, claims=claims)


def add_degraded(value: Json, degraded: Sequence[str]) -> Json:
    """Return an answer that says what could not be done; without a passage, a list cannot, and it is an error."""
    if not degraded:
        return value
    notes: list[Json] = list(degraded)
    if isinstance(value, list):
        if not value:
            raise SearchFailed(f"the search could not be completed: {'; '.join(degraded)}")
        return [{**passage, "degraded": notes} if isinstance(passage, dict) else passage for passage in value]
    return {**value, "degraded": notes} if isinstance(value, dict) else value


def pack_value(value: Json) -> Json:
    """Return passages under the names they have in a tool message; anything else as it is."""
    if not isinstance(value, list):
        return value
    degraded = value[0].get("degraded") if value else None
    return add_degraded(tool_message(value).as_json(), degraded or ())


def tool_message(passages: Sequence[Mapping[str, Json]]) -> ToolMessageSchema:
    """Return what `search_knowledge` answered as it stands in a tool message."""
    return ToolMessageSchema.of(
        root=[
            MessagePassageSchema.of(
                chunk_text=passage["text"],
                source=passage["source"],
                date=passage["date"],
                relevance_score=passage["relevance"],
                parent_doc_id=passage["parent_doc_id"],
                url=passage["url"],
            )
            for passage in passages
        ]
    )


def citations(hits: Sequence[Hit]) -> list[str]:
    """Return the sources as an agent cites them: path and section, each once."""
    return list(dict.fromkeys(f"{hit.uri} > {hit.section}" if hit.section else hit.uri for hit in hits))
