"""Phases that are off fall back to pure vector search."""

from __future__ import annotations

from tests.unit.query.doubles import ask

from ragstone.query.rollout import fall_back, use_phase


def test_a_phase_that_is_off_leaves_vectors_alone() -> None:
    request = ask(mode="thorough")
    fallen = fall_back(request, frozenset({"hybrid"}))
    assert (fallen.arms, fallen.mode, fallen.strategy, fallen.reranking) == ("dense", "balanced", "none", False)
    assert fall_back(request, frozenset({"tools"})) == request


def test_a_phase_counts_within_its_block() -> None:
    request = ask()
    with use_phase("tools"):
        assert fall_back(request, frozenset({"tools"})).arms == "dense"
    assert fall_back(request, frozenset({"tools"})) == request


def test_reranking_is_a_phase_of_its_own() -> None:
    fallen = fall_back(ask(), frozenset({"reranking"}))
    assert (fallen.arms, fallen.reranking) == ("hybrid", False)
