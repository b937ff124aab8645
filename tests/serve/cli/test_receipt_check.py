"""`ragstone verify --receipt` says what is called otherwise since, and that is not the same as tampering."""

from __future__ import annotations

import json
from pathlib import Path

from tests.serve.cli.conftest import Cli

from ragstone.answer.receipts.make import digest


def test_a_title_that_is_not_the_document_s_is_named(filled: Cli, tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    assert filled("ask", "In which year was the lighthouse painted?", "--receipt", path).code == 0
    made = json.loads(path.read_text(encoding="utf-8"))
    made["citations"][0]["title"] = "A study"
    path.write_text(json.dumps(made | {"digest": digest(made)}), encoding="utf-8")
    ran = filled("verify", "--receipt", path)
    assert ran.code == 3
    assert ran.out.splitlines()[0] == (
        "does not hold: what it cites is called otherwise here (still holding: 1 of 1 sentence; the receipt is intact)"
    )
    said = "quote 1: its title is “harbour.txt”, the receipt says “A study”"
    assert f"! {said}" in ran.out.splitlines()
    assert ran.err == ""
    told = filled("verify", "--receipt", path, "--json").json
    assert (told["holds"], told["intact"], told["differences"]) == (False, True, [said])


def test_a_receipt_of_no_answer_claimed_nothing(filled: Cli, tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    assert filled("ask", "Who won the chess cup of Reykjavik?", "--receipt", path).code == 4
    ran = filled("verify", "--receipt", path)
    assert (ran.code, ran.out.splitlines()[0]) == (0, "it claimed nothing; the receipt is intact")


def test_a_receipt_says_what_was_left_open_and_where_it_is(filled: Cli, tmp_path: Path) -> None:
    path = tmp_path / "my receipt.json"
    question = "In which year was the lighthouse painted, and who won the chess cup of Reykjavik?"
    asked = filled("ask", question, "--receipt", path)
    assert f"receipt: written to {path}; check it with: ragstone verify --receipt '{path}'" in " ".join(
        asked.err.split()
    )
    ran = filled("verify", "--receipt", path)
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "It left open: who won the chess cup of Reykjavik?")
    left = ["who won the chess cup of Reykjavik"]
    assert filled("verify", "--receipt", path, "--json").json["unanswered"] == left


def test_the_first_line_says_why_it_does_not_hold(filled: Cli, tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    filled("ask", "In which year was the lighthouse painted?", "--receipt", path)
    (document,) = [one["id"] for one in filled("documents", "--json").json["documents"] if "harbour" in one["uri"]]
    filled("documents", "delete", document)
    ran = filled("verify", "--receipt", path)
    assert (ran.code, ran.out.splitlines()[0]) == (
        3,
        (
            "does not hold: the documents no longer support every sentence of it "
            "(still holding: 0 of 1 sentence; the receipt is intact)"
        ),
    )
