from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

CLAIM = "The lighthouse was painted in 1931."


def test_a_claim_that_a_document_makes(filled: Cli) -> None:
    ran = filled("verify", CLAIM, "--json")
    assert ran.code == 0
    assert {
        name: ran.json[name] for name in ("claim", "status", "confidence", "stance", "sources", "checker")
    } == {
        "claim": CLAIM,
        "status": "VERIFIED",
        "confidence": "high",
        "stance": "supported",
        "sources": 1,
        "checker": "checks",
    }
    first = ran.json["evidence"][0]
    assert (first["text"], first["source"], first["uri"]) == (CLAIM, "files", "pages/harbour.txt")
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
