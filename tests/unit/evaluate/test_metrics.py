"""The metrics against trec_eval itself, and on cases small enough to count by hand."""

from __future__ import annotations

import random
from math import log2

import pytest
import pytrec_eval

from ragstone.core.errors import InputError
from ragstone.evaluate.metrics import (
    REPORTED,
    deepest,
    hit_rate,
    ndcg,
    parse_metric,
    precision,
    recall,
    reciprocal_rank,
    score,
)

CUTOFFS = (1, 3, 5, 10, 100)


def _random_collection(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Graded judgements and a run with tied scores, unjudged documents and queries that found nothing."""
    choose = random.Random(seed)
    documents = [f"d{number}" for number in range(60)]
    grades = {
        f"q{query}": {doc: choose.choice([-1, 0, 0, 1, 1, 2, 3]) for doc in choose.sample(documents, 12)}
        for query in range(20)
    }
    run = {
        query: {doc: float(choose.randrange(8)) for doc in choose.sample(documents, choose.randrange(1, 50))}
        for query in grades
        if choose.random() > 0.1
    }
    return grades, run


def _ranking(scores: dict[str, float]) -> list[str]:
    """The order trec_eval sees: by score, ties by document id from the end."""
    return sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)


@pytest.mark.req("R-EVL-25")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", CUTOFFS)
def test_metrics_are_those_of_trec_eval(seed: int, k: int) -> None:
    grades, run = _random_collection(seed)
    measures = {f"ndcg_cut.{k}", f"recall.{k}", f"P.{k}", f"success.{k}"}
    judge = pytrec_eval.RelevanceEvaluator(grades, measures)
    expected = judge.evaluate(run)
    for query, scores in run.items():
        ranking = _ranking(scores)
        assert ndcg(ranking, grades[query], k) == pytest.approx(expected[query][f"ndcg_cut_{k}"], abs=1e-12)
        assert recall(ranking, grades[query], k) == pytest.approx(expected[query][f"recall_{k}"], abs=1e-12)
        assert precision(ranking, grades[query], k) == pytest.approx(expected[query][f"P_{k}"], abs=1e-12)
        assert hit_rate(ranking, grades[query], k) == expected[query][f"success_{k}"]


@pytest.mark.req("R-EVL-25")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", CUTOFFS)
def test_reciprocal_rank_is_that_of_trec_eval_on_the_first_k(seed: int, k: int) -> None:
    grades, run = _random_collection(seed)
    cut = {query: {doc: scores[doc] for doc in _ranking(scores)[:k]} for query, scores in run.items()}
    expected = pytrec_eval.RelevanceEvaluator(grades, {"recip_rank"}).evaluate(cut)
    for query, scores in run.items():
        found = reciprocal_rank(_ranking(scores), grades[query], k)
        assert found == pytest.approx(expected[query]["recip_rank"], abs=1e-12)


def test_the_random_collections_hold_the_hard_cases() -> None:
    collections = [_random_collection(seed) for seed in range(5)]
    assert any(len(run) < len(grades) for grades, run in collections)
    tied = [
        scores for _, run in collections for scores in run.values() if len(set(scores.values())) < len(scores)
    ]
    assert len(tied) > 50


@pytest.mark.req("R-EVL-25")
def test_scores_counted_by_hand() -> None:
    grades = {"a": 2, "b": 1, "c": 0}
    ranking = ["x", "a", "c", "b"]
    ideal = 2 / log2(2) + 1 / log2(3)
    assert score(ranking, grades, ["ndcg@3", "recall@3", "p@3", "mrr@3", "hit@3", "mrr@1", "hit@1"]) == {
        "ndcg@3": (2 / log2(3)) / ideal,
        "recall@3": 1 / 2,
        "p@3": 1 / 3,
        "mrr@3": 1 / 2,
        "hit@3": 1.0,
        "mrr@1": 0.0,
        "hit@1": 0.0,
    }


@pytest.mark.parametrize(
    ("ranking", "grades"),
    [([], {"a": 1}), (["a"], {}), (["a", "b"], {"a": 0, "b": -1}), (["b"], {"a": 3})],
    ids=["nothing found", "nothing judged", "nothing relevant", "only unjudged found"],
)
def test_no_relevant_document_scores_zero(ranking: list[str], grades: dict[str, int]) -> None:
    assert set(score(ranking, grades).values()) == {0.0}


def test_precision_counts_empty_places() -> None:
    assert precision(["a"], {"a": 1}, 5) == 0.2


def test_the_reported_metrics_need_a_hundred_documents() -> None:
    assert deepest(REPORTED) == 100


@pytest.mark.parametrize("name", ["ndcg", "ndcg@0", "map@10", "ndcg@-1", "ndcg@10000", "NDCG@10", ""])
def test_an_unknown_metric_is_refused_by_name(name: str) -> None:
    with pytest.raises(InputError, match="is not a metric") as refusal:
        parse_metric(name)
    assert repr(name) in str(refusal.value)
    assert "ndcg@10" in refusal.value.hint
