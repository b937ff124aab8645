from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from ragstone.core.errors import EmptyDocument, ParseError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.parsers.office.epub import parse_epub

MakeZip = Callable[[Mapping[str, str | bytes]], bytes]

CONTAINER = '<container><rootfiles><rootfile full-path="book/package.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">
<metadata><dc:title>The  Crossing</dc:title><dc:creator>Ann</dc:creator><dc:language>en</dc:language>
<dc:date>2026-01-31</dc:date></metadata>
<manifest><item id="one" href="text/one.xhtml"/><item id="two" href="text/two%20b.xhtml"/>
<item id="nav" href="nav.xhtml" properties="nav"/><item id="gone" href="gone.xhtml"/>
<item id="out" href="../../etc/passwd"/></manifest>
<spine><itemref idref="nav"/><itemref idref="two"/><itemref idref="one"/><itemref idref="two"/></spine></package>"""
ONE = """<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "x.dtd">
<html><head><title/></head><body><h1>Home</h1><p>Back at <a id="p7"/>the pier.</p></body></html>"""
TWO = "<html><head><script src='x.js'/></head><body><p>Out to sea, caf\u00e9 on deck.</p></body></html>"
NAV = '<html><body><nav><ol><li><a href="text/two%20b.xhtml#start">Away</a></li></ol></nav></body></html>'
BOOK = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": CONTAINER,
    "book/package.opf": PACKAGE,
    "book/text/one.xhtml": ONE,
    "book/text/two b.xhtml": TWO,
    "book/nav.xhtml": NAV,
}


def shape(parsed: Parsed) -> list[tuple[str, str]]:
    return [(block.kind, parsed.text[block.start : block.end]) for block in parsed.blocks]


def test_chapters_are_read_in_the_order_of_the_spine(make_zip: MakeZip) -> None:
    parsed = parse(make_zip(BOOK), "download")
    assert shape(parsed) == [
        ("heading", "Away"),
        ("paragraph", "Out to sea, café on deck."),
        ("heading", "Home"),
        ("paragraph", "Back at the pier."),
    ]
    assert parsed.title == "The Crossing"
    assert parsed.metadata == {"author": "Ann", "date": "2026-01-31T00:00:00+00:00", "language": "en"}
    assert parsed.media_type == "application/epub+zip"
    assert parsed.warnings == ()
    assert broken_rules(parsed) == []


def test_the_contents_of_older_books_name_chapters_too(make_zip: MakeZip) -> None:
    points = (
        '<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "x.dtd"><ncx><navMap><navPoint id="a"><navLabel>'
        '<text>Away again</text></navLabel><content src="text/two%20b.xhtml"/></navPoint></navMap></ncx>'
    )
    package = PACKAGE.replace(
        '<item id="nav" href="nav.xhtml" properties="nav"/>',
        '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>',
    )
    parsed = parse_epub(make_zip({**BOOK, "book/package.opf": package, "book/toc.ncx": points}), "a.epub")
    assert shape(parsed)[0] == ("heading", "Away again")


@pytest.mark.parametrize("target", ["gone", "out"])
def test_a_reference_out_of_the_book_is_only_missing(make_zip: MakeZip, target: str) -> None:
    package = PACKAGE.replace('<itemref idref="nav"/>', f'<itemref idref="{target}"/>')
    parsed = parse_epub(make_zip({**BOOK, "book/package.opf": package}), "a.epub")
    assert len(parsed.blocks) == 4
    assert parsed.warnings == ("1 chapters that the book lists are not in it",)


@pytest.mark.parametrize("part", ["META-INF/container.xml", "book/package.opf"])
def test_entities_in_the_package_are_refused(make_zip: MakeZip, part: str) -> None:
    hostile = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>{BOOK[part]}'
    with pytest.raises(ParseError, match=r"a\.epub was refused: its part .* holds a DTD, an entity"):
        parse_epub(make_zip({**BOOK, part: hostile}), "a.epub")


def test_entities_in_a_chapter_are_only_characters(make_zip: MakeZip) -> None:
    hostile = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]><html><body><p>a &e; b</p></body></html>'
    parsed = parse_epub(make_zip({**BOOK, "book/text/one.xhtml": hostile}), "a.epub")
    assert "a &e; b" in parsed.text


def test_a_protected_book_says_so(make_zip: MakeZip) -> None:
    rights = '<encryption><CipherReference URI="book/text/one.xhtml"/></encryption>'
    with pytest.raises(ParseError, match=r"a\.epub is protected against copying"):
        parse_epub(make_zip({**BOOK, "META-INF/encryption.xml": rights}), "a.epub")
    fonts = '<encryption><CipherReference URI="book/font.otf"/></encryption>'
    assert parse_epub(make_zip({**BOOK, "META-INF/encryption.xml": fonts}), "a.epub").text


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({"META-INF/container.xml": "<container/>"}, ParseError, "it has no package document"),
        ({"META-INF/container.xml": "<container"}, ParseError, "'META-INF/container.xml' is not XML"),
        ({"book/package.opf": "<package/>"}, EmptyDocument, "no text was found in a.epub"),
        (
            {"META-INF/container.xml": CONTAINER.replace("book/package.opf", "../../etc/passwd")},
            ParseError,
            "it has no package document",
        ),
    ],
)
def test_a_book_without_its_parts_is_a_typed_error(
    make_zip: MakeZip, parts: Mapping[str, str], error: type[ParseError], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        parse_epub(make_zip({**BOOK, **parts}), "a.epub")
    assert caught.value.hint
