"""The record that `make profiles` writes, and when a figure in it counts.

A figure counts for a requirement when it meets the target and the record was made with the profile's file, models and
data set of today. To claim one, add a test with its mark that calls `check_figure` with the committed record.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench.profiles.record import LABELS, RECORDS, Record, hash_labels, hash_profile, read_records
from bench.profiles.stand_ins import EMBEDDER

from ragstone.evaluate.report import Judgement
from ragstone.models.weights.catalogue import known_model
from ragstone.settings.load import load_settings

ROOT = Path(__file__).parents[2]
DATA = {
    "takaro-docs": "cc0dd77b0dc85f3a52e845fe8cbbaff288ab5a67fdcbf7f739a4e5dc373a1d7b",
    "synthetic 10k": "95d541c45c7a8632c453e1c5bb6ad90faaee0193849bc5a9463a48dd06ee17ed",
}
"""The SHA-256 of data that is not part of the repository."""
GRANITE = known_model(EMBEDDER)
TAKARO = Record(
    profile="takaro",
    profile_sha256=hash_profile("takaro"),
    models={"embedding": GRANITE.id if GRANITE else "", "reranker": "stand-in"},
    data={LABELS: hash_labels(), **DATA},
    stand_ins=(
        f"embedder {EMBEDDER} with 384 dimensions in place of text-embedding-3-small with 1536",
        "a service in place of the LLM meta-llama/llama-3.1-8b-instruct",
    ),
    figures={"fast.p95_ms": 199.9, "balanced.p95_ms": 500.0},
)
"""As `make profiles` would write it today."""


def find_differences(record: Record) -> list[str]:
    """Return what the record was made with and is another today."""
    settings = load_settings(overrides={"profile": record.profile}, environment={})
    said = " ".join(record.stand_ins).replace("in place of the LLM ", "in place of ")
    found = []
    if record.profile_sha256 != hash_profile(record.profile):
        found.append("profile")
    own = settings.embedding.model
    known = known_model(EMBEDDER if f"in place of {own}" in said else own)
    if known is None or record.models["embedding"] != known.id:
        found.append("embedding model")
    named = settings.reranking.model
    if settings.reranking.kind != "none" and named not in (record.models.get("reranker"), None):
        found += [] if f"in place of {named}" in said else ["reranker"]
    if record.data != {LABELS: hash_labels(), **{name: DATA.get(name) for name in record.data if name != LABELS}}:
        found.append("data")
    return found


def check_figure(record: Record, figure: str) -> None:
    """Raise unless the record is of today and its figure meets the target of its profile."""
    assert find_differences(record) == [], f"measure {record.profile} again: make profiles"
    target = load_settings(overrides={"profile": record.profile}, environment={}).targets[figure]
    judgement = Judgement(figure, target, record.figures.get(f"10k.{figure}", record.figures.get(figure)))
    assert judgement.verdict == "met", f"{figure} is {judgement.measured}, and the target {target}"


def test_a_record_of_today_that_meets_its_target_counts() -> None:
    check_figure(TAKARO, "fast.p95_ms")


@pytest.mark.parametrize("figure", ["balanced.p95_ms", "thorough.p95_ms"])
def test_a_figure_that_misses_its_target_or_is_not_there_does_not_count(figure: str) -> None:
    with pytest.raises(AssertionError, match="and the target"):
        check_figure(TAKARO, figure)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"profile_sha256": "0" * 64}, "profile"),
        ({"models": {"embedding": "another@1", "reranker": "stand-in"}}, "embedding model"),
        ({"stand_ins": TAKARO.stand_ins[:1]}, "reranker"),
        ({"data": {LABELS: "0" * 64, **DATA}}, "data"),
        ({"data": {LABELS: hash_labels(), "takaro-docs": "0" * 64}}, "data"),
    ],
)
def test_a_record_that_was_made_with_something_else_does_not_count(change: dict[str, Any], difference: str) -> None:
    changed = replace(TAKARO, **change)
    assert find_differences(changed) == [difference]
    with pytest.raises(AssertionError, match="measure takaro again"):
        check_figure(changed, "fast.p95_ms")


@pytest.mark.req("R-EVL-17", "R-MOD-01", "R-TST-10")
@pytest.mark.parametrize("figure", ["fast.p95_ms", "balanced.p95_ms", "thorough.p95_ms"])
def test_takaro_answers_within_the_time_of_each_mode(figure: str) -> None:
    check_figure(read_records(ROOT / RECORDS)["takaro"], figure)


@pytest.mark.parametrize(
    ("profile", "figure"),
    [
        pytest.param("ghostwriter", "p95_ms", marks=pytest.mark.req("R-EVL-01")),
        pytest.param("ghostwriter", "recall@10", marks=pytest.mark.req("R-EVL-02")),
        pytest.param("ghostwriter", "mrr@10", marks=pytest.mark.req("R-EVL-04")),
        pytest.param("ghostwriter", "ndcg@10", marks=pytest.mark.req("R-EVL-05")),
        pytest.param("ghostwriter", "ingest.success", marks=pytest.mark.req("R-EVL-06")),
        pytest.param("ghostwriter", "ingest.minutes", marks=pytest.mark.req("R-EVL-07")),
        pytest.param("ghostwriter", "chunks.readable", marks=pytest.mark.req("R-EVL-08")),
        pytest.param("ghostwriter", "embedding.errors", marks=pytest.mark.req("R-EVL-09")),
        pytest.param("kosmos", "p50_ms", marks=pytest.mark.req("R-EVL-10")),
        pytest.param("kosmos", "p99_ms", marks=pytest.mark.req("R-EVL-11")),
        pytest.param("kosmos", "recall@10", marks=pytest.mark.req("R-EVL-14")),
        pytest.param("kosmos", "mrr@10", marks=pytest.mark.req("R-EVL-15")),
        pytest.param("tulia", "p95_ms", marks=pytest.mark.req("R-EVL-16")),
        pytest.param("rpg", "p95_ms", marks=pytest.mark.req("R-EVL-18")),
        pytest.param("rpg", "memory_mb", marks=pytest.mark.req("R-EVL-20")),
    ],
)
def test_a_recorded_figure_meets_the_target_of_its_profile(profile: str, figure: str) -> None:
    check_figure(read_records(ROOT / RECORDS)[profile], figure)


def test_the_committed_record_has_every_target_of_its_profiles() -> None:
    records = read_records(ROOT / RECORDS)
    assert records
    for name, record in records.items():
        targets = set(load_settings(overrides={"profile": name}, environment={}).targets)
        if any(stage.endswith("rerank: out of time") for stage in record.degraded):
            targets.discard("rerank.p95_ms")
        assert [figure for figure in targets if not {figure, f"10k.{figure}"} & record.figures.keys()] == []
        assert {LABELS, "takaro-docs"} <= record.data.keys()
        assert record.stand_ins or record.models["embedding"].startswith(
            load_settings(overrides={"profile": name}, environment={}).embedding.model.rpartition("/")[2]
        )
