"""Putting two lists together, to the last digit."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.types import Candidate
from ragstone.query.arms import STRATEGIES, fuse
from ragstone.settings.retrieval import Fusion, RetrievalSettings

EVEN = {"dense": 0.5, "lexical": 0.5}
TULIA = {"dense": 0.7, "lexical": 0.3}
DENSE = [Candidate("a", 0.9), Candidate("b", 0.8), Candidate("d", 0.4)]
LEXICAL = [Candidate("b", 12.0), Candidate("c", 3.0)]
BOTH = {"dense": DENSE, "lexical": LEXICAL}
LISTS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.floats(-1, 50)), unique_by=lambda pair: pair[0], max_size=8
).map(lambda pairs: sorted((Candidate(*pair) for pair in pairs), key=lambda one: -one.score))


def scores(
    strategy: Fusion, arms: dict[str, list[Candidate]], weights: dict[str, float], k: int = 60
) -> dict[str, float]:
    return {one.chunk_id: one.score for one in fuse(strategy, arms, weights, k)}


@pytest.mark.req("R-HYB-02", "R-HYB-03", "R-TST-06")
@pytest.mark.parametrize("rrf_k", [60, 1, 10])
def test_rrf_is_the_sum_of_reciprocal_ranks(rrf_k: int) -> None:
    most = 2 / (rrf_k + 1)
    found = fuse("rrf", BOTH, EVEN, rrf_k)
    assert [one.chunk_id for one in found] == ["b", "a", "c", "d"]
    assert [one.score * most for one in found] == pytest.approx(
        [1 / (rrf_k + 2) + 1 / (rrf_k + 1), 1 / (rrf_k + 1), 1 / (rrf_k + 2), 1 / (rrf_k + 3)], rel=1e-12
    )


@pytest.mark.req("R-HYB-03")
def test_rrf_k_is_60_unless_set() -> None:
    assert RetrievalSettings().rrf_k == 60
    assert RetrievalSettings(rrf_k=10).rrf_k == 10


@pytest.mark.req("R-HYB-04")
@pytest.mark.parametrize("strategy", ["rrf", "weighted_rrf"])
def test_rrf_looks_at_ranks_only(strategy: Fusion) -> None:
    scaled = {arm: [Candidate(one.chunk_id, one.score * 1000 - 7) for one in found] for arm, found in BOTH.items()}
    assert scores(strategy, scaled, TULIA) == scores(strategy, BOTH, TULIA)


def test_rrf_of_one_arm_of_two_reaches_half() -> None:
    found = scores("rrf", {"dense": [Candidate("a", 1.0), Candidate("b", 0.5)], "lexical": [Candidate("b", 9.0)]}, EVEN)
    assert found["a"] == 0.5
    assert scores("rrf", {"dense": DENSE}, EVEN)["a"] == 1.0
    assert scores("rrf", {"dense": DENSE, "lexical": [Candidate("a", 1.0)]}, EVEN)["a"] == 1.0


@pytest.mark.req("R-HYB-08")
def test_weighted_rrf_gives_each_arm_its_weight() -> None:
    most = (0.7 + 0.3) / 61
    assert scores("weighted_rrf", BOTH, TULIA) == pytest.approx(
        {"a": 0.7 / 61 / most, "b": (0.7 / 62 + 0.3 / 61) / most, "c": 0.3 / 62 / most, "d": 0.7 / 63 / most}, rel=1e-12
    )


@pytest.mark.req("R-HYB-05")
def test_weighted_is_min_max_times_weight() -> None:
    found = fuse("weighted", BOTH, TULIA, 60)
    assert {one.chunk_id: one.score for one in found} == pytest.approx(
        {"a": 0.7 * 1.0, "b": 0.7 * 0.8 + 0.3 * 1.0, "c": 0.0, "d": 0.0}, rel=1e-12
    )
    assert [one.chunk_id for one in found] == ["b", "a", "c", "d"]


@pytest.mark.req("R-HYB-05")
def test_an_id_in_one_list_gets_only_that_part() -> None:
    found = scores("weighted", {"dense": [Candidate("a", 1.0)], "lexical": [Candidate("b", 1.0)]}, TULIA)
    assert found == pytest.approx({"a": 0.7, "b": 0.3})


def test_zscore_is_the_logistic_of_weighted_standard_scores() -> None:
    def standard(values: dict[str, float]) -> dict[str, float]:
        mean = sum(values.values()) / len(values)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in values.values()) / len(values))
        return {key: (value - mean) / deviation for key, value in values.items()}

    dense = standard({"a": 0.9, "b": 0.8, "c": 0.4, "d": 0.4})
    lexical = standard({"a": 3.0, "b": 12.0, "c": 3.0, "d": 3.0})
    wanted = {key: 1 / (1 + math.exp(-(0.7 * dense[key] + 0.3 * lexical[key]))) for key in "abcd"}
    assert scores("zscore", BOTH, TULIA) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.req("R-HYB-31")
@pytest.mark.parametrize("strategy", list(STRATEGIES))
@pytest.mark.parametrize(
    "arms",
    [
        {},
        {"dense": []},
        {"dense": [], "lexical": []},
        {"dense": DENSE, "lexical": []},
        {"dense": [Candidate("a", 0.5), Candidate("b", 0.5)], "lexical": [Candidate("c", 0.0)]},
        {"dense": [Candidate("a", 0.0)]},
    ],
)
def test_equal_scores_and_empty_lists_divide_by_nothing(strategy: Fusion, arms: dict[str, list[Candidate]]) -> None:
    found = scores(strategy, arms, TULIA)
    assert set(found) == {one.chunk_id for candidates in arms.values() for one in candidates}
    assert all(0 <= score <= 1 for score in found.values())


def test_a_list_of_equals_counts_in_full() -> None:
    equal = [Candidate("a", 0.5), Candidate("b", 0.5)]
    assert scores("weighted", {"dense": equal}, TULIA) == {"a": 1.0, "b": 1.0}
    assert scores("zscore", {"dense": equal}, TULIA) == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_an_arm_without_weight_does_not_break(strategy: Fusion) -> None:
    found = scores(strategy, {"lexical": LEXICAL}, {"dense": 1.0, "lexical": 0.0})
    assert set(found) == {"b", "c"}
    assert all(0 <= score <= 1 for score in found.values())


@pytest.mark.req("R-HYB-32")
@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_ties_go_by_id(strategy: Fusion) -> None:
    dense = [Candidate("z", 0.5), Candidate("m", 0.5)]
    lexical = [Candidate("m", 0.5), Candidate("z", 0.5)]
    for arms in ({"dense": dense, "lexical": lexical}, {"lexical": lexical, "dense": dense}):
        assert [one.chunk_id for one in fuse(strategy, arms, EVEN, 60)] == ["m", "z"]


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_raw_scores_and_ranks_stand_beside_the_fused_one(strategy: Fusion) -> None:
    found = {one.chunk_id: one.scores for one in fuse(strategy, BOTH, TULIA, 60)}
    assert found == {
        "a": {"dense": 0.9, "dense_rank": 1},
        "b": {"dense": 0.8, "dense_rank": 2, "lexical": 12.0, "lexical_rank": 1},
        "c": {"lexical": 3.0, "lexical_rank": 2},
        "d": {"dense": 0.4, "dense_rank": 3},
    }


@pytest.mark.parametrize("strategy", list(STRATEGIES))
@given(dense=LISTS, lexical=LISTS, weight=st.floats(0, 1))
def test_scores_are_between_0_and_1_and_sorted(
    strategy: Fusion, dense: list[Candidate], lexical: list[Candidate], weight: float
) -> None:
    found = fuse(strategy, {"dense": dense, "lexical": lexical}, {"dense": weight, "lexical": 1 - weight}, 60)
    assert all(0 <= one.score <= 1 + 1e-9 for one in found)
    assert found == sorted(found, key=lambda one: (-one.score, one.chunk_id))


@pytest.mark.parametrize("strategy", ["rrf", "weighted", "weighted_rrf", "zscore"])
def test_every_named_strategy_can_be_set(strategy: Fusion) -> None:
    assert RetrievalSettings(fusion=strategy).fusion == strategy
    assert strategy in STRATEGIES
