from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from ragstone.core.errors import EmptyDocument, ParserLimit
from ragstone.ingest.parsers.draft import ParseOptions, broken_rules
from ragstone.ingest.parsers.office.pptx import MEDIA_TYPE, parse_pptx

MakePptx = Callable[[Callable[[Any], object]], bytes]


def slide(deck: Any, title: str, layout: int = 5) -> Any:
    page = deck.slides.add_slide(deck.slide_layouts[layout])
    page.shapes.title.text = title
    return page


def box(shapes: Any, text: str) -> None:
    shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = text


def test_the_numbers_of_charts_are_tables(make_pptx: MakePptx) -> None:
    def write(deck: Any) -> None:
        shapes = slide(deck, "Fares").shapes
        bars = CategoryChartData()
        bars.categories = ["Dogs", "Horses"]
        bars.add_series("2025", (2, None))
        bars.add_series("2026", (2.5, 10))
        chart = shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 9**6, 9**6, bars).chart
        chart.has_title = True
        chart.chart_title.text_frame.text = "In crowns"
        tides = XyChartData()
        tides.add_series("Ebb").add_data_point(7, 1.5)
        tides.add_series("Flood").add_data_point(13, 4)
        shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, 0, 0, 9**6, 9**6, tides)
        shapes.add_chart(XL_CHART_TYPE.LINE, 0, 0, 9**6, 9**6, CategoryChartData())

    parsed = parse_pptx(make_pptx(write), "a.pptx")
    assert [(block.kind, block.page, parsed.text[block.start : block.end]) for block in parsed.blocks] == [
        ("heading", 1, "Fares"),
        ("table", 1, "In crowns\n|  | 2025 | 2026 |\n| --- | --- | --- |\n| Dogs | 2 | 2.5 |\n| Horses |  | 10 |"),
        ("table", 1, "|  | Ebb | Flood |\n| --- | --- | --- |\n| 7 | 1.5 |  |\n| 13 |  | 4 |"),
    ]


def test_titles_bullets_tables_groups_and_notes(make_pptx: MakePptx) -> None:
    def write(deck: Any) -> None:
        first = slide(deck, "Winter\nplan", layout=1)
        body = first.placeholders[1].text_frame
        body.text = "Two boats"
        below = body.add_paragraph()
        below.text, below.level = "one spare", 1
        second = slide(deck, "Fares")
        box(second.shapes, "All prices in crowns.")
        box(second.shapes.add_group_shape().shapes, "Inside a group")
        table = second.shapes.add_table(2, 2, 0, 0, Inches(4), Inches(1)).table
        for row, cells in enumerate((("Route", "Price"), ("Sula", "12|50"))):
            for column, text in enumerate(cells):
                table.cell(row, column).text = text
        second.notes_slide.notes_text_frame.text = "Ask Ann."

    parsed = parse_pptx(make_pptx(write), "a.pptx")
    assert [(block.kind, block.page, parsed.text[block.start : block.end]) for block in parsed.blocks] == [
        ("heading", 1, "Winter plan"),
        ("list", 1, "- Two boats\n  - one spare"),
        ("heading", 2, "Fares"),
        ("paragraph", 2, "All prices in crowns."),
        ("paragraph", 2, "Inside a group"),
        ("table", 2, "| Route | Price |\n| --- | --- |\n| Sula | 12\\|50 |"),
        ("paragraph", 2, "Notes: Ask Ann."),
    ]
    assert parsed.metadata["pages"] == 2
    assert parsed.media_type == MEDIA_TYPE
    assert broken_rules(parsed) == []


def test_hidden_slides_are_left_out_and_named(make_pptx: MakePptx) -> None:
    def write(deck: Any) -> None:
        slide(deck, "Seen")
        slide(deck, "Unseen").element.set("show", "0")

    parsed = parse_pptx(make_pptx(write), "a.pptx")
    assert parsed.text == "Seen"
    assert parsed.warnings == ("hidden slide 2 was left out",)


def test_the_slide_cap_is_a_typed_error(make_pptx: MakePptx) -> None:
    content = make_pptx(lambda deck: [slide(deck, "One"), slide(deck, "Two")])
    with pytest.raises(ParserLimit, match=r"a\.pptx has 2 slides; the limit is 1"):
        parse_pptx(content, "a.pptx", ParseOptions(pages=1))


def test_slides_without_words_are_an_empty_document(make_pptx: MakePptx) -> None:
    with pytest.raises(EmptyDocument, match=r"a\.pptx") as caught:
        parse_pptx(make_pptx(lambda deck: slide(deck, "")), "a.pptx")
    assert "pictures" in caught.value.hint
