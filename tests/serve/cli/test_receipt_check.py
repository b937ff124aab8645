"""`ragstone verify --receipt` says what is called otherwise since, and that is not the same as tampering."""

from __future__ import annotations

import json
from pathlib import Path

from tests.serve.cli.conftest import Cli

from ragstone.answer.receipt import digest


def test_a_title_that_is_not_the_document_s_is_named(filled: Cli, tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    assert filled("ask", "In which year was the lighthouse painted?", "--receipt", path).code == 0
    made = json.loads(path.read_text(encoding="utf-8"))
    made["citations"][0]["title"] = "A study"
    path.write_text(json.dumps(made | {"digest": digest(made)}), encoding="utf-8")
    ran = filled("verify", "--receipt", path)
    assert ran.code == 3
    assert ran.out.splitlines()[0] == "still holding: 1 of 1 sentence; the receipt is intact"
    assert "warning: " in ran.err
    said = "quote 1: its title is “harbour.txt”, the receipt says “A study”"
    assert said in " ".join(ran.err.split())
    told = filled("verify", "--receipt", path, "--json").json
    assert (told["holds"], told["intact"], told["differences"]) == (False, True, [said])
