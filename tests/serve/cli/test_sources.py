"""`sources`: set up, listed, read, paused and removed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from tests.doubles.web import Reply, WebDouble, html
from tests.serve.cli.conftest import watched

from ragstone.core.errors import InputError
from ragstone.core.registry import UnknownAdapter
from ragstone.ingest.sources import KINDS
from ragstone.serve.cli.source_settings import kinds, read_settings

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

MAILS = "".join(
    f"From ada@a.example Sat Jan 31 09:30:00 2026\nFrom: ada@a.example\nSubject: {subject}\n"
    f"Message-ID: <{subject}@a.example>\n\nAll about the {subject} in winter.\n\n"
    for subject in ("ferry", "harbour")
)


@pytest.fixture
def sourced(cli: Cli, pages: Path) -> Cli:
    """The command line with a source over three pages that has not been read yet."""
    assert cli("sources", "add", "files", "wiki", "path=pages").code == 0
    return cli


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        (["path=/notes"], {"path": "/notes"}),
        (["path=notes/../papers"], {"path": "{here}/notes/../papers"}),
        (["path=~/notes"], {"path": "{home}/notes"}),
        (["path=${NOTES}/all"], {"path": "${NOTES}/all"}),
        (["glob=**/*.md"], {"glob": ["**/*.md"]}),
        (["glob=*.md", "glob=*.txt"], {"glob": ["*.md", "*.txt"]}),
        (['glob=["*.md", "*.txt"]', "glob=*.rst"], {"glob": ["*.md", "*.txt", "*.rst"]}),
        (["glob=[ab]*.md"], {"glob": ["[ab]*.md"]}),
        (["unheard-of=a=b"], {"unheard-of": "a=b"}),
        (["unheard-of="], {"unheard-of": ""}),
    ],
)
def test_settings_as_they_are_typed(
    given: list[str], settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    expected = {
        key: value.replace("{here}", str(tmp_path)).replace("{home}", "/home/ada") if isinstance(value, str) else value
        for key, value in settings.items()
    }
    assert read_settings("files", given) == expected


def test_settings_that_are_json_or_only_look_like_it() -> None:
    typed = [
        r'text="{question}\n{answer}"',
        "title={question}",
        "page_size=500",
        'metadata={"a": 1}',
        "query=" + "[" * 50_000,
    ]
    assert read_settings("database", typed) == {
        "text": "{question}\n{answer}",
        "title": "{question}",
        "page_size": "500",
        "metadata": {"a": 1},
        "query": "[" * 50_000,
    }


@pytest.mark.parametrize("pair", ["path", "=notes", ""])
def test_what_is_no_setting(pair: str) -> None:
    with pytest.raises(InputError, match="is not KEY=VALUE"):
        read_settings("files", [pair])


def test_a_kind_that_there_is_not() -> None:
    with pytest.raises(UnknownAdapter, match="there is no kind of source 'fiels'"):
        read_settings("fiels", [])


def test_every_kind_is_listed_with_its_settings(cli: Cli) -> None:
    ran = cli("sources", "kinds", "--json")
    listed = {kind["kind"]: kind for kind in ran.json["kinds"]}
    assert list(listed) == list(KINDS)
    assert all(kind["about"] for kind in listed.values())
    assert listed["files"]["settings"] == [
        {"name": "path", "type": "text", "required": True, "default": None},
        {"name": "glob", "type": "list", "required": False, "default": []},
        {"name": "exclude", "type": "list", "required": False, "default": []},
    ]
    for_people = cli("sources", "kinds").out.splitlines()
    assert [line.split()[0] for line in for_people if not line.startswith(" ")] == list(KINDS)
    assert '    corpus_path           text, optional, "data/corpus.txt"' in for_people


@pytest.mark.req("R-ING-39", "R-ING-04", "R-ING-01", "R-ING-03", "R-ING-05", "R-ING-06")
def test_a_source_runs_as_often_as_its_kind_unless_told_otherwise(cli: Cli, pages: Path) -> None:
    assert {kind.kind: kind.schedule for kind in kinds()} == {
        "files": "manual",
        "git": "manual",
        "corpus": "manual",
        "database": "manual",
        "web": "as_needed",
        "sitemap": "as_needed",
        "crawl": "as_needed",
        "feeds": "hourly",
        "hacker_news": "hourly",
        "semantic_scholar": "on_demand",
        "mbox": "daily",
        "imap": "daily",
        "gmail": "daily",
    }
    feeds = cli("sources", "add", "feeds", "news", "urls=https://example.com/feed", "--json").json
    assert (feeds["schedule"], feeds["next_run_at"][13:]) == ("hourly", ":00:00+00:00")
    web = cli("sources", "add", "web", "site", "urls=https://example.com", "--json").json
    assert (web["schedule"], web["next_run_at"]) == ("as_needed", None)
    assert cli("sources", "kinds").out.count(" (daily)") == 3


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.kind)
def test_a_kind_says_what_it_needs(kind: Any) -> None:
    assert all(setting.default is None for setting in kind.settings if setting.required)
    assert "value" not in {setting.type for setting in kind.settings}


def test_a_source_is_added_with_its_path_made_absolute(cli: Cli, pages: Path) -> None:
    ran = cli("sources", "add", "files", "wiki", "path=pages", "--schedule", "daily", "--json")
    assert (ran.code, ran.err) == (0, "")
    made = ran.json
    assert (made["name"], made["kind"], made["kb"], made["state"]) == ("wiki", "files", "default", "new")
    assert made["config"] == {"path": str(pages)}
    assert made["next_run_at"].endswith("T00:00:00+00:00")


def test_adding_for_people_says_what_to_type_next(cli: Cli, pages: Path) -> None:
    ran = cli("sources", "add", "files", "wiki", "path=pages", "--kb", "handbook")
    assert ran.out == "Added source 'wiki' to knowledge base 'handbook'.\n"
    assert ran.err == "next: ragstone sources sync wiki --kb handbook\n"


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("files", "wiki"), "source 'wiki' needs the setting 'path'", "it takes: path, glob, exclude"),
        (("files", "wiki", "path="), "a path is empty", "name a file or a folder; this one is ."),
        (("files", "wiki", "path=.", "globs=*"), "source 'wiki' has no setting 'globs'", "did you mean 'glob'?"),
        (("fiels", "wiki"), "there is no kind of source 'fiels'", "did you mean 'files'?"),
        (("files", "Wiki!", "path=."), "source 'Wiki!' is not a valid name", "use 1 to 63 of"),
        (("files", "wiki", "path=.", "--schedule", "often"), "the schedule 'often' is neither", "use one of"),
        (("files", "wiki", f"path={'[' * 500}{']' * 500}"), "the configuration is nested more than 32 deep", "give"),
    ],
)
def test_what_is_wrong_with_a_source_is_said_at_once(
    cli: Cli, arguments: tuple[str, ...], message: str, hint: str
) -> None:
    ran = cli("sources", "add", *arguments)
    assert (ran.code, ran.out) == (2, "")
    said, advice = ran.err.splitlines()
    assert said.startswith(f"error: {message}")
    assert advice.startswith(f"hint: {hint}")


def test_a_variable_may_be_set_later(cli: Cli, pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = cli("sources", "add", "files", "wiki", "path=${WIKI_PLACE}")
    assert (ran.code, ran.err.splitlines()[0]) == (
        0,
        "warning: ${WIKI_PLACE} is not set here: a sync fails where it is not",
    )
    failed = cli("sources", "sync", "wiki", "--json")
    assert failed.code == 1
    assert failed.json["sources"][0]["message"] == "source wiki.path refers to ${WIKI_PLACE}, which is not set"
    assert failed.json["sources"][0]["failed"][0]["hint"].startswith("export WIKI_PLACE=")
    monkeypatch.setenv("WIKI_PLACE", str(pages))
    assert cli("sources", "sync", "wiki", "--json").json["sources"][0]["taken_in"] == 3
    assert cli("sources", "list", "--json").json["sources"][0]["state"] == "ok"


def test_a_name_that_is_taken_can_be_freed_without_losing_documents(sourced: Cli) -> None:
    ran = sourced("sources", "add", "files", "wiki", "path=pages")
    assert ran.code == 2
    assert "ragstone sources remove wiki; to leave" in ran.err
    assert ran.err.rstrip().endswith("ragstone sources remove wiki --keep-documents")


def test_sources_are_listed(sourced: Cli) -> None:
    header, row = sourced("sources", "list").out.splitlines()
    columns = "name kind kb schedule state last run next run last error"
    assert " ".join(header.split()) == columns
    assert row.split() == ["wiki", "files", "default", "manual", "new", "–", "–"]
    assert [one["name"] for one in sourced("sources", "list", "--json").json["sources"]] == ["wiki"]
    assert sourced("sources", "list", "--kb", "other").code == 4


def test_a_sync_takes_in_what_is_new_and_removes_what_is_gone(sourced: Cli, pages: Path) -> None:
    ran = sourced("sources", "sync", "wiki", "--json")
    assert (ran.code, ran.err) == (0, "")
    first = ran.json["sources"][0]
    assert (first["state"], first["taken_in"], first["unchanged"], first["failed"]) == ("completed", 3, 0, [])
    assert sourced("search", "lighthouse", "--arms", "lexical", "--json").json["hits"][0]["uri"] == (
        "pages/harbour.txt"
    )
    (pages / "harbour.txt").unlink()
    (pages / "fares.md").write_text("# Fares\n\nAll crossings are free.\n", encoding="utf-8")
    again = sourced("sources", "sync", "wiki", "--json").json["sources"][0]
    assert (again["taken_in"], again["unchanged"], again["removed"]) == (1, 1, 1)
    assert sourced("search", "lighthouse", "--arms", "lexical").code == 4


def test_the_summary_for_people_names_what_failed(sourced: Cli, pages: Path) -> None:
    (pages / "empty.md").write_bytes(b"")
    ran = sourced("sources", "sync", "wiki")
    assert (ran.code, ran.err) == (3, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0] == ["source", "added/updated", "unchanged", "removed", "failed"]
    assert lines[1] == ["wiki", "3", "0", "0", "1"]
    assert lines[4] == ["pages/empty.md", "empty_document", "pages/empty.md", "is", "empty"]


def test_a_failure_of_an_earlier_sync_is_not_told_again(sourced: Cli, pages: Path) -> None:
    (pages / "empty.md").write_bytes(b"")
    assert sourced("sources", "sync", "wiki").code == 3
    (pages / "empty.md").unlink()
    ran = sourced("sources", "sync", "wiki", "--json")
    assert (ran.code, ran.json["sources"][0]["failed"]) == (0, [])


def test_what_fails_is_named_by_every_sync_and_shows_in_the_list(sourced: Cli, pages: Path) -> None:
    (pages / "empty.md").write_bytes(b"")
    (pages / "broken.zip").write_bytes(b"PK\x03\x04 and then nothing")
    for _ in range(2):
        ran = sourced("sources", "sync", "wiki", "--json")
        synced = ran.json["sources"][0]
        assert (ran.code, synced["failures"]) == (3, 2)
        assert [(one["uri"], one["code"], one["hint"]) for one in synced["failed"]] == [
            ("pages/broken.zip", "parse_failed", "copy or download it again"),
            ("pages/empty.md", "empty_document", "remove it, or put text in it"),
        ]
    listed = sourced("sources", "list", "--json").json["sources"][0]
    assert (listed["state"], listed["failures"], listed["last_error"]) == ("partly", 2, "")
    assert listed["failed"] == synced["failed"]
    row = sourced("sources", "list").out.splitlines()[1]
    assert row.split()[4] == "partly"
    assert row.rstrip().endswith("2 failed: pages/broken.zip is damaged: File is not a zip file")
    (pages / "empty.md").unlink()
    (pages / "broken.zip").unlink()
    assert sourced("sources", "sync", "wiki").code == 0
    assert sourced("sources", "list", "--json").json["sources"][0]["state"] == "ok"


def test_a_source_of_which_nothing_comes_in_is_failing(cli: Cli) -> None:
    assert cli("sources", "add", "web", "site", "urls=http://127.0.0.1:9/a", "urls=http://127.0.0.1:9/b").code == 0
    ran = cli("sources", "sync", "site")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.count("address_refused") == 2
    assert ran.out.count("hint: an operator can allow the host") == 1
    assert cli("sources", "list", "--json").json["sources"][0]["state"] == "failing"


def test_a_site_goes_from_ok_to_partly_to_failing_and_back(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGSTONE_FETCH__ALLOW", '["127.0.0.1"]')
    monkeypatch.setenv("RAGSTONE_FETCH__SECONDS_PER_HOST", "0")
    monkeypatch.setenv("RAGSTONE_FETCH__RETRIES", "0")
    as_it_was, away = Reply(b"", 304), Reply(b"no", 403)
    with WebDouble() as web:
        urls = [f"urls={web.url(path)}" for path in ("/a", "/b")]
        assert cli("sources", "add", "web", "site", *urls).code == 0
        for a, b, code, state in (
            (html("<p>The ferry is green.</p>", ETag='"1"'), html("<p>The quay is old.</p>", ETag='"1"'), 0, "ok"),
            (as_it_was, away, 3, "partly"),
            (away, away, 1, "failing"),
            (as_it_was, as_it_was, 0, "ok"),
        ):
            web.on("/a", a)
            web.on("/b", b)
            assert cli("sources", "sync", "site").code == code
            assert cli("sources", "list", "--json").json["sources"][0]["state"] == state
        assert cli("stats", "--json").json["documents"] == 2


def test_a_folder_that_can_no_longer_be_read_is_failing_though_its_documents_are_kept(
    sourced: Cli, pages: Path
) -> None:
    sourced("sources", "sync", "wiki")
    for place in (pages / "fares.md", pages / "harbour.txt", pages / "staff" / "rota.html"):
        place.unlink()
        os.mkfifo(place)  # is listed, and is nothing that could be read
    ran = sourced("sources", "sync", "wiki", "--json")
    assert (ran.code, ran.json["sources"][0]["failures"]) == (1, 3)
    assert sourced("sources", "list", "--json").json["sources"][0]["state"] == "failing"
    assert sourced("stats", "--json").json["documents"] == 3


def test_many_failures_are_shown_in_part_and_all_of_them_with_the_source(sourced: Cli, pages: Path) -> None:
    for number in range(12):
        (pages / f"{number:02}.md").write_bytes(b"")
    ran = sourced("sources", "sync", "wiki", "--kb", "default")
    assert ran.out.count("empty_document") == 10
    assert ran.out.splitlines()[-1] == "And 2 more: ragstone sources show wiki --kb default"
    shown = sourced("sources", "show", "wiki").out
    assert shown.count("empty_document") == 12
    assert shown.splitlines()[-1] == "hint: remove it, or put text in it"
    assert f"setting   path={pages}" in shown.splitlines()
    assert sourced("sources", "show", "wiki", "--json").json["failures"] == 12


def test_on_a_terminal_reasons_have_room(sourced: Cli, pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (pages / "empty.md").write_bytes(b"")
    monkeypatch.setattr(
        "ragstone.serve.cli.session.console", lambda: Console(force_terminal=True, color_system=None, width=80)
    )
    assert "pages/empty.md empty_document is empty" in sourced("sources", "sync", "wiki").out
    listed = sourced("sources", "list", "--kb", "default").out
    assert listed.splitlines()[-3:] == [
        "wiki: 1 failed: pages/empty.md is empty",
        "",
        "All that failed, and what to do: ragstone sources show NAME --kb default",
    ]
    assert "last error" not in listed


def test_a_moved_file_gets_a_column(sourced: Cli, pages: Path) -> None:
    sourced("sources", "sync", "wiki")
    (pages / "harbour.txt").rename(pages / "port.txt")
    lines = sourced("sources", "sync", "wiki").out.splitlines()
    assert lines[0].split() == ["source", "added/updated", "unchanged", "removed", "moved", "failed"]
    assert lines[1].split() == ["wiki", "1", "2", "0", "1", "0"]


def test_a_source_that_cannot_be_read_is_a_failure(sourced: Cli, pages: Path, tmp_path: Path) -> None:
    sourced("sources", "sync", "wiki")
    pages.rename(tmp_path / "elsewhere")
    ran = sourced("sources", "sync", "wiki")
    assert ran.code == 1
    reason, _, hint = ran.out.splitlines()[-3:]
    assert hint == "hint: check the path, or whether its disk is mounted; nothing was removed"
    assert reason.split()[:2] == ["wiki", "failed"]
    assert f"the folder {pages} of source 'wiki' does not exist" in reason
    listed = sourced("sources", "list", "--json").json["sources"][0]
    assert (listed["state"], listed["last_error"][:10]) == ("failed", "the folder")
    assert sourced("stats", "--json").json["documents"] == 3


def test_one_source_that_fails_among_others_is_partial(sourced: Cli, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    assert sourced("sources", "add", "files", "gone", "path=gone").code == 0
    (tmp_path / "gone").rmdir()
    ran = sourced("sources", "sync", "--all", "--json")
    assert ran.code == 3
    assert {one["source"]: one["state"] for one in ran.json["sources"]} == {"wiki": "completed", "gone": "failed"}


@pytest.mark.req("R-ING-42")
def test_everything_is_read_again_in_one_operation(cli: Cli, pages: Path, tmp_path: Path) -> None:
    (tmp_path / "all.mbox").write_text(MAILS, encoding="ascii")
    assert cli("sources", "add", "files", "wiki", "path=pages", "--kb", "east").code == 0
    assert cli("sources", "add", "mbox", "mail", "path=all.mbox", "--kb", "west").code == 0
    assert _synced(cli, "--all") == [("east", 3, 0), ("west", 2, 0)]
    assert _synced(cli, "--all") == [("east", 0, 3), ("west", 0, 0)]
    assert _synced(cli, "--all", "--afresh") == [("east", 0, 3), ("west", 0, 2)]
    assert _synced(cli, "--all", "--afresh", "--kb", "west") == [("west", 0, 2)]


def _synced(cli: Cli, *arguments: str) -> list[tuple[str, int, int]]:
    ran = cli("sources", "sync", *arguments, "--json")
    assert ran.code == 0
    return [(one["kb"], one["taken_in"], one["unchanged"]) for one in ran.json["sources"]]


def test_a_sync_can_be_left_to_a_worker(sourced: Cli) -> None:
    ran = sourced("sources", "sync", "wiki", "--no-wait")
    header, row = ran.out.splitlines()
    assert header.split() == ["id", "source", "kb", "state"]
    assert row.split()[1:] == ["wiki", "default", "pending"]
    assert ran.err == "next: ragstone jobs --watch\n"
    assert sourced("stats", "--json").json["documents"] == 0
    assert sourced("worker", "--until-idle", "--json").json == {"stopped": False, "completed": 4, "failed": 0}
    assert sourced("stats", "--json").json["documents"] == 3


@pytest.mark.parametrize("arguments", [(), ("wiki", "--all")])
def test_a_sync_of_nothing_or_of_both(sourced: Cli, arguments: tuple[str, ...]) -> None:
    ran = sourced("sources", "sync", *arguments)
    assert (ran.code, ran.err.splitlines()[0]) == (2, "error: name sources or say --all, one of the two")


def test_nothing_is_queued_when_one_name_is_wrong(sourced: Cli) -> None:
    ran = sourced("sources", "sync", "wiki", "wikki")
    assert (ran.code, ran.err.splitlines()[0]) == (4, "error: knowledge base 'default' has no source 'wikki'")
    assert sourced("jobs", "--json").json["jobs"] == []


def test_all_of_no_sources(filled: Cli) -> None:
    ran = filled("sources", "sync", "--all")
    assert (ran.code, ran.err.splitlines()[0]) == (4, "error: there are no sources")


def test_a_source_rests_and_goes_on(cli: Cli, pages: Path) -> None:
    cli("sources", "add", "files", "wiki", "path=pages", "--schedule", "daily")
    assert cli("sources", "pause", "wiki").out == "Source 'wiki' is paused.\n"
    assert cli("sources", "list", "--json").json["sources"][0]["state"] == "paused"
    ran = cli("sources", "resume", "wiki")
    assert ran.out.startswith("Source 'wiki' goes on; next run: ")
    assert ran.out.endswith(" 00:00 UTC.\n")
    assert cli("sources", "list", "--json").json["sources"][0]["state"] == "new"


@pytest.mark.parametrize(("flags", "left"), [((), 0), (("--keep-documents",), 3)])
def test_a_source_is_removed(sourced: Cli, flags: tuple[str, ...], left: int) -> None:
    sourced("sources", "sync", "wiki")
    ran = sourced("sources", "remove", "wiki", *flags, "--yes", "--json")
    assert (ran.code, ran.json["removed"], ran.json["documents"]) == (0, "wiki", 3 - left)
    assert [receipt["complete"] for receipt in ran.json["receipts"]] == [True] * (not left)
    assert sourced("stats", "--json").json["documents"] == left
    assert sourced("sources", "list").out == "No sources.\n"
    assert sourced("sources", "remove", "wiki").code == 4


@pytest.mark.parametrize(("answer", "code", "sources"), [(False, 1, 1), (True, 0, 0)])
def test_removing_on_a_terminal_asks_first(
    sourced: Cli, monkeypatch: pytest.MonkeyPatch, answer: bool, code: int, sources: int
) -> None:
    asked: list[str] = []

    def confirm(question: str, *, err: bool) -> bool:
        asked.append(question)
        return answer

    monkeypatch.setattr("typer.confirm", confirm)
    with monkeypatch.context() as terminal:
        watched(terminal)
        assert sourced("sources", "remove", "wiki").code == code
    assert asked == ["Remove source 'wiki' with all its documents?"]
    assert len(sourced("sources", "list", "--json").json["sources"]) == sources


def test_secrets_are_not_shown(cli: Cli) -> None:
    typed = ("host=mail.example", "user=ada", "password=hush")
    for ran in (
        cli("sources", "add", "imap", "mail", *typed, "--json"),
        cli("sources", "list", "--json"),
        cli("sources", "pause", "mail", "--json"),
    ):
        assert ran.code == 0
        assert "hush" not in ran.out


def test_a_folder_that_was_ingested_is_warned_of(cli: Cli, pages: Path) -> None:
    assert cli("ingest", "pages").code == 0
    ids = [one["id"] for one in cli("documents", "--json").json["documents"]]
    ran = cli("sources", "add", "files", "wiki", "path=pages")
    said = " ".join(ran.err.split())
    assert ran.code == 0
    assert f"'ragstone ingest' has brought 3 documents under {pages} already" in said
    assert f"ragstone documents delete {' '.join(ids)}; to undo this: ragstone sources remove wiki" in said
    assert "this source passes them over" in said
    (pages.parent / "elsewhere").mkdir()
    assert "warning: " not in cli("sources", "add", "files", "part", "path=elsewhere").err


def test_a_folder_that_is_not_there_is_warned_of(cli: Cli, tmp_path: Path) -> None:
    done = cli("sources", "add", "files", "wiki", "path=nowhere")
    assert done.code == 0
    assert f"there is no {tmp_path / 'nowhere'} yet" in " ".join(done.err.split())


def test_many_documents_are_not_named_one_by_one(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(6):
        (tmp_path / "many" / f"{number}.txt").write_text(f"Buoy number {number} is painted red.\n")
    assert cli("ingest", "many").code == 0
    said = " ".join(cli("sources", "add", "files", "wiki", "path=many").err.split())
    assert "ragstone documents delete ID… (ids: ragstone documents);" in said


@pytest.mark.parametrize(
    ("path", "warned"), [("pages", True), ("pages/staff", True), (".", True), ("pages2", False), ("${PAGES}", False)]
)
def test_two_sources_of_one_folder_are_warned_of(
    sourced: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, warned: bool
) -> None:
    monkeypatch.setenv("PAGES", str(tmp_path))
    ran = sourced("sources", "add", "files", "second", f"path={path}")
    assert ran.code == 0
    assert ("source 'wiki' reads" in " ".join(ran.err.split())) == warned


def test_files_of_a_source_are_not_ingested_again_and_it_is_said(sourced: Cli) -> None:
    assert sourced("sources", "sync", "wiki").code == 0
    listed = sourced("documents", "--json").json["documents"]
    found = sourced("ingest", listed[0]["uri"], "--json").json
    assert (found["added"], found["skipped"], found["documents"]) == (0, 1, len(listed))
    assert (
        sourced("ingest", listed[0]["uri"]).err
        == f"warning: {listed[0]['uri']} skipped: already in the kb by source 'wiki'\n"
    )
