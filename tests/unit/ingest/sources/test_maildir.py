"""A folder with cur, new and tmp is a Maildir: its messages are mail, and what is beside them is not read."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.ingest.sources.source_kit import context, entries, pages

from ragstone.core.types import Item
from ragstone.ingest.sources.files.read import read_files, survey_files
from ragstone.ingest.sources.files.source import FilesConfig, FilesSource

MESSAGE = "Subject: Fog {0}\n\nThe fog of day {0} has lifted.\n"
KEPT = ["Mail/cur/1699.M1P2.host:2,S", "Mail/new/1700.M3P4.host", "Mail/.Sent/cur/1701.M5P6.host:2,S"]
BESIDE = ["Mail/tmp/1702.M7P8.host", "Mail/dovecot-uidlist", "Mail/.Sent/maildirfolder", "Mail/.hidden/notes.txt"]


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    for box in ("Mail", "Mail/.Sent"):
        for name in ("cur", "new", "tmp"):
            (tmp_path / box / name).mkdir(parents=True)
    (tmp_path / "Mail" / ".hidden").mkdir()
    for number, name in enumerate([*KEPT, *BESIDE]):
        (tmp_path / name).write_text(MESSAGE.format(number))
    return tmp_path / "Mail"


def test_the_messages_of_a_maildir_are_mail(mail: Path) -> None:
    found = [item for item in read_files([mail]) if isinstance(item, Item)]
    assert {item.uri: item.media_type for item in found} == dict.fromkeys(KEPT, "message/rfc822")
    assert survey_files([mail])[0] == 3


def test_a_message_that_is_named_alone_is_mail(mail: Path) -> None:
    (item,) = read_files([mail / "cur" / "1699.M1P2.host:2,S"])
    assert isinstance(item, Item)
    assert item.media_type == "message/rfc822"


async def test_a_source_reads_a_maildir_too(mail: Path) -> None:
    found = entries(await pages(FilesSource(FilesConfig(path=mail.parent), "mail", context())))
    assert {entry.external_id for entry in found if isinstance(entry, Item)} == set(KEPT)


def test_a_folder_that_is_only_called_cur_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "cur").mkdir()
    (tmp_path / "cur" / "a.txt").write_text("Words")
    (item,) = read_files([tmp_path])
    assert isinstance(item, Item)
    assert item.media_type == ""


def test_a_mailbox_without_a_suffix_gives_its_messages(tmp_path: Path) -> None:
    head = "From anna@example.org Mon Nov  3 10:00:00 2025\nFrom: anna@example.org\nMessage-ID: <{0}@example.org>\n"
    (tmp_path / "Inbox").write_text("\n".join(head.format(n) + MESSAGE.format(n) for n in (1, 2)))
    assert [item.uri for item in read_files([tmp_path]) if isinstance(item, Item)] == [
        "Inbox!/1@example.org.eml",
        "Inbox!/2@example.org.eml",
    ]
