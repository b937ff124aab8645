from __future__ import annotations

import pytest
from pydantic import ValidationError

from ragstone.core.documents import IngestReport
from ragstone.core.types import Failure
from ragstone.evaluate.report import Judgement, figures_of_ingest, figures_of_rows, judgements, readable_share
from ragstone.evaluate.runner import SystemScores
from ragstone.settings.load import load_settings
from ragstone.settings.targets import Target


def _target(profile: str, name: str) -> Target:
    return load_settings(overrides={"profile": profile}, environment={}).targets[name]


@pytest.mark.parametrize(
    ("profile", "name", "bound", "alert"),
    [
        ("ghostwriter", "p95_ms", "< 500", 1000),
        ("ghostwriter", "recall@10", "> 0.8", 0.6),
        ("ghostwriter", "p@5", "> 0.9", 0.7),
        ("ghostwriter", "mrr@10", "> 0.85", 0.7),
        ("ghostwriter", "ndcg@10", "> 0.85", 0.7),
        ("ghostwriter", "ingest.success", "> 0.99", 0.95),
        ("ghostwriter", "ingest.minutes", "< 30", 60),
        ("ghostwriter", "chunks.readable", "> 0.9", 0.8),
        ("ghostwriter", "embedding.errors", "< 0.01", 0.05),
        ("kosmos", "p50_ms", "< 100", 200),
        ("kosmos", "p99_ms", "< 500", 1000),
        ("kosmos", "ingest.ms_per_document", "< 50", 100),
        ("kosmos", "rerank.p95_ms", "< 100", 200),
        ("kosmos", "recall@10", "> 0.8", 0.7),
        ("kosmos", "mrr@10", "> 0.6", 0.5),
        ("tulia", "p95_ms", "< 300", None),
        ("takaro", "fast.p95_ms", "< 200", None),
        ("takaro", "balanced.p95_ms", "< 500", None),
        ("takaro", "thorough.p95_ms", "< 2000", None),
        ("rpg", "p95_ms", "< 200", None),
        ("rpg", "ingest.minutes_per_10k_chunks", "< 5", None),
        ("rpg", "memory_mb", "< 2048", None),
    ],
)
def test_targets_of_the_profiles(profile: str, name: str, bound: str, alert: float | None) -> None:
    target = _target(profile, name)
    assert (str(target), target.alert) == (bound, alert)
    better = 0.999 if target.above is None else 1.001
    at = target.below if target.above is None else target.above
    assert at is not None
    figures = {name: at * better}
    assert [one.verdict for one in judgements({name: target}, figures)] == ["met"]
    assert Judgement(name, target, at).verdict == "not met"
    if alert is not None:
        assert Judgement(name, target, alert / better).verdict == "alert"


@pytest.mark.parametrize(
    ("target", "measured", "verdict"),
    [
        (Target(above=0.8, alert=0.6), 0.81, "met"),
        (Target(above=0.8, alert=0.6), 0.8, "not met"),
        (Target(above=0.8, alert=0.6), 0.6, "not met"),
        (Target(above=0.8, alert=0.6), 0.59, "alert"),
        (Target(below=500, alert=1000), 499.9, "met"),
        (Target(below=500, alert=1000), 500, "not met"),
        (Target(below=500, alert=1000), 1001, "alert"),
        (Target(below=500), 9999, "not met"),
        (Target(below=500), None, "not measured"),
    ],
)
def test_verdicts(target: Target, measured: float | None, verdict: str) -> None:
    assert Judgement("x", target, measured).verdict == verdict


@pytest.mark.parametrize("bounds", [{}, {"above": 1, "below": 2}])
def test_a_target_has_one_bound(bounds: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="either 'above' or 'below'"):
        Target(**bounds)


def test_figures_by_system_and_of_the_main_one() -> None:
    row = SystemScores("fast", {"p@5": 0.5}, {"p@5": (0.5,)}, (10.0, 20.0), stages={"rerank": (4.0, 4.0)})
    figures = figures_of_rows([row], "fast")
    assert (figures["fast.p50_ms"], figures["p50_ms"], figures["p@5"]) == (15.0, 15.0, 0.5)
    assert figures["rerank.p95_ms"] == 4.0
    assert "p50_ms" not in figures_of_rows([row], "balanced")


def test_figures_of_an_ingest() -> None:
    failures = (Failure("a", "model_failed", ""), Failure("b", "parse_failed", ""))
    report = IngestReport(8, 0, 0, failures, 8, 100, 60.0, skipped_chunks=1)
    figures = figures_of_ingest(report)
    assert figures["ingest.success"] == pytest.approx(0.8)
    assert figures["ingest.minutes"] == 1.0
    assert figures["ingest.ms_per_document"] == 7500
    assert figures["embedding.errors"] == pytest.approx(2 / 101)
    assert figures["ingest.minutes_per_10k_chunks"] == 100
    assert figures_of_ingest(IngestReport(0, 0, 8, (), 8, 100, 1.0)) == {"ingest.success": 1.0}


def test_chunks_that_a_person_could_read() -> None:
    assert readable_share([]) is None
    texts = ["A sentence that anybody can read.", "%$#@!*&^(){}[]|<>~`+=-", "short", "\ufffd" * 3 + " broken text here"]
    assert readable_share(texts) == 0.25


def test_a_stage_does_not_hide_the_system_of_the_same_name() -> None:
    metrics = {"ndcg@10": 1.0}
    dense = SystemScores("dense", metrics, {"ndcg@10": (1.0,)}, (40.0,))
    fast = SystemScores("fast", metrics, {"ndcg@10": (1.0,)}, (90.0,), stages={"dense": (5.0,), "fuse": (1.0,)})
    figures = figures_of_rows([dense, fast], "fast")
    assert (figures["dense.p95_ms"], figures["fast.dense.p95_ms"], figures["fuse.p95_ms"]) == (40.0, 5.0, 1.0)
