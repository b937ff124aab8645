from __future__ import annotations

import pytest

from ragstone.core.errors import EmptyDocument, ParseError
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import broken_rules

LETTER = rb"""{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fswiss\fcharset0 Arial;}{\f1\fnil\fcharset204 Times;}}
{\colortbl;\red255\green0\blue0;}{\stylesheet{\s1 heading 1;}}
{\info{\title The fares of the ferry}{\author A. Pilot}{\*\company Nobody}}
{\header page 7}\pard\outlinelevel0\b Fares\b0\par
\pard\plain A dog pays {\b two} crowns,\line a horse ten \endash  in winter.\par
Caf\'e9, \f1\'ef\'f0\'e8\'e2\'e5\'f2\f0 , \u8364?5, \uc0\u-10179\u-8704 .\par
{\pict\pngblip 89504e470d0a}{\v secret}{\field{\*\fldinst HYPERLINK "x"}{\fldrslt the harbour}}\par
\trowd\cellx100\cellx200\pard\intbl From\cell To\cell\row
\trowd\cellx100\cellx200\pard\intbl Quay\par North\cell\cell\row
\pard Braces \{ and \\ stay.\par}"""


@pytest.mark.parametrize("name", ["letter.rtf", "letter.doc", "letter.txt", "letter"])
def test_a_letter_is_read_as_its_writer_sees_it(name: str) -> None:
    parsed = parse(LETTER, name)
    assert [(block.kind, parsed.text[block.start : block.end]) for block in parsed.blocks] == [
        ("heading", "Fares"),
        ("paragraph", "A dog pays two crowns,\na horse ten – in winter."),
        ("paragraph", "Café, привет, €5, 😀."),
        ("paragraph", "the harbour"),
        ("table", "| From | To |\n| --- | --- |\n| Quay North |  |"),
        ("paragraph", r"Braces { and \ stay."),
    ]
    assert (parsed.title, parsed.metadata) == ("The fares of the ferry", {"author": "A. Pilot"})
    assert parsed.media_type == "application/rtf"
    assert broken_rules(parsed) == []


def test_letters_of_two_bytes_and_those_for_old_readers() -> None:
    assert parse(rb"{\rtf1\ansicpg932 \'93\'fa\'96\'7b}", "a.rtf").text == "日本"
    assert parse(rb"{\rtf1\uc2 \u26085\'93\'fa\u26412{\'96\'7b}!}", "a.rtf").text == "日本!"


def test_bytes_of_a_picture_are_no_markup() -> None:
    assert parse(rb"{\rtf1 before{\pict\bin5 }}}}} hidden} after}", "a.rtf").text == "before after"


@pytest.mark.parametrize(
    "content",
    [
        b"{\\rtf1 " + b"{" * 300_000 + b"deep" + b"}" * 300_000,
        b"{\\rtf1 " + b"}" * 300_000 + b"deep",
        b"{\\rtf1 " + b"{\\*" * 100_000 + b"}" * 100_000 + b"deep",
        b"{\\rtf1 \\uc99999\\bin-5 \\u99999999 words that go deep",
        b"{\\rtf1 deep\\cell\\cell" + b"\\",
    ],
    ids=["open", "close", "unread", "numbers", "cut"],
)
def test_what_no_program_writes_costs_nothing(content: bytes) -> None:
    assert "deep" in parse(content, "a.rtf").text


def test_what_is_none_or_holds_nothing_is_refused() -> None:
    with pytest.raises(ParseError, match=r"a\.rtf is not an RTF"):
        parse(b"Only words.", "a.rtf")
    with pytest.raises(EmptyDocument, match=r"no text was found in a\.rtf"):
        parse(rb"{\rtf1\ansi\pard\par}", "a.rtf")
