from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.serve.cli.conftest import watched

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli


def test_paging_through_all_documents(filled: Cli) -> None:
    whole = filled("documents", "--json").json
    assert {document["uri"] for document in whole["documents"]} == {
        "pages/fares.md",
        "pages/harbour.txt",
        "pages/staff/rota.html",
    }
    assert whole["next"] is None
    first = filled("documents", "--limit", "2", "--json").json
    rest = filled("documents", "--limit", "2", "--after", first["next"], "--json").json
    assert first["documents"] + rest["documents"] == whole["documents"]
    assert (len(first["documents"]), rest["next"]) == (2, None)


def test_a_page_for_people_says_how_to_go_on(filled: Cli) -> None:
    where = '{"filename": {"in": ["fares.md", "harbour.txt"]}}'
    ran = filled("documents", "--limit", "1", "--where", where, "--kb", "default")
    header, row = ran.out.splitlines()
    assert header.split() == ["id", "title", "uri", "chunks"]
    going_on = f"documents --after {row.split()[0]} --limit 1 --where '{where}' --kb default"
    assert ran.err == f"more: ragstone {going_on}\n"
    last = filled(*shlex.split(going_on))
    assert (len(last.out.splitlines()), last.err) == (2, "")


def test_the_largest_page_that_can_be_asked_for(filled: Cli) -> None:
    ran = filled("documents", "--limit", "10000", "--json")
    assert (ran.code, len(ran.json["documents"]), ran.json["next"]) == (0, 3, None)


def test_no_documents_match(filled: Cli) -> None:
    ran = filled("documents", "--where", '{"filename": "none"}')
    assert (ran.code, ran.out) == (4, "No documents.\n")


def test_a_document_is_shown_with_its_text_and_chunks(filled: Cli) -> None:
    listed = filled("documents", "--where", '{"filename": "fares.md"}', "--json").json["documents"][0]
    shown = filled("documents", "show", listed["id"], "--json").json
    assert {key: shown[key] for key in listed} == listed
    assert len(shown["chunk_list"]) == listed["chunks"]
    for chunk in shown["chunk_list"]:
        assert shown["text"][chunk["start"] : chunk["end"]] == chunk["text"]
    for_people = filled("documents", "show", listed["id"]).out
    assert "A dog travels for two crowns." in for_people
    assert for_people.splitlines()[0] == "Fares"


@pytest.mark.req("R-DOM-14", "R-DOM-18")
def test_the_records_of_a_document_and_its_chunks(filled: Cli) -> None:
    listed = filled("documents", "--where", '{"filename": "fares.md"}', "--json").json["documents"][0]
    shown = filled("documents", "show", listed["id"], "--json").json
    told = {name: shown[name] for name in ("filename", "file_type", "status", "tags", "chunk_count")}
    assert told == {
        "filename": "fares.md",
        "file_type": "md",
        "status": "completed",
        "tags": [],
        "chunk_count": listed["chunks"],
    }
    records = filled("documents", "chunks", listed["id"], "--json").json
    assert records["document_id"] == listed["id"]
    assert [one["content"] for one in records["chunks"]] == [one["text"] for one in shown["chunk_list"]]
    assert records["chunks"][0]["metadata"]["totalChunks"] == listed["chunks"]
    for_people = filled("documents", "chunks", listed["id"]).out
    assert records["chunks"][0]["id"] in for_people


def test_chunks_of_what_is_not_live_or_not_there(cli: Cli, pages: Path) -> None:
    queued = cli("ingest", "--queue", pages / "fares.md", "--json").json["queued"][0]
    waiting = cli("documents", "chunks", queued["document_id"])
    assert (waiting.code, waiting.out) == (4, "No chunks.\n")
    assert "pending; it cannot be found yet" in waiting.err
    unknown = cli("documents", "chunks", "0" * 32, "--json")
    assert unknown.json["error"]["code"] == "not_found"


def test_a_document_that_is_not_live_yet_is_shown_with_its_job(cli: Cli, pages: Path) -> None:
    queued = cli("ingest", "--queue", pages / "fares.md", "--json").json["queued"][0]
    shown = cli("documents", "show", queued["document_id"], "--json")
    assert (shown.code, shown.json) == (0, queued)
    lines = cli("documents", "show", queued["document_id"]).out.splitlines()
    assert lines[:3] == ["pages/fares.md", "pages/fares.md", "pending; it cannot be found yet"]
    assert f"job       {queued['job_id']}" in lines


def test_a_document_that_failed_says_why(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    queued = cli("ingest", "--queue", tmp_path / "broken.pdf", "--json").json["queued"][0]
    assert cli("worker", "--until-idle").code == 0
    shown = cli("documents", "show", queued["document_id"], "--json").json
    assert (shown["status"], shown["job"]["error_code"]) == ("failed", "parse_failed")
    assert shown["processing_error"] == shown["job"]["error"]
    assert shown["processing_error"] in cli("documents", "show", queued["document_id"]).out.splitlines()


def test_a_deleted_document_is_gone(filled: Cli) -> None:
    harbour = filled("documents", "--where", '{"filename": "harbour.txt"}', "--json").json["documents"][0]["id"]
    ran = filled("documents", "delete", harbour, "nope", "--json")
    assert (ran.code, ran.json) == (3, {"deleted": [harbour], "not_found": ["nope"]})
    ran = filled("documents", "delete", harbour, "nope", "--json")
    assert (ran.code, ran.json) == (4, {"deleted": [], "not_found": [harbour, "nope"]})
    assert filled("search", "lighthouse", "--arms", "lexical").code == 4
    assert filled("documents", "show", harbour).code == 4
    assert len(filled("documents", "--json").json["documents"]) == 2


def test_deleting_for_people(filled: Cli) -> None:
    ids = [document["id"] for document in filled("documents", "--json").json["documents"]]
    ran = filled("documents", "delete", *ids)
    assert (ran.code, ran.out, ran.err) == (0, "Deleted 3 documents.\n", "")


def test_options_come_after_the_subcommand(filled: Cli) -> None:
    ran = filled("documents", "--kb", "default", "show", "nope")
    assert (ran.code, ran.out) == (2, "")
    assert "options come after 'show'" in ran.err


def test_kbs_are_listed_with_their_counts(filled: Cli) -> None:
    ran = filled("kb", "list", "--json")
    assert ran.json == {
        "kbs": [{"name": "default", "documents": 3, "chunks": 4, "model": "fake@1", "dimension": 64, "generation": 1}]
    }
    assert filled("kb", "list").out.splitlines()[1].split() == ["default", "3", "4", "fake@1"]


def test_a_kb_is_deleted(filled: Cli) -> None:
    refused = filled("kb", "delete", "default")
    assert (refused.code, "add --yes" in refused.err) == (2, True)
    ran = filled("kb", "delete", "default", "--yes", "--json")
    (receipt,) = ran.json["receipts"]
    assert (ran.code, ran.json["deleted"], ran.json["documents"]) == (0, "default", 3)
    assert (receipt["complete"], receipt["removed"]["ledger"]["documents"]) == (True, 3)
    assert filled("kb", "list", "--json").json == {"kbs": []}
    assert filled("kb", "delete", "default", "--yes").code == 4


@pytest.mark.parametrize(("answer", "code", "left"), [(False, 1, 3), (True, 0, 0)])
def test_deleting_a_kb_on_a_terminal_asks_first(
    filled: Cli, monkeypatch: pytest.MonkeyPatch, answer: bool, code: int, left: int
) -> None:
    asked: list[str] = []

    def confirm(question: str, *, err: bool) -> bool:
        asked.append(question)
        return answer

    monkeypatch.setattr("typer.confirm", confirm)
    with monkeypatch.context() as terminal:
        watched(terminal)
        assert filled("kb", "delete", "default").code == code
    assert asked == ["Delete 'default' with 3 documents?"]
    kbs = filled("kb", "list", "--json").json["kbs"]
    assert sum(kb["documents"] for kb in kbs) == left


def test_stats(filled: Cli) -> None:
    counts = filled("stats", "--json").json
    assert (counts["kb"], counts["documents"], counts["chunks"]) == ("default", 3, 4)
    assert (counts["unembedded"], counts["model"]) == (0, "fake@1")
    assert all(isinstance(counts[name], int) for name in ("tokens", "sequence", "bytes"))
    shown = filled("stats").out
    assert "documents       3\n" in shown
    assert "without vectors 0 documents\n" in shown
    assert f"changes so far  {counts['sequence']}, in all knowledge bases of the tenant\n" in shown


def test_tenants_do_not_see_each_other(filled: Cli) -> None:
    mine = filled("documents", "--json").json["documents"][0]["id"]
    assert filled("documents", "show", mine, "--tenant", "other").code == 4
    assert filled("documents", "delete", mine, "--tenant", "other").code == 4
    assert filled("documents", "show", mine).code == 0


def test_another_data_folder_is_another_world(filled: Cli, pages: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert filled("ingest", pages / "fares.md", "--data-dir", other).code == 0
    assert filled("stats", "--data-dir", other, "--json").json["documents"] == 1
    assert filled("stats", "--json").json["documents"] == 3
