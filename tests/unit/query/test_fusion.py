"""Putting two lists together, to the last digit."""

from __future__ import annotations

import math
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragstone.core.types import Candidate
from ragstone.query.arms import fuse
from ragstone.settings.retrieval import Fusion, RetrievalSettings

STRATEGIES: tuple[Fusion, ...] = get_args(Fusion)
DEPTH = 100
"""More than any list here has, so that no arm is full."""
EVEN = {"dense": 0.5, "lexical": 0.5}
TULIA = {"dense": 0.7, "lexical": 0.3}
DENSE = [Candidate("a", 0.9), Candidate("b", 0.8), Candidate("d", 0.4)]
LEXICAL = [Candidate("b", 12.0), Candidate("c", 3.0)]
BOTH = {"dense": DENSE, "lexical": LEXICAL}
LISTS = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.floats(-1, 50)), unique_by=lambda pair: pair[0], max_size=8
).map(lambda pairs: sorted((Candidate(*pair) for pair in pairs), key=lambda one: -one.score))


def scores(
    strategy: Fusion, arms: dict[str, list[Candidate]], weights: dict[str, float], k: int = 60, depth: int = DEPTH
) -> dict[str, float]:
    return {one.chunk_id: one.score for one in fuse(strategy, arms, weights, rrf_k=k, depth=depth)}


@pytest.mark.req("R-HYB-02", "R-HYB-03", "R-TST-06")
@pytest.mark.parametrize("rrf_k", [60, 1, 10])
def test_rrf_is_the_sum_of_reciprocal_ranks(rrf_k: int) -> None:
    most = 2 / (rrf_k + 1)
    found = fuse("rrf", BOTH, EVEN, rrf_k=rrf_k, depth=DEPTH)
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
    found = fuse("weighted", BOTH, TULIA, rrf_k=60, depth=DEPTH)
    assert {one.chunk_id: one.score for one in found} == pytest.approx(
        {"a": 0.7 * 1.0, "b": 0.7 * 0.8 + 0.3 * 1.0, "c": 0.0, "d": 0.0}, rel=1e-12
    )
    assert [one.chunk_id for one in found] == ["b", "a", "c", "d"]


@pytest.mark.req("R-HYB-05")
def test_an_id_in_one_list_gets_only_that_part() -> None:
    found = scores("weighted", {"dense": [Candidate("a", 1.0)], "lexical": [Candidate("b", 1.0)]}, TULIA)
    assert found == pytest.approx({"a": 0.7, "b": 0.3})


def test_zscore_weighs_each_arm_in_units_of_its_spread() -> None:
    size = 2.5 * math.sqrt((12**2 + 3**2) / 4)
    wanted = {"a": 0.7, "b": 0.7 * 0.8 + 0.3 * 12 / size, "c": 0.3 * 3 / size, "d": 0.0}
    curved = {key: 1 - math.exp(-2 * value) for key, value in wanted.items()}
    assert scores("zscore", BOTH, TULIA) == pytest.approx(curved, rel=1e-12)


def test_what_a_full_arm_left_out_counts_as_its_weakest() -> None:
    size = 2.5 * math.sqrt((12**2 + 3**2) / 4)
    wanted = {"a": 0.7 + 0.3 * 3 / size, "b": 0.7 * 0.8 + 0.3 * 12 / size, "c": 0.3 * 3 / size, "d": 0.3 * 3 / size}
    curved = {key: 1 - math.exp(-2 * value) for key, value in wanted.items()}
    assert scores("zscore", BOTH, TULIA, depth=2) == pytest.approx(curved, rel=1e-12)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_only_passage_with_the_words_is_not_lost(strategy: Fusion) -> None:
    dense = [Candidate(name, 0.8 - 0.01 * rank) for rank, name in enumerate("abcdefgh")]
    found = fuse(strategy, {"dense": dense, "lexical": [Candidate("c", 9.0)]}, TULIA, rrf_k=60, depth=DEPTH)
    assert found[0].chunk_id == "c"


SCORES = st.integers(-10, 500).map(lambda tenths: tenths / 10)
RATED = st.dictionaries(st.sampled_from("abcdefgh"), SCORES, min_size=1)


def in_order(rated: dict[str, float]) -> list[Candidate]:
    return [Candidate(*pair) for pair in sorted(rated.items(), key=lambda pair: (-pair[1], pair[0]))]


def rank_of(name: str, strategy: Fusion, arms: dict[str, dict[str, float]], weight: float, depth: int) -> int:
    weights = {"dense": weight, "lexical": 1 - weight}
    lists = {arm: in_order(rated) for arm, rated in arms.items()}
    found = {one.chunk_id: round(one.score, 9) for one in fuse(strategy, lists, weights, rrf_k=60, depth=depth)}
    return sum(score > found[name] for score in found.values())


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(dense=RATED, lexical=RATED, weight=st.floats(0.05, 0.95), depth=st.sampled_from([4, DEPTH]))
def test_what_both_arms_rank_first_is_first(
    strategy: Fusion, dense: dict[str, float], lexical: dict[str, float], weight: float, depth: int
) -> None:
    arms = {"dense": {**dense, "z": 60.0}, "lexical": {**lexical, "z": 60.0}}
    assert rank_of("z", strategy, arms, weight, depth) == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(
    dense=RATED,
    lexical=RATED,
    weight=st.floats(0.05, 0.95),
    arm=st.sampled_from(["dense", "lexical"]),
    more=st.integers(1, 300).map(lambda tenths: tenths / 10),
    depth=st.sampled_from([4, DEPTH]),
)
@example(dense={"a": 0.0}, lexical={"b": 0.0}, weight=0.5, arm="lexical", more=0.1, depth=4)
def test_a_higher_score_never_lowers_a_rank(
    strategy: Fusion,
    dense: dict[str, float],
    lexical: dict[str, float],
    weight: float,
    arm: str,
    more: float,
    depth: int,
) -> None:
    arms = {"dense": dense, "lexical": lexical}
    for name, score in arms[arm].items():
        raised = {**arms, arm: {**arms[arm], name: score + more}}
        before = rank_of(name, strategy, arms, weight, depth)
        assert rank_of(name, strategy, raised, weight, depth) <= before


@pytest.mark.parametrize("strategy", ["rrf", "weighted_rrf"])
@given(dense=RATED, lexical=RATED, weight=st.floats(0.05, 0.95))
def test_a_candidate_last_in_both_arms_reorders_nothing(
    strategy: Fusion, dense: dict[str, float], lexical: dict[str, float], weight: float
) -> None:
    weights = {"dense": weight, "lexical": 1 - weight}

    def order(extra: dict[str, float]) -> list[str]:
        lists = {"dense": in_order({**dense, **extra}), "lexical": in_order({**lexical, **extra})}
        return [one.chunk_id for one in fuse(strategy, lists, weights, rrf_k=60, depth=DEPTH)]

    assert [name for name in order({"z": -5.0}) if name != "z"] == order({})


@pytest.mark.req("R-HYB-31")
@pytest.mark.parametrize("strategy", STRATEGIES)
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
    assert len(set(scores("zscore", {"dense": equal}, TULIA).values())) == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_arm_without_weight_does_not_break(strategy: Fusion) -> None:
    found = scores(strategy, {"lexical": LEXICAL}, {"dense": 1.0, "lexical": 0.0})
    assert set(found) == {"b", "c"}
    assert all(0 <= score <= 1 for score in found.values())


@pytest.mark.req("R-HYB-32")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_ties_go_by_id(strategy: Fusion) -> None:
    dense = [Candidate("z", 0.5), Candidate("m", 0.5)]
    lexical = [Candidate("m", 0.5), Candidate("z", 0.5)]
    for arms in ({"dense": dense, "lexical": lexical}, {"lexical": lexical, "dense": dense}):
        assert [one.chunk_id for one in fuse(strategy, arms, EVEN, rrf_k=60, depth=DEPTH)] == ["m", "z"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_raw_scores_and_ranks_stand_beside_the_fused_one(strategy: Fusion) -> None:
    found = {one.chunk_id: one.scores for one in fuse(strategy, BOTH, TULIA, rrf_k=60, depth=DEPTH)}
    assert found == {
        "a": {"dense": 0.9, "dense_rank": 1},
        "b": {"dense": 0.8, "dense_rank": 2, "lexical": 12.0, "lexical_rank": 1},
        "c": {"lexical": 3.0, "lexical_rank": 2},
        "d": {"dense": 0.4, "dense_rank": 3},
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(dense=LISTS, lexical=LISTS, weight=st.floats(0, 1))
def test_scores_are_between_0_and_1_and_sorted(
    strategy: Fusion, dense: list[Candidate], lexical: list[Candidate], weight: float
) -> None:
    weights = {"dense": weight, "lexical": 1 - weight}
    found = fuse(strategy, {"dense": dense, "lexical": lexical}, weights, rrf_k=60, depth=DEPTH)
    assert all(0 <= one.score <= 1 + 1e-9 for one in found)
    assert found == sorted(found, key=lambda one: (-one.score, one.chunk_id))


@pytest.mark.parametrize("strategy", ["rrf", "weighted", "weighted_rrf", "zscore"])
def test_every_named_strategy_can_be_set(strategy: Fusion) -> None:
    assert RetrievalSettings(fusion=strategy).fusion == strategy
    assert strategy in STRATEGIES
