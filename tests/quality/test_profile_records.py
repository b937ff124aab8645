"""Figures of the designs, held against the recorded run of each profile: `make profiles` makes the record.

A record counts while the profile's file, the models and the data set are those it was made with.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench.profiles.record import LABELS, RECORDS, Record, hash_labels, hash_profile, read_records
from bench.profiles.stand_ins import EMBEDDER

from ragstone.evaluate.report import Judgement
from ragstone.models.weights.catalogue import known_model
from ragstone.settings.load import load_settings

ROOT = Path(__file__).parents[2]
DATA = {"takaro-docs": "cc0dd77b0dc85f3a52e845fe8cbbaff288ab5a67fdcbf7f739a4e5dc373a1d7b"}
"""The SHA-256 of data that is not part of the repository."""


def find_differences(record: Record) -> list[str]:
    """Return what the record was made with and is another today."""
    settings = load_settings(overrides={"profile": record.profile}, environment={})
    said = " ".join(record.stand_ins)
    found = []
    if record.profile_sha256 != hash_profile(record.profile):
        found.append("profile")
    own = settings.embedding.model
    known = known_model(EMBEDDER if f"in place of {own}" in said else own)
    if known is None or record.models["embedding"] != known.id:
        found.append("embedding model")
    if settings.reranking.kind != "none" and f"in place of {settings.reranking.model}" not in said.replace(
        "the LLM ", ""
    ):
        found.append("reranker")
    if record.data != {LABELS: hash_labels(), **{name: DATA.get(name) for name in record.data if name != LABELS}}:
        found.append("data")
    return found


def judge(profile: str, figure: str) -> Judgement:
    """Return how the recorded run of a profile does against its target; a record of something else is an error."""
    record = read_records(ROOT / RECORDS)[profile]
    assert find_differences(record) == [], f"make profiles has to measure {profile} again"
    target = load_settings(overrides={"profile": profile}, environment={}).targets[figure]
    return Judgement(figure, target, record.figures.get(f"10k.{figure}", record.figures.get(figure)))


@pytest.mark.parametrize(("profile", "figure"), [("takaro", "balanced.p95_ms"), ("takaro", "thorough.p95_ms")])
def test_a_recorded_run_meets_the_target_of_its_profile(profile: str, figure: str) -> None:
    assert judge(profile, figure).verdict == "met"


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"profile_sha256": "0" * 64}, "profile"),
        ({"models": {"embedding": "another@1", "reranker": "stand-in"}}, "embedding model"),
        ({"stand_ins": ()}, "reranker"),
        ({"data": {LABELS: "0" * 64}}, "data"),
        ({"data": {LABELS: hash_labels(), "takaro-docs": "0" * 64}}, "data"),
    ],
)
def test_a_record_that_was_made_with_something_else_is_told(change: dict[str, object], difference: str) -> None:
    record = read_records(ROOT / RECORDS)["takaro"]
    assert find_differences(record) == []
    assert difference in find_differences(replace(record, **change))  # type: ignore[arg-type]
