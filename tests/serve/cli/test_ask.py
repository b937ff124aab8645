from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from ragstone.core.answers import Answer, Citation
from ragstone.serve.cli.commands.ask import draw_answer

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli


NOTHING = "Nothing in the knowledge base answers this question. No passage mentions Reykjavik."


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
    assert lines[3:] == ["    pages/harbour.txt"], "what the answer says word for word is not said again"


def test_sources_are_shown_by_place_with_the_quotes_that_are_not_in_the_answer() -> None:
    def cite(n: int, quote: str, section: str = "") -> Citation:
        return Citation(n, quote, "c", "d", "A", "pages/a.md", None, section, 0, len(quote))

    cited = (cite(1, "It was blue"), cite(2, "Painted blue."), cite(3, "It is red.", "Later"))
    answer = Answer("?", "It was blue [1] [2]. It is red. [3]", (), cited, "answered")
    out = Console(file=io.StringIO(), width=80)
    draw_answer(out, answer)
    assert out.file.getvalue().splitlines()[2:] == [
        "[1] [2] A", "    pages/a.md", "    “Painted blue.”", "[3] A · Later", "    pages/a.md"
    ]  # fmt: skip


def test_a_row_that_the_answer_tells_with_its_columns_is_not_shown_again() -> None:
    quotes = ("| tw-rollup | 9120 | |", "| Service | Port | Owner |", "| Service | Town |")
    cited = tuple(
        Citation(n, quote, "c", "d", "A", "a.md", None, "", 0, len(quote)) for n, quote in enumerate(quotes, 1)
    )
    out = Console(file=io.StringIO(), width=80)
    draw_answer(out, Answer("?", "Service: tw-rollup; Port: 9120; Owner: Data [1][2][3]", (), cited, "answered"))
    assert out.file.getvalue().splitlines()[2:] == ["[1] [2] [3] A", "    a.md", "    “| Service | Town |”"]


def test_no_evidence_is_nothing_found(filled: Cli) -> None:
    ran = filled("ask", "Who won the chess championship of Reykjavik?", "--json")
    assert (ran.code, ran.json["status"], ran.json["citations"]) == (4, "no_evidence", [])
    ran = filled("ask", "Who won the chess championship of Reykjavik?")
    assert (ran.code, ran.out) == (4, f"{NOTHING}\n")


@pytest.mark.parametrize("where", ['{"filename": "fares.md"}'])
def test_a_filter_takes_the_evidence_away(filled: Cli, where: str) -> None:
    ran = filled("ask", "In which year was the lighthouse painted?", "--where", where, "--json")
    assert all(citation["uri"] == "pages/fares.md" for citation in ran.json["citations"])


def test_events_come_a_line_each(filled: Cli) -> None:
    ran = filled("ask", "In which year was the lighthouse painted?", "--stream", "--json")
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert [event["event"] for event in events][-2:] == ["citations", "answer"]
    assert events[0] == {
        "event": "sentence",
        "text": "The lighthouse was painted in 1931.",
        "support": "quoted",
        "citations": [1],
        "marked": "The lighthouse was painted in 1931. [1]",
    }
    whole = filled("ask", "In which year was the lighthouse painted?", "--json").json
    assert events[-1] == {"event": "answer", **whole}


def test_streamed_sentences_for_people(filled: Cli) -> None:
    ran = filled("ask", "In which year was the lighthouse painted?", "--stream")
    assert ran.out.splitlines()[:3] == ["The lighthouse was painted in 1931. [1]", "", "[1] harbour.txt"]
    ran = filled("ask", "Who won the chess championship of Reykjavik?", "--stream")
    assert (ran.code, ran.out) == (4, f"{NOTHING}\n")


@pytest.mark.req("R-ANS-08")
def test_without_attribution_nothing_names_a_source(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGSTONE_ANSWER__CITATION_STYLE", "none")
    for options in ([], ["--stream"]):
        ran = filled("ask", "In which year was the lighthouse painted?", *options)
        assert ran.out == "The lighthouse was painted in 1931.\n"


def test_a_list_of_sources_follows_streamed_sentences(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGSTONE_ANSWER__CITATION_STYLE", "endnote")
    ran = filled("ask", "In which year was the lighthouse painted?", "--stream")
    assert ran.out.startswith("The lighthouse was painted in 1931.\n\nSources:\n1. harbour.txt\n")


def test_contradictions_are_shown(filled: Cli, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("The lighthouse was painted in 1913.", encoding="utf-8")
    filled("ingest", tmp_path / "old.txt", "--quiet")
    ran = filled("ask", "In which year was the lighthouse painted?")
    assert "But " in ran.out
    assert "it gives another number" in ran.out
    (one,) = filled("ask", "In which year was the lighthouse painted?", "--json").json["contradictions"]
    assert {one["sentence"], one["quote"]} == {
        "The lighthouse was painted in 1931.",
        "The lighthouse was painted in 1913.",
    }


@pytest.fixture
def receipt(filled: Cli, tmp_path: Path) -> Path:
    path = tmp_path / "receipt.json"
    ran = filled("ask", "In which year was the lighthouse painted?", "--receipt", path)
    assert ran.code == 0
    return path


def test_a_receipt_is_checked_later(filled: Cli, receipt: Path) -> None:
    ran = filled("verify", "--receipt", receipt)
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "still holding: 1 of 1 sentence; the receipt is intact"
    assert filled("verify", "--receipt", receipt, "--json").json["holds"] is True
    written = json.loads(receipt.read_text(encoding="utf-8"))
    assert written["models"]["embedding"] == "fake@1"
    assert written["citations"][0]["quote"] == "The lighthouse was painted in 1931."


def test_a_receipt_whose_document_is_gone_does_not_hold(filled: Cli, receipt: Path) -> None:
    document = json.loads(receipt.read_text(encoding="utf-8"))["citations"][0]["document_id"]
    filled("documents", "delete", document)
    ran = filled("verify", "--receipt", receipt, "--json")
    assert (ran.code, ran.json["holds"], ran.json["intact"]) == (3, False, True)
    assert ran.json["sentences"][0]["reason"] == "its document is gone"
    assert ran.json["citations"][0]["state"] == "gone"


def test_another_tenant_s_receipt_tells_nothing(filled: Cli, receipt: Path) -> None:
    filled("tenants", "create", "other")
    ran = filled("verify", "--receipt", receipt, "--tenant", "other", "--json")
    assert (ran.code, ran.json["citations"][0]["state"]) == (3, "gone")


def test_a_changed_receipt_is_told(filled: Cli, receipt: Path) -> None:
    receipt.write_text(receipt.read_text(encoding="utf-8").replace("1931", "1932"), encoding="utf-8")
    ran = filled("verify", "--receipt", receipt)
    assert ran.code == 1
    assert "the receipt is NOT as it was made" in ran.out
    assert "its digest does not fit" in ran.err


@pytest.mark.parametrize("content", ["", "[]", "{}", "{", "[" * 100_000, '{"receipt": 1}'])
def test_what_is_no_receipt_is_a_mistake_in_the_call(filled: Cli, tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content, encoding="utf-8")
    ran = filled("verify", "--receipt", path, "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "invalid_input")


def test_a_claim_or_a_receipt(filled: Cli, receipt: Path) -> None:
    assert filled("verify").code == 2
    assert filled("verify", "The lighthouse was painted.", "--receipt", receipt).code == 2
    assert filled("verify", "--receipt", "nowhere.json").code == 2


@pytest.mark.parametrize(("place", "said"), [("nowhere/x.json", "there is no folder nowhere"), (".", ". is a folder")])
def test_a_receipt_that_cannot_be_written_is_refused_before_the_answer(
    filled: Cli, monkeypatch: pytest.MonkeyPatch, place: str, said: str
) -> None:
    monkeypatch.setattr("ragstone.engine.workspace.Workspace.ask", None)  # it must not come to that
    ran = filled("ask", "what does a dog cost", "--receipt", place)
    assert (ran.code, ran.out, ran.err.splitlines()[0]) == (2, "", f"error: {said}")


def test_a_receipt_that_cannot_be_written_after_all_does_not_cost_the_answer(
    filled: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "x.json")

    monkeypatch.setattr(Path, "write_text", full)
    ran = filled("ask", "In which year was the lighthouse painted?", "--receipt", "x.json")
    assert (ran.code, "painted in 1931" in ran.out, "No space left" in ran.err) == (1, True, True)


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A web that knows one page."""
    page = {
        "title": "Fog news",
        "url": "https://fog.example/today",
        "snippet": "The lighthouse was painted again in 2025.",
    }
    file = tmp_path / "web.json"
    file.write_text(json.dumps({"In which year was the lighthouse painted?": [page]}), encoding="utf-8")
    monkeypatch.setenv("RAGSTONE_WEB__KIND", "fixture")
    monkeypatch.setenv("RAGSTONE_WEB__PATH", str(file))
    return page["url"]


def test_an_answer_asks_the_web_where_it_is_told_to(filled: Cli, web: str) -> None:
    question = "In which year was the lighthouse painted?"
    cited = {one["uri"] for one in filled("ask", question, "--web", "--json").json["citations"]}
    assert web in cited
    cited = {one["uri"] for one in filled("ask", question, "--no-web", "--json").json["citations"]}
    assert cited == {"pages/harbour.txt"}


@pytest.mark.parametrize("command", ["ask", "search"])
def test_without_a_web_search_the_option_says_what_to_set(filled: Cli, command: str) -> None:
    ran = filled(command, "In which year was the lighthouse painted?", "--web")
    assert (ran.code, "no web search is set up" in ran.err, "set web.kind" in ran.err) == (2, True, True)


def test_pages_of_the_web_are_numbered_by_themselves(filled: Cli, web: str) -> None:
    lines = filled("search", "In which year was the lighthouse painted?", "--web", "-k", "1").out.splitlines()
    assert [line.split()[0] for line in lines if line and not line.startswith("   ")] == ["1", "On", "w1"]
    assert lines[lines.index("On the web") + 3].strip() == web


def test_a_part_without_an_answer_is_named(filled: Cli) -> None:
    question = "In which year was the lighthouse painted, and who won the chess cup of Reykjavik?"
    ran = filled("ask", question)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("The lighthouse was painted in 1931. [1]")
    assert lines[1] == "Still open: who won the chess cup of Reykjavik?"
    assert lines[2] == "No passage mentions Reykjavik."
    assert filled("ask", question, "--json").json["unanswered"] == ["who won the chess cup of Reykjavik"]


@pytest.mark.parametrize("options", [[], ["--stream"]], ids=["whole", "stream"])
def test_what_comes_near_is_shown_as_no_answer(filled: Cli, options: list[str]) -> None:
    question = "How many windows does the painted lighthouse have?"
    ran = filled("ask", question, *options)
    lines = ran.out.splitlines()
    assert (ran.code, lines[0]) == (4, "No passage states this. No passage mentions windows. The nearest say:")
    assert lines[1].endswith("[1]")
    assert lines[3] == "[1] harbour.txt"
    ran = filled("ask", question, *options, "--json")
    told = json.loads(ran.out.splitlines()[-1]) if options else ran.json
    assert (told["outcome"], told["status"], told["sentences"]) == ("nearest", "no_evidence", [])
    assert told["nearest"][0]["citations"] == [1]
