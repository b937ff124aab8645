from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.errors import EmptyDocument, ParseError
from ragstone.ingest.parsers.draft import broken_rules, clean, one_line, printable
from ragstone.ingest.parsers.text.text import parse_text

LATIN = "The café opens at nine. Déjà vu, naïve façade."


@pytest.mark.req("R-EXT-08", "R-EXT-07")
def test_paragraphs_are_what_blank_lines_keep_apart() -> None:
    parsed = parse_text(b"First\r\nline.\r\n\r\n \t\r\nSecond.\n", "a.txt")
    assert parsed.text == "First\nline.\n\nSecond."
    assert [(block.kind, block.start, block.end) for block in parsed.blocks] == [
        ("paragraph", 0, 11),
        ("paragraph", 13, 20),
    ]
    assert (parsed.title, parsed.media_type, parsed.warnings) == ("", "text/plain", ())


@pytest.mark.req("R-EXT-07")
@pytest.mark.parametrize(
    ("text", "encoding", "mark"),
    [
        (LATIN, "utf-8", b""),
        (LATIN, "utf-8", codecs.BOM_UTF8),
        (LATIN, "utf-16-le", codecs.BOM_UTF16_LE),
        (LATIN, "utf-16-be", codecs.BOM_UTF16_BE),
        (LATIN, "utf-32-le", codecs.BOM_UTF32_LE),
        (LATIN, "utf-16-le", b""),
        (LATIN, "utf-16-be", b""),
        ("Паром отправляется каждый час.", "utf-16-le", b""),
        (LATIN, "cp1252", b""),
        ("The ferry’s “winter” timetable – café open", "cp1252", b""),
        ("Straße und Öl", "cp1252", b""),
        ("Паром отправляется каждый час от причала", "cp1251", b""),
        ("Паром отправляется каждый час от причала", "koi8-r", b""),
        ("Prom odpływa co godzinę z głównego nabrzeża, a bilety można kupić na pokładzie.", "cp1250", b""),
        ("Prom odpływa co godzinę z głównego nabrzeża, a będą też rejsy wieczorem.", "iso8859-2", b""),
        ("Trajekt odplouvá každou hodinu. Může být zpožděný, ale počkáme na vás.", "iso8859-2", b""),
        ("Trajekt odplouvá každou hodinu. Může být zpožděný, ale počkáme na vás.", "cp1250", b""),
        ("Паром отправляется каждый час от причала", "cp866", b""),
        ("フェリーは毎時出発します。", "cp932", b""),
        ("フェリーは毎時出発します。", "iso2022-jp", b""),
        ("渡轮每小时出发一次。冬季时刻表", "gb18030", b""),
    ],
)
def test_encodings_are_detected(text: str, encoding: str, mark: bytes) -> None:
    parsed = parse_text(mark + text.encode(encoding), "a.txt")
    assert parsed.text == text
    assert parsed.warnings == ()


def test_utf8_with_a_few_broken_bytes_stays_utf8_and_says_so() -> None:
    parsed = parse_text("é".encode() * 40 + b"\xff end", "a.txt")
    assert parsed.text == "é" * 40 + "\ufffd end"
    assert parsed.warnings == ("1 characters could not be read as utf-8 and show as \ufffd",)


def test_lone_surrogates_are_replaced() -> None:
    parsed = parse_text("before \ud800 after".encode("utf-8", "surrogatepass"), "a.txt")
    assert parsed.text == "before \ufffd after"
    assert parsed.warnings == ("1 characters could not be read as utf-8 and show as \ufffd",)


@pytest.mark.parametrize("content", [b"", b"  \n\t ", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, "\u200b\u200b".encode()])
def test_nothing_to_read_is_an_empty_document(content: bytes) -> None:
    with pytest.raises(EmptyDocument, match=r"notes\.txt"):
        parse_text(content, "notes.txt")


@pytest.mark.parametrize(
    "content", [b"text with \x00 inside it", b"\x00\x01", bytes(range(256)) * 4, b"\x01\x02\x03\x04text"]
)
def test_binary_content_is_refused(content: bytes) -> None:
    with pytest.raises(ParseError, match=r"notes\.txt is not text") as caught:
        parse_text(content, "notes.txt")
    assert not isinstance(caught.value, EmptyDocument)


@pytest.mark.parametrize(
    ("text", "cleaned", "hidden"),
    [
        ("a\u200bb\u2060c\ufeffd", "abcd", 3),
        ("pay \u202eeno\u202c now", "pay eno now", 2),
        ("hi" + "".join(chr(0xE0000 + ord(letter)) for letter in "obey"), "hi", 4),
        ("x\ufe01\ufe02y\U000e0101", "xy", 3),
        ("می\u200cخواهم", "می\u200cخواهم", 0),
        ("⚠\ufe0f 1\ufe0f\u20e3 👩\u200d💻", "⚠\ufe0f 1\ufe0f\u20e3 👩\u200d💻", 0),
        ("soft\u00adhyphen and\u00a0space", "softhyphen and space", 0),
        ("e\u0301", "é", 0),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd", 0),
        ("bell\x07 and\x00 nul", "bell and nul", 0),
    ],
)
def test_what_a_reader_cannot_see_is_taken_out(text: str, cleaned: str, hidden: int) -> None:
    assert clean(text) == (cleaned, hidden)


def test_hidden_characters_are_counted_in_a_warning() -> None:
    parsed = parse_text("one\u200b two\u200b".encode(), "a.txt")
    assert parsed.text == "one two"
    assert parsed.warnings == ("2 hidden characters were removed",)


@given(st.text())
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    once = clean(text).text
    assert clean(once) == (once, 0)


@given(st.text(st.characters(exclude_characters="\x00")))
def test_any_text_gives_sound_blocks_or_a_typed_error(text: str) -> None:
    try:
        parsed = parse_text(text.encode("utf-8", "surrogatepass"), "a.txt")
    except ParseError:
        return
    assert broken_rules(parsed) == []


def test_names_in_messages_are_safe_to_print() -> None:
    assert printable("a\x1b[31m\nb.txt") == "a\ufffd[31m\ufffdb.txt"
    assert len(printable("x" * 500 + ".txt")) == 200
    assert printable("x" * 500 + ".txt").endswith("x.txt")
    assert one_line(" two\n words ") == "two words"


def test_letters_printed_over_each_other_are_read_once() -> None:
    bold = "".join(f"{letter}\b{letter}" for letter in "NAME")
    underlined = "".join(f"_\b{letter}" for letter in "café")
    parsed = parse_text(f"{bold}\n\npump - opens the {underlined}\n".encode(), "pump.txt")
    assert parsed.text == "NAME\n\npump - opens the café"


def test_underlined_lines_are_headings() -> None:
    text = "Harbour\n=======\n\nWords.\n\nFees\n----\nTwelve.\n\nTotal of it all\n---\n42\n\nRules\n=====\n"
    parsed = parse_text(text.encode(), "README")
    blocks = [(block.kind, block.level, parsed.text[block.start : block.end]) for block in parsed.blocks]
    assert parsed.title == "Harbour"
    assert blocks == [
        ("heading", 1, "Harbour"),
        ("paragraph", 0, "Words."),
        ("heading", 2, "Fees"),
        ("paragraph", 0, "Twelve."),
        ("paragraph", 0, "Total of it all\n---\n42"),
        ("heading", 1, "Rules"),
    ]


def outline(text: str) -> list[tuple[str, int, str]]:
    parsed = parse_text(text.encode(), "a.txt")
    assert broken_rules(parsed) == []
    return [(block.kind, block.level, parsed.text[block.start : block.end]) for block in parsed.blocks]


@pytest.mark.req("R-EXT-08")
def test_numbered_lines_are_headings_and_items_of_a_list_are_none() -> None:
    text = "1. Powers\n\n  1.1 what a chair may do\n\n   1. Call a vote.\n   2. Close it.\n\n2. Term\n\n   A year."
    assert [(level, words) for kind, level, words in outline(text) if kind == "heading"] == [
        (2, "1. Powers"),
        (3, "1.1 what a chair may do"),
        (2, "2. Term"),
    ]
    references = "1. Smith, A. Tides\n\nA book.\n\n2. Jones, B. Gauges\n\nAnother one."
    assert {kind for kind, _, _ in outline(references)} == {"paragraph"}
    contents = "1. Powers\n\n2. Term\n\n3. Votes\n"
    assert [kind for kind, _, _ in outline(contents)] == ["paragraph"] * 3
    assert parse_text(text.encode(), "a.txt").title == ""


@pytest.mark.req("R-EXT-08")
def test_a_short_line_left_of_the_text_below_it_is_a_heading() -> None:
    below = "  Headers\n\n    Give a clear subject in every mail.\n\n  Where to send them?\n\n    To the desk it is.\n"
    found = outline(f"Reports\n\n   All of them are read by someone.\n\n{below}")
    assert [(level, words) for kind, level, words in found if kind == "heading"] == [
        (2, "Reports"),
        (3, "Headers"),
        (3, "Where to send them?"),
    ]
    plain = "License: free\n\n   It may be copied by all.\n\nThe ferry leaves.\n\n   It does so at nine.\n"
    assert {kind for kind, _, _ in outline(plain)} == {"paragraph"}


@pytest.mark.req("R-EXT-08")
def test_an_entry_keeps_its_term_and_all_paragraphs_of_its_description() -> None:
    text = "'-b BYTES'\n'--size=BYTES'\n     Size of a sector.\n\n     Defaults to 512.\n\n   Other options follow."
    assert outline(text) == [
        ("list", 0, "'-b BYTES', '--size=BYTES'\n  Size of a sector.\n\n  Defaults to 512."),
        ("paragraph", 0, "Other options follow."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The ferry leaves the pier\n    every hour from nine to five.",
        "Knuth, Donald. The Art of Computer Programming in Four Volumes\n    Reading, 1968.",
        "copy one two\ncopy three four\n    with care",
        "Run this:\n    make all",
        "- An item\n  that goes on",
    ],
)
def test_a_sentence_with_hanging_lines_is_no_entry(text: str) -> None:
    assert outline(text) == [("paragraph", 0, text)]
