from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.platypus import Table as Grid

from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import ParseOptions, broken_rules
from ragstone.ingest.parsers.pdf import tables as pdf_tables
from ragstone.ingest.parsers.pdf.parser import parse_pdf

MakePdf = Callable[..., bytes]

FARES = [["Route", "Price"], ["Sula", "12|50"], ["Hennay\nand back", "25"]]
AS_MARKDOWN = "| Route | Price |\n| --- | --- |\n| Sula | 12\\|50 |\n| Hennay and back | 25 |"


def shape(parsed: Parsed) -> list[tuple[str, int | None, str]]:
    return [(block.kind, block.page, parsed.text[block.start : block.end]) for block in parsed.blocks]


def draw_fares(page: Any, x: float = 72, y: float = 600) -> None:
    table = Grid(FARES, style=[("GRID", (0, 0), (-1, -1), 1, colors.black)])
    table.wrapOn(page, 300, 300)
    table.drawOn(page, x, y)


def draw_page(page: Any) -> None:
    page.drawString(72, 760, "These are the fares of the line in the coming winter.")
    draw_fares(page)
    page.drawString(72, 560, "Children travel free of charge with their parents.")


AROUND = [
    ("paragraph", 1, "These are the fares of the line in the coming winter."),
    ("table", 1, AS_MARKDOWN),
    ("paragraph", 1, "Children travel free of charge with their parents."),
]


@pytest.mark.req("R-EXT-02", "R-FUT-09")
def test_a_ruled_table_is_one_block_between_its_paragraphs(make_pdf: MakePdf) -> None:
    parsed = parse_pdf(make_pdf(draw_page), "a.pdf")
    assert shape(parsed) == AROUND
    assert parsed.warnings == ()
    assert broken_rules(parsed) == []


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_a_table_on_a_turned_page(make_pdf: MakePdf, angle: int) -> None:
    width, height = A4

    def draw(page: Any) -> None:
        # The page says it is shown turned, and what is on it is turned the other way.
        page.setPageRotation(angle)
        page.rotate(angle)
        page.translate(*{90: (0, -width), 180: (-width, -height), 270: (-height, 0)}[angle])
        draw_page(page)

    assert shape(parse_pdf(make_pdf(draw), "a.pdf")) == AROUND


def test_a_table_on_a_page_whose_box_does_not_begin_at_zero(make_pdf: MakePdf) -> None:
    content = make_pdf(draw_page, pageCompression=0)
    moved = content.replace(b"/MediaBox [ 0 0 595.2756 841.8898 ]", b"/MediaBox [ -50 -70 595.27 841.88 ]")
    assert moved != content
    assert shape(parse_pdf(moved, "a.pdf")) == AROUND


def test_a_short_heading_stays_over_its_centred_table(make_pdf: MakePdf) -> None:
    def draw(page: Any) -> None:
        page.drawString(60, 780, "Winter fares")
        draw_fares(page, 300, 660)
        page.drawString(60, 600, "Summer fares")
        draw_fares(page, 300, 480)

    texts = [text for *_, text in shape(parse_pdf(make_pdf(draw), "a.pdf"))]
    assert texts == ["Winter fares", AS_MARKDOWN, "Summer fares", AS_MARKDOWN]


def test_a_table_in_one_column_stays_in_its_column(make_pdf: MakePdf) -> None:
    def draw(page: Any) -> None:
        for row in range(30):
            if not 8 <= row <= 16:
                page.drawString(60, 780 - row * 14, f"left {row} has words enough for prose,")
            page.drawString(330, 780 - row * 14, f"right {row} has words enough for prose,")
        draw_fares(page, 60, 580)

    kinds = [kind for kind, *_ in shape(parse_pdf(make_pdf(draw), "a.pdf"))]
    texts = [text for *_, text in shape(parse_pdf(make_pdf(draw), "a.pdf"))]
    table = kinds.index("table")
    assert texts[table] == AS_MARKDOWN
    assert "left 7" in " ".join(texts[:table])
    assert "left 17" not in " ".join(texts[:table])
    assert "right" not in " ".join(texts[:table])


def test_tables_can_be_switched_off(make_pdf: MakePdf) -> None:
    parsed = parse_pdf(make_pdf(draw_page), "a.pdf", ParseOptions(tables=False))
    assert {kind for kind, *_ in shape(parsed)} == {"paragraph"}
    assert "Sula 12|50" in parsed.text


def test_without_the_extra_a_table_is_text(make_pdf: MakePdf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_tables, "is_installed", lambda: False)
    content = make_pdf(draw_page)
    assert parse_pdf(content, "a.pdf") == parse_pdf(content, "a.pdf", ParseOptions(tables=False))


def test_frames_around_text_are_no_tables(make_pdf: MakePdf) -> None:
    def draw(page: Any) -> None:
        page.rect(20, 20, 550, 800)
        page.rect(60, 600, 400, 200)
        page.drawString(72, 700, "A paragraph inside a frame stays a paragraph.")

    assert shape(parse_pdf(make_pdf(draw), "a.pdf")) == [
        ("paragraph", 1, "A paragraph inside a frame stays a paragraph.")
    ]


def test_only_pages_with_rules_are_searched_for_tables(make_pdf: MakePdf, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    read = pdf_tables.read_tables

    def watched(content: bytes, boxes: Any) -> Any:
        searched.extend(boxes)
        return read(content, boxes)

    def draw(page: Any) -> None:
        page.drawString(72, 700, "Words and one line under them.")
        page.line(72, 690, 300, 690)
        page.showPage()
        draw_page(page)
        page.showPage()
        for number in range(pdf_tables.MAX_PATHS + 1):
            page.rect(number % 500, number % 700, 20, 20)
        page.drawString(72, 700, "A drawing.")

    monkeypatch.setattr(pdf_tables, "read_tables", watched)
    parse_pdf(make_pdf(draw), "a.pdf")
    assert searched == [2]


def test_a_page_that_the_table_reader_cannot_read_is_text_with_a_warning(
    make_pdf: MakePdf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("no such font")

    monkeypatch.setattr(pdf_tables, "_tables_on", fail)
    parsed = parse_pdf(make_pdf(draw_page), "a.pdf")
    assert "Sula 12|50" in parsed.text
    assert parsed.warnings == ("tables were read as text on pages 1: KeyError",)


def draw_rows(page: Any, rows: list[list[str]], number: int, caption: str = "") -> None:
    table = Grid(rows, colWidths=[100, 80], style=[("GRID", (0, 0), (-1, -1), 1, colors.black)])
    table.wrapOn(page, 300, 300)
    table.drawOn(page, 72, 600)
    page.drawString(72, 740, caption)
    page.drawString(280, 40, f"Page {number}")


@pytest.mark.parametrize(
    ("rows", "caption", "header"),
    [
        ([["Orrin", "31"], ["Tay", "7"]], "", "| Route | Price |"),
        ([["Route", "Price"], ["Tay", "7"]], "", "| Route | Price |"),
        ([["Ship", "Berths"], ["Tay", "7"]], "", "| Ship | Berths |"),
        ([["Orrin", "31"], ["Tay", "7"]], "These are the berths of the ships.", "| Orrin | 31 |"),
    ],
)
def test_a_table_that_goes_on_over_the_page_keeps_its_header(
    make_pdf: MakePdf, rows: list[list[str]], caption: str, header: str
) -> None:
    def draw(page: Any) -> None:
        draw_rows(page, FARES, 1, "These are the fares of the line in the coming winter.")
        page.showPage()
        draw_rows(page, rows, 2, caption)

    tables = [text for kind, _, text in shape(parse_pdf(make_pdf(draw), "a.pdf")) if kind == "table"]
    assert tables[0] == AS_MARKDOWN
    assert tables[1].split("\n")[0] == header
    assert all(f"| {route} | {price} |" in tables[1] for route, price in rows)
