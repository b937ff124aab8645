from __future__ import annotations

import io
import os
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.ingest.sources.source_kit import context, failures, items, pages, pages_before_error

from ragstone.core.types import Failure, Item
from ragstone.ingest.sources.files.read import expand, read_files
from ragstone.ingest.sources.files.source import FilesConfig, FilesSource
from ragstone.settings.tree import LimitSettings

MEGABYTE = 1024 * 1024
LIMITS = LimitSettings(file_mb=1, archive_mb=64)


def mail(number: int, body: str = "words", host: str = "example.org") -> bytes:
    return (
        f"From - Mon Jan  5 10:00:00 2026\nMessage-ID: <{number}@{host}>\n"
        f"Date: Mon, 5 Jan 2026 10:00:00 +0000\nSubject: Number {number}\n\n{body}\n\n"
    ).encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


def ids(entries: Iterator[Item | Failure]) -> list[str]:
    return [entry.external_id.rpartition("!/")[2] if isinstance(entry, Item) else entry.uri for entry in entries]


def test_a_mailbox_that_is_named_gives_its_messages(folder: Path) -> None:
    (folder / "inbox.mbox").write_bytes(mail(1) + mail(2))
    first, second = read_files([folder / "inbox.mbox"], LIMITS)
    assert isinstance(first, Item)
    assert isinstance(second, Item)
    assert first.external_id == f"{(folder / 'inbox.mbox').as_posix()}!/1@example.org"
    assert first.uri == "docs/inbox.mbox!/1@example.org.eml"
    assert first.media_type == "message/rfc822"
    assert isinstance(first.content, bytes)
    assert first.content.startswith(b"Message-ID: <1@example.org>")
    named = dict.fromkeys(("mailbox", "source"), "docs/inbox.mbox")
    assert first.metadata == {"source_type": "email", "filename": "inbox.mbox", **named}
    assert first.modified_at is not None
    assert first.modified_at.isoformat() == "2026-01-05T10:00:00+00:00"


@pytest.mark.parametrize("forged", ["1@example.org#1:terms.txt", f"1@example.org#{'a' * 32}"])
def test_no_message_takes_the_name_of_anothers_attachment(folder: Path, forged: str) -> None:
    letter = mail(2).replace(b"2@example.org", forged.encode())
    (folder / "inbox.mbox").write_bytes(mail(1) + letter + letter)
    assert ids(read_files([folder], LIMITS)) == ["1@example.org", forged.replace("#", "%23")]


async def test_a_mailbox_in_a_folder_gives_its_messages(folder: Path) -> None:
    (folder / "inbox.mbox").write_bytes(mail(1) + mail(2))
    config = FilesConfig(path=folder)
    found = await pages(FilesSource(config, "mail", context(LIMITS)))
    assert sorted(items(found)) == ["inbox.mbox!/1@example.org", "inbox.mbox!/2@example.org"]
    assert found[0].listed == {"inbox.mbox"}


def test_a_mailbox_in_an_archive_is_read_as_a_stream(folder: Path) -> None:
    # Takeout/Mail/All mail.mbox is larger than any one file may be.
    body = "\n".join(os.urandom(2000).hex() for _ in range(20))
    with zipfile.ZipFile(folder / "takeout.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Takeout/Mail/All mail.mbox", b"".join(mail(n, body) for n in range(150)))
    size = 0
    tracemalloc.start()
    for number, entry in enumerate(read_files([folder], LIMITS)):
        assert isinstance(entry, Item)
        assert entry.external_id.endswith(f"takeout.zip!/Takeout/Mail/All mail.mbox!/{number}@example.org")
        assert entry.metadata["archive"] == "docs/takeout.zip"
        size += len(entry.content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 11 * MEGABYTE
    assert peak < 5 * MEGABYTE


def test_a_large_mailbox_is_never_in_memory(folder: Path) -> None:
    with (folder / "inbox.mbox").open("wb") as file:
        for number in range(200):
            file.write(mail(number, ("some words " * 1000 + "\n") * 10))
    tracemalloc.start()
    count = sum(1 for _ in read_files([folder], LIMITS))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 200
    assert peak < 4 * MEGABYTE


def test_a_message_over_the_limit_is_reported_and_the_rest_is_read() -> None:
    content = mail(1) + mail(2, "x" * (MEGABYTE + 1)) + mail(3)
    found = list(expand(Item("files", "a", "inbox.mbox", content), LIMITS))
    start = len(mail(1))
    assert ids(iter(found)) == ["1@example.org", f"inbox.mbox!/{start}", "3@example.org"]
    assert found[1] == Failure(
        f"inbox.mbox!/{start}",
        "too_large",
        f"the message at byte {start} of inbox.mbox is larger than limits.file_mb allows",
    )


def test_a_message_twice_is_one_and_two_of_one_id_are_two() -> None:
    content = mail(1) + mail(1) + mail(1, "other") + mail(1, "other") + mail(1)
    found = list(expand(Item("files", "a", "inbox.mbox", content), LIMITS))
    names = ids(iter(found))
    assert names[0] == "1@example.org"
    assert len(names) == 2
    assert names[1].startswith("1@example.org#")


def test_a_host_that_looks_like_a_suffix_is_no_suffix() -> None:
    (message,) = expand(Item("files", "a", "inbox.mbox", mail(1, host="post.md")), LIMITS)
    assert message.uri == "inbox.mbox!/1@post.md.eml"


def test_what_is_no_mailbox_is_said_so_and_an_empty_one_is_fine(folder: Path) -> None:
    (folder / "empty.mbox").write_bytes(b"")
    (folder / "other.mbox").write_bytes(b"just words\n")
    (only,) = read_files([folder], LIMITS)
    assert only == Failure(
        "docs/other.mbox",
        "parse_failed",
        "docs/other.mbox is not a mailbox: no message in it begins with a line 'From …'",
    )


def test_a_damaged_mailbox_in_an_archive_is_reported(folder: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("inbox.mbox", mail(1) + mail(2))
        archive.writestr("a.txt", "words")
    content = bytearray(buffer.getvalue())
    content[60] ^= 0xFF
    found = list(expand(Item("files", "p.zip", "p.zip", bytes(content)), LIMITS))
    assert [entry.uri for entry in found if isinstance(entry, Failure)] == ["p.zip!/inbox.mbox"]
    assert [entry.uri for entry in found if isinstance(entry, Item)][-1] == "p.zip!/a.txt"


async def test_a_mailbox_that_cannot_be_opened_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "inbox.mbox").write_bytes(mail(1))

    def broken(*_: object) -> Iterator[Item]:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("ragstone.ingest.sources.mail.mailboxes.read_mbox", broken)
    source = FilesSource(FilesConfig(path=folder), "mail", context(LIMITS))
    seen, error = await pages_before_error(source)
    assert error is None
    assert [(failure.code, failure.external_id) for failure in failures(seen)] == [("unreadable", "inbox.mbox")]


@pytest.mark.parametrize(
    ("limits", "unread"),
    [
        (LimitSettings(archive_mb=1), "all.zip"),
        (LimitSettings(archive_entries=1), "all.zip"),
        (LimitSettings(file_mb=1), "all.zip!/in/large.txt"),
    ],
)
def test_a_failure_names_what_could_not_be_read(limits: LimitSettings, unread: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("in/large.txt", b"x" * (MEGABYTE + 1))
        archive.writestr("a.txt", "words")
    found = expand(Item("files", "all.zip", "docs/all.zip", buffer.getvalue()), limits)
    assert [entry.external_id for entry in found if isinstance(entry, Failure)] == [unread]
