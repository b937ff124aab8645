"""What is refused before a library sees an archive, in every format that is one."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from ragstone.core.errors import EmptyDocument, ParseError
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import ParseOptions

FORMATS = {"docx": "word/document.xml", "pptx": "ppt/presentation.xml", "xlsx": "xl/workbook.xml"}
Make = Callable[[Callable[[Any], None]], bytes]


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def parts(kind: str, request: pytest.FixtureRequest) -> dict[str, str | bytes]:
    make: Make = request.getfixturevalue(f"make_{kind}")
    with zipfile.ZipFile(io.BytesIO(make(lambda document: None))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


DOCTYPES = {
    "external entity": '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/hostname">]>',
    "internal entity": '<!DOCTYPE d [<!ENTITY x "y">]>',
    "bare": "<!DOCTYPE d>",
}


@pytest.mark.parametrize("doctype", DOCTYPES.values(), ids=DOCTYPES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_dtd_in_any_part_is_refused(
    kind: str, parts: dict[str, str | bytes], make_zip: Callable[..., bytes], doctype: str, encoding: str
) -> None:
    for part in (FORMATS[kind], "docProps/core.xml", "media/picture.png"):
        hostile = f'<?xml version="1.0"?>{doctype}<d/>'.encode(encoding)
        with pytest.raises(ParseError, match=r"was refused: its part .* holds a DTD, an entity or an include"):
            parse(make_zip({**parts, part: hostile}), f"a.{kind}")


def test_an_include_is_refused(kind: str, parts: dict[str, str | bytes], make_zip: Callable[..., bytes]) -> None:
    hostile = '<d xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="file:///etc/hostname"/></d>'
    with pytest.raises(ParseError, match="holds a DTD, an entity or an include"):
        parse(make_zip({**parts, "other.xml": hostile}), f"a.{kind}")


def test_a_part_in_a_character_set_of_mainframes_is_refused(
    kind: str, parts: dict[str, str | bytes], make_zip: Callable[..., bytes]
) -> None:
    hostile = '<?xml version="1.0" encoding="cp037"?><!DOCTYPE d [<!ENTITY x "y">]><d/>'.encode("cp037")
    with pytest.raises(ParseError, match=r"is not XML|holds a DTD"):
        parse(make_zip({**parts, "media/picture.png": hostile}), f"a.{kind}")


def test_bombs_are_refused_by_what_they_declare(
    kind: str, parts: dict[str, str | bytes], make_zip: Callable[..., bytes]
) -> None:
    dense = make_zip({**parts, "media/zeros.bin": bytes(64 * 1024 * 1024)})
    with pytest.raises(ParseError, match=r"was refused: .* bytes that unpack to"):
        parse(dense, f"a.{kind}")
    with pytest.raises(ParseError, match="entries that unpack to"):
        parse(make_zip({**parts, "media/zeros.bin": bytes(1024 * 1024)}), f"a.{kind}", ParseOptions(unpacked_mb=1))
    many = {f"media/{number}.bin": b"" for number in range(5001)}
    with pytest.raises(ParseError, match="entries that unpack to"):
        parse(make_zip({**parts, **many}), f"a.{kind}")


def test_a_book_can_be_a_bomb_too(make_zip: Callable[..., bytes]) -> None:
    bomb = make_zip({"META-INF/container.xml": "<container/>", "chapter.xhtml": bytes(64 * 1024 * 1024)})
    with pytest.raises(ParseError, match="bytes that unpack to"):
        parse(bomb, "a.epub")


def test_a_size_that_lies_is_damage(kind: str, parts: dict[str, str | bytes], make_zip: Callable[..., bytes]) -> None:
    part = f"<d>{'a' * 1024 * 1024}</d>"
    content = make_zip({**parts, "other.xml": part})
    lying = content.replace(len(part).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    assert lying != content
    with pytest.raises(ParseError, match=f"a.{kind} is a damaged {kind.upper()}"):
        parse(lying, f"a.{kind}")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_an_archive_that_was_cut_off_is_damage(
    kind: str, parts: dict[str, str | bytes], make_zip: Callable[..., bytes], share: float
) -> None:
    content = make_zip(parts)
    with pytest.raises(ParseError, match=f"a.{kind} is a damaged {kind.upper()}"):
        parse(content[: int(len(content) * share)], f"a.{kind}")


def test_an_encrypted_part_says_so(kind: str, parts: dict[str, str | bytes], make_zip: Callable[..., bytes]) -> None:
    content = bytearray(make_zip(parts))
    entry = content.index(b"PK\x01\x02")
    content[entry + 8] |= 1
    with pytest.raises(ParseError, match=f"a.{kind} is encrypted"):
        parse(bytes(content), f"a.{kind}")


def test_what_a_mac_adds_to_an_archive_is_no_damage(
    kind: str, parts: dict[str, str | bytes], make_zip: Callable[..., bytes]
) -> None:
    added = {f"__MACOSX/._{name.rpartition('/')[2]}": b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X" for name in parts}
    with pytest.raises(EmptyDocument):
        parse(make_zip({**parts, **added}), f"a.{kind}")
