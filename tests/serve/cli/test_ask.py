from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli


def test_an_answer_quotes_the_document(filled: Cli) -> None:
    ran = filled("ask", "In which year was the lighthouse painted?", "--json")
    assert (ran.code, ran.json["status"]) == (0, "answered")
    quotes = [citation["quote"] for citation in ran.json["citations"]]
    assert "The lighthouse was painted in 1931." in quotes


def test_an_answer_for_people_shows_its_sources(filled: Cli) -> None:
    ran = filled("ask", "In which year was the lighthouse painted?")
    lines = ran.out.splitlines()
    assert "The lighthouse was painted in 1931. [1]" in lines[0]
    assert lines[1] == ""
    assert lines[2] == "[1] harbour.txt"
    assert lines[3] == "    pages/harbour.txt"
    assert lines[4] == "    “The lighthouse was painted in 1931.”"


def test_no_evidence_is_nothing_found(filled: Cli) -> None:
    ran = filled("ask", "Who won the chess championship of Reykjavik?", "--json")
    assert (ran.code, ran.json["status"], ran.json["citations"]) == (4, "no_evidence", [])
    ran = filled("ask", "Who won the chess championship of Reykjavik?")
    assert (ran.code, ran.out) == (4, "Nothing in the knowledge base answers this question.\n")


@pytest.mark.parametrize("where", ['{"filename": "fares.md"}'])
def test_a_filter_takes_the_evidence_away(filled: Cli, where: str) -> None:
    ran = filled("ask", "In which year was the lighthouse painted?", "--where", where, "--json")
    assert all(citation["uri"] == "pages/fares.md" for citation in ran.json["citations"])
