"""Votes, searches, golden queries and gaps as JSON: like `ragstone.core.wire`."""

from __future__ import annotations

from ragstone.core.activity import Conversation, Feedback, Gap, GoldenQuery, LoggedSearch, SearchReport, Turn
from ragstone.core.clock import canonical
from ragstone.core.types import Json

JsonObject = dict[str, Json]


def feedback_json(one: Feedback) -> JsonObject:
    """A vote."""
    return {
        "moment": canonical(one.moment),
        "kb": one.kb,
        "query": one.query,
        "chunk_id": one.chunk_id,
        "document_id": one.document_id,
        "vote": one.vote,
        "voter": one.voter,
    }


def conversation_json(one: Conversation) -> JsonObject:
    """What there is of a conversation."""
    return {
        "name": one.name,
        "kb": one.kb,
        "turns": one.turns,
        "began": canonical(one.began),
        "last": canonical(one.last),
    }


def turn_json(turn: Turn) -> JsonObject:
    """A question of a conversation with its answer."""
    return {
        "moment": canonical(turn.moment),
        "question": turn.question,
        "answer": turn.answer,
        "document_ids": list(turn.document_ids),
    }


def logged_json(one: LoggedSearch, relevance: float | None) -> JsonObject:
    """A search that was made; `relevance` is what votes and golden queries say of it.

    Three facts have two names, one of them from the time before there were other sources than documents:
    `latency_ms` and `retrieval_time_ms`, `num_results` and `document_results_count`, `moment` and `created_at`.
    """
    return {
        "moment": canonical(one.moment),
        "kb": one.kb,
        "query": one.query,
        "mode": one.mode,
        "latency_ms": one.latency_ms,
        "num_results": one.num_results,
        "top_score": one.top_score,
        "relevance": relevance,
        "similarity": one.similarity,
        "coverage": one.coverage,
        "created_at": canonical(one.moment),
        "tenant_id": one.tenant_id,
        "conversation": one.conversation,
        "query_type": one.query_type,
        "sources_queried": list(one.sources_queried),
        "sources_returned": list(one.sources_returned),
        "document_results_count": one.document_results_count,
        "database_results_count": one.database_results_count,
        "internet_results_count": one.internet_results_count,
        "total_results": one.total_results,
        "retrieval_time_ms": one.retrieval_time_ms,
        "embedding_time_ms": one.embedding_time_ms,
        "success": one.success,
        "error_message": one.error_message,
    }


def report_json(report: SearchReport) -> JsonObject:
    """How search did, under the names that dashboards know."""
    return {
        "searches": report.searches,
        "judged": report.judged,
        "latency_p50": report.latency_p50,
        "latency_p95": report.latency_p95,
        "latency_p99": report.latency_p99,
        "avg_relevance": report.avg_relevance,
        "recall@10": report.recall_at_10,
        "precision@5": report.precision_at_5,
    }


def golden_json(one: GoldenQuery) -> JsonObject:
    """A golden query."""
    return {"kb": one.kb, "query": one.query, "document_ids": list(one.document_ids), "origin": one.origin}


def gap_json(gap: Gap) -> JsonObject:
    """Something that was asked and not found."""
    return {
        "queries": list(gap.queries),
        "times": gap.times,
        "last": canonical(gap.last),
        "reason": gap.reason,
        "missing": list(gap.missing),
    }
