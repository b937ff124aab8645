from __future__ import annotations

from pathlib import Path

import pytest
from bench.profiles import record as records
from bench.profiles.page import REQUIREMENTS, judge, render_page
from bench.profiles.record import PROFILES, Record, hash_folder, hash_profile, read_records, write_records
from bench.profiles.stand_ins import EMBEDDER, with_local_embedder, with_local_reranker

from ragstone.settings.load import load_settings

FIGURES = {
    **{f"{system}.{metric}": 0.5 for system in ("hybrid", "dense") for metric in ("hit@1", "hit@5", "ndcg@10")},
    **dict.fromkeys(("passages.p@5", "documents", "chunks", "ingest.minutes", "memory_mb"), 1.0),
    "p95_ms": 150.0,
}
MADE = {"machine": "two cores", "load": 1.0, "commit": "abc", "date": "2026-11-17", "minutes": 3}


def record_of(profile: str, **figures: float) -> Record:
    models = {"embedding": "model@1"}
    return Record(profile, hash_profile(profile), models, {}, ("a local model",), {**FIGURES, **figures}, made=MADE)


def test_what_was_written_is_read_in_the_order_of_the_profiles(tmp_path: Path) -> None:
    written = [record_of("rpg"), record_of("ghostwriter")]
    write_records(written, tmp_path / "records.json")
    assert list(read_records(tmp_path / "records.json").values()) == written[::-1]
    assert read_records(tmp_path / "none.json") == {}


@pytest.mark.parametrize("name", ["a.md", "deep/a.md"])
def test_the_hash_of_a_folder_changes_with_names_and_contents(tmp_path: Path, name: str) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "b.md").write_text("b")
    before = hash_folder(tmp_path)
    (tmp_path / name).write_text("a")
    added = hash_folder(tmp_path)
    (tmp_path / name).write_text("c")
    assert len({before, added, hash_folder(tmp_path)}) == 3


def test_the_hash_of_a_profile_is_that_of_its_file() -> None:
    assert len({hash_profile(name) for name in PROFILES}) == len(PROFILES)
    assert records.hash_labels() == records.hash_labels()


def test_a_missed_target_is_said_and_ten_thousand_chunks_count_before_few() -> None:
    record = record_of("rpg", **{"10k.p95_ms": 250.0, "memory_mb": 900.0})
    verdicts = {judgement.name: (requirement, judgement.verdict) for requirement, judgement in judge(record)}
    assert verdicts == {
        "p95_ms": ("R-EVL-18", "not met"),
        "ingest.minutes_per_10k_chunks": ("R-EVL-19", "not measured"),
        "memory_mb": ("R-EVL-20", "met"),
    }
    page = render_page([record])
    assert "| `p95_ms` | < 200 | 250.000 | **not met** | R-EVL-18 |" in page
    assert "- Stand-ins: a local model" in page


def test_every_target_of_a_profile_belongs_to_a_requirement() -> None:
    for profile in PROFILES:
        targets = load_settings(overrides={"profile": profile}, environment={}).targets
        assert set(targets) == set(REQUIREMENTS[profile])


@pytest.mark.parametrize("profile", PROFILES)
def test_no_paid_model_is_left_and_every_change_is_said(profile: str) -> None:
    named = load_settings(overrides={"profile": profile}, environment={})
    settings, said = with_local_embedder(named)
    assert settings.embedding.fallback is None
    assert bool(said) == (settings.embedding.model == EMBEDDER)
    with with_local_reranker(settings) as (changed, also):
        assert bool(also) == (named.reranking.kind != "none")
        assert named.reranking.kind != "llm" or "127.0.0.1" in str(changed.llm.base_url)
