"""`ragstone chat` and `ragstone agent`: one message, many messages, and the configuration."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.serve.cli.conftest import Cli

DOG = "What does a dog travel for?"


def test_a_message_is_answered(filled: Cli) -> None:
    ran = filled("chat", DOG)
    assert (ran.code, ran.out) == (0, "A dog travels for two crowns [Source: Fares].\n")
    ran = filled("chat", "How many moons has Mars?")
    assert (ran.code, ran.out) == (4, "I do not have an answer to that. I have passed your question on to our team.\n")
    assert "conversation:" in filled("jobs", "notices").out


def test_messages_are_read_as_lines_of_one_conversation(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"Hi!\n\n{DOG}\n"))
    assert filled("chat").out == (
        "Hello! Ask me about our products, services, appointments or policies.\n"
        "A dog travels for two crowns [Source: Fares].\n"
    )
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{DOG}\nThanks!\n"))
    events = [json.loads(line) for line in filled("chat", "--json").out.splitlines()]
    assert [event["event"] for event in events] == ["sentence", "reply", "reply"]
    assert events[1]["conversation"] == events[2]["conversation"]
    turns = filled("conversations", "show", events[1]["conversation"], "--json").json["turns"]
    assert [turn["question"] for turn in turns] == [DOG, "Thanks!"]


def test_the_agent_is_configured(filled: Cli) -> None:
    shown = filled("agent", "set", "citation_style=footnote", "enable_source_attribution=no").out
    assert "enable_source_attribution  off" in shown
    assert filled("chat", DOG).out == "A dog travels for two crowns.\n"
    assert filled("agent").out == filled("agent", "show").out == shown
    filled("agent", "set", "enable_source_attribution=default")
    assert filled("chat", DOG).out == "A dog travels for two crowns. [1]\n\n[1] Fares - Dogs\n"
    wrong = filled("agent", "set", "max_document_results=many")
    assert (wrong.code, "max_document_results" in wrong.err) == (2, True)
    wrong = filled("agent", "set", "colour=blue")
    assert (wrong.code, "enable_document_retrieval" in wrong.err) == (2, True)


@pytest.mark.req("R-CSA-33")
def test_analytics_as_a_table_and_a_chart(filled: Cli) -> None:
    filled("chat", DOG)
    shown = filled("agent", "analytics", "--svg", "chart.svg").out
    assert ["documents", "1", "asked,", "1", "helpful,", "0", "failed"] in [line.split() for line in shown.splitlines()]
    assert Path("chart.svg").read_text().startswith("<svg ")
    assert filled("agent", "analytics", "--svg", "no/such/folder.svg").code == 2
