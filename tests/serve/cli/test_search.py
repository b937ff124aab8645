from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragstone.core.errors import ModelError
from ragstone.testing.fakes import FakeEmbedder

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli


def test_the_best_passage_comes_first(filled: Cli) -> None:
    ran = filled("search", "what does a dog pay", "-k", "2", "--json")
    assert (ran.code, ran.err) == (0, "")
    shape = [
        "query",
        "rewritten_query",
        "mode",
        "hits",
        "trace",
        "degraded",
        "took_ms",
        "route",
        "web",
        "records",
        "analysis",
    ]
    assert list(ran.json) == shape
    assert len(ran.json["hits"]) == 2
    assert ran.json["hits"][0]["uri"] == "pages/fares.md"
    assert ran.json["hits"][0]["section"] == "Dogs"


def test_hits_for_people(filled: Cli) -> None:
    ran = filled("search", "lighthouse painted", "-k", "1")
    first, uri, words, blank = ran.out.splitlines()
    rank, label, relevance, title = first.split()
    assert (rank, label, title) == ("1", "relevance", "harbour.txt")
    assert 0 < float(relevance) <= 1
    assert uri == "    pages/harbour.txt"
    assert words == "    The harbour opens at six in the morning. The lighthouse was painted in 1931."
    assert blank == ""
    assert filled("research", "lighthouse painted", "--depth", "quick").out.splitlines()[1].startswith("  relevance 0.")


def test_the_trace_is_shown_when_asked_for(filled: Cli) -> None:
    ran = filled("search", "lighthouse", "--arms", "lexical", "--trace")
    stages = [line.split()[0] for line in ran.out.splitlines() if line and not line.startswith(" ")]
    assert stages == ["stage", "lexical", "fuse", "read_back", "relevance", "pack", "all"]
    assert "stage" not in filled("search", "lighthouse", "--arms", "lexical").out


def test_nothing_found(filled: Cli) -> None:
    ran = filled("search", "zebra", "--arms", "lexical", "--json")
    assert (ran.code, ran.json["hits"]) == (4, [])
    ran = filled("search", "zebra", "--arms", "lexical")
    assert (ran.code, ran.out) == (4, "Nothing was found.\n")


def test_a_filter_narrows_the_search(filled: Cli) -> None:
    where = json.dumps({"filename": "harbour.txt"})
    hits = filled("search", "dog", "--where", where, "--json").json["hits"]
    assert {hit["uri"] for hit in hits} == {"pages/harbour.txt"}


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("{", "invalid_input"),
        ("[]", "invalid_input"),
        ("[" * 9000, "invalid_input"),
        ('{"a": {"like": 1}}', "invalid_filter"),
    ],
    ids=["cut", "list", "deep", "operator"],
)
def test_a_bad_filter_is_a_usage_error(filled: Cli, where: str, code: str) -> None:
    ran = filled("search", "dog", "--where", where, "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, code)
    assert ran.json["error"]["hint"]


def test_a_score_under_the_minimum_is_left_out(filled: Cli) -> None:
    everything = filled("search", "dog", "--json").json["hits"]
    floor = everything[0]["score"]
    kept = filled("search", "dog", "--min-score", str(floor), "--json").json["hits"]
    assert [hit["score"] for hit in kept] == [hit["score"] for hit in everything if hit["score"] >= floor]
    assert len(kept) < len(everything)


def test_fusion_and_mode_are_passed_on(filled: Cli) -> None:
    ran = filled("search", "dog", "--fusion", "rrf", "--mode", "fast", "--json")
    assert ran.json["mode"] == "fast"
    # First in both lists is the best that reciprocal ranks can give; no other fusion gives exactly 1 here.
    assert ran.json["hits"][0]["score"] == 1.0
    assert filled("search", "dog", "--fusion", "zscore", "--json").json["hits"][0]["score"] < 1.0


def test_what_is_degraded_is_a_warning(filled: Cli, embedder: FakeEmbedder) -> None:
    # Loading the model ahead fails first, then the search itself.
    embedder.errors = [ModelError("the model is out of order")] * 2
    ran = filled("search", "lighthouse")
    assert ran.code == 0
    assert ran.err == "warning: degraded: dense: the model is out of order\n"
    embedder.errors = [ModelError("the model is out of order")] * 2
    ran = filled("search", "lighthouse", "--json")
    assert (ran.json["degraded"], ran.err) == (["dense: the model is out of order"], "")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("search", "Nothing was found in what could be searched.\n"),
        ("ask", "No answer was found, but not everything could be searched or read.\n"),
        ("research", "Nothing about this topic was found in what could be searched.\n"),
    ],
)
def test_nothing_found_is_said_only_where_everything_was_searched(
    filled: Cli, embedder: FakeEmbedder, command: str, said: str
) -> None:
    embedder.errors = [ModelError("the model is out of order")] * 9
    ran = filled(command, "zeppelins")
    assert ran.code == 3
    assert ran.out.startswith(said)
    embedder.errors = [ModelError("the model is out of order")] * 9
    ran = filled(command, "zeppelins", "--json")
    assert (ran.code, ran.json["degraded"][0]) == (3, "dense: the model is out of order")


def test_a_search_that_could_not_be_done_is_no_empty_result(filled: Cli, embedder: FakeEmbedder) -> None:
    embedder.errors = [ModelError("the model is out of order")] * 2
    ran = filled("search", "lighthouse", "--arms", "dense")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "error: the search could not be done: the model is out of order\n"
        "hint: look at the stores with: ragstone doctor; until then search with --arms lexical\n"
    )
    assert filled("search", "lighthouse", "--arms", "dense").code == 0


def test_searching_by_word_leaves_the_model_alone(filled: Cli, embedder: FakeEmbedder) -> None:
    embedder.calls.clear()
    filled("search", "lighthouse", "--arms", "lexical")
    assert embedder.calls == []


def test_an_empty_query_says_what_to_type(filled: Cli) -> None:
    ran = filled("search", "  ")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: the query is empty\nhint: ")


def test_an_unknown_kb_is_not_found(filled: Cli) -> None:
    ran = filled("search", "dog", "--kb", "other", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (4, "not_found")


def test_looking_leaves_no_folder_behind(cli: Cli, tmp_path: Path) -> None:
    ran = cli("search", "dog", "--data-dir", tmp_path / "none")
    assert ran.code == 4
    assert "ragstone ingest PATH" in ran.err
    assert not (tmp_path / "none").exists()


def test_terminal_commands_in_a_file_name_are_not_sent_on(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "evil\x1b[31m.txt").write_text("a dog barks", encoding="utf-8")
    assert cli("ingest", tmp_path / "evil\x1b[31m.txt").code == 0
    ran = cli("search", "dog")
    assert ran.code == 0
    assert "\x1b" not in ran.out


def test_an_explanation_of_a_hit_and_of_a_miss(filled: Cli) -> None:
    hits = filled("search", "dog", "-k", "10", "--json").json["hits"]
    first, last = hits[0]["document_id"], hits[-1]["document_id"]
    found = filled("explain", "dog", "--document", first, "--json")
    assert (found.code, found.json["found"], found.json["reason"]) == (0, True, "found at rank 1")
    lost = filled("explain", "dog", "--document", last, "-k", "1", "--json").json
    assert (lost["found"], lost["lost_at"]) == (False, "pack")
    shown = filled("explain", "dog", "--document", last, "-k", "1").out
    assert f"lost at pack: {lost['reason']}" in shown
    assert "reached: no, missing word stems: dog" in shown
    assert [line.split()[0] for line in shown.splitlines()[2:]] == ["stage", "dense", "lexical", "fuse", "result"]


def test_explaining_an_unknown_document(filled: Cli) -> None:
    ran = filled("explain", "dog", "--document", "nope")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("error: no document nope")


def test_an_llm_that_refuses_connections_cannot_be_reached(filled: Cli, tmp_path: Path) -> None:
    (tmp_path / "ragstone.yaml").write_text("llm: {model: small, base_url: 'http://127.0.0.1:9/v1'}")
    ran = filled("search", "dogs", "--strategy", "rewrite", "--json")
    assert ran.json["degraded"] == ["rewrite: small: 127.0.0.1:9 cannot be reached"]
