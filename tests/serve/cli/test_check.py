"""`ragstone check`: a whole text, sentence by sentence."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

TEXT = """\
# Notes on the lighthouse

The lighthouse was painted in 1931. The lighthouse was painted in 1942.

Who painted it? Nobody knows the colour of the moon.
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    file = tmp_path / "notes.md"
    file.write_text(TEXT)
    return file


def test_each_sentence_has_its_outcome_and_its_place(filled: Cli, notes: Path) -> None:
    ran = filled("check", str(notes), "--json")
    assert ran.code == 0
    assert [claim["outcome"] for claim in ran.json["claims"]] == ["confirmed", "refuted", "open"]
    assert [claim["line"] for claim in ran.json["claims"]] == [3, 3, 5]
    assert [TEXT[claim["start"] : claim["end"]] for claim in ran.json["claims"]] == [
        "The lighthouse was painted in 1931.",
        "The lighthouse was painted in 1942.",
        "Nobody knows the colour of the moon.",
    ]
    assert ran.json["outcomes"] == {"confirmed": 1, "refuted": 1, "open": 1}
    assert (ran.json["skipped"], ran.json["unchecked"]) == (2, 0)


def test_people_get_the_evidence_and_a_summary(filled: Cli, notes: Path) -> None:
    lines = filled("check", str(notes)).out.splitlines()
    assert lines[0] == "confirmed line 3: The lighthouse was painted in 1931."
    assert lines[1:4] == ["+ harbour.txt", "  pages/harbour.txt", "  “The lighthouse was painted in 1931.”"]
    assert "refuted   line 3: The lighthouse was painted in 1942." in lines
    assert "  it says another date" in lines
    assert lines[-1] == "3 sentences checked: 1 confirmed, 1 refuted, 1 open; 2 state nothing"


def test_a_file_of_another_format_is_read_and_not_ingested(filled: Cli, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<h1>The gate is a heading.</h1><pre>The code is not read.</pre><p>The lighthouse was painted in 1931.</p>"
    )
    ran = filled("check", str(page), "--json")
    assert [claim["claim"] for claim in ran.json["claims"]] == ["The lighthouse was painted in 1931."]
    assert "page.html" not in filled("documents").out


def test_text_on_standard_input(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"\n\nThe lighthouse was painted in 1931."
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    claim = filled("check", "-", "--json").json["claims"][0]
    assert text[claim["start"] : claim["end"]] == b"The lighthouse was painted in 1931."
    assert (claim["line"], claim["outcome"]) == (3, "confirmed")


def test_what_is_left_is_counted(filled: Cli, notes: Path) -> None:
    ran = filled("check", str(notes), "--most", "1")
    assert "1 sentence checked: 1 confirmed, 0 refuted, 0 open; 2 not checked" in ran.out


def test_a_text_that_states_nothing_leads_to_the_exit_code_of_nothing_found(filled: Cli, tmp_path: Path) -> None:
    file = tmp_path / "title.txt"
    file.write_text("Notes on the lighthouse\n")
    ran = filled("check", str(file))
    assert (ran.code, ran.out) == (4, "0 sentences checked: 0 confirmed, 0 refuted, 0 open; 1 state nothing\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.md", "none.md does not exist\nhint: check the spelling\n"),
        (".", ". is a folder"),
        ("-", "there is no text"),
    ],
)
def test_what_cannot_be_read_is_named(filled: Cli, name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" \n")))
    ran = filled("check", name)
    assert ran.code == 2
    assert f"error: {message}" in ran.err
