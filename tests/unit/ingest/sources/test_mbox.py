from __future__ import annotations

import io
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest

from ragstone.core.errors import SourceError
from ragstone.core.types import Failure, Item, Page
from ragstone.ingest.parsers.mail.parser import parse_mail
from ragstone.ingest.sources.config import SourceContext
from ragstone.ingest.sources.mail import mailboxes
from ragstone.ingest.sources.mail.mailboxes import PIECE, MboxConfig, MboxSource, read_mbox
from ragstone.settings.tree import LimitSettings

SEPARATOR = b"From anna@harbour.example Tue May  5 10:00:00 2026\n"


def letter(number: int, body: bytes = b"The ferry leaves.\n") -> bytes:
    head = b"Message-ID: <%d@harbour.example>\nDate: Tue, 5 May 2026 10:00:00 +0000\nSubject: %d\n\n" % (number, number)
    return SEPARATOR + head + body + b"\n"


def source(path: Path, file_mb: int = 100) -> MboxSource:
    context = SourceContext(cast("Any", None), LimitSettings(file_mb=file_mb), {})
    return MboxSource(MboxConfig(path=path), "post", context)


async def pages(path: Path, cursor: Any = None, file_mb: int = 100) -> list[Page]:
    return [page async for page in source(path, file_mb).fetch(cursor)]


def ids(found: list[Page]) -> list[str]:
    return [entry.external_id for page in found for entry in page.items if isinstance(entry, Item)]


def contents(data: bytes, max_bytes: int = 10_000) -> list[bytes | None]:
    return [message.content for message in read_mbox(io.BytesIO(data), max_bytes)]


@pytest.mark.req("R-ING-47", "R-FUT-08")
async def test_messages_are_items(tmp_path: Path) -> None:
    path = tmp_path / "All mail.mbox"
    path.write_bytes(letter(1) + letter(2))
    [page] = await pages(path)
    first = page.items[0]
    assert isinstance(first, Item)
    assert first == Item(
        source="post",
        external_id="1@harbour.example",
        uri="mbox:All mail.mbox#<1@harbour.example>",
        content=letter(1).removeprefix(SEPARATOR)[:-1],
        metadata={"source_type": "email"},
        modified_at=datetime(2026, 5, 5, 10, tzinfo=UTC),
        media_type="message/rfc822",
    )
    assert ids([page]) == ["1@harbour.example", "2@harbour.example"]
    assert page.listed == frozenset(ids([page]))


async def test_a_mail_from_a_host_named_like_a_file_is_still_a_mail(tmp_path: Path) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(SEPARATOR + b"Message-ID: <1@harbour.md>\n\nThe ferry.\n")
    [page] = await pages(path)
    assert [PurePosixPath(entry.uri).suffix for entry in page.items] == [".md>"]


@pytest.mark.req("R-ING-02", "R-ING-47")
async def test_an_export_of_gmail_keeps_threads_and_labels(tmp_path: Path) -> None:
    path = tmp_path / "takeout.mbox"
    path.write_bytes(
        b"From 1790@xxx Tue May 05 10:00:00 +0000 2026\nX-GM-THRID: 1790\nX-Gmail-Labels: Inbox,Fares\n"
        b"From: anna@harbour.example\nDate: Tue, 5 May 2026 10:00:00 +0000\nSubject: a\n\nb\n"
    )
    [page] = await pages(path)
    [item] = page.items
    assert isinstance(item, Item)
    assert isinstance(item.content, bytes)
    assert item.metadata == {"source_type": "email", "source": "gmail"}
    parsed = parse_mail(item.content, item.uri)
    metadata = {**parsed.metadata, **item.metadata}
    wanted = ("source", "content_type", "sender", "date", "thread_id", "labels", "has_attachments")
    assert {key: metadata[key] for key in wanted} == {
        "source": "gmail",
        "content_type": "email",
        "sender": "anna@harbour.example",
        "date": "2026-05-05T10:00:00+00:00",
        "thread_id": "1790",
        "labels": ["Inbox", "Fares"],
        "has_attachments": False,
    }
    assert item.external_id.startswith("sha256:")


async def test_only_what_was_appended_is_read(tmp_path: Path) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(letter(1) + letter(2))
    cursor = (await pages(path))[-1].cursor
    assert await pages(path, cursor) == []
    with path.open("ab") as file:
        file.write(letter(3))
    again = await pages(path, cursor)
    assert ids(again) == ["3@harbour.example"]
    assert again[-1].listed is None
    assert await pages(path, again[-1].cursor) == []


async def test_a_message_that_was_still_being_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "in.mbox"
    whole = letter(1) + letter(2)
    path.write_bytes(whole[:-10])
    cursor = (await pages(path))[-1].cursor
    path.write_bytes(whole + letter(3))
    again = await pages(path, cursor)
    assert ids(again) == ["2@harbour.example", "3@harbour.example"]
    item = again[0].items[0]
    assert isinstance(item, Item)
    assert item.content == letter(2).removeprefix(SEPARATOR)[:-1]


FORGED = letter(1, b"Pay the pirates.\n")


@pytest.mark.parametrize("at_once", [True, False], ids=["in one run", "appended"])
async def test_a_second_mail_with_the_same_message_id_is_a_document_of_its_own(tmp_path: Path, at_once: bool) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(letter(1) + letter(2))
    before = [] if at_once else await pages(path)
    path.write_bytes(letter(1) + letter(2) + FORGED + letter(1))
    found = before + await pages(path, before[-1].cursor if before else None)
    first, second, forged, again = (entry for page in found for entry in page.items)
    assert isinstance(first, Item)
    assert isinstance(forged, Item)
    assert (first, second.uri) == (again, "mbox:in.mbox#<2@harbour.example>")
    assert first.external_id == "1@harbour.example"
    assert first.content == letter(1).removeprefix(SEPARATOR)[:-1]
    assert forged.external_id.startswith("1@harbour.example#")
    assert forged.content == FORGED.removeprefix(SEPARATOR)[:-1]
    assert forged.uri == f"mbox:in.mbox#<{forged.external_id}>"


async def test_a_run_that_only_reads_names_is_not_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailboxes, "SAID_BYTES", 2 * len(letter(1)))
    path = tmp_path / "in.mbox"
    path.write_bytes(b"".join(letter(number) for number in range(4)))
    cursor = (await pages(path))[-1].cursor
    with path.open("ab") as file:
        file.write(letter(9))
    found = await pages(path, cursor)
    assert [(len(page.items), page.cursor == cursor) for page in found] == [(0, True), (0, True), (1, False)]


async def test_names_stay_when_the_file_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(letter(1) + FORGED)
    first = await pages(path)
    path.write_bytes(letter(1) + FORGED + letter(2) + b"\n")
    grown = await pages(path, first[-1].cursor)
    path.write_bytes(letter(1) + FORGED)
    anew = await pages(path, grown[-1].cursor)
    assert ids(anew) == ids(first)
    assert anew[-1].listed == frozenset(ids(first))


@pytest.mark.parametrize("name", ["1@harbour.example#1:terms.txt", f"1@harbour.example#{'a' * 32}"])
async def test_no_message_id_is_the_name_of_an_attachment_or_another_mail(tmp_path: Path, name: str) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(SEPARATOR + f"Message-ID: <{name}>\n\nThe ferry.\n".encode())
    assert ids(await pages(path)) == [name.replace("#", "%23")]


async def test_no_message_id_is_the_name_of_a_mail_that_has_none(tmp_path: Path) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(SEPARATOR + b"Subject: fares\n\nThe ferry.\n\n")
    [name] = ids(await pages(path))
    with path.open("ab") as file:
        file.write(SEPARATOR + f"Message-ID: <{name}>\n\nPay the pirates.\n".encode())
    first, forged = ids(await pages(path))
    assert first == name
    assert forged.startswith(f"{name}#")


async def test_a_separator_that_was_just_written_is_no_message_yet(tmp_path: Path) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(letter(1) + SEPARATOR)
    first = await pages(path)
    assert ids(first) == ["1@harbour.example"]
    path.write_bytes(letter(1) + letter(2))
    assert ids(await pages(path, first[-1].cursor)) == ["2@harbour.example"]


@pytest.mark.parametrize(
    "rewritten", [letter(2), letter(2) + letter(3) + letter(4), letter(1, b"x" * 60 + b"\n") + letter(5)]
)
async def test_a_file_that_was_written_anew_says_what_is_left(tmp_path: Path, rewritten: bytes) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(letter(1) + letter(2))
    cursor = (await pages(path))[-1].cursor
    path.write_bytes(rewritten)
    again = await pages(path, cursor)
    assert again[-1].listed == frozenset(ids(again))
    assert len(ids(again)) == rewritten.count(SEPARATOR)


async def test_a_page_ends_where_the_next_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(b"".join(letter(number) for number in range(70)))
    found = await pages(path)
    assert [len(page.items) for page in found] == [32, 32, 6]
    assert ids(await pages(path, found[0].cursor)) == ids(found[1:])


@pytest.mark.parametrize(("left", "reached"), [(70, 0), (70, 1), (32, 0)], ids=["first page", "second", "to the end"])
async def test_a_list_that_was_broken_off_is_finished_by_the_next_run(tmp_path: Path, left: int, reached: int) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(b"".join(letter(number) for number in range(100)))
    cursor = (await pages(path))[-1].cursor
    path.write_bytes(b"".join(letter(number) for number in range(100 - left, 100)))
    broken_off = (await pages(path, cursor))[reached]
    assert broken_off.listed is None
    with path.open("ab") as file:
        file.write(letter(100) if left > 32 else b"")
    finished = await pages(path, broken_off.cursor)
    after = range(100 - left, 101 if left > 32 else 100)
    assert finished[-1].listed == frozenset(f"{number}@harbour.example" for number in after)
    assert await pages(path, finished[-1].cursor) == []


@pytest.mark.parametrize(
    "body",
    [
        b"From here on it is calm.\n",
        b"\nFrom 9:30 on 5 May 2026 it is calm.\nAnd then not.\n",
        b"x\nFrom anna Tue May  5 10:00:00 2026\nSubject: not after a blank line\n",
        b"\n>From the north.\n",
    ],
)
def test_words_that_begin_like_a_separator_are_words(body: bytes) -> None:
    found = contents(letter(1, body) + letter(2))
    assert len(found) == 2
    assert found[0] is not None
    assert found[0].endswith(body.replace(b">From", b"From"))


def test_one_level_of_quoting_is_taken_off() -> None:
    [content] = contents(letter(1, b">>From the north.\n> From the south.\n"))
    assert content is not None
    assert content.endswith(b"\n>From the north.\n> From the south.\n")


def test_windows_line_ends_are_read_as_well() -> None:
    data = (letter(1) + letter(2)).replace(b"\n", b"\r\n")
    assert contents(data) == [letter(number).removeprefix(SEPARATOR)[:-1].replace(b"\n", b"\r\n") for number in (1, 2)]


def test_a_separator_may_lack_its_date() -> None:
    assert contents(b"From \nSubject: a\n\nb\n\nFrom nobody\nSubject: c\n\nd\n") == [
        b"Subject: a\n\nb\n",
        b"Subject: c\n\nd\n",
    ]


def test_a_line_without_an_end_is_read_in_parts() -> None:
    endless = b"x" * (PIECE * 2) + b"From a 10:00 2026"
    assert contents(letter(1, endless), PIECE * 4) == [letter(1, endless).removeprefix(SEPARATOR)]


async def test_a_message_that_is_too_large_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(letter(1) + letter(2, b"x" * 1_200_000 + b"\n") + letter(3))
    [page] = await pages(path, file_mb=1)
    assert ids([page]) == ["1@harbour.example", "3@harbour.example"]
    failure = page.items[1]
    assert isinstance(failure, Failure)
    assert failure.uri == f"mbox:in.mbox#{len(letter(1))}"
    assert failure.code == "too_large"
    assert "limits.file_mb" in failure.error


@pytest.mark.parametrize("content", [b"", b"\n\n", b"just words\n", b"\x00\xff" * 1000])
async def test_what_is_no_mailbox_removes_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(content)
    with pytest.raises(SourceError, match="is not a mailbox") as caught:
        await pages(path, {"offset": 9, "last": 0, "mark": "gone"})
    assert "nothing was removed" in caught.value.hint


async def test_a_missing_mailbox_is_a_failure_of_the_source(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"in\.mbox cannot be read: No such file"):
        await pages(tmp_path / "in.mbox")


async def test_a_large_mailbox_is_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.mbox"
    with path.open("wb") as file:
        for number in range(2000):
            file.write(letter(number, (b"The ferry leaves at nine. " * 40 + b"\n") * 10))
    assert path.stat().st_size > 20_000_000
    count = 0
    tracemalloc.start()
    try:
        async for page in source(path).fetch(None):
            count += len(page.items)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 2000
    assert peak < 4_000_000


async def test_a_message_that_is_too_large_is_named_by_every_run_until_it_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(letter(1) + letter(2, b"x" * 1_200_000 + b"\n") + letter(3))
    [first] = await pages(path, file_mb=1)
    [again] = await pages(path, first.cursor, file_mb=1)
    assert (again.items, again.cursor) == ((first.items[1],), first.cursor)
    with path.open("ab") as file:
        file.write(letter(4))
    named, appended = await pages(path, again.cursor, file_mb=1)
    assert named.items == (first.items[1],)
    assert ids([appended]) == ["4@harbour.example"]
    [allowed] = await pages(path, appended.cursor, file_mb=2)
    assert ids([allowed]) == [f"{number}@harbour.example" for number in (1, 2, 3, 4)]
    assert await pages(path, allowed.cursor, file_mb=2) == []


async def test_a_message_that_grew_too_large_is_named_once_a_run(tmp_path: Path) -> None:
    path = tmp_path / "in.mbox"
    path.write_bytes(letter(1) + letter(2, b"x" * 1_200_000 + b"\n").rstrip(b"\n"))
    [first] = await pages(path, file_mb=1)
    with path.open("ab") as file:
        file.write(b"x" * 1000 + b"\n")
    [grown] = await pages(path, first.cursor, file_mb=1)
    assert grown.items == (first.items[1],)
    assert [page.items for page in await pages(path, grown.cursor, file_mb=1)] == [(first.items[1],)]
