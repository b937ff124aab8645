"""The real thing: the packaged model and the sample corpus; the first run is a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.serve.cli.conftest import Ran
from tests.warm import warm_python

from ragstone import samples
from ragstone.serve.cli.main import main

Program = Callable[..., Ran]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture
def program(place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Program:
    """Runs a command in the folder where the demo has run."""
    monkeypatch.chdir(place)

    def run(*arguments: str) -> Ran:
        capfd.readouterr()
        code = main(list(arguments))
        written = capfd.readouterr()
        return Ran(code, written.out, written.err)

    return run


@pytest.fixture(scope="module")
def first_run(place: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ragstone", "demo"]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=240)


def test_the_demo_answers_with_sources_and_declines_what_it_cannot_know(
    first_run: subprocess.CompletedProcess[str],
) -> None:
    assert (first_run.returncode, first_run.stderr) == (0, "")
    parts = first_run.stdout.split("\n\n? ")
    assert parts[0].startswith("Ingested 10 documents in ")
    for question, part in zip(samples.QUESTIONS, parts[1:4], strict=True):
        assert part.startswith(question)
        assert "\n[1] " in part
    assert "about 340 harbour porpoises" in parts[1]
    assert "11 January to 5 February 2027" in parts[2]
    assert parts[4].startswith(f"{samples.UNANSWERABLE}\nNothing in the knowledge base answers this question.\n")
    commands = [line for line in first_run.stdout.splitlines() if line.startswith("  ragstone ")]
    assert len(commands) == 3


def test_the_demo_as_json_the_second_time(first_run: object, program: Program) -> None:
    again = program("demo", "--json")
    assert (again.code, again.err) == (0, "")
    shape = again.json
    assert (shape["ingest"]["added"], shape["ingest"]["unchanged"]) == (0, 10)
    assert [answer["status"] for answer in shape["answers"]] == ["answered"] * 3 + ["no_evidence"]


def test_what_the_demo_says_to_type_works(first_run: subprocess.CompletedProcess[str], program: Program) -> None:
    search = program("search", "dogs on the ferry", "--kb", "demo", "--json")
    assert search.code == 0
    assert search.json["hits"][0]["uri"] == str(samples.corpus_path() / "guides" / "animals-on-board.html")
    assert 'ragstone search "dogs on the ferry" --kb demo' in first_run.stdout


def test_an_answer_leads_back_to_the_words(first_run: object, program: Program) -> None:
    ran = program("ask", samples.QUESTIONS[1], "--kb", "demo", "--json")
    citation = ran.json["citations"][0]
    shown = program("documents", "show", citation["document_id"], "--kb", "demo", "--json").json
    assert shown["text"][citation["start"] : citation["end"]] == citation["quote"]
    assert shown["uri"] == str(samples.corpus_path() / "staff" / "winter-overhaul-plan.docx")


def test_progress_is_shown_to_who_watches_and_not_on_stdout(program: Program, place: Path) -> None:
    page = place / "page.txt"
    page.write_text("The harbour opens at six.", encoding="utf-8")
    watched, terminal = pty.openpty()
    command = [*warm_python(), "-m", "ragstone", "ingest", str(page), "--kb", "watched"]
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=terminal)
    os.close(terminal)
    shown = _everything(watched)
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 0
    assert b"starting" in shown
    assert b"1 of 1 document, 1 chunk" in shown
    assert out.decode().splitlines()[1].split() == ["1", "0", "0", "0"]
    assert program("ingest", str(page), "--kb", "unwatched").err == ""


def _everything(watched: int) -> bytes:
    """All that is written to a terminal until its last writer is gone."""
    shown = b""
    with contextlib.suppress(OSError):
        while part := os.read(watched, 4096):
            shown += part
    os.close(watched)
    return shown


def test_every_labelled_question_finds_its_document_near_the_top(
    first_run: object, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for query, document in samples.golden()[:4]:
        capfd.readouterr()
        assert (
            main(["search", query, "--kb", "demo", "-k", "5", "--json", "--data-dir", str(place / "ragstone-data")])
            == 0
        )
        uris = [hit["uri"] for hit in json.loads(capfd.readouterr().out)["hits"]]
        assert str(samples.corpus_path() / document) in uris
