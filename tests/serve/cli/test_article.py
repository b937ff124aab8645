"""`ragstone article`: Markdown and JSON, progress by node, and runs that go on."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest
from tests.doubles.newsroom import newsroom
from tests.doubles.openai import Reply, Request, json_reply
from tests.serve.cli.conftest import Cli

DRAFT = "# Fares\n\nA single crossing costs six crowns. A dog travels for two crowns. A cat pays ninety crowns.\n"


def test_an_article_is_printed_as_markdown_and_as_json_and_resumed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, pages: Path
) -> None:
    assert cli("ingest", pages, "--quiet").code == 0
    broken = True

    def critic(_: Request) -> Reply | str:
        return json_reply({}, 500) if broken else "Short."

    with newsroom({"writer": DRAFT, "editor": DRAFT, "style_enforce": DRAFT, "critic": critic}) as double:
        monkeypatch.setenv("RAGSTONE_LLM__BASE_URL", double.url)
        monkeypatch.setenv("RAGSTONE_LLM__MODEL", "m")
        monkeypatch.setenv("RAGSTONE_LLM__RETRIES", "0")
        failed = cli("article", "Fares of the crossing")
        assert failed.code == 1
        run_id = failed.err.partition("article --resume ")[2].split()[0]
        broken = False
        done = cli("article", "--resume", run_id)
        shown = cli("article", "--resume", run_id, "--json")
        wrong = cli("article")
        unknown = cli("article", "--resume", "0" * 32)
    assert "A dog travels for two crowns. [" in done.out
    assert "ninety" not in done.out.partition("## Sources")[0]
    assert "| A cat pays ninety crowns. |" in done.out
    assert [line.split()[0].rstrip(":") for line in done.err.splitlines()][1:3] == ["critic", "fact_verify"]
    assert "tokens" in done.err
    article = shown.json["article"]
    assert (shown.json["id"], shown.json["status"], article["cited"] >= 2) == (run_id, "completed", True)
    assert done.code == shown.code
    assert (wrong.code, unknown.code) == (2, 4)


def test_without_a_model_it_says_what_to_set_and_leaves_no_run(cli: Cli, pages: Path) -> None:
    assert cli("ingest", pages, "--quiet").code == 0
    ran = cli("article", "Fares")
    assert (ran.code, "set llm.model and llm.base_url" in ran.err, "run:" in ran.err) == (2, True, False)
    with sqlite3.connect(next(Path("ragstone-data").rglob("ledger.db"))) as ledger:
        assert ledger.execute("SELECT count(*) FROM article_runs").fetchone() == (0,)


def test_without_langgraph_it_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.graph", None)
    ran = cli("article", "Fares")
    assert ran.code == 2
    assert 'pip install "ragstone[agents]"' in ran.err
