from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragstone.core.errors import ModelError
from ragstone.testing.fakes import FakeEmbedder

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli


@pytest.mark.req("R-ING-43")
def test_a_folder_is_ingested_and_left_alone_the_next_time(cli: Cli, pages: Path) -> None:
    first = cli("ingest", pages, "--json")
    assert (first.code, first.err) == (0, "")
    assert (first.json["added"], first.json["unchanged"], first.json["failed"]) == (3, 0, [])
    assert first.json["documents"] == 3
    again = cli("ingest", pages, "--json").json
    assert (again["added"], again["updated"], again["unchanged"]) == (0, 0, 3)


def test_a_changed_file_is_updated(cli: Cli, pages: Path) -> None:
    cli("ingest", pages)
    (pages / "harbour.txt").write_text("The harbour is closed.", encoding="utf-8")
    report = cli("ingest", pages, "--json").json
    assert (report["added"], report["updated"], report["unchanged"]) == (0, 1, 2)


def test_some_failures_are_a_partial_ingest(cli: Cli, pages: Path) -> None:
    (pages / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    (pages / "empty.md").write_bytes(b"")
    ran = cli("ingest", pages, "--json")
    assert ran.code == 3
    assert ran.json["added"] == 3
    assert {failure["uri"] for failure in ran.json["failed"]} == {"pages/broken.pdf", "pages/empty.md"}
    assert {failure["code"] for failure in ran.json["failed"]} == {"parse_failed", "empty_document"}


def test_only_failures_are_a_failure(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty.md").write_bytes(b"")
    ran = cli("ingest", tmp_path / "empty.md")
    assert ran.code == 1
    assert "empty_document" in ran.out
    assert "empty.md" in ran.out


def test_a_path_that_is_not_there_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    ran = cli("ingest", tmp_path / "nowhere")
    assert ran.code == 2
    assert ran.err.startswith(f"error: {tmp_path / 'nowhere'} does not exist\nhint: ")
    assert ran.out == ""


def test_the_summary_for_people(cli: Cli, pages: Path) -> None:
    ran = cli("ingest", pages, "--kb", "handbook")
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0] == ["added", "updated", "unchanged", "failed"]
    assert lines[1] == ["3", "0", "0", "0"]
    assert "Knowledge base 'handbook' holds 3 documents and " in ran.out


def test_an_empty_folder_is_remarked_upon(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    ran = cli("ingest", tmp_path / "nothing")
    assert (ran.code, ran.err) == (0, "warning: no documents were found there\n")
    assert cli("ingest", tmp_path / "nothing", "--quiet").err == ""


def test_a_failing_model_is_a_warning_and_in_the_json(cli: Cli, pages: Path, embedder: FakeEmbedder) -> None:
    embedder.errors = [ModelError("the model is out of order")]
    ran = cli("ingest", pages / "harbour.txt")
    assert ran.code == 0
    assert ran.err == "warning: embedding: the model is out of order\n"
    embedder.errors = [ModelError("the model is out of order")]
    assert cli("ingest", pages / "fares.md", "--json").json["degraded"] == [
        "embedding: the model is out of order"
    ]


def test_a_chunk_that_the_model_refuses_is_counted(cli: Cli, tmp_path: Path, embedder: FakeEmbedder) -> None:
    (tmp_path / "odd.txt").write_text("unspeakable words", encoding="utf-8")
    embedder.refuse = ["unspeakable words"]
    ran = cli("ingest", tmp_path / "odd.txt")
    assert ran.err == "warning: 1 chunk got no vector: the model refused the text\n"
