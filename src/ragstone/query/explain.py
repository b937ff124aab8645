"""Why a document was found, or at which stage it was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragstone.core.analyzer import analyze, analyze_query
from ragstone.core.clock import canonical
from ragstone.core.errors import NotFoundError
from ragstone.core.filters import matches
from ragstone.core.ledger import Ledger
from ragstone.core.types import Candidate, Document, Explanation, Json, KnowledgeBase, LiveChunk
from ragstone.query.pipeline import SearchPipeline
from ragstone.query.request import SearchRequest
from ragstone.query.trace import Recorder

Step = Mapping[str, Json]


async def explain(
    ledger: Ledger,
    pipeline: SearchPipeline,
    tenant: str,
    kb: KnowledgeBase,
    request: SearchRequest,
    document_id: str,
) -> Explanation:
    """Follow one document through the search that `request` describes."""
    document = await ledger.document(tenant, document_id)
    if document is None or document.kb != kb.name:
        raise NotFoundError(
            f"no document {document_id} in knowledge base '{kb.name}'",
            hint="list them with: ragstone documents",
        )
    chunks = await ledger.document_chunks(tenant, document_id)
    own = {chunk.id for chunk in chunks}
    everything = (await ledger.stats(tenant, kb)).chunks or 1
    record = Recorder(request.mode)
    passes = _passes(request, document, chunks)
    depth = pipeline.depth(request)
    reach = await pipeline.arms(
        tenant, kb, request if passes else replace(request, where=None), everything, record
    )
    stages = [
        _arm_step(arm, candidates, own, depth, chunks, request.query) for arm, candidates in reach.items()
    ]
    filtered = ("filter", "the filter does not let it through")
    lost = _lost_in_arms(stages, document, record) if passes else filtered
    result = await pipeline.search(tenant, kb, request)
    at = next((n for n, hit in enumerate(result.hits, 1) if hit.document_id == document_id), None)
    fused = pipeline.fused(request, await pipeline.arms(tenant, kb, request, depth, record))
    place = next((n for n, item in enumerate(fused, 1) if item.chunk_id in own), None)
    if place:
        stages.append({"stage": "fuse", "rank": place, "score": round(fused[place - 1].score, 6)})
    stages.append({"stage": "result", "rank": at, "k": request.k})
    if at:
        return Explanation(
            request.query, document_id, document.title, True, "", f"found at rank {at}", tuple(stages)
        )
    stage, reason = lost or _lost_after_fusion(place, request, pipeline.reranked)
    return Explanation(request.query, document_id, document.title, False, stage, reason, tuple(stages))


def _passes(request: SearchRequest, document: Document, chunks: Sequence[LiveChunk]) -> bool:
    facts = {
        "document_id": document.id,
        "external_id": document.external_id,
        "uri": document.uri,
        "title": document.title,
        "source": document.source,
        "media_type": document.media_type,
        "modified_at": canonical(document.modified_at) if document.modified_at else None,
        "created_at": canonical(document.created_at),
        "updated_at": canonical(document.updated_at),
    }
    return any(
        matches(
            request.where,
            {
                **document.metadata,
                **facts,
                "page": one.chunk.page,
                "level": one.chunk.level,
                "kind": one.chunk.kind,
            },
        )
        for one in chunks
    )


def _arm_step(
    arm: str,
    candidates: Sequence[Candidate],
    own: set[str],
    depth: int,
    chunks: Sequence[LiveChunk],
    query: str,
) -> Step:
    best = next(((rank, item) for rank, item in enumerate(candidates, 1) if item.chunk_id in own), None)
    step: dict[str, Json] = {
        "stage": arm,
        "rank": best[0] if best else None,
        "score": round(best[1].score, 6) if best else None,
        "candidates": depth,
        "reached": bool(best and best[0] <= depth),
    }
    if arm == "lexical":
        there = {term for chunk in chunks for term in analyze(chunk.chunk.contextual)}
        terms = analyze_query(query)
        step["matched_terms"] = [term for term in terms if term in there]
        step["missing_terms"] = [term for term in terms if term not in there]
    return step


def _lost_in_arms(steps: Sequence[Step], document: Document, record: Recorder) -> tuple[str, str] | None:
    if any(step["reached"] for step in steps):
        return None
    reasons = []
    for step in steps:
        if step["rank"] is not None:
            reasons.append(f"{step['stage']}: rank {step['rank']}, of which {step['candidates']} are kept")
        elif step["stage"] == "lexical":
            reasons.append("lexical: it shares no word with the query")
        elif document.embedded:
            reasons.append("dense: it is under retrieval.min_similarity")
        else:
            reasons.append("dense: it has no vector")
    return "arms", "; ".join(reasons + record.degraded)


def _lost_after_fusion(place: int | None, request: SearchRequest, reranked: int) -> tuple[str, str]:
    if place is None:
        return "fuse", "the index changed while this was looked at: ask again"
    if place <= reranked:
        return "rerank", "the reranker put it lower, or under its threshold"
    if place > request.k:
        return "pack", f"rank {place} after fusion; {request.k} were asked for"
    return "pack", f"its score is under min_score {request.min_score}"
