from __future__ import annotations

import asyncio
import io
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from tests.doubles.web import Reply, WebDouble, html

from ragstone.core.documents import IngestReport
from ragstone.core.errors import ModelError
from ragstone.core.jobs import STAGES
from ragstone.core.model_types import Embeddings
from ragstone.core.search import Stage
from ragstone.core.types import Failure, Role
from ragstone.ingest.work import Progress, merge_reports
from ragstone.serve.cli.render.progress import IngestProgress, draw_progress
from ragstone.testing.fakes import FakeEmbedder

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli


@pytest.mark.req("R-ING-43")
def test_a_folder_is_ingested_and_left_alone_the_next_time(cli: Cli, pages: Path) -> None:
    first = cli("ingest", pages, "--json")
    assert (first.code, first.err) == (0, "")
    assert (first.json["added"], first.json["unchanged"], first.json["failed"]) == (3, 0, [])
    assert first.json["documents"] == 3
    again = cli("ingest", pages, "--json").json
    assert (again["added"], again["updated"], again["unchanged"]) == (0, 0, 3)


def test_a_changed_file_is_updated(cli: Cli, pages: Path) -> None:
    cli("ingest", pages)
    (pages / "harbour.txt").write_text("The harbour is closed.", encoding="utf-8")
    report = cli("ingest", pages, "--json").json
    assert (report["added"], report["updated"], report["unchanged"]) == (0, 1, 2)


def test_some_failures_are_a_partial_ingest(cli: Cli, pages: Path) -> None:
    (pages / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    (pages / "empty.md").write_bytes(b"")
    ran = cli("ingest", pages, "--json")
    assert ran.code == 3
    assert ran.json["added"] == 3
    assert {failure["uri"] for failure in ran.json["failed"]} == {"pages/broken.pdf", "pages/empty.md"}
    assert {failure["code"] for failure in ran.json["failed"]} == {"parse_failed", "empty_document"}


def test_what_a_quota_refuses_is_one_line(cli: Cli, pages: Path) -> None:
    assert cli("tenants", "create", "acme").code == 0
    assert cli("tenants", "set", "acme", "quotas.documents=1").code == 0
    (pages / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    ran = cli("ingest", pages, "--tenant", "acme")
    assert ran.code == 3
    (refused,) = [line.split(maxsplit=3) for line in ran.out.splitlines() if "quota_exceeded" in line]
    assert refused[:3] == ["2", "documents", "quota_exceeded"]
    assert refused[3].startswith("tenant 'acme' may have 1 document and has ")
    assert ran.out.count("parse_failed") == 1
    named = cli("ingest", pages, "--tenant", "acme", "--json").json["failed"]
    assert [(one["code"], one["uri"] in one["error"]) for one in named] == [("quota_exceeded", True)] * 3


def test_only_failures_are_a_failure(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty.md").write_bytes(b"")
    ran = cli("ingest", tmp_path / "empty.md")
    assert ran.code == 1
    assert "empty_document" in ran.out
    assert "empty.md" in ran.out


def test_a_path_that_is_not_there_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    ran = cli("ingest", tmp_path / "nowhere")
    assert ran.code == 2
    assert ran.err.startswith(f"error: {tmp_path / 'nowhere'} does not exist\nhint: ")
    assert ran.out == ""


@pytest.mark.parametrize("way", [(), ("--dry-run",), ("--queue",), ("--watch",)])
def test_an_empty_path_is_refused_and_not_taken_for_the_working_folder(
    cli: Cli, pages: Path, way: tuple[str, ...]
) -> None:
    """It is what a shell makes of a variable that is not set."""
    ran = cli("ingest", pages, "", *way)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: a path is empty\nhint: name a file or a folder; this one is .\n"
    assert not Path("ragstone-data").exists()


def test_an_empty_data_folder_is_refused(cli: Cli, pages: Path) -> None:
    ran = cli("ingest", pages, "--data-dir", "")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: Invalid value for '--data-dir': it is empty\nhint: ragstone ingest --help\n"
    assert [path.name for path in Path().iterdir()] == ["pages"]


def test_the_summary_for_people(cli: Cli, pages: Path) -> None:
    ran = cli("ingest", pages, "--kb", "handbook")
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0] == ["added", "updated", "unchanged", "failed"]
    assert lines[1] == ["3", "0", "0", "0"]
    assert "Knowledge base 'handbook' holds 3 documents and " in ran.out


def test_an_empty_folder_is_remarked_upon(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    ran = cli("ingest", tmp_path / "nothing")
    assert (ran.code, ran.err) == (0, "warning: no documents were found there\n")
    assert cli("ingest", tmp_path / "nothing", "--quiet").err == ""


def test_a_failing_model_is_a_warning_and_in_the_json(cli: Cli, pages: Path, embedder: FakeEmbedder) -> None:
    embedder.errors = [ModelError("the model is out of order")]
    ran = cli("ingest", pages / "harbour.txt")
    assert ran.code == 0
    assert ran.err == "warning: embedding: the model is out of order\n"
    embedder.errors = [ModelError("the model is out of order")]
    assert cli("ingest", pages / "fares.md", "--json").json["degraded"] == ["embedding: the model is out of order"]


def test_a_chunk_that_the_model_refuses_is_counted(cli: Cli, tmp_path: Path, embedder: FakeEmbedder) -> None:
    (tmp_path / "odd.txt").write_text("unspeakable words", encoding="utf-8")
    embedder.refuse = ["unspeakable words"]
    ran = cli("ingest", tmp_path / "odd.txt")
    assert ran.err == "warning: 1 chunk got no vector: the model refused the text\n"


def test_failures_come_with_what_to_do_about_them(cli: Cli, pages: Path) -> None:
    for name in ("a.md", "b.md"):
        (pages / name).write_bytes(b"")
    (pages / "broken.zip").write_bytes(b"PK\x03\x04 and then nothing")
    failed = cli("ingest", "pages", "--json").json["failed"]
    assert {one["uri"]: one["hint"] for one in failed} == {
        "pages/a.md": "remove it, or put text in it",
        "pages/b.md": "remove it, or put text in it",
        "pages/broken.zip": "copy or download it again",
    }
    said = [line for line in cli("ingest", "pages").out.splitlines() if line.startswith("hint: ")]
    assert sorted(said) == [
        "hint: pages/a.md and 1 more: remove it, or put text in it",
        "hint: pages/broken.zip: copy or download it again",
    ]


def test_what_is_gone_from_a_folder_gets_a_column(cli: Cli, pages: Path) -> None:
    cli("ingest", pages)
    (pages / "harbour.txt").unlink()
    (pages / "fares.md").rename(pages / "prices.md")
    ran = cli("ingest", pages)
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0] == ["added", "updated", "unchanged", "removed", "moved", "failed"]
    assert lines[1] == ["0", "1", "1", "1", "1", "0"]
    assert cli("stats", "--json").json["documents"] == 2


def test_a_folder_that_was_emptied_is_no_folder_without_documents(cli: Cli, pages: Path) -> None:
    cli("ingest", pages / "staff")
    (pages / "staff" / "rota.html").unlink()
    ran = cli("ingest", pages / "staff", "--json")
    assert (ran.json["removed"], ran.json["documents"]) == (1, 0)
    assert cli("ingest", pages / "staff").err == "warning: no documents were found there\n"


def test_the_time_of_each_stage(cli: Cli, pages: Path) -> None:
    ran = cli("ingest", pages, "--stages")
    lines = [line.split() for line in ran.out.splitlines()]
    start = lines.index(["stage", "seconds", "share", "in", "out"])
    assert [line[0] for line in lines[start + 1 : start + 9]] == list(STAGES)
    *stages, total = lines[start + 1 : start + 11]
    assert total[0] == "all"
    seconds = [float(line[1] if line[0] != "start" else line[3]) for line in stages]
    assert sum(seconds) == pytest.approx(float(total[1]), abs=0.05)
    assert f"Took {total[1]} s." in ran.out
    cli("kb", "delete", "default", "--yes")
    shape = cli("ingest", pages, "--json").json
    assert [stage["stage"] for stage in shape["stages"]] == list(STAGES)
    assert (shape["removed"], shape["moved"], shape["duplicates"], shape["warnings"]) == (0, 0, 0, [])


def test_a_dry_run_writes_nothing_and_asks_no_model(
    cli: Cli, pages: Path, tmp_path: Path, embedder: FakeEmbedder
) -> None:
    ran = cli("ingest", pages, "--dry-run")
    assert ran.out.splitlines()[1].split() == ["3", "0", "0", "0"]
    assert ran.out.splitlines()[-1] == "This is what would be done; nothing was written."
    assert not (tmp_path / "ragstone-data").exists()
    assert embedder.calls == []


def test_a_dry_run_tells_what_the_run_then_does(cli: Cli, pages: Path) -> None:
    cli("ingest", pages)
    (pages / "harbour.txt").unlink()
    (pages / "fares.md").write_text("# Fares\n\nAll crossings are free.\n", encoding="utf-8")
    (pages / "new.txt").write_text("A new page.", encoding="utf-8")
    counts = ("added", "updated", "unchanged", "removed")
    told = cli("ingest", pages, "--dry-run", "--json").json
    assert told["dry_run"] is True
    done = cli("ingest", pages, "--json").json
    assert [told[name] for name in counts] == [done[name] for name in counts] == [1, 1, 1, 1]


def test_a_dry_run_tells_what_each_file_is_taken_for(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "manual"
    folder.mkdir()
    (folder / "ferry.1").write_text(".TH FERRY 1\n.SH NAME\nferry \\- cross the sound\n")
    (folder / "rules.txt").write_text("Rules\n=====\n\n.. note:: Keep right.\n\nSee :ref:`tides`.\n")
    (folder / "plain.txt").write_text("Some words.")
    told = cli("ingest", folder, "--dry-run", "--json").json
    kinds = {Path(file["uri"]).name: file["media_type"] for file in told["files"]}
    assert kinds == {"ferry.1": "text/troff", "rules.txt": "text/x-rst", "plain.txt": "text/plain"}
    assert "text/troff" in cli("ingest", folder, "--dry-run").out


def test_a_dry_run_survives_what_the_run_survives(cli: Cli, pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spring(*_: object, **__: object) -> None:
        raise RuntimeError("sprung")

    monkeypatch.setattr("ragstone.ingest.prepare.normalize", spring)
    told = cli("ingest", pages, "--dry-run", "--json").json
    assert told["failed"] == cli("ingest", pages, "--json").json["failed"]
    assert {failure["code"] for failure in told["failed"]} == {"internal"}


def test_queued_files_come_with_their_jobs(cli: Cli, pages: Path) -> None:
    ran = cli("ingest", "--queue", pages, pages / "fares.md")
    header, *rows = [line.split() for line in ran.out.splitlines()]
    assert header == ["id", "status", "document", "file"]
    assert [(row[1], row[3]) for row in rows] == [
        ("pending", "pages/fares.md"),
        ("pending", "pages/harbour.txt"),
        ("pending", "pages/staff/rota.html"),
    ]
    assert {row[0] for row in rows} == {job["id"] for job in cli("jobs", "--json").json["jobs"]}
    assert ran.err == "next: ragstone worker --until-idle\n"


def test_the_same_file_changed_and_queued_again_is_the_same_document(cli: Cli, pages: Path) -> None:
    fares = pages / "fares.md"
    first = cli("ingest", "--queue", fares, "--json").json["queued"][0]
    cli("worker", "--until-idle")
    again = cli("ingest", "--queue", fares, "--json").json["queued"][0]
    assert (again["document_id"], again["status"]) == (first["document_id"], "completed")
    assert again["job_id"] == first["job_id"]
    fares.write_text("# Fares\n\nAll crossings are free.\n", encoding="utf-8")
    changed = cli("ingest", "--queue", fares, "--json").json["queued"][0]
    assert changed["document_id"] == first["document_id"]
    assert changed["job_id"] != first["job_id"]


def test_files_that_cannot_be_queued_are_named(
    cli: Cli, pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGSTONE_LIMITS__FILE_MB", "1")
    (pages / "big.txt").write_bytes(b"x" * (1024 * 1024 + 1))
    os.mkfifo(pages / "pipe.txt")
    ran = cli("ingest", "--queue", pages, "--json")
    assert ran.code == 3
    assert {Path(failure["uri"]).name: failure["code"] for failure in ran.json["failed"]} == {
        "big.txt": "too_large",
        "pipe.txt": "invalid_input",
    }
    assert len(ran.json["queued"]) == 3
    assert cli("ingest", "--queue", pages / "big.txt").code == 1
    assert cli("ingest", "--queue", pages, tmp_path / "nowhere").code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--watch", "--dry-run", "."), "--watch and --dry-run do not go together"),
        (("--queue", "https://a.example/b"), "--queue takes files and folders, not https://a.example/b"),
        (("--watch", ".", "HTTP://a.example"), "--watch takes files and folders, not HTTP://a.example"),
    ],
)
def test_what_does_not_go_together(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    ran = cli("ingest", *arguments)
    assert (ran.code, ran.err.splitlines()[0]) == (2, f"error: {message}")


def test_pages_of_the_web_are_ingested_beside_files(cli: Cli, pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGSTONE_FETCH__ALLOW", '["127.0.0.1"]')
    monkeypatch.setenv("RAGSTONE_FETCH__SECONDS_PER_HOST", "0")
    monkeypatch.setenv("RAGSTONE_FETCH__RETRIES", "0")
    with WebDouble() as web:
        web.on("/ferry", html("<title>Ferry</title><p>The ferry is painted green every spring.</p>"))
        web.on("/broken", Reply(b"no", 500))
        ran = cli("ingest", pages / "fares.md", web.url("/ferry"), web.url("/broken"), "--json")
        assert ran.code == 3
        assert (ran.json["added"], ran.json["documents"]) == (2, 2)
        assert [failure["uri"] for failure in ran.json["failed"]] == [web.url("/broken")]
        found = cli("search", "painted green", "--arms", "lexical", "--json").json["hits"][0]
        assert (found["title"], found["uri"]) == ("Ferry", web.url("/ferry"))
        assert cli("ingest", web.url("/ferry"), "--json").json["unchanged"] == 1


def test_an_address_inside_the_network_is_refused(cli: Cli) -> None:
    ran = cli("ingest", "http://127.0.0.1:1/secret", "--json")
    assert ran.code == 1
    assert [failure["code"] for failure in ran.json["failed"]] == ["address_refused"]


def test_two_reports_make_one() -> None:
    failure = Failure("a", "parse_failed", "cut")
    first = IngestReport(1, 2, 3, (failure,), 9, 90, 1.5, ("w",), 1, ("d",), 1, 1, 1, (Stage("fetch", 1.0, 2, 2),))
    second = IngestReport(
        10, 20, 30, (), 12, 99, 2.0, (), 2, ("d",), 2, 0, 0, (Stage("fetch", 2.5, 1, 1), Stage("chunk", 1.0, 1, 4))
    )
    assert merge_reports(first, second) == IngestReport(
        11, 22, 33, (failure,), 12, 99, 3.5, ("w",), 3, ("d",), 3, 1, 1,
        (Stage("fetch", 3.5, 3, 3), Stage("chunk", 1.0, 1, 4)),
    )  # fmt: skip


def _embedded(done: int, embedded: int, **more: Any) -> Progress:
    return Progress(done, embedded, 0, "", phase="embedding", embedded=embedded, **more)


def test_the_time_that_is_left_counts_chunks_and_what_is_not_read_yet() -> None:
    now = 100.0
    view = IngestProgress(lambda: now)
    assert (view.phase, view.counts, view.share) == ("starting", "", 0.0)
    view.expect(40, size=3000)
    assert view.counts == "40 documents found"
    view.show(Progress(0, 0, 0, "", cut=100, cut_bytes=1000, read_bytes=1000))
    assert (view.phase, view.counts) == ("reading", "0 of 40 documents")
    view.show(_embedded(2, 10, cut=100, cut_bytes=1000, read_bytes=1000))
    view.show(_embedded(2, 11, cut=100, cut_bytes=1000, read_bytes=1000))
    assert view.seconds_left is None  # there is no pace yet: the first chunks waited for the model
    now += 10
    view.show(_embedded(5, 60, cut=100, cut_bytes=1000, read_bytes=1000))
    # 40 chunks are cut, 2000 bytes give 200 more, and 5 chunks a second are made.
    assert view.seconds_left == pytest.approx(48)
    assert view.counts == "5 of 40 documents, 60 chunks, about 50 s left"
    assert view.share == pytest.approx(60 / 300)
    now += 600
    assert view.counts.endswith("about 50 min left")  # a run that stands still does not promise its old pace


def test_a_long_document_tells_how_far_it_is() -> None:
    view = IngestProgress()
    view.show(Progress(0, 0, 0, "library/[red]book.pdf", "extract", 50, 1000))
    assert view.long_document == "library/[red]book.pdf: 50 of 1,000 pages read"
    view.show(Progress(0, 0, 0, "library/a page.pdf", "extract", 1, 1))
    view.show(Progress(0, 0, 0, "library/[red]book.pdf", "embed", 64, 2150))
    assert view.long_document == "library/[red]book.pdf: 64 of 2,150 chunks embedded"
    drawn = io.StringIO()
    Console(file=drawn, width=100).print(draw_progress(view))
    assert "[red]book.pdf: 64 of 2,150 chunks embedded" in drawn.getvalue()
    view.show(Progress(1, 0, 1, "library/[red]book.pdf"))
    assert view.long_document == ""


def test_a_run_that_nobody_watches_at_a_terminal_writes_a_line_now_and_then(
    cli: Cli, pages: Path, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstone.serve.cli.render.progress.FIRST_LINE_SECONDS", 0.0)
    said = cli("ingest", pages).err.splitlines()
    assert said[0] == "starting …"
    assert len(said) == 1  # the next one is due much later
    assert cli("ingest", pages, "--quiet").err == ""
    assert cli("ingest", pages, "--json").err == ""


def test_an_interrupted_run_says_what_is_kept_and_goes_on_there(
    cli: Cli, tmp_path: Path, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "note.txt").write_text("The harbour opens at six.")
    (folder / "book.txt").write_text("\n\n".join(f"Chapter {number} " + "of ropes " * 300 for number in range(200)))
    real = embedder.embed

    async def interrupt(texts: Sequence[str], role: Role = "document") -> Embeddings:
        if any("Chapter 150 " in text for text in texts):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        return await real(texts, role)

    monkeypatch.setattr(embedder, "embed", interrupt)
    ran = cli("ingest", folder)
    assert ran.code == 130
    first, hint = ran.err.splitlines()
    kept = r"interrupted: 1 of 2 documents are done and can be searched; of .*book\.txt (\d+) of 400 chunks are kept"
    assert re.fullmatch(kept, first)
    assert hint == "hint: the same command goes on from there"
    made = {text for texts, _ in embedder.calls for text in texts}
    embedder.calls.clear()
    monkeypatch.setattr(embedder, "embed", real)
    report = cli("ingest", folder, "--json").json
    assert (report["added"], report["unchanged"]) == (1, 1)
    again = [text for texts, _ in embedder.calls for text in texts]
    assert again
    assert not made & set(again)


def test_an_interrupted_run_is_the_same_object_for_programs(
    cli: Cli, pages: Path, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupt(texts: Sequence[str], role: Role = "document") -> Embeddings:
        os.kill(os.getpid(), signal.SIGINT)
        return await asyncio.Event().wait()  # type: ignore[return-value]

    monkeypatch.setattr(embedder, "embed", interrupt)
    ran = cli("ingest", pages, "--json")
    assert (ran.code, ran.err) == (130, "")
    assert (ran.json["error"]["code"], ran.json["error"]["message"]) == ("interrupted", "interrupted")
