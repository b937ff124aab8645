from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli


@pytest.mark.parametrize("words", ["feedback list", "feedback searches", "golden"])
def test_an_empty_list_says_so_by_its_exit_code(filled: Cli, words: str) -> None:
    assert filled(*words.split()).code == 4


@pytest.mark.req("R-TOL-35")
def test_votes_are_noted_and_listed(filled: Cli) -> None:
    hits = filled("search", "what does a dog cost", "--json").json["hits"]
    ran = filled("feedback", "add", "what does a dog cost", hits[0]["chunk_id"], "--vote", "up", "--json")
    assert (ran.code, ran.json) == (0, {"noted": 1, "vote": "up"})
    filled("feedback", "add", "what does a dog cost", hits[1]["chunk_id"], "--vote", "down", "--voter", "ada")
    listed = filled("feedback", "list", "--json").json["feedback"]
    assert {(one["chunk_id"], one["vote"], one["voter"]) for one in listed} == {
        (hits[0]["chunk_id"], "up", ""),
        (hits[1]["chunk_id"], "down", "ada"),
    }
    assert {one["document_id"] for one in listed} == {hit["document_id"] for hit in hits[:2]}
    assert hits[0]["chunk_id"] in filled("feedback", "list").out


def test_a_hit_of_the_last_search_is_voted_on_by_its_number(filled: Cli) -> None:
    ran = filled("feedback", "add", "1")
    assert (ran.code, "no search of knowledge base 'default' is remembered" in ran.err) == (4, True)
    filled("search", "when does the harbour open")
    hits = filled("search", "what does a dog cost", "--json").json["hits"]
    ran = filled("feedback", "add", "2", "1", "--vote", "up")
    assert ran.out == "2 passages of the search for “what does a dog cost” noted as up\n"
    listed = filled("feedback", "--json").json["feedback"]
    assert {(one["query"], one["chunk_id"]) for one in listed} == {
        ("what does a dog cost", hit["chunk_id"]) for hit in hits[:2]
    }
    ran = filled("feedback", "add", "1", "99")
    assert (ran.code, "the last search, 'what does a dog cost', has no hit 99" in ran.err) == (4, True)
    assert len(filled("feedback", "--json").json["feedback"]) == 2
    assert filled("feedback", "add", "dogs").code == 2


def test_a_passage_that_is_not_there(filled: Cli) -> None:
    ran = filled("feedback", "add", "dogs", "deadbeef")
    assert ran.code == 4
    assert "no passage 'deadbeef' in knowledge base 'default'" in ran.err
    assert "hint: ragstone search … --json shows the chunk_id" in ran.err


@pytest.mark.req("R-EVL-28")
def test_the_report_has_the_names_that_dashboards_know(filled: Cli) -> None:
    empty = filled("feedback", "report", "--json").json
    assert (empty["searches"], empty["latency_p50"], empty["recall@10"]) == (0, None, None)
    hit = filled("search", "what does a dog cost", "--json").json["hits"][0]
    filled("feedback", "add", "what does a dog cost", hit["chunk_id"])
    report = filled("feedback", "report", "--json").json
    assert list(report) == [
        "searches",
        "judged",
        "latency_p50",
        "latency_p95",
        "latency_p99",
        "avg_relevance",
        "recall@10",
        "precision@5",
    ]
    assert (report["searches"], report["judged"], report["avg_relevance"]) == (1, 1, 1.0)
    assert (report["recall@10"], report["precision@5"]) == (1.0, 0.2)
    assert "avg_relevance" in filled("feedback", "report", "--days", "1").out


def test_gaps(filled: Cli) -> None:
    ran = filled("gaps")
    assert (ran.code, ran.out) == (4, "No gaps: every recorded search found something.\n")
    for _ in range(2):
        filled("search", "zeppelin timetable \x1b[31mred")
    filled("search", "what does a dog cost")
    [gap] = filled("gaps", "--json").json["gaps"]
    assert (gap["times"], gap["missing"][:2]) == (2, ["zeppelin", "timetable"])
    drawn = filled("gaps").out
    assert "zeppelin timetable" in drawn
    assert "\x1b" not in drawn


def test_golden_queries(filled: Cli) -> None:
    assert "ragstone golden make" in filled("golden").out
    made = filled("golden", "make", "--count", "2", "--json").json["golden"]
    assert {one["origin"] for one in made} == {"extractive"}
    document = filled("documents", "--json").json["documents"][0]["id"]
    assert filled("golden", "add", "when does the harbour open", document).code == 0
    kept = filled("golden", "--json").json["golden"]
    assert [one["document_ids"] for one in kept if one["origin"] == "manual"] == [[document]]
    assert filled("golden", "remove", "when does the harbour open", "--json").json == {"removed": 1}
    assert filled("golden", "remove").code == 2
    assert filled("golden", "remove", "--all", "--json").json == {"removed": len(made)}


def test_a_document_that_is_not_there_answers_nothing(filled: Cli) -> None:
    ran = filled("golden", "add", "when", "feedc0de")
    assert (ran.code, "no document 'feedc0de'" in ran.err) == (4, True)


@pytest.mark.req("R-TOL-36")
def test_a_dictionary_learnt_from_votes_expands_queries(cli: Cli, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    pages = {
        "battery": "A notebook whose accumulator is bloated must not be charged.",
        "screen": "The notebook display is replaced under warranty.",
        "printer": "Fill the tray of the printer with sheets.",
        "gate": "Permits are given out beside the barrier.",
    }
    for name, text in pages.items():
        (notes / f"{name}.txt").write_text(text)
    cli("ingest", notes)
    assert cli("feedback", "dictionary").code == 4
    asked = {"laptop battery": "battery", "laptop screen": "screen", "paper": "printer", "parking": "gate"}
    for query, name in asked.items():
        hits = cli("search", query, "-k", "10", "--json").json["hits"]
        chunk = next(hit["chunk_id"] for hit in hits if hit["text"] == pages[name])
        assert cli("feedback", "add", query, chunk, "--vote", "up").code == 0
    ran = cli("feedback", "dictionary", "-o", "learnt.yaml", "--json")
    assert ran.json == {"terms": {"laptop": ["notebook"]}, "written": "learnt.yaml"}
    (tmp_path / "ragstone.yaml").write_text(
        "retrieval: {transforms: [synonyms], dictionary: learnt.yaml, arms: lexical}"
    )
    found = cli("search", "laptop", "--json").json["hits"]
    assert {hit["text"] for hit in found} == {pages["battery"], pages["screen"]}
    assert cli("feedback", "dictionary", "-o", "learnt.yaml").code == 2  # never over somebody's file


def test_an_llm_that_cannot_be_reached_is_told_of(filled: Cli, tmp_path: Path) -> None:
    (tmp_path / "ragstone.yaml").write_text("llm: {model: small, base_url: 'http://127.0.0.1:9/v1'}")
    made = filled("golden", "make", "--count", "2", "--json").json
    count = len(made["golden"])
    [note] = made["degraded"]
    assert note.startswith(f"llm: small gave no usable question for {count} of {count}: ")
    assert filled("golden", "make", "--count", "2").err == f"warning: degraded: {note}\n"


def test_without_an_llm_nothing_is_degraded(filled: Cli) -> None:
    assert filled("golden", "make", "--count", "2", "--json").json["degraded"] == []


def test_a_golden_query_that_is_not_there(filled: Cli) -> None:
    ran = filled("golden", "remove", "nosuch")
    assert (ran.code, "no golden query 'nosuch'" in ran.err) == (4, True)
