from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from ragstone.core.answers import Evidence, Stance, Status, Verdict
from ragstone.serve.cli.commands.verify import draw_verdict

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

CLAIM = "The lighthouse was painted in 1931."


def test_a_claim_that_a_document_makes(filled: Cli) -> None:
    ran = filled("verify", CLAIM, "--json")
    assert ran.code == 0
    assert {name: ran.json[name] for name in ("claim", "status", "confidence", "stance", "sources", "checker")} == {
        "claim": CLAIM,
        "status": "VERIFIED",
        "confidence": "high",
        "stance": "supported",
        "sources": 1,
        "checker": "checks",
    }
    first = ran.json["evidence"][0]
    assert (first["text"], first["source"], first["uri"]) == (CLAIM, "pages/harbour.txt", "pages/harbour.txt")
    assert first["stance"] == "supported"
    assert 0 < first["relevance"] <= 1


def test_a_verdict_for_people_says_what_is_wrong(filled: Cli) -> None:
    ran = filled("verify", "The lighthouse was painted in 1942.")
    lines = ran.out.splitlines()
    assert lines[0] == "UNVERIFIED (low): a source says otherwise; 0 independent sources"
    assert lines[2:6] == [
        "- harbour.txt",
        "  pages/harbour.txt",
        "  “The lighthouse was painted in 1931.”",
        "  it says another date",
    ]


def test_where_nothing_is_found_there_is_no_evidence(filled: Cli) -> None:
    ran = filled("verify", CLAIM, "--where", '{"filename": "none.md"}', "--json")
    assert (ran.code, ran.json["status"], ran.json["evidence"]) == (4, "UNVERIFIED", [])


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("VERIFIED", "VERIFIED (high): the sources support it; 1 independent source"),
        ("LIKELY", "LIKELY (medium): the sources support it, but not beyond doubt; 1 independent source"),
        ("UNVERIFIED", "UNVERIFIED (low): the sources only point to it; 1 independent source"),
    ],
)
def test_the_headline_does_not_contradict_itself(status: Status, words: str) -> None:
    out = Console(file=io.StringIO(), width=200, record=True)
    draw_verdict(out, Verdict("claim", status, "supported", 0.5, (), (), 1, "checks"))
    assert out.export_text() == f"{words}\n"


def test_where_the_sources_settle_nothing_all_evidence_is_shown_and_none_as_against_the_claim() -> None:
    def evidence(text: str, stance: Stance, *failed: str) -> Evidence:
        return Evidence(text, "a", 0.5, stance, 0.5, 0.5, failed, "d", "c", "a.md", "a.md", None, "", 0, 9)

    found = (
        evidence("A crossing took 125 minutes.", "refuted", "it says “125”, not “124”"),
        evidence("It took 124 minutes.", "unknown"),
        evidence("It was quick.", "supported"),
    )
    shown = []
    for stance in ("unknown", "refuted"):
        out = Console(file=io.StringIO(), width=200, record=True)
        draw_verdict(out, Verdict("claim", "UNVERIFIED", stance, 0.5, found, (), 0, "checks"))
        shown.append([line for line in out.export_text().splitlines() if not line.endswith("a.md") or line[0] != " "])
    assert shown[0][1:] == [
        *("", "? a.md", "  “A crossing took 125 minutes.”"),
        *("", "? a.md", "  “It took 124 minutes.”"),
        *("", "+ a.md", "  “It was quick.”"),
    ]
    assert shown[1][1:] == [
        *("", "- a.md", "  “A crossing took 125 minutes.”", "  it says “125”, not “124”"),
        *("", "+ a.md", "  “It was quick.”"),
    ]


@pytest.mark.parametrize(
    ("command", "what"), [("verify", "claim"), ("research", "topic"), ("ask", "question"), ("search", "query")]
)
def test_what_is_empty_is_named_before_data_and_model_are_opened(cli: Cli, command: str, what: str) -> None:
    ran = cli(command, " ")
    assert (ran.code, ran.err.splitlines()[0]) == (2, f"error: the {what} is empty")
    assert f"ragstone {command} " in ran.err.splitlines()[1]


def test_a_claim_and_a_receipt_at_once(filled: Cli) -> None:
    ran = filled("verify", CLAIM, "--receipt", "receipt.json")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "error: give a claim or a receipt, not both")


@pytest.mark.parametrize("content", [None, "no JSON", "[]", "{}"])
def test_what_is_no_receipt_is_a_wrong_call(filled: Cli, tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "nope.json").write_text(content)
    ran = filled("verify", "--receipt", "nope.json")
    assert (ran.code, ran.out) == (2, "")
    assert "ragstone ask QUESTION --receipt FILE" in ran.err


def test_a_receipt_that_is_a_folder(filled: Cli, tmp_path: Path) -> None:
    assert filled("verify", "--receipt", tmp_path).code == 2
