from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from ragstone.core.errors import EmptyDocument
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.parsers.office.docx import MEDIA_TYPE, parse_docx

MakeDocx = Callable[[Callable[[Any], None]], bytes]


@pytest.mark.req("R-EXT-06", "R-NRM-05")
def test_headings_lists_tables_and_quotes(make_docx: MakeDocx) -> None:
    def write(document: Any) -> None:
        document.add_heading("The Title", 0)
        document.add_heading("Part", 1)
        document.add_paragraph("Some text.")
        document.add_paragraph("one", style="List Bullet")
        document.add_paragraph("two", style="List Bullet")
        document.add_heading("Below", 2)
        table = document.add_table(2, 2)
        for row, cells in enumerate((("a", "b"), ("1", ""))):
            for column, text in enumerate(cells):
                table.cell(row, column).text = text
        document.add_paragraph("Said so.", style="Quote")

    parsed = parse_docx(make_docx(write), "a.docx")
    assert [(block.kind, block.level, parsed.text[block.start : block.end]) for block in parsed.blocks] == [
        ("heading", 1, "The Title"),
        ("heading", 1, "Part"),
        ("paragraph", 0, "Some text."),
        ("list", 0, "- one\n- two"),
        ("heading", 2, "Below"),
        ("table", 0, "| a | b |\n| --- | --- |\n| 1 |  |"),
        ("quote", 0, "Said so."),
    ]
    assert parsed.media_type == MEDIA_TYPE
    assert parsed.title == "The Title"
    assert broken_rules(parsed) == []


def test_merged_cells_keep_the_others_in_their_columns(make_docx: MakeDocx) -> None:
    def write(document: Any) -> None:
        table = document.add_table(3, 3)
        for row in range(3):
            for column in range(3):
                table.cell(row, column).text = f"{row}{column}"
        table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
        table.cell(1, 0).merge(table.cell(2, 0)).text = "tall"

    text = parse_docx(make_docx(write), "a.docx").text
    assert text == "| wide |  | 02 |\n| --- | --- | --- |\n| tall | 11 | 12 |\n| tall | 21 | 22 |"


def test_title_author_and_date_come_from_the_properties(make_docx: MakeDocx) -> None:
    def write(document: Any) -> None:
        document.core_properties.title = "From the properties"
        document.core_properties.author = "Ann"
        document.core_properties.created = datetime(2026, 1, 31, 9, 0, tzinfo=UTC)
        document.add_heading("Heading", 1)

    parsed = parse_docx(make_docx(write), "a.docx")
    assert parsed.title == "From the properties"
    assert parsed.metadata == {"author": "Ann", "date": "2026-01-31T09:00:00+00:00"}


def test_a_document_without_text_is_empty(make_docx: MakeDocx) -> None:
    with pytest.raises(EmptyDocument, match=r"a\.docx"):
        parse_docx(make_docx(lambda document: None), "a.docx")


def test_a_header_of_merged_cells_names_every_column(make_docx: MakeDocx) -> None:
    def write(document: Any) -> None:
        table = document.add_table(4, 3)
        rows = (("Product", "Price", ""), ("", "Retail", "Export"), ("Butter", "2.90", "2.60"), ("Cheese", "", ""))
        for row, cells in enumerate(rows):
            for column, text in enumerate(cells):
                table.cell(row, column).text = text
        table.cell(0, 1).merge(table.cell(0, 2))
        table.cell(0, 0).merge(table.cell(1, 0))
        table.cell(3, 0).merge(table.cell(3, 2))

    assert parse_docx(make_docx(write), "a.docx").text == (
        "| Product | Price Retail | Price Export |\n| --- | --- | --- |\n| Butter | 2.90 | 2.60 |\n| Cheese |  |  |"
    )
