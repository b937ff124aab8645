"""Votes on passages: who says what, and what it comes to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ragstone.core.activity import (
    Feedback,
    Gap,
    GoldenQuery,
    LoggedSearch,
    SearchReport,
    Vote,
    net_grades,
    same_query,
)
from ragstone.core.wire_activity import feedback_json, gap_json, golden_json, logged_json, report_json

MOMENT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
STAMP = "2026-01-31T09:30:00+00:00"


def _vote(query: str, document: str, vote: Vote, voter: str = "ann") -> Feedback:
    return Feedback(MOMENT, "demo", query, f"{document}:0", document, vote, voter)


@pytest.mark.parametrize("other", ["dog fares", "  Dog\tFARES ", "dog\nfares"])
def test_case_and_white_space_do_not_make_another_query(other: str) -> None:
    assert same_query(other) == same_query("Dog fares")


def test_other_words_make_another_query() -> None:
    assert same_query("dog fare") != same_query("dog fares")


def test_a_document_is_good_when_more_said_yes_than_no() -> None:
    votes = [
        _vote("Dog fares", "fares", "up", "ann"),
        _vote("dog fares", "fares", "down", "bob"),
        _vote("dog  fares", "fares", "used", "eve"),
        _vote("dog fares", "tides", "up", "ann"),
        _vote("dog fares", "tides", "down", "bob"),
        _vote("bicycles", "fares", "down", "ann"),
    ]
    assert net_grades(votes) == {"dog fares": {"fares": 1, "tides": 0}, "bicycles": {"fares": 0}}


def test_without_votes_nothing_is_judged() -> None:
    assert net_grades([]) == {}


def test_a_vote_as_json() -> None:
    assert feedback_json(_vote("Dog fares", "fares", "up")) == {
        "moment": STAMP,
        "kb": "demo",
        "query": "Dog fares",
        "chunk_id": "fares:0",
        "document_id": "fares",
        "vote": "up",
        "voter": "ann",
    }


def test_a_search_that_was_made_as_json() -> None:
    search = LoggedSearch(MOMENT, "demo", "dog fares", "fast", 12.5, 3, 0.75, 0.6, 0.5, missing=("fares",))
    shape = logged_json(search, 0.25)
    assert shape == {
        "moment": STAMP,
        "kb": "demo",
        "query": "dog fares",
        "mode": "fast",
        "latency_ms": 12.5,
        "num_results": 3,
        "top_score": 0.75,
        "relevance": 0.25,
        "similarity": 0.6,
        "coverage": 0.5,
        "created_at": STAMP,
        "tenant_id": "",
        "conversation": "",
        "query_type": "",
        "sources_queried": [],
        "sources_returned": [],
        "document_results_count": 3,
        "database_results_count": 0,
        "internet_results_count": 0,
        "total_results": 3,
        "retrieval_time_ms": 12.5,
        "embedding_time_ms": 0.0,
        "success": True,
        "error_message": "",
    }
    assert logged_json(search, None)["relevance"] is None


def test_a_report_has_the_names_that_dashboards_know() -> None:
    shape = report_json(SearchReport(4, 2, 10.0, 20.0, 30.0, 0.5, 1.0, 0.4))
    assert shape == {
        "searches": 4,
        "judged": 2,
        "latency_p50": 10.0,
        "latency_p95": 20.0,
        "latency_p99": 30.0,
        "avg_relevance": 0.5,
        "recall@10": 1.0,
        "precision@5": 0.4,
    }


def test_golden_queries_and_gaps_as_json() -> None:
    golden = GoldenQuery("demo", "dog fares", ("fares", "pets"), "manual")
    assert golden_json(golden) == {
        "kb": "demo",
        "query": "dog fares",
        "document_ids": ["fares", "pets"],
        "origin": "manual",
    }
    gap = Gap(("cat fares", "Cats?"), 3, MOMENT, "nothing near was found", ("cat",))
    assert gap_json(gap) == {
        "queries": ["cat fares", "Cats?"],
        "times": 3,
        "last": STAMP,
        "reason": "nothing near was found",
        "missing": ["cat"],
    }
