from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ragstone.core.errors import EmptyDocument, ParseError, ParserLimit
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import Draft, ParseOptions, broken_rules
from ragstone.ingest.parsers.pdf.flow import add_pages
from ragstone.ingest.parsers.pdf.layout import LaidOutPage, TextSpan, lines_of
from ragstone.ingest.parsers.pdf.parser import parse_pdf

MakePdf = Callable[..., bytes]


def shape(parsed: Parsed) -> list[tuple[str, int, int | None, str]]:
    return [(block.kind, block.level, block.page, parsed.text[block.start : block.end]) for block in parsed.blocks]


def write(page: Any, x: float, y: float, lines: list[str], *, font: str = "Times-Roman", size: float = 10) -> None:
    page.setFont(font, size)
    for index, words in enumerate(lines):
        page.drawString(x, y - index * size * 1.3, words)


@pytest.mark.req("R-EXT-02", "R-TST-27")
def test_headings_by_size_paragraphs_lists_and_pages(make_pdf: MakePdf) -> None:
    def draw(page: Any) -> None:
        write(page, 72, 780, ["The Title"], font="Helvetica", size=22)
        write(page, 72, 740, ["First part"], font="Helvetica", size=15)
        write(page, 72, 715, ["A paragraph that goes over", "two lines of the page."])
        write(page, 72, 670, ["Another one, which ends here."])
        write(page, 72, 640, ["Bold words"], font="Times-Bold")
        write(page, 72, 615, ["- item one", "- item two"])
        page.showPage()
        write(page, 72, 780, ["Second part"], font="Helvetica", size=15)
        write(page, 72, 755, ["The end."])

    parsed = parse_pdf(make_pdf(draw), "a.pdf")
    assert shape(parsed) == [
        ("heading", 1, 1, "The Title"),
        ("heading", 2, 1, "First part"),
        ("paragraph", 0, 1, "A paragraph that goes over two lines of the page."),
        ("paragraph", 0, 1, "Another one, which ends here."),
        ("heading", 3, 1, "Bold words"),
        ("list", 0, 1, "- item one\n- item two"),
        ("heading", 2, 2, "Second part"),
        ("paragraph", 0, 2, "The end."),
    ]
    assert parsed.title == "The Title"
    assert parsed.media_type == "application/pdf"
    assert broken_rules(parsed) == []


@pytest.mark.req("R-EXT-02")
def test_two_columns_are_read_one_after_the_other(make_pdf: MakePdf) -> None:
    def draw(page: Any) -> None:
        write(page, 72, 780, ["A heading over the whole width of both of the columns"], size=16)
        # Written row by row, as some programs do: the order in the file is not the reading order.
        for index in range(12):
            write(page, 72, 740 - index * 13, [f"left {index} has words enough for prose,"])
            write(page, 320, 740 - index * 13, [f"right {index} has words enough for prose,"])
        write(page, 72, 560, ["A line below that again goes over the whole width of the two columns above it."])

    texts = [text for *_, text in shape(parse_pdf(make_pdf(draw), "a.pdf"))]
    assert texts == [
        "A heading over the whole width of both of the columns",
        " ".join(f"left {index} has words enough for prose," for index in range(12))
        + " "
        + " ".join(f"right {index} has words enough for prose," for index in range(12)),
        "A line below that again goes over the whole width of the two columns above it.",
    ]


@pytest.mark.req("R-EXT-02")
def test_rows_of_a_table_stay_rows(make_pdf: MakePdf) -> None:
    def draw(page: Any) -> None:
        for index in range(6):
            write(page, 72, 740 - index * 13, [f"pier {index}"])
            write(page, 320, 740 - index * 13, [f"{index} crowns"])

    parsed = parse_pdf(make_pdf(draw), "a.pdf")
    assert parsed.text == " ".join(f"pier {index} {index} crowns" for index in range(6))


def test_words_broken_at_the_end_of_a_line_are_joined(make_pdf: MakePdf) -> None:
    def draw(page: Any) -> None:
        write(page, 72, 780, ["The crossing of the Sound in winter is an adven-", "ture, and a well-", "known one."])
        write(page, 72, 700, ["It is well-known that MV Tar-", "Heel is a name."])

    parsed = parse_pdf(make_pdf(draw), "a.pdf")
    assert parsed.text == (
        "The crossing of the Sound in winter is an adventure, and a well-known one.\n\n"
        "It is well-known that MV Tar-Heel is a name."
    )


def test_running_heads_feet_and_page_numbers_are_left_out(make_pdf: MakePdf) -> None:
    def draw(page: Any) -> None:
        for number in range(1, 5):
            write(page, 72, 810, ["Annual report"], size=8)
            write(page, 72, 700, [f"Page {number} says something of its own."])
            write(page, 72, 30, [f"Company  {number}"], size=8)
            write(page, 500, 30, [f"{number}"], size=8)
            page.showPage()

    parsed = parse_pdf(make_pdf(draw), "a.pdf")
    assert [text for *_, text in shape(parsed)] == [
        f"Page {number} says something of its own." for number in range(1, 5)
    ]


def test_two_pages_may_share_a_first_line(make_pdf: MakePdf) -> None:
    def draw(page: Any) -> None:
        for number in (1, 2):
            write(page, 72, 780, ["Same line.", f"Other line {'abc'[number]}."])
            page.showPage()

    assert parse_pdf(make_pdf(draw), "a.pdf").text == "Same line. Other line b.\n\nSame line. Other line c."


def test_title_author_and_date_come_from_the_file(make_pdf: MakePdf) -> None:
    def draw(page: Any) -> None:
        page.setTitle("The real title")
        page.setAuthor("Ann Author")
        write(page, 72, 780, ["Text."])

    parsed = parse_pdf(make_pdf(draw), "a.pdf")
    assert parsed.title == "The real title"
    assert parsed.metadata == {"pages": 1, "author": "Ann Author", "date": "2000-01-01T00:00:00+00:00"}


@pytest.mark.parametrize(
    "title",
    [
        "untitled",
        "Microsoft Word - draft3",
        "report_final.docx",
        "(anonymous)",
        "Untitled-1",
        "PowerPoint Presentation",
    ],
)
def test_a_title_nobody_chose_is_not_used(make_pdf: MakePdf, title: str) -> None:
    def draw(page: Any) -> None:
        page.setTitle(title)
        write(page, 72, 780, ["Plain text."])

    assert parse_pdf(make_pdf(draw), "a.pdf").title == ""


def test_text_at_another_angle_comes_last(make_pdf: MakePdf) -> None:
    def draw(page: Any) -> None:
        page.saveState()
        page.rotate(90)
        write(page, 300, -30, ["written in the margin"])
        page.restoreState()
        write(page, 72, 780, ["The text of the page is upright."])

    assert parse_pdf(make_pdf(draw), "a.pdf").text == "The text of the page is upright.\n\nwritten in the margin"


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_a_page_that_was_scanned_sideways_reads_the_same(make_pdf: MakePdf, angle: int) -> None:
    def draw(page: Any) -> None:
        page.translate(300, 400)
        page.rotate(angle)
        write(page, -200, 100, ["First line of the page", "second line of it."])

    assert parse_pdf(make_pdf(draw), "a.pdf").text == "First line of the page second line of it."


@pytest.mark.req("R-EXT-15")
def test_more_than_a_hundred_pages(make_pdf: MakePdf) -> None:
    def draw(page: Any) -> None:
        for number in range(120):
            write(page, 72, 700, [f"Sentence {number} stands alone on its page."])
            page.showPage()

    parsed = parse_pdf(make_pdf(draw), "a.pdf")
    assert [(block.page, parsed.text[block.start : block.end]) for block in parsed.blocks] == [
        (number + 1, f"Sentence {number} stands alone on its page.") for number in range(120)
    ]


def test_the_page_cap_is_a_typed_error(make_pdf: MakePdf) -> None:
    def draw(page: Any) -> None:
        for _ in range(4):
            write(page, 72, 700, ["text"])
            page.showPage()

    content = make_pdf(draw)
    assert parse_pdf(content, "a.pdf", ParseOptions(pages=4)).metadata["pages"] == 4
    with pytest.raises(ParserLimit, match=r"a\.pdf has 4 pages; the limit is 3") as caught:
        parse_pdf(content, "a.pdf", ParseOptions(pages=3))
    assert "limits.pages" in caught.value.hint


def test_an_encrypted_file_says_so(make_pdf: MakePdf) -> None:
    content = make_pdf(lambda page: write(page, 72, 700, ["secret"]), encrypt="password")
    with pytest.raises(ParseError, match=r"a\.pdf is encrypted"):
        parse_pdf(content, "a.pdf")


def test_a_file_of_pictures_says_it_has_no_text_layer(make_pdf: MakePdf) -> None:
    content = make_pdf(lambda page: page.rect(100, 100, 200, 200, fill=1))
    with pytest.raises(EmptyDocument, match=r"a\.pdf") as caught:
        parse_pdf(content, "a.pdf")
    assert "text layer" in caught.value.hint


def test_damage_is_a_typed_error(make_pdf: MakePdf) -> None:
    content = make_pdf(lambda page: write(page, 72, 700, ["text"]))
    with pytest.raises(ParseError, match=r"a\.pdf is a damaged PDF"):
        parse_pdf(content[:200], "a.pdf")


def line(text: str, left: float, right: float, bottom: float) -> TextSpan:
    return TextSpan(text, left, right, bottom, bottom + 10, 10)


def test_ligatures_are_letters() -> None:
    draft = Draft("a.pdf")
    add_pages(draft, {1: LaidOutPage([line("ﬁsh from the oﬃce", 0, 90, 700)], 0, 842)})
    assert draft.finish("application/pdf").text == "fish from the office"


def test_a_line_over_both_columns_parts_what_is_above_it_from_what_is_below() -> None:
    rows = {
        f"{side} {height} with enough words": line(f"{side} {height} with enough words", left, left + 200, height)
        for height in (400, 386, 372, 344, 330, 316)
        for side, left in (("left", 50), ("right", 300))
    }
    wide = line("a title that goes over both columns", 50, 500, 358)
    read = [span.text.partition(" with")[0] for span in lines_of([*rows.values(), wide])]
    assert read == [
        *("left 400", "left 386", "left 372", "right 400", "right 386", "right 372"),
        "a title that goes over both columns",
        *("left 344", "left 330", "left 316", "right 344", "right 330", "right 316"),
    ]


def test_three_columns_are_read_one_after_the_other() -> None:
    spans = [
        line(f"{side} {height} with enough words", left, left + 150, height)
        for height in (400, 386, 372, 358)
        for side, left in (("left", 50), ("middle", 220), ("right", 390))
    ]
    read = [span.text.partition(" with")[0] for span in lines_of(spans)]
    assert read == [f"{side} {height}" for side in ("left", "middle", "right") for height in (400, 386, 372, 358)]


def test_full_lines_of_japanese_go_on_without_a_space() -> None:
    rows = [
        "設定ファイルは起動したときに一度だけ読み込まれるファ",
        "イルです。変更の後には",
        "• 部門：営業",
        "• 名前：山田",
    ]
    lines = [line(text, 72, 72 + 10 * len(text), 700 - 14 * number) for number, text in enumerate(rows)]
    draft = Draft("a.pdf")
    add_pages(draft, {1: LaidOutPage([*lines, line("部署です", 72, 112, 600), line("場所です", 72, 112, 586)], 0, 800)})
    assert draft.finish("application/pdf").text == (
        "設定ファイルは起動したときに一度だけ読み込まれるファイルです。変更の後には\n\n"
        "• 部門：営業\n• 名前：山田\n\n部署です 場所です"
    )
