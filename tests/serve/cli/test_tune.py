from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import yaml

from ragstone import Item, Ragstone
from ragstone.serve.cli.commands.evaluate import read_sizes, why_not
from ragstone.settings.load import load_settings

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

STONES = [f"stone{number:02}" for number in range(30)]
FILLER = "this is a note about a thing that lies in the quarry and nobody has moved it since the day"


@pytest.fixture
def stones(tmp_path: Path) -> Path:
    """Documents that are told apart by a single word, which words find better than the fake model's vectors."""
    folder = tmp_path / "stones"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": name, "title": "", "text": f"{name} {FILLER} {number}"} for number, name in enumerate(STONES)]
    queries = [{"_id": name, "text": f"where in the quarry does {name} lie since the day"} for name in STONES]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    judged = "\n".join(f"{name}\t{name}\t1" for name in STONES)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return folder


@pytest.mark.req("R-TOL-37")
def test_votes_move_the_weights_by_which_results_are_ranked(cli: Cli, tmp_path: Path) -> None:
    notes = [Item("test", name, name, f"{name} {FILLER} {number}") for number, name in enumerate(STONES)]
    with Ragstone(data_dir=tmp_path / "ragstone-data") as stone:
        stone.ingest_items(notes)
        for name in STONES:
            query = f"where in the quarry does {name} lie since the day"
            (hit,) = stone.search(query, arms="lexical", k=1).hits
            assert hit.text.startswith(name)
            stone.feedback(query, [hit.chunk_id], "up")
    bad = tmp_path / "bad.yaml"
    bad.write_text("retrieval: {dense_weight: 1.0, fusion: weighted}")
    tuning = cli("tune", "--from-feedback", "--config", bad, "--budget-ms", "60000", "--json").json
    assert tuning["trained_on"] + tuning["held_out"] == len(STONES)
    assert tuning["better"] is True
    assert tuning["changes"].keys() & {"retrieval.fusion", "retrieval.dense_weight"}
    assert tuning["after"]["ndcg@10"] > tuning["before"]["ndcg@10"]


def test_settings_that_are_better_are_written_and_can_be_used(cli: Cli, stones: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("retrieval: {dense_weight: 1.0, fusion: weighted}")
    ran = cli("tune", stones, "--config", bad, "--budget-ms", "60000", "--json")
    assert ran.code == 0
    tuning = ran.json
    assert tuning["better"] is True
    assert tuning["low"] > 0
    assert tuning["trained_on"] + tuning["held_out"] == len(STONES)
    assert tuning["written"] == "tuned.yaml"
    written = yaml.safe_load(Path("tuned.yaml").read_text())
    assert {f"{section}.{name}": value for section, its in written.items() for name, value in its.items()} == (
        tuning["changes"]
    )
    settings = load_settings(config=Path("tuned.yaml"), environment={})
    assert settings.retrieval.fusion == tuning["changes"].get("retrieval.fusion", "zscore")


def test_settings_that_are_no_better_are_refused(cli: Cli, stones: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.yaml"
    good.write_text("retrieval: {arms: lexical}")  # whatever is turned, nothing can change
    ran = cli("tune", stones, "--config", good, "--budget-ms", "60000")
    assert ran.code == 1
    assert "nothing was written" in ran.out
    assert not Path("tuned.yaml").exists()


def test_a_file_that_is_there_is_not_overwritten(cli: Cli, stones: Path) -> None:
    Path("tuned.yaml").write_text("kb: mine")
    ran = cli("tune", stones)
    assert (ran.code, "tuned.yaml exists already" in ran.err) == (2, True)
    assert Path("tuned.yaml").read_text() == "kb: mine"


@pytest.mark.req("R-EVL-26")
def test_chunk_sizes_are_tried_on_documents_that_are_ingested_with_them(cli: Cli, stones: Path) -> None:
    trials = cli("tune", stones, "--chunk-sizes", "60,90", "--budget-ms", "60000", "--json").json["trials"]
    assert {trial["changes"].get("chunking.size") for trial in trials} >= {60, 90}
    assert len(cli("kb", "--data-dir", "eval/granite-embedding-30m-english", "--json").json["kbs"]) == 3


def test_too_few_votes_to_tune_by(filled: Cli) -> None:
    hit = filled("search", "dogs", "--json").json["hits"][0]
    filled("feedback", "add", "dogs", hit["chunk_id"], "--vote", "up")
    ran = filled("tune", "--from-feedback")
    assert (ran.code, "1 labelled queries are too few to tune by" in ran.err) == (2, True)


def test_chunk_sizes_as_typed() -> None:
    assert read_sizes(None) == ()
    assert read_sizes("200, 400") == (200, 400)


def test_chunk_sizes_that_are_none(cli: Cli, stones: Path) -> None:
    ran = cli("tune", stones, "--chunk-sizes", "small")
    assert (ran.code, "are not sizes" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("changes", "low", "took", "words"),
    [
        ({}, 0.0, 1.0, "no other settings found better than yours"),
        ({"retrieval.fusion": "rrf"}, -0.1, 1.0, "the best other settings may be no better than yours"),
        ({"retrieval.fusion": "rrf"}, 0.1, 90.0, "too slowly: p95 90 ms of 50 ms that are allowed"),
    ],
)
def test_why_nothing_is_written_is_said_plainly(changes: dict[str, str], low: float, took: float, words: str) -> None:
    row = SimpleNamespace(latency_ms=lambda _: took)
    tuning = SimpleNamespace(changes=changes, interval=SimpleNamespace(low=low), after=row, budget_ms=50.0)
    assert words in why_not(tuning)  # type: ignore[arg-type]
