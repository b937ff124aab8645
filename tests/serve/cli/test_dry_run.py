"""`ingest --dry-run` counts what the run then counts, and the bar of a run never says more than all."""

from __future__ import annotations

import zipfile
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ragstone.ingest.sources.files.read import survey_files
from ragstone.ingest.work import Progress
from ragstone.serve.cli.render.progress import IngestProgress

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

COUNTS = ("added", "updated", "unchanged", "removed", "moved", "duplicates")


@pytest.fixture
def mixed(pages: Path) -> Path:
    """The pages, and beside them an archive, a mail with attachments, a copy, and what cannot be read."""
    with zipfile.ZipFile(pages / "all.zip", "w") as archive:
        archive.mkdir("inner")
        archive.writestr("inner/ferry.md", "# Ferry\n\nThe ferry is green.\n")
        archive.writestr("empty.txt", "")
    mail = EmailMessage()
    mail["From"], mail["Subject"], mail["Message-ID"] = "ada@a.example", "Tides", "<1@a.example>"
    mail.set_content("The tides are attached.\n")
    mail.add_attachment(b"High water is at nine.\n", maintype="text", subtype="plain", filename="tides.txt")
    mail.add_attachment(b"no PDF", maintype="application", subtype="pdf", filename="cut.pdf")
    (pages / "mail.eml").write_bytes(bytes(mail))
    (pages / "copy.txt").write_text((pages / "harbour.txt").read_text())
    (pages / "empty.md").write_bytes(b"")
    (pages / "cut.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    return pages


def _told_and_done(cli: Cli, *options: str) -> list[tuple[Any, ...]]:
    """What the dry run and then the run itself count and name."""
    return [
        (
            ran.code,
            *(ran.json[name] for name in COUNTS),
            sorted((one["uri"], one["code"]) for one in ran.json["failed"]),
        )
        for ran in (cli("ingest", "pages", "--json", *options) for options in (("--dry-run",), ()))
    ]


@pytest.mark.parametrize("duplicates", ["report", "skip"])
def test_it_counts_what_the_run_counts(cli: Cli, mixed: Path, monkeypatch: pytest.MonkeyPatch, duplicates: str) -> None:
    monkeypatch.setenv("RAGSTONE_ENRICH__NEAR_DUPLICATES", duplicates)
    left_out = int(duplicates == "skip")
    broken = [
        ("pages/all.zip!/empty.txt", "empty_document"),
        ("pages/cut.pdf", "parse_failed"),
        ("pages/empty.md", "empty_document"),
    ]
    told, done = _told_and_done(cli)
    assert (
        told == done == (3, 7 - left_out, 0, 0, 0, 0, left_out, [*broken, ("pages/mail.eml#cut.pdf", "parse_failed")])
    )
    told, done = _told_and_done(cli)
    assert told == done == (3, 0, 0, 6 - left_out, 0, 0, left_out, broken)


def test_it_says_once_for_all_mails_that_quoted_text_was_left_out(cli: Cli, tmp_path: Path) -> None:
    for number in range(3):
        mail = EmailMessage()
        mail["From"], mail["Subject"], mail["Message-ID"] = "ada@a.example", "Re: Tides", f"<{number}@a.example>"
        mail.set_content(f"Number {number}.\n\nOn Mon, 4 May 2026 Bo wrote:\n> When is high water?\n")
        (tmp_path / f"{number}.eml").write_bytes(bytes(mail))
    told, done = (cli("ingest", str(tmp_path), "--json", *dry) for dry in (("--dry-run",), ()))
    assert told.json["warnings"] == done.json["warnings"]
    assert [warning.partition(".eml ")[2] for warning in told.json["warnings"]] == [
        "and 2 more: text quoted from an earlier mail was left out"
    ]


def test_it_counts_what_has_moved_and_gone(cli: Cli, pages: Path) -> None:
    cli("ingest", "pages")
    (pages / "harbour.txt").rename(pages / "port.txt")
    (pages / "fares.md").unlink()
    told, done = _told_and_done(cli)
    assert told == done == (0, 0, 1, 1, 1, 1, 0, [])


def test_the_count_grows_with_what_is_found_inside(mixed: Path) -> None:
    view = IngestProgress()
    view.expect(*survey_files([mixed]))
    # The members of the archive are known, the attachments of the mail are not.
    assert view.counts == "9 documents found"
    view.show(Progress(8, 8, 0, "a.md"))
    assert view.counts == "8 of 9 documents, 8 chunks"
    view.show(Progress(11, 11, 0, "a.md"))
    assert view.counts == "11 of 11 documents, 11 chunks"
