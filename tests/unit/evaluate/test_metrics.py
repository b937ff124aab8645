"""The metrics against trec_eval itself, and on cases small enough to count by hand."""

from __future__ import annotations

from math import log2

import pytest
from tests.unit.evaluate.trec_eval import CUTOFFS, SEEDS, collection, ranking, recorded

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


@pytest.mark.req("R-EVL-25")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", CUTOFFS)
def test_metrics_are_those_of_trec_eval(seed: int, k: int) -> None:
    grades, run = collection(seed)
    expected = recorded(seed)
    assert expected.keys() == run.keys()
    for query, scores in run.items():
        found, said = ranking(scores), expected[query]
        assert ndcg(found, grades[query], k) == pytest.approx(said[f"ndcg_cut_{k}"], abs=1e-12)
        assert recall(found, grades[query], k) == pytest.approx(said[f"recall_{k}"], abs=1e-12)
        assert precision(found, grades[query], k) == pytest.approx(said[f"P_{k}"], abs=1e-12)
        assert hit_rate(found, grades[query], k) == said[f"success_{k}"]
        assert reciprocal_rank(found, grades[query], k) == pytest.approx(said[f"recip_rank_{k}"], abs=1e-12)


def test_the_random_collections_hold_the_hard_cases() -> None:
    collections = [collection(seed) for seed in SEEDS]
    assert any(len(run) < len(grades) for grades, run in collections)
    tied = [scores for _, run in collections for scores in run.values() if len(set(scores.values())) < len(scores)]
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
