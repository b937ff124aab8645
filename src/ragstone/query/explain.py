"""Explain why a document was found, or at which stage it was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragstone.core.clock import canonical
from ragstone.core.documents import origin_of
from ragstone.core.errors import NotFoundError
from ragstone.core.filters import matches
from ragstone.core.ledger import Ledger
from ragstone.core.remedies import Action, Remedy
from ragstone.core.search import Explanation, QueryAnalysis
from ragstone.core.types import Candidate, Document, Json, KnowledgeBase, LiveChunk
from ragstone.language.terms import analyze_chunks, terms_asked
from ragstone.query.context import Recorder, SearchContext, SearchRequest
from ragstone.query.pipeline import SearchPipeline, StageResults
from ragstone.schemas.search import AnalysisSchema

Step = Mapping[str, Json]
DEEP_SECONDS = 60.0
"""Seconds for looking at all that an arm has."""


async def explain(
    ledger: Ledger,
    pipeline: SearchPipeline,
    tenant: str,
    kb: KnowledgeBase,
    request: SearchRequest,
    document_id: str,
    analysis: QueryAnalysis | None = None,
) -> Explanation:
    """Follow one document through the search that `request` describes; `analysis` is what it was taken for."""
    document = await ledger.of(tenant).document(document_id)
    if document is None or document.kb != kb.name:
        raise NotFoundError(
            f"no document {document_id} in knowledge base '{kb.name}'", remedy=Remedy(Action.LIST_DOCUMENTS)
        )
    chunks = await ledger.of(tenant).document_chunks(document_id)
    own = {chunk.id for chunk in chunks}
    search = pipeline.begin(tenant, kb, request)
    results = await pipeline.run(search)
    passes = _passes(request, document, chunks)
    steps: list[Step] = [{"stage": "analyse", **AnalysisSchema.of(analysis).as_json()}] if analysis else []
    steps += await _arm_steps(ledger, pipeline, search, results, chunks, passes=passes)
    steps += _stage_steps(results, own, search.record)
    lost = None if passes else ("filter", "the filter does not let it through")
    lost = lost or _lost_in_arms(steps, document, search.record)
    at = _place([item.chunk.id for item in results.chosen], own)
    steps.append({"stage": "result", "rank": at, "k": request.k})
    if at:
        return Explanation(request.query, document_id, document.title, True, "", f"found at rank {at}", tuple(steps))
    stage, reason = lost or _lost_after_arms(results, own, request)
    return Explanation(request.query, document_id, document.title, False, stage, reason, tuple(steps))


async def _arm_steps(
    ledger: Ledger,
    pipeline: SearchPipeline,
    search: SearchContext,
    results: StageResults,
    chunks: Sequence[LiveChunk],
    *,
    passes: bool,
) -> list[Step]:
    """Return the rank of the document in each arm among all that the arm has."""
    everything = (await ledger.of(search.tenant).stats(search.kb)).chunks or 1
    request = search.request if passes else replace(search.request, where=None)
    # Looking at everything may take longer than a search.
    deep = SearchContext(search.tenant, search.kb, request, Recorder(request.mode, DEEP_SECONDS))
    reach = await pipeline.arms(deep, results.variants, everything)
    for note in deep.record.degraded:
        search.record.degrade(note)
    depth = pipeline.depth(search.request)
    own = {chunk.id for chunk in chunks}
    words = terms_asked(" ".join(results.variants.lexical), search.kb.languages)
    return [_arm_step(arm, found, own, depth, chunks, words) for arm, found in reach.items()]


def _stage_steps(results: StageResults, own: set[str], record: Recorder) -> list[Step]:
    """Return the rank of the document after each stage that orders candidates."""
    steps: list[Step] = []
    place = _place([item.chunk_id for item in results.fused], own)
    if place:
        steps.append({"stage": "fuse", "rank": place, "score": round(results.fused[place - 1].score, 6)})
    reranks = [stage for stage in record.stages if stage.stage.startswith("rerank")]
    if reranks:
        place = _place([item.chunk.id for item in results.ranked], own)
        score = round(results.ranked[place - 1].score, 6) if place else None
        skipped = [f"{stage.stage}: {stage.skipped}" for stage in reranks if stage.skipped]
        steps.append({"stage": "rerank", "rank": place, "score": score, "skipped": skipped})
    return steps


def _place(ids: Sequence[str], own: set[str]) -> int | None:
    return next((rank for rank, chunk_id in enumerate(ids, start=1) if chunk_id in own), None)


def _passes(request: SearchRequest, document: Document, chunks: Sequence[LiveChunk]) -> bool:
    facts = {
        "document_id": document.id,
        "external_id": document.external_id,
        "uri": document.uri,
        "title": document.title,
        "source": origin_of(document.metadata, document.source, document.uri),
        "connector": document.source,
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
                "page": chunk.chunk.page,
                "level": chunk.chunk.level,
                "kind": chunk.chunk.kind,
            },
        )
        for chunk in chunks
    )


def _arm_step(
    arm: str,
    candidates: Sequence[Candidate],
    own: set[str],
    depth: int,
    chunks: Sequence[LiveChunk],
    words: Sequence[Sequence[str]],
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
        language = str(chunks[0].metadata.get("language") or "") if chunks else ""
        analysed = analyze_chunks([chunk.chunk.contextual for chunk in chunks], language)
        there = {term for text in analysed for term in text.split()}
        matched = [[term for term in terms if term in there] for terms in words]
        step["matched_terms"] = [found[0] for found in matched if found]
        step["missing_terms"] = [terms[0] for terms, found in zip(words, matched, strict=True) if not found]
    return step


def _lost_in_arms(steps: Sequence[Step], document: Document, record: Recorder) -> tuple[str, str] | None:
    arms = [step for step in steps if "reached" in step]
    if any(step["reached"] for step in arms):
        return None
    reasons = []
    for step in arms:
        if step["rank"] is not None:
            reasons.append(f"{step['stage']}: rank {step['rank']}, of which {step['candidates']} are kept")
        elif step["stage"] == "lexical":
            reasons.append("lexical: it shares no word with the query")
        elif document.embedded:
            reasons.append("dense: it is under retrieval.min_similarity")
        else:
            reasons.append("dense: it has no vector")
    return "arms", "; ".join(reasons + record.degraded)


def _lost_after_arms(results: StageResults, own: set[str], request: SearchRequest) -> tuple[str, str]:
    place = _place([item.chunk_id for item in results.fused], own)
    if place is None:
        return "fuse", "the index changed while this was looked at: ask again"
    found = _place([item.chunk.id for item in results.found], own)
    if found is None:
        read = f"{len(results.found)} were read" if results.ranked is not results.found else ""
        return "pack", f"rank {place} after fusion; {read or f'{request.k} were asked for'}"
    ranked = _place([item.chunk.id for item in results.ranked], own)
    if ranked is None:
        return "rerank", "the reranker scored it under its threshold"
    if _place([item.chunk.id for item in results.selected], own):
        return "compress", "no sentence of it bears on the query enough to be among the first"
    if results.ranked[ranked - 1].score < request.min_score:
        return "pack", f"its score is under min_score {request.min_score}"
    if results.relevance[results.ranked[ranked - 1].chunk.id] < request.min_relevance:
        return "pack", f"its relevance is under min_relevance {request.min_relevance}"
    if len(results.chosen) < request.k or ranked <= request.k:
        return "select", "it is too much like a better passage"
    if results.ranked is results.found:
        return "pack", f"rank {place} after fusion; {request.k} were asked for"
    return "rerank", f"rank {place} after fusion, {ranked} after reranking; {request.k} were asked for"
