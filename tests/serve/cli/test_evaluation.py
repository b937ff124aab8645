from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragstone.core.settings import Settings
from ragstone.serve.cli.evaluation import chosen_systems, kb_name
from ragstone.testing.fakes import FakeEmbedder

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

CORPUS = {
    "d1": "granite is an igneous rock",
    "d2": "marble was limestone once",
    "d3": "slate splits into sheets",
}
QUERIES = {"q1": ("what kind of rock is granite", "d1"), "q2": ("limestone becomes marble", "d2")}


def _write(folder: Path, corpus: dict[str, str]) -> Path:
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"_id": key, "title": "", "text": text}) for key, text in corpus.items()]
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    lines = [json.dumps({"_id": key, "text": text}) for key, (text, _) in QUERIES.items()]
    (folder / "queries.jsonl").write_text("\n".join(lines))
    judged = [f"{key}\t{document}\t1" for key, (_, document) in QUERIES.items()]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
    return folder


@pytest.fixture
def rocks(tmp_path: Path) -> Path:
    return _write(tmp_path / "Rocks 1.0", CORPUS)


def test_rows_side_by_side(cli: Cli, rocks: Path) -> None:
    ran = cli("eval", rocks, "--json")
    assert (ran.code, ran.err) == (0, "")
    report = ran.json
    assert (report["dataset"], report["documents"], report["queries"]) == ("Rocks 1.0", 3, 2)
    assert [row["system"] for row in report["rows"]] == ["lexical", "dense", "hybrid"]
    for row in report["rows"]:
        assert row["ndcg@10"] == 1.0
        assert {"recall@10", "recall@100", "mrr@10", "p@5", "p50_ms", "p95_ms"} <= set(row)
    assert report["models"] == {"embedding": "fake@1", "reranker": None}
    assert report["profile"] == "default"
    pairs = {(entry["system"], entry["against"]) for entry in report["compare"]}
    assert pairs == {("hybrid", "lexical"), ("hybrid", "dense")}
    assert cli("kb", "list", "--json").json["kbs"][0]["name"] == "eval-rocks-1-0"


def test_a_table_for_people(cli: Cli, rocks: Path) -> None:
    lines = [
        line.split()
        for line in cli("eval", rocks, "--systems", "hybrid,lexical", "--limit", "1").out.splitlines()
    ]
    assert lines[0] == ["Rocks", "1.0:", "3", "documents,", "1", "queries"]
    assert [line[0] for line in lines[2:4]] == ["hybrid", "lexical"]


def test_no_system_profits_from_what_another_has_cached(
    cli: Cli, rocks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models: list[FakeEmbedder] = []

    def fresh(_: object) -> FakeEmbedder:
        models.append(FakeEmbedder())
        return models[-1]

    monkeypatch.setattr("ragstone.wiring.build_embedder", fresh)
    assert cli("eval", rocks, "--systems", "dense,hybrid,fast", "--json").code == 0
    asked = [{text for texts, role in model.calls if role == "query" for text in texts} for model in models]
    assert asked.count({text for text, _ in QUERIES.values()}) == 3


def test_another_data_set_of_the_same_name_leaves_nothing_behind(cli: Cli, rocks: Path) -> None:
    cli("eval", rocks, "--json")
    _write(rocks, {"d1": CORPUS["d1"], "d2": CORPUS["d2"]})
    assert cli("eval", rocks, "--json").json["documents"] == 2
    assert cli("stats", "--kb", "eval-rocks-1-0", "--json").json["documents"] == 2


def test_a_folder_that_is_no_data_set(cli: Cli, tmp_path: Path) -> None:
    ran = cli("eval", tmp_path)
    assert ran.code == 2
    assert "hint: a data set is a folder with corpus.jsonl" in ran.err


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("hybrid,zork", "there is no system 'zork'"),
        (",", "names none"),
        ("reranked", "'reranked' needs a reranker"),
    ],
)
def test_systems_that_cannot_be(cli: Cli, rocks: Path, names: str, message: str) -> None:
    ran = cli("eval", rocks, "--systems", names)
    assert ran.code == 2
    assert message in ran.err


def test_a_configured_reranker_gets_a_row() -> None:
    settings = Settings.model_validate({"reranking": {"kind": "cross_encoder"}})
    assert chosen_systems(None, settings) == ["lexical", "dense", "hybrid", "reranked"]
    assert chosen_systems(None, Settings()) == ["lexical", "dense", "hybrid"]


def test_the_reranked_row_is_reranked_and_the_others_are_not(
    cli: Cli, rocks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragstone.testing.fakes import FakeReranker

    reranker = FakeReranker()
    asked: list[str] = []

    def build(settings: object) -> FakeReranker | None:
        kind = str(getattr(settings, "kind", ""))
        asked.append(kind)
        return reranker if kind != "none" else None

    monkeypatch.setattr("ragstone.wiring.build_reranker", build)
    monkeypatch.setenv("RAGSTONE_RERANKING__KIND", "cross_encoder")
    report = cli("eval", rocks, "--systems", "hybrid,reranked", "--json").json
    assert report["models"]["reranker"] == "cross-encoder/ms-marco-MiniLM-L-6-v2"
    assert len(reranker.calls) == 3  # two queries and the first one ahead, by one system only
    assert {(entry["system"], entry["against"]) for entry in report["compare"]} == {("reranked", "hybrid")}
    assert asked.count("none") == 1


@pytest.mark.parametrize(
    ("folder", "name"),
    [("scifact", "eval-scifact"), ("My Data_2", "eval-my-data_2"), ("x" * 90, "eval-" + "x" * 58)],
)
def test_kb_names(folder: str, name: str) -> None:
    assert kb_name(folder) == name


def test_a_kb_with_documents_of_ones_own_is_left_alone(cli: Cli, rocks: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("# Mine\n\nThis note is not of the data set.")
    assert cli("ingest", tmp_path / "mine.md", "--kb", "notes").code == 0
    ran = cli("eval", rocks, "--kb", "notes", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "invalid_input")
    assert cli("stats", "--kb", "notes", "--json").json["documents"] == 1


def test_documents_that_fail_are_named_and_end_with_3(cli: Cli, tmp_path: Path) -> None:
    folder = _write(tmp_path / "Holes", {**CORPUS, "d4": " "})
    ran = cli("eval", folder, "--json")
    assert ran.code == 3
    assert [failure["code"] for failure in ran.json["failed"]] == ["empty_document"]
