"""`ragstone audit`, the log of searches and conversations on the command line."""

from __future__ import annotations

import os
import pwd
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragstone.core.clock import now
from ragstone.core.errors import InputError
from ragstone.serve.cli import command
from ragstone.serve.cli.commands.audit import read_since

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

ME = pwd.getpwuid(os.getuid()).pw_name


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
    assert {one["actor"] for one in shown[:3]} == {ME}
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
    assert drawn[0].split() == ["when", "(UTC)", "who", "action", "what", "outcome"]
    assert drawn[1].split()[-4:] == [ME, "document.read", document[:16], "denied"]


def test_tenants_are_chosen_by_name_also_when_they_are_gone(filled: Cli, pages: Path) -> None:
    assert filled("ingest", pages, "--tenant", "acme", "-q").code == 0
    assert filled("tenants", "delete", "acme", "--yes").code == 0
    told = filled("audit", "--tenant", "acme", "--json").json["audit"]
    assert [(one["action"], one["outcome"]) for one in told] == [
        ("tenant.erase", "done"),
        ("tenant.delete", "done"),
        ("tenant.delete", "begun"),
        ("document.upload", "done"),
        ("tenant.create", "done"),
    ]
    assert told[0]["counts"]["ledger.documents"] == told[0]["count"] == 3
    assert "acme" not in {one["tenant"] for one in filled("audit", "--tenant", "default", "--json").json["audit"]}


def test_the_record_is_proven_and_a_changed_entry_named(filled: Cli, tmp_path: Path) -> None:
    proven = filled("audit", "--verify")
    assert (proven.code, proven.out.splitlines()[0].split(maxsplit=2)[2]) == (0, "entries are as they were written.")
    noted = filled("audit", "--verify", "--json").json["head"]
    assert filled("audit", "--verify", "--noted", noted).code == 0
    with closing(sqlite3.connect(tmp_path / "ragstone-data" / "control.db")) as control:
        [changed] = control.execute("SELECT max(id) FROM audit").fetchone()
        control.execute("UPDATE audit SET actor = 'eve' WHERE id = ?", (changed,))
        control.commit()
    broken = filled("audit", "--verify", "--json")
    assert (broken.code, broken.json["intact"], broken.json["broken_at"]) == (1, False, changed)
    assert f"entry {changed} was changed" in filled("audit", "--verify").out


def test_nothing_to_show(filled: Cli, cli: Cli, tmp_path: Path) -> None:
    ran = filled("audit", "--action", "kb.delete")
    assert (ran.code, ran.out) == (4, "Nothing is recorded.\n")
    empty = cli("audit", "--data-dir", tmp_path / "nowhere")
    assert empty.code == 4
    assert "ragstone ingest PATH --data-dir" in empty.err
    assert not (tmp_path / "nowhere").exists()


def test_since(filled: Cli) -> None:
    for text, ago in (("30m", timedelta(minutes=30)), ("12h", timedelta(hours=12)), ("2w", timedelta(weeks=2))):
        found = read_since(text)
        assert found is not None
        assert abs(now() - ago - found) < timedelta(minutes=1)
    for wrong in ("7", "d7", "yesterday", "-1d"):
        with pytest.raises(InputError, match="--since cannot be"):
            read_since(wrong)
    assert filled("audit", "--since", "2999-01-01").code == 4
    assert filled("audit", "--since", "1d").code == 0
    assert "such as --since 12h" in filled("audit", "--since", "soon").err


def test_who_started_it_is_not_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "mallory")
    assert command._user() == ME


def test_who_started_it_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getuid", lambda: 47_110_815)
    assert command._user() == "47110815"


def test_alerts_are_shown_and_told_by_the_exit_code(filled: Cli, tmp_path: Path) -> None:
    assert (filled("alerts").code, filled("alerts").out) == (0, "There are no alerts.\n")
    with closing(sqlite3.connect(tmp_path / "ragstone-data" / "control.db")) as control:
        moment = "2026-01-31T09:00:00+00:00"
        values = ("", "vectors.unavailable", "", "firing", 1.0, 0.0, moment, moment)
        control.execute("INSERT INTO alerts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        control.commit()
    shown = filled("alerts")
    assert shown.code == 3
    drawn = shown.out.splitlines()[1].split()
    assert drawn == ["firing", "vectors.unavailable", "(service)", "1", "0", "2026-01-31", "09:00"]
    assert filled("alerts", "--json").json["alerts"][0]["state"] == "firing"
    assert filled("alerts", "--tenant", "default").code == 0
