"""Workbooks of the old kind, written here byte by byte."""

from __future__ import annotations

import pytest
from tests.unit.ingest.parsers.ole_kit import write_ole, write_xls

from ragstone.core.errors import ParseError, UnsupportedFormat
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import broken_rules

ROWS = [["Prices of 2026"], ["Route", "Price", "Since"], ["Sula", 1012.5, 46053.0], [None, 13.5, 46054.25]]
FORMATS = {1: '#,##0.00" €"', 2: "yyyy-mm-dd"}


@pytest.mark.parametrize("name", ["fares.xls", "fares", "fares.xlsx"])
def test_a_workbook_is_read_with_what_stands_in_its_cells(name: str) -> None:
    parsed = parse(write_xls(ROWS, formats=FORMATS), name)
    assert parsed.media_type == "application/vnd.ms-excel"
    assert parsed.text == (
        "Fares\n\nPrices of 2026\n\n| Route | Price | Since |\n| --- | --- | --- |\n"
        "| Sula | 1,012.50 € | 2026-01-31 |\n|  | 13.50 € | 2026-02-01 06:00 |"
    )
    assert broken_rules(parsed) == []


def test_cells_merged_downwards_say_the_same_in_every_row() -> None:
    parsed = parse(write_xls(ROWS, formats=FORMATS, merged=(2, 3, 0, 0)), "fares.xls")
    assert "| Sula | 13.50 € | 2026-02-01 06:00 |" in parsed.text


def test_a_locked_or_broken_workbook_is_said_to_be() -> None:
    with pytest.raises(ParseError, match=r"fares\.xls is encrypted"):
        parse(write_xls(ROWS, password=True), "fares.xls")
    for size in (600, 1500, 3000):
        with pytest.raises(ParseError, match=r"fares\.xls"):
            parse(write_xls(ROWS)[:size], "fares.xls")


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"<html><table><tr><td>Sula</td></tr></table>", "text/html"),
        (b"Route\tPrice\nSula\t12\n", "text/tab-separated-values"),
    ],
)
def test_a_page_or_rows_under_the_name_of_a_workbook_are_read(content: bytes, media_type: str) -> None:
    assert parse(content, "fares.xls").media_type == media_type


def test_other_files_of_the_old_container_are_named() -> None:
    with pytest.raises((ParseError, UnsupportedFormat), match=r"plan\.doc"):
        parse(write_ole({"WordDocument": b"x" * 5000}), "plan.doc")
