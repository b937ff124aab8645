from __future__ import annotations

from pathlib import Path

import pytest

from ragstone.core.search import SearchResult
from ragstone.core.types import Hit
from ragstone.evaluate.dataset import Dataset, Query
from ragstone.evaluate.runner import MAX_HITS, evaluate, ranked_documents


def _hit(document: str, chunk: int = 0, *, labelled: bool = True) -> Hit:
    return Hit(
        chunk_id=f"{document}-{chunk}",
        document_id=f"internal-{document}",
        title="",
        uri=document if not labelled else f"set/{document}",
        section="",
        page=None,
        text="",
        score=1.0,
        scores={},
        metadata={"dataset_id": document} if labelled else {},
        start=0,
        end=0,
    )


class Ranked:
    """A Retriever that knows its answers, and remembers how it was asked."""

    def __init__(self, answers: dict[str, list[Hit]], degraded: tuple[str, ...] = ()) -> None:
        self.answers = answers
        self.degraded = degraded
        self.asked: list[tuple[str, int]] = []

    async def retrieve(self, query: str, k: int) -> SearchResult:
        self.asked.append((query, k))
        hits = tuple(self.answers.get(query, [])[:k])
        return SearchResult(query, query, "balanced", hits, (), self.degraded, 0.0)


def _dataset(grades: dict[str, dict[str, int]]) -> Dataset:
    queries = tuple(Query(name, f"text of {name}") for name in grades)
    return Dataset("set", Path(), "test", queries, grades)


@pytest.mark.req("R-EVL-25")
async def test_means_and_scores_of_each_query_are_kept() -> None:
    dataset = _dataset({"q1": {"a": 1}, "q2": {"b": 1}})
    retriever = Ranked({"text of q1": [_hit("a")], "text of q2": [_hit("x"), _hit("b")]})
    row = await evaluate(retriever, dataset, system="dense", metrics=("mrr@10", "recall@10", "p@1"))
    assert row.system == "dense"
    assert row.per_query == {"mrr@10": (1.0, 0.5), "recall@10": (1.0, 1.0), "p@1": (1.0, 0.0)}
    assert row.scores == {"mrr@10": 0.75, "recall@10": 1.0, "p@1": 0.5}
    assert len(row.latencies_ms) == 2
    assert row.degraded == ()


async def test_a_query_that_finds_nothing_counts_as_zero() -> None:
    row = await evaluate(Ranked({"text of q1": [_hit("a")]}), _dataset({"q1": {"a": 1}, "q2": {"b": 1}}), system="s")
    assert row.per_query["ndcg@10"] == (1.0, 0.0)
    assert row.scores["ndcg@10"] == 0.5


def test_a_document_stands_where_its_best_chunk_stands() -> None:
    hits = [_hit("a", 3), _hit("b"), _hit("a", 1), _hit("c"), _hit("b", 9)]
    assert ranked_documents(hits) == ["a", "b", "c"]


def test_a_hit_without_a_dataset_id_is_known_by_its_uri() -> None:
    assert ranked_documents([_hit("notes/a.md", labelled=False)]) == ["notes/a.md"]


async def test_chunks_of_one_document_do_not_crowd_out_others() -> None:
    hits = [_hit("a", chunk) for chunk in range(9)] + [_hit("b")]
    retriever = Ranked({"text of q1": hits})
    row = await evaluate(retriever, _dataset({"q1": {"b": 1}}), system="s", metrics=("recall@2",))
    assert row.scores == {"recall@2": 1.0}
    assert [k for _, k in retriever.asked] == [2, 2, 4, 8, 16]


async def test_it_asks_no_further_than_the_limit() -> None:
    retriever = Ranked({"text of q1": [_hit("a", chunk) for chunk in range(2 * MAX_HITS)]})
    await evaluate(retriever, _dataset({"q1": {"b": 1}}), system="s", metrics=("recall@100",))
    assert [k for _, k in retriever.asked] == [100, 100, 200, 400, 800, MAX_HITS]


async def test_the_first_search_is_not_timed() -> None:
    retriever = Ranked({})
    row = await evaluate(retriever, _dataset({"q1": {"a": 1}, "q2": {"a": 1}}), system="s")
    assert [query for query, _ in retriever.asked] == ["text of q1", "text of q1", "text of q2"]
    assert len(row.latencies_ms) == 2


async def test_progress_is_told_after_each_query() -> None:
    told: list[tuple[int, int]] = []
    dataset = _dataset({"q1": {"a": 1}, "q2": {"a": 1}})
    await evaluate(Ranked({}), dataset, system="s", on_progress=lambda *step: told.append(step))
    assert told == [(1, 2), (2, 2)]


async def test_a_row_says_what_was_degraded() -> None:
    retriever = Ranked({}, degraded=("dense", "rerank"))
    row = await evaluate(retriever, _dataset({"q1": {"a": 1}, "q2": {"a": 1}}), system="s")
    assert row.degraded == ("dense", "rerank")


async def test_ids_that_read_as_dates_are_found_in_the_form_the_ledger_keeps() -> None:
    stored = _hit("2026-01-31T00:00:00+00:00")
    row = await evaluate(Ranked({"text of q1": [stored]}), _dataset({"q1": {"2026-01-31": 1}}), system="s")
    assert row.scores["recall@10"] == 1.0
