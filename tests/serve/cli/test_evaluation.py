from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragstone.engine.experiments import ARMS, MODES, SYSTEMS, kb_name
from ragstone.serve.cli.commands import evaluate as evaluation
from ragstone.serve.cli.commands.evaluate import chosen_systems, read_changes
from ragstone.settings.tree import Settings
from ragstone.testing.fakes import FakeEmbedder

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

CORPUS = {"d1": "granite is an igneous rock", "d2": "marble was limestone once", "d3": "slate splits into sheets"}
MADE = "eval/granite-embedding-30m-english"
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
    assert [row["system"] for row in report["rows"]] == [*ARMS, *MODES]
    for row in report["rows"]:
        assert row["ndcg@10"] == 1.0
        assert {"recall@10", "recall@100", "mrr@10", "p@5", "p50_ms", "p95_ms"} <= set(row)
    assert report["models"] == {"embedding": "fake@1", "reranker": None}
    assert report["profile"] == "default"
    pairs = {(entry["system"], entry["against"]) for entry in report["compare"]}
    assert pairs == {
        *(("hybrid", arm) for arm in ("lexical", "dense")),
        *((mode, "hybrid") for mode in MODES),
        ("balanced", "fast"),
        ("thorough", "balanced"),
    }


def test_the_documents_of_a_data_set_stay_out_of_the_data_folder(cli: Cli, rocks: Path, embedder: FakeEmbedder) -> None:
    first = cli("eval", rocks, "--systems", "lexical", "--json").json
    assert not Path("ragstone-data").exists()
    ingested = len(embedder.calls)
    assert cli("eval", rocks, "--systems", "lexical", "--json").json["documents"] == first["documents"]
    assert (ingested, len(embedder.calls)) == (1, 1)  # kept for the next run


def test_a_kb_that_is_named_is_where_the_documents_are_wanted(cli: Cli, rocks: Path) -> None:
    assert cli("eval", rocks, "--kb", "rocks", "--systems", "lexical").code == 0
    assert [kb["name"] for kb in cli("kb", "--json").json["kbs"]] == ["rocks"]


def test_a_tenant_is_measured_where_it_is_and_nothing_stays_behind(cli: Cli, rocks: Path, pages: Path) -> None:
    cli("tenants", "create", "acme")
    cli("ingest", pages, "--tenant", "acme")
    report = cli("eval", rocks, "--tenant", "acme", "--compare", "chunking.context=false", "--json")
    assert (report.code, report.json["documents"]) == (0, 3)
    assert [kb["name"] for kb in cli("kb", "--tenant", "acme", "--json").json["kbs"]] == ["default"]


def test_a_kb_of_ones_own_with_the_name_of_a_data_set_is_not_removed(cli: Cli, rocks: Path, pages: Path) -> None:
    cli("tenants", "create", "acme")
    cli("ingest", pages, "--tenant", "acme", "--kb", "eval-rocks-1-0")
    assert cli("eval", rocks, "--tenant", "acme").code == 2
    assert cli("stats", "--tenant", "acme", "--kb", "eval-rocks-1-0", "--json").json["documents"] == 3


def test_a_table_for_people(cli: Cli, rocks: Path) -> None:
    lines = [
        line.split() for line in cli("eval", rocks, "--systems", "hybrid,lexical", "--limit", "1").out.splitlines()
    ]
    assert lines[0] == ["Rocks", "1.0:", "3", "documents,", "1", "queries"]
    assert [line[0] for line in lines[2:4]] == ["hybrid", "lexical"]


def test_no_system_profits_from_what_another_has_cached(cli: Cli, rocks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models: list[FakeEmbedder] = []

    def fresh(_: object) -> FakeEmbedder:
        models.append(FakeEmbedder())
        return models[-1]

    monkeypatch.setattr("ragstone.engine.components.build_embedder", fresh)
    assert cli("eval", rocks, "--systems", "dense,hybrid,fast", "--json").code == 0
    asked = [{text for texts, role in model.calls if role == "query" for text in texts} for model in models]
    assert asked.count({"warm", *(text for text, _ in QUERIES.values())}) == 3


def test_another_data_set_of_the_same_name_leaves_nothing_behind(cli: Cli, rocks: Path) -> None:
    cli("eval", rocks, "--json")
    _write(rocks, {"d1": CORPUS["d1"], "d2": CORPUS["d2"]})
    assert cli("eval", rocks, "--json").json["documents"] == 2
    assert cli("stats", "--kb", "eval-rocks-1-0", "--data-dir", MADE, "--json").json["documents"] == 2


def test_a_folder_that_is_no_data_set(cli: Cli, tmp_path: Path) -> None:
    ran = cli("eval", tmp_path)
    assert ran.code == 2
    assert "hint: a data set is a folder with corpus.jsonl" in ran.err


@pytest.mark.parametrize(
    ("names", "message"),
    [("hybrid,zork", "there is no system 'zork'"), (",", "names none"), ("reranked", "'reranked' needs a reranker")],
)
def test_systems_that_cannot_be(cli: Cli, rocks: Path, names: str, message: str) -> None:
    ran = cli("eval", rocks, "--systems", names)
    assert ran.code == 2
    assert message in ran.err


def test_a_configured_reranker_gets_a_row() -> None:
    settings = Settings.model_validate({"reranking": {"kind": "cross_encoder"}})
    assert chosen_systems(None, settings) == [*ARMS, "reranked", *MODES]
    assert chosen_systems(None, Settings()) == [*ARMS, *MODES]


@pytest.mark.req("R-EVL-24")
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

    monkeypatch.setattr("ragstone.engine.components.build_reranker", build)
    monkeypatch.setenv("RAGSTONE_RERANKING__KIND", "cross_encoder")
    report = cli("eval", rocks, "--systems", "hybrid,reranked", "--json").json
    assert report["models"]["reranker"] == "cross-encoder/ms-marco-MiniLM-L-6-v2"
    assert len(reranker.calls) == 3  # two queries and the first one ahead, by one system only
    assert {(entry["system"], entry["against"]) for entry in report["compare"]} == {("reranked", "hybrid")}
    assert asked.count("none") == 1


@pytest.mark.parametrize(
    ("folder", "name"), [("scifact", "eval-scifact"), ("My Data_2", "eval-my-data_2"), ("x" * 90, "eval-" + "x" * 58)]
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


@pytest.mark.req("R-EVL-22")
def test_words_vectors_and_both_stand_side_by_side_and_both_lose_no_recall(cli: Cli, rocks: Path) -> None:
    arms = ("lexical", "dense", "hybrid")
    report = cli("eval", rocks, "--systems", ",".join(arms), "--json").json
    recall = {row["system"]: row["recall@10"] for row in report["rows"]}
    assert tuple(recall) == arms
    assert recall["hybrid"] >= max(recall.values()) > 0.5
    against = {(entry["system"], entry["against"]) for entry in report["compare"] if entry["metric"] == "recall@10"}
    assert {("hybrid", "lexical"), ("hybrid", "dense")} <= against


def test_each_mode_has_a_row_with_its_times(cli: Cli, rocks: Path) -> None:
    rows = cli("eval", rocks, "--systems", "fast,balanced,thorough", "--json").json["rows"]
    assert [row["system"] for row in rows] == ["fast", "balanced", "thorough"]
    assert all(0 < row["p50_ms"] <= row["p95_ms"] for row in rows)


@pytest.mark.req("R-FUT-20")
def test_two_settings_side_by_side(cli: Cli, rocks: Path) -> None:
    report = cli("eval", rocks, "--compare", "retrieval.arms=lexical,retrieval.k=3", "--json").json
    changed = "balanced, retrieval.arms=lexical,retrieval.k=3"
    assert [row["system"] for row in report["rows"]] == ["balanced", changed]
    assert {(entry["system"], entry["against"]) for entry in report["compare"]} == {(changed, "balanced")}
    ndcg = next(entry for entry in report["compare"] if entry["metric"] == "ndcg@10")
    assert (ndcg["difference"], ndcg["low"], ndcg["high"], ndcg["confidence"]) == (0, 0, 0, 0.95)


@pytest.mark.req("R-EVL-23", "R-EVL-26")
@pytest.mark.parametrize("change", ["chunking.size=8,chunking.overlap=0", "chunking.context=false"])
def test_what_shows_only_in_ingested_documents_gets_a_kb_of_its_own(cli: Cli, rocks: Path, change: str) -> None:
    report = cli("eval", rocks, "--compare", change, "--json").json
    assert [row["system"] for row in report["rows"]] == ["balanced", f"balanced, {change}"]
    kbs = {kb["name"]: kb for kb in cli("kb", "list", "--data-dir", MADE, "--json").json["kbs"]}
    assert len(kbs) == 2
    assert {kb["documents"] for kb in kbs.values()} == {3}
    [base] = [name for name in kbs if name == "eval-rocks-1-0"]
    [other] = set(kbs) - {base}
    assert other.startswith("eval-rocks-1-0-")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("retrieval", "'retrieval' is not a setting and its value"),
        ("retrieval.fusion=[", "has no value that can be read"),
        ("retrieval.fusoin=rrf", "unknown setting 'retrieval.fusoin'"),
        ("retrieval.fusion=magic", "setting 'retrieval.fusion'"),
    ],
)
def test_settings_that_cannot_be_compared(cli: Cli, rocks: Path, change: str, message: str) -> None:
    ran = cli("eval", rocks, "--compare", change)
    assert ran.code == 2
    assert message in ran.err
    assert not Path("ragstone-data").exists()


def test_changes_are_read_as_in_a_settings_file() -> None:
    read = read_changes("retrieval.transforms=[a, b],retrieval.k=3,chunking.context=false")
    assert read == {"retrieval.transforms": ["a", "b"], "retrieval.k": 3, "chunking.context": False}


def test_by_votes(filled: Cli) -> None:
    ran = filled("eval", "--from-feedback")
    assert ran.code == 2
    assert "no passage of knowledge base 'default' was voted up or used" in ran.err
    hit = filled("search", "what does a dog cost", "--json").json["hits"][0]
    assert filled("feedback", "add", "what does a dog cost", hit["chunk_id"], "--vote", "up").code == 0
    report = filled("eval", "--from-feedback", "--systems", "hybrid", "--json").json
    assert (report["dataset"], report["documents"], report["queries"]) == ("feedback", 3, 1)
    assert report["rows"][0]["ndcg@10"] == 1.0
    logged = filled("feedback", "report", "--json").json
    assert logged["searches"] == 1  # what is measured is not logged


def test_by_golden_queries(filled: Cli) -> None:
    made = filled("golden", "make", "--json").json["golden"]
    report = filled("eval", "--golden", "--systems", "hybrid", "--json").json
    assert (report["dataset"], report["queries"]) == ("golden", len(made))
    ran = filled("eval", "--golden", "--compare", "chunking.size=100")
    assert (ran.code, "chunking.size shows only in documents that are ingested" in ran.err) == (2, True)


@pytest.mark.parametrize("places", [[], ["--golden", "--from-feedback"], ["data", "--golden"]])
def test_one_place_with_labelled_queries(filled: Cli, places: list[str]) -> None:
    ran = filled("eval", *places)
    assert (ran.code, "name one place with labelled queries" in ran.err) == (2, True)


@pytest.mark.req("R-EVL-31")
def test_targets_are_held_against_what_was_measured(cli: Cli, rocks: Path, tmp_path: Path) -> None:
    targets = {
        "recall@10": {"above": 0.8, "alert": 0.6},
        "p@5": {"above": 0.9, "alert": 0.1},
        "fast.p95_ms": {"below": 0.0001, "alert": 0.0002},
        "ingest.success": {"above": 0.99},
        "rerank.p95_ms": {"below": 100},
        "memory_mb": {"below": 100000},
        "chunks.readable": {"above": 0.9},
    }
    (tmp_path / "ragstone.yaml").write_text(json.dumps({"targets": targets}))
    report = cli("eval", rocks, "--json").json
    verdicts = {one["target"]: one["verdict"] for one in report["targets"]}
    assert verdicts == {
        "recall@10": "met",
        "p@5": "not met",
        "fast.p95_ms": "alert",
        "ingest.success": "met",
        "rerank.p95_ms": "not measured",
        "memory_mb": "met",
        "chunks.readable": "met",
    }
    measured = {one["target"]: one["measured"] for one in report["targets"]}
    assert (measured["recall@10"], measured["p@5"], measured["rerank.p95_ms"]) == (1.0, 0.2, None)
    assert (report["documents"], report["machine"]["cores"] > 0) == (3, True)
    shown = cli("eval", rocks).out
    assert "Targets of profile default" in shown
    assert "3 documents, 2 queries;" in shown


def test_the_command_line_offers_every_system() -> None:
    assert (ARMS, MODES, tuple(SYSTEMS)) == (evaluation.ARMS, evaluation.MODES, evaluation.SYSTEMS)
