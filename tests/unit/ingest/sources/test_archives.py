from __future__ import annotations

import io
import os
import stat
import struct
import tracemalloc
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone.core.types import SKIPPED, Failure, Item
from ragstone.ingest.sources.files.archives import is_archive
from ragstone.ingest.sources.files.read import expand
from ragstone.settings.tree import LimitSettings

LIMITS = LimitSettings(file_mb=1, archive_mb=4, archive_entries=20)
MEGABYTE = 1024 * 1024
Member = tuple[str | zipfile.ZipInfo, bytes | str]


def packed(*members: Member, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def item(content: bytes, name: str = "docs/pack.zip") -> Item:
    return Item("files", "root/pack.zip", name, content, metadata={"source_type": "files", "filename": "pack.zip"})


def opened(content: bytes, limits: LimitSettings = LIMITS) -> Sequence[Item | Failure]:
    return list(expand(item(content), limits))


def refused(content: bytes, limits: LimitSettings = LIMITS) -> Failure:
    (entry,) = opened(content, limits)
    assert isinstance(entry, Failure)
    return entry


def special(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def test_a_member_is_a_document_that_knows_its_archive() -> None:
    info = zipfile.ZipInfo("notes/plan.txt", (2026, 3, 4, 5, 6, 8))
    (member,) = opened(packed((info, "words"), ("notes/", "")))
    moment = datetime(2026, 3, 4, 5, 6, 8, tzinfo=UTC)
    assert member == Item(
        source="files",
        external_id="root/pack.zip!/notes/plan.txt",
        uri="docs/pack.zip!/notes/plan.txt",
        content=b"words",
        metadata={"source_type": "files", "filename": "plan.txt", "modified_date": moment, "archive": "docs/pack.zip"},
        modified_at=moment,
    )


def test_a_date_that_is_none_is_not_an_error() -> None:
    info = zipfile.ZipInfo("a.txt", (1980, 0, 0, 31, 63, 62))
    (member,) = opened(packed((info, "words")))
    assert isinstance(member, Item)
    assert member.modified_at == datetime(1980, 1, 1, tzinfo=UTC)


def test_what_is_no_archive_comes_back_as_it_is() -> None:
    plain = Item("files", "a", "docs/a.txt", b"words")
    typed = Item("files", "a", "docs/a.zip", "words")
    assert list(expand(plain, LIMITS)) == [plain]
    assert list(expand(typed, LIMITS)) == [typed]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.zip", packed(("a.txt", "words")), True),
        ("A.ZIP", packed(("a.txt", "words")), True),
        ("a.zip", packed(), True),
        ("a.zip", b"PK\x03\x04 cut off", True),
        ("a.zip", b"words", False),
        ("a.zip", b"", False),
        ("a.docx", packed(("a.txt", "words")), False),
        ("a.zip", packed(("word/document.xml", "<x/>"), ("[Content_Types].xml", "<x/>")), False),
        ("a.zip", packed(("mimetype", "application/epub+zip"), ("a.html", "<p>")), False),
    ],
)
def test_an_archive_is_told_from_a_document_that_is_packed_as_one(name: str, content: bytes, expected: bool) -> None:
    assert is_archive(content, name) is expected


@pytest.mark.parametrize(
    "name",
    [
        "../up.txt",
        "a/../../up.txt",
        "/etc/passwd",
        "\\windows\\x.txt",
        "a\\..\\..\\x.txt",
        "C:/x.txt",
        "c:\\x.txt",
        "a\x00.txt",
        "\x00",
        "",
        "./.",
    ],
)
def test_a_name_that_leads_out_is_refused_and_nothing_is_touched(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    info = zipfile.ZipInfo("placeholder")
    info.filename = name  # the constructor would cut it at the NUL
    bad, good = opened(packed((info, "evil"), ("good.txt", "words")))
    assert isinstance(bad, Failure)
    assert bad.code == "invalid_input"
    assert bad.error.endswith("a name that leads out of it")
    assert bad.uri.startswith("docs/pack.zip!/")
    assert bad.uri.isprintable()
    assert isinstance(good, Item)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_are_refused(kind: int) -> None:
    failure = refused(packed((special("link.txt", kind | 0o777), "/etc/passwd")))
    assert failure == Failure(
        "docs/pack.zip!/link.txt", "invalid_input", "docs/pack.zip holds 'link.txt', which is a link or no regular file"
    )


def test_regular_files_with_permissions_are_taken() -> None:
    (member,) = opened(packed((special("a.txt", stat.S_IFREG | 0o644), "words")))
    assert isinstance(member, Item)


def test_names_written_with_backslashes_or_dots_are_brought_in_order() -> None:
    info = zipfile.ZipInfo("placeholder")
    info.filename = "a\\b.txt"
    found = opened(packed((info, "words"), ("./c//d.txt", "words")))
    assert [entry.uri for entry in found] == ["docs/pack.zip!/a/b.txt", "docs/pack.zip!/c/d.txt"]


def test_what_is_no_document_is_passed_over() -> None:
    names = (".DS_Store", "__MACOSX/._a.txt", "__MACOSX/a.txt", "sub/.git/config", "a.pyc")
    assert opened(packed(*((name, "words") for name in names))) == []
    skipped = refused(packed(("logo.png", "words")))
    assert (skipped.uri, skipped.code) == ("docs/pack.zip!/logo.png", SKIPPED)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_two_members_of_one_name_the_first_counts() -> None:
    first, second = opened(packed(("a.txt", "one"), ("./a.txt", "two")))
    assert isinstance(first, Item)
    assert first.content == b"one"
    assert second == Failure(
        "docs/pack.zip!/a.txt", "invalid_input", "docs/pack.zip holds a.txt twice; the first one counts"
    )


def test_an_encrypted_member_is_reported_and_the_rest_is_read() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("secret.txt", "words")
        archive.writestr("open.txt", "words")
        archive.filelist[0].flag_bits |= 0x1
    secret, plain = opened(buffer.getvalue())
    assert secret == Failure(
        "docs/pack.zip!/secret.txt", "unsupported_format", "docs/pack.zip holds 'secret.txt', which is encrypted"
    )
    assert isinstance(plain, Item)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unpack_without_bounds_are_refused(method: int) -> None:
    failure = refused(packed(("a.txt", b"\0" * 10 * MEGABYTE), method=method), LimitSettings())
    assert failure.code == "unsupported_format"
    assert failure.error == "docs/pack.zip holds 'a.txt', which is packed by a method that is not read"


@pytest.mark.parametrize(("count", "taken"), [(20, True), (21, False), (4000, False)])
def test_entries_are_bounded(count: int, taken: bool) -> None:
    found = opened(packed(*((f"{number}.txt", "x") for number in range(count))))
    assert sum(isinstance(entry, Item) for entry in found) == (count if taken else 0)
    if not taken:
        assert [(entry.uri, "limits.archive_entries" in entry.error) for entry in found] == [  # type: ignore[union-attr]
            ("docs/pack.zip", True)
        ]


def test_a_directory_of_millions_of_members_is_refused_in_little_memory() -> None:
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *[0] * 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    directory = entry * 1_000_000
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, len(directory), 4, 0)
    bomb = b"PK\x03\x04" + directory + end
    tracemalloc.start()
    failure = refused(bomb, LimitSettings())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (failure.uri, failure.code) == ("docs/pack.zip", "parse_failed")
    assert "limits.archive_entries" in failure.error
    assert peak < 20 * MEGABYTE


def test_a_member_over_the_file_limit_is_reported_unread() -> None:
    big, small = opened(packed(("big.txt", os.urandom(MEGABYTE + 1)), ("small.txt", os.urandom(MEGABYTE))))
    assert big == Failure(
        "docs/pack.zip!/big.txt", "too_large", "docs/pack.zip!/big.txt has 1 MB; limits.file_mb allows 1"
    )
    assert isinstance(small, Item)


def test_what_an_archive_unpacks_to_is_bounded() -> None:
    parts = [(f"{number}.txt", os.urandom(MEGABYTE)) for number in range(5)]
    assert refused(packed(*parts)) == Failure(
        "docs/pack.zip", "too_large", "docs/pack.zip would unpack to 5 MB; limits.archive_mb allows 4"
    )


def test_a_bomb_is_refused_by_its_ratio() -> None:
    failure = refused(packed(("zeros.txt", b"\0" * (2 * MEGABYTE))), LimitSettings())
    assert (failure.uri, failure.code) == ("docs/pack.zip!/zeros.txt", "parser_limit")


def test_a_bomb_that_lies_about_its_size_never_gives_more_than_it_said() -> None:
    content = bytearray(packed(("zeros.txt", b"\0" * (64 * MEGABYTE))))
    central = content.rindex(b"PK\x01\x02")
    content[22:26] = content[central + 24 : central + 28] = struct.pack("<L", 100)
    tracemalloc.start()
    failure = refused(bytes(content))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (failure.uri, failure.code) == ("docs/pack.zip!/zeros.txt", "parse_failed")
    assert peak < 5 * MEGABYTE


def test_an_archive_in_an_archive_is_opened_once() -> None:
    innermost = packed(("deep.txt", "words"))
    inner = packed(("in.txt", "words"), ("deeper.zip", innermost))
    first, second, third = opened(packed(("inner.zip", inner), ("out.txt", "words")))
    assert isinstance(first, Item)
    assert first.external_id == "root/pack.zip!/inner.zip!/in.txt"
    assert first.metadata["archive"] == "docs/pack.zip!/inner.zip"
    assert second == Failure(
        "docs/pack.zip!/inner.zip!/deeper.zip",
        "unsupported_format",
        "docs/pack.zip!/inner.zip!/deeper.zip is an archive two archives deep; only one is opened",
    )
    assert isinstance(third, Item)


def test_archives_inside_share_the_bounds_of_the_outer_one() -> None:
    inner = packed(*((f"{number}.txt", "x") for number in range(15)))
    found = opened(packed(("one.zip", inner), ("two.zip", inner)))
    assert sum(isinstance(entry, Item) for entry in found) == 15
    assert found[-1] == Failure(
        "docs/pack.zip!/two.zip", "parser_limit", "docs/pack.zip!/two.zip brings the archive to more than 20 entries"
    )


def test_a_document_that_is_packed_as_zip_is_not_opened() -> None:
    document = packed(("[Content_Types].xml", "<x/>"), ("word/document.xml", "<x/>"))
    (member,) = opened(packed(("plan.docx", document)))
    assert isinstance(member, Item)
    assert member.content == document


def test_a_damaged_member_is_reported_and_the_rest_is_read() -> None:
    content = bytearray(packed(("a.txt", "one" * 100), ("b.txt", "two"), method=zipfile.ZIP_STORED))
    content[60] ^= 0xFF
    bad, good = opened(bytes(content))
    assert isinstance(bad, Failure)
    assert (bad.uri, bad.code) == ("docs/pack.zip!/a.txt", "parse_failed")
    assert isinstance(good, Item)


@settings(max_examples=150, deadline=None)
@given(
    where=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=8),
    cut=st.integers(0, 400),
)
def test_damage_anywhere_gives_documents_or_failures_and_nothing_else(where: list[tuple[int, int]], cut: int) -> None:
    content = bytearray(packed(("a.txt", "words " * 30), ("sub/b.txt", "more"), ("in.zip", packed(("c.txt", "x")))))
    for place, value in where:
        content[place % len(content)] = value
    for entry in opened(bytes(content[: len(content) - cut])):
        assert isinstance(entry, Item | Failure)
        if isinstance(entry, Item):
            assert ".." not in entry.external_id.split("/")
