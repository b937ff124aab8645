"""`ragstone audit`, the log of searches and conversations on the command line."""

from __future__ import annotations

import getpass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragstone.core.clock import now
from ragstone.core.errors import InputError
from ragstone.serve.cli import command
from ragstone.serve.cli.audit import read_since

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli


@pytest.mark.req("R-SEC-14")
def test_who_did_what_newest_first(filled: Cli) -> None:
    filled("search", "what does a dog cost")
    document = filled("documents", "--json").json["documents"][0]["id"]
    assert filled("documents", "delete", document).code == 0
    assert filled("documents", "show", document).code == 4
    shown = filled("audit", "--json").json["audit"]
    # Whether `show` looks once or twice before it gives up is its own business.
    first = dict.fromkeys((one["action"], one["outcome"], one["target"]) for one in shown)
    assert list(first)[:3] == [
        ("document.read", "denied", document),
        ("document.delete", "done", document),
        ("document.delete", "begun", document),
    ]
    assert {one["actor"] for one in shown[:3]} == {getpass.getuser()}
    assert shown[0]["detail"] == "Access denied"
    [search] = filled("audit", "--action", "search", "--json").json["audit"]
    assert (search["kb"], search["count"], search["tenant"]) == ("default", 4, "default")
    assert list(search) == [
        "moment",
        "actor",
        "tenant",
        "tenant_id",
        "action",
        "outcome",
        "target",
        "kb",
        "count",
        "document_ids",
        "counts",
        "detail",
    ]
    drawn = filled("audit", "--limit", "1").out.splitlines()
    assert drawn[0].split() == [
        *("when", "(UTC)", "who", "tenant", "action"),
        *("outcome", "what", "kb", "count", "detail"),
    ]
    assert drawn[1].split()[2:6] == [getpass.getuser(), "default", "document.read", "denied"]
    assert drawn[1].endswith("Access denied")


def test_tenants_are_chosen_by_name_also_when_they_are_gone(filled: Cli, pages: Path) -> None:
    assert filled("ingest", pages, "--tenant", "acme", "-q").code == 0
    assert filled("tenants", "delete", "acme", "--yes").code == 0
    told = filled("audit", "--tenant", "acme", "--json").json["audit"]
    assert [(one["action"], one["outcome"]) for one in told] == [
        ("tenant.erase", "done"),
        ("tenant.delete", "done"),
        ("tenant.delete", "begun"),
        ("tenant.create", "done"),
    ]
    assert told[0]["counts"]["ledger.documents"] == told[0]["count"] == 3
    assert "acme" not in {
        one["tenant"] for one in filled("audit", "--tenant", "default", "--json").json["audit"]
    }


def test_nothing_to_show(filled: Cli, cli: Cli, tmp_path: Path) -> None:
    ran = filled("audit", "--action", "kb.delete")
    assert (ran.code, ran.out) == (4, "Nothing is recorded.\n")
    empty = cli("audit", "--data-dir", tmp_path / "nowhere")
    assert empty.code == 4
    assert "ragstone ingest PATH makes it" in empty.err
    assert not (tmp_path / "nowhere").exists()


def test_since(filled: Cli) -> None:
    for text, ago in (
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        ("2w", timedelta(weeks=2)),
    ):
        found = read_since(text)
        assert found is not None
        assert abs(now() - ago - found) < timedelta(minutes=1)
    for wrong in ("7", "d7", "yesterday", "-1d"):
        with pytest.raises(InputError, match="--since cannot be"):
            read_since(wrong)
    assert filled("audit", "--since", "2999-01-01").code == 4
    assert filled("audit", "--since", "1d").code == 0
    assert "such as --since 12h" in filled("audit", "--since", "soon").err


def test_who_started_it_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", unknown)
    monkeypatch.setattr("os.getuid", lambda: 4711)
    assert command._user() == "4711"


@pytest.mark.req("R-DOM-37")
def test_a_conversation_goes_on_from_one_command_to_the_next(filled: Cli) -> None:
    talk = ("--conversation", "mine", "--json")
    assert filled("ask", "When does the harbour open?", *talk).json["status"] == "answered"
    found = filled("search", "And the lighthouse?", *talk).json
    assert found["rewritten_query"] == "When does the harbour open And the lighthouse?"
    searches = filled("feedback", "searches", "--conversation", "mine", "--json").json["searches"]
    assert [(one["query"], one["conversation"]) for one in searches] == [
        ("And the lighthouse?", "mine"),
        ("When does the harbour open?", "mine"),
    ]
    assert filled("ask", "When?", "--conversation", "").code == 2


@pytest.mark.req("R-DOM-22")
def test_the_log_of_searches(filled: Cli) -> None:
    assert "No search is remembered" in filled("feedback", "searches").out
    filled("search", "what does a dog \x1b[31mcost")
    filled("search", "dogs", "--kb", "elsewhere")
    [one] = filled("feedback", "searches", "--json").json["searches"]
    assert (one["document_results_count"], one["total_results"], one["success"]) == (4, 4, True)
    assert one["sources_queried"] == one["sources_returned"] == ["documents"]
    drawn = filled("feedback", "searches").out
    assert "what does a dog" in drawn
    assert "\x1b" not in drawn
    failed = filled("feedback", "searches", "--failed", "--kb", "elsewhere", "--json").json["searches"]
    assert [(one["success"], one["error_message"][:42]) for one in failed] == [
        (False, "there is no knowledge base 'elsewhere' yet")
    ]
    assert filled("feedback", "searches", "--failed", "--json").json["searches"] == []


def test_a_rotation_is_recorded(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGSTONE_SECURITY__KEY", filled("keys", "encryption", "--json").json["key"])
    assert filled("keys", "rotate").code == 0
    assert [one["tenant"] for one in filled("audit", "--action", "keys", "--json").json["audit"]] == [
        "default"
    ]
