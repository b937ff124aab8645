from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ragstone.core.errors import EmptyDocument, ParseError, ParserLimit, UnsupportedFormat
from ragstone.core.types import Block, Parsed
from ragstone.ingest.parsers.dispatch import PARSERS, parse
from ragstone.ingest.parsers.draft import KINDS, MAX_BLOCKS, Draft, broken_rules
from ragstone.ingest.parsers.text import text

WRITE: dict[str, Callable[[Any], object]] = {
    "docx": lambda document: document.add_paragraph("Hello"),
    "pptx": lambda deck: setattr(deck.slides.add_slide(deck.slide_layouts[5]).shapes.title, "text", "Hello"),
    "xlsx": lambda book: book.active.append(["Hello"]),
}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


@pytest.mark.req("R-EXT-16")
@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.txt", "text/plain"),
        ("A.LOG", "text/plain"),
        ("README", "text/plain"),
        ("a.md", "text/markdown"),
        ("a.mdx", "text/markdown"),
        ("a.markdown", "text/markdown"),
        ("a.html", "text/html"),
        ("a.HTM", "text/html"),
    ],
)
def test_the_name_says_how_text_is_read(name: str, media_type: str) -> None:
    assert parse(b"Some words", name).media_type == media_type


@pytest.mark.parametrize("name", ["a.pdf", "download", "a.bin"])
def test_a_pdf_is_known_by_its_bytes(name: str, make_pdf: Callable[..., bytes]) -> None:
    content = make_pdf(lambda page: page.drawString(72, 700, "Hello"))
    assert parse(content, name).media_type == "application/pdf"


def test_a_web_page_without_a_suffix_is_a_web_page() -> None:
    assert parse(b"<!DOCTYPE html><p>Hello", "download").media_type == "text/html"


def test_a_text_that_starts_like_a_picture_is_text() -> None:
    assert parse(b"BMW is a car", "a.txt").text == "BMW is a car"


def test_a_text_about_pdf_is_text() -> None:
    assert parse(b"%PDF-1.4 is how it starts", "a.txt").media_type == "text/plain"


@pytest.mark.req("R-EXT-16")
@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"GIF89a" + bytes(64), "a.gif", "a.gif is image/gif"),
        (b"GIF89a" + bytes(64), "a.txt", "a.txt is image/gif"),
        (b"\x00\x01\x02" * 99, "a.xyz", "a.xyz is of a kind that cannot be read"),
        (b"\x00\x01\x02", "a.bin", "a.bin is of a kind that cannot be read"),
        (b"PK\x03\x04junk", "a.zip", "a.zip is a ZIP archive"),
    ],
)
def test_other_kinds_are_refused_by_name(content: bytes, name: str, message: str) -> None:
    with pytest.raises(UnsupportedFormat) as caught:
        parse(content, name)
    assert message in str(caught.value)
    assert "files can be read" in caught.value.hint


@pytest.mark.parametrize("name", ["a.png", "a.txt", "download"])
def test_a_picture_is_known_by_its_bytes(name: str) -> None:
    with pytest.raises(ParseError, match=f"{name} is a damaged picture"):
        parse(PNG, name)


@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx"])
@pytest.mark.parametrize("name", ["download", "a.zip", "a.docx", "a.xlsx"])
def test_an_archive_is_known_by_its_parts(
    kind: str, name: str, request: pytest.FixtureRequest, make_zip: Callable[..., bytes]
) -> None:
    content: bytes = request.getfixturevalue(f"make_{kind}")(WRITE[kind])
    assert parse(content, name).text.endswith("Hello")


def test_an_archive_that_could_be_two_things_is_what_its_name_says(make_zip: Callable[..., bytes]) -> None:
    content = make_zip({"word/document.xml": "<d/>", "xl/workbook.xml": "<w/>"})
    with pytest.raises(ParseError, match="could not be read as xlsx"):
        parse(content, "a.xlsx")


def test_every_kind_has_a_parser_and_every_suffix_a_kind() -> None:
    for kind in set(KINDS.values()):
        assert callable(PARSERS.load(kind))
    assert KINDS[".tsv"] == "csv"
    assert KINDS[".jpeg"] == "image"


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"<html>Not found</html>", "a.pdf", "a.pdf is not a PDF: it contains a web page"),
        (b"words", "a.pdf", "a.pdf is not a PDF: it contains text"),
        (PNG, "a.docx", "a.docx is not a DOCX: it contains data of another kind"),
        (b"words", "a.pptx", "a.pptx is not a PPTX: it contains text"),
        (b"words", "a.epub", "a.epub is not an EPUB: it contains text"),
        (b"<!doctype html><p>Log in", "a.jpg", "a.jpg is not a picture: it contains a web page"),
        (b"PK\x03\x04cut", "a.xlsx", "a.xlsx is a damaged XLSX"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "a.docx", "old or encrypted Office file"),
        (b"PK\x03\x04cut", "a.docx", "a.docx is a damaged DOCX"),
    ],
)
def test_a_file_that_is_not_what_its_name_says(content: bytes, name: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(content, name)
    assert message in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("suffix", sorted(KINDS))
def test_an_empty_file_is_an_empty_document(suffix: str) -> None:
    with pytest.raises(EmptyDocument, match=f"a{suffix} is empty"):
        parse(b"", f"a{suffix}")


@pytest.mark.parametrize(
    ("raised", "expected"),
    [(MemoryError(), ParserLimit), (RecursionError(), ParseError), (KeyError("w:p"), ParseError)],
)
def test_what_a_library_raises_becomes_a_typed_error(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException, expected: type[ParseError]
) -> None:
    def fail(*_: object) -> Parsed:
        raise raised

    monkeypatch.setattr(text, "parse_text", fail)
    with pytest.raises(expected, match=r"a\.txt") as caught:
        parse(b"words", "a.txt")
    assert type(caught.value) is expected


def test_broken_rules_are_named() -> None:
    def problems(*blocks: Block) -> list[str]:
        return broken_rules(Parsed("one  two", blocks))

    assert problems(Block("paragraph", 0, 3), Block("paragraph", 5, 8)) == []
    assert problems(Block("paragraph", 5, 8)) == ["paragraph at 5: text before it belongs to no block"]
    assert problems(Block("paragraph", 0, 3)) == ["text after the last block belongs to no block"]
    assert problems(Block("paragraph", 0, 9))[0] == "paragraph at 0: not in order, empty or outside the text"
    assert problems(Block("paragraph", 0, 4), Block("paragraph", 3, 8))[0].startswith("paragraph at 3: not in order")
    assert problems(Block("heading", 0, 8)) == ["heading at 0: a heading needs a label and a level"]
    assert problems(Block("list", 0, 8, 1)) == ["list at 0: only a heading has a label and a level"]
    assert problems(Block("list", 0, 3), Block("list", 3, 5), Block("list", 5, 8)) == [
        "list at 3: nothing but white space"
    ]


def test_too_many_blocks_are_refused() -> None:
    with pytest.raises(ParserLimit, match=r"a\.txt has more than 250,000 paragraphs"):
        parse(b"a\n\n" * (MAX_BLOCKS + 1), "a.txt")


def test_a_heading_without_words_is_no_heading() -> None:
    draft = Draft("a")
    draft.add("heading", "#", level=1, label=" ")
    assert [(block.kind, block.level) for block in draft.finish("text/plain").blocks] == [("paragraph", 0)]
