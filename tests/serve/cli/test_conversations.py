from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli


@pytest.mark.req("R-DOM-37")
def test_a_conversation_is_listed_shown_and_forgotten(filled: Cli) -> None:
    none = filled("conversations")
    assert (none.code, "ragstone ask QUESTION --conversation NAME" in none.out) == (4, True)
    filled("ask", "In which year was the lighthouse painted?", "--conversation", "mine")
    filled("ask", "When does the harbour open?", "--conversation", "harbour")
    filled("ask", "And who minds the engine room?", "--conversation", "mine")
    listed = filled("conversations", "--json").json["conversations"]
    assert [(one["name"], one["turns"]) for one in listed] == [("mine", 2), ("harbour", 1)]
    assert listed[0]["began"] <= listed[0]["last"]
    shown = filled("conversations", "show", "mine", "--json").json
    assert [turn["question"] for turn in shown["turns"]] == [
        "In which year was the lighthouse painted?",
        "And who minds the engine room?",
    ]
    assert "1931" in shown["turns"][0]["answer"]
    assert "In which year was the lighthouse painted?" in filled("conversations", "show", "mine").out
    forgotten = filled("conversations", "forget", "mine", "--json")
    assert (forgotten.code, forgotten.json) == (0, {"forgotten": "mine", "turns": 2})
    assert [one["name"] for one in filled("conversations", "--json").json["conversations"]] == ["harbour"]


@pytest.mark.parametrize("what", ["show", "forget"])
def test_a_conversation_that_is_not_there(filled: Cli, what: str) -> None:
    ran = filled("conversations", what, "none")
    assert ran.code == 4
    assert ran.err == "error: no conversation 'none'\nhint: list them with: ragstone conversations\n"


def test_another_tenants_conversation_is_not_there(filled: Cli) -> None:
    filled("ask", "In which year was the lighthouse painted?", "--conversation", "mine")
    filled("tenants", "create", "acme")
    assert filled("conversations", "--tenant", "acme").code == 4
    assert filled("conversations", "show", "mine", "--tenant", "acme").code == 4
    assert filled("conversations", "forget", "mine", "--tenant", "acme").code == 4
    assert len(filled("conversations", "show", "mine", "--json").json["turns"]) == 1


def test_a_question_without_an_answer_is_shown_as_such(filled: Cli) -> None:
    filled("ask", "Who invented the telephone?", "--conversation", "mine")
    assert filled("conversations", "show", "mine").out.splitlines()[1:] == [
        "Who invented the telephone?",
        "(no answer)",
    ]


def test_no_terminal_commands_come_out_of_a_question(filled: Cli) -> None:
    filled("ask", "Who \x1b[31mminds\x1b[0m the engine?", "--conversation", "mine")
    assert "\x1b" not in filled("conversations", "show", "mine").out
