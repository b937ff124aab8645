"""`ragstone chat` and `ragstone agent`: one message, many messages, and the configuration."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.serve.cli.conftest import Cli
from tests.warm import warm_python

DOG = "What does a dog travel for?"
Write = Callable[[str], None]


@pytest.fixture
def write_stdin(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Write]:
    """Lets the next command read a text from its stdin."""
    before = os.dup(0)

    def write(text: str) -> None:
        (tmp_path / "stdin").write_text(text, encoding="utf-8")
        with (tmp_path / "stdin").open() as file:
            os.dup2(file.fileno(), 0)

    yield write
    os.dup2(before, 0)
    os.close(before)


def test_a_message_is_answered(filled: Cli) -> None:
    ran = filled("chat", DOG)
    assert (ran.code, ran.out) == (0, "A dog travels for two crowns [Source: Fares].\n")
    ran = filled("chat", "How many moons has Mars?")
    assert (ran.code, ran.out) == (4, "I do not have an answer to that. I have passed your question on to our team.\n")
    assert "conversation:" in filled("jobs", "notices").out


def test_messages_are_read_as_lines_of_one_conversation(filled: Cli, write_stdin: Write) -> None:
    write_stdin(f"Hi!\n\n{DOG}\n")
    assert filled("chat").out == (
        "Hello! Ask me about our products, services, appointments or policies.\n"
        "A dog travels for two crowns [Source: Fares].\n"
    )
    write_stdin(f"{DOG}\nThanks!\n")
    events = [json.loads(line) for line in filled("chat", "--json").out.splitlines()]
    assert [event["event"] for event in events] == ["sentence", "reply", "reply"]
    assert events[1]["conversation"] == events[2]["conversation"]
    turns = filled("conversations", "show", events[1]["conversation"], "--json").json["turns"]
    assert [turn["question"] for turn in turns] == [DOG, "Thanks!"]


def test_a_greeting_is_no_question_without_a_good_result(filled: Cli) -> None:
    assert filled("chat", "Hi!").code == 0
    assert filled("gaps", "--json").json == {"gaps": []}
    figures = filled("agent", "analytics", "--json").json
    assert (figures["searches"], figures["nothing"], figures["no_result_rate"]) == (1, 0, 0.0)


@pytest.mark.parametrize("leave", ["quit", " Exit "])
def test_a_line_ends_the_session(filled: Cli, write_stdin: Write, leave: str) -> None:
    write_stdin(f"Hi!\n{leave}\n{DOG}\n")
    ran = filled("chat")
    assert (ran.code, ran.out) == (0, "Hello! Ask me about our products, services, appointments or policies.\n")


def test_a_line_that_is_refused_is_answered_with_an_error_and_the_next_one_is_read(
    filled: Cli, write_stdin: Write
) -> None:
    long = "x" * 9000
    refusal = "the question has 9000 characters; at most 8000 are allowed"
    write_stdin(f"Thanks!\n{long}\n{DOG}\n")
    ran = filled("chat", "--json")
    first, refused, *_, last = (json.loads(line) for line in ran.out.splitlines())
    assert refused == {"error": {"code": "invalid_input", "message": refusal, "hint": ""}}
    assert (ran.code, last["message"], last["conversation"]) == (3, DOG, first["conversation"])
    write_stdin(f"{long}\n")
    ran = filled("chat")
    assert (ran.code, ran.out, ran.err) == (2, "", f"error: {refusal}\n")


def test_an_interrupt_ends_it_at_the_prompt(filled: Cli, tmp_path: Path) -> None:
    code = (
        "import ragstone.engine.components as components\n"
        "from ragstone.serve.cli.main import run\n"
        "from ragstone.testing.fakes import FakeEmbedder\n"
        "components.build_embedder = lambda _: FakeEmbedder()\n"
        "run(['chat'])"
    )
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*warm_python(), "-c", code],
        cwd=tmp_path,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr
        assert process.stderr.readline() == "note: quit, exit or Ctrl-D ends the session\n"
        assert process.stderr.read(2) == "> "
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=240)
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
        os.close(theirs)
    assert (process.returncode, out, err) == (130, "", "error: interrupted\n")


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
