from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest

from ragstone.core.errors import EmptyDocument, ParserLimit
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.parsers.office import xlsx
from ragstone.ingest.parsers.office.xlsx import format_value, parse_xlsx

MakeXlsx = Callable[[Callable[[Any], None]], bytes]


def test_sheets_titles_tables_and_numbers(make_xlsx: MakeXlsx) -> None:
    def write(book: Any) -> None:
        sheet = book.active
        sheet.title = "Fares"
        sheet["B1"] = "Prices of 2026"
        for row in (["Route", "Price", "Since"], ["Sula", 12.5, date(2026, 1, 31)]):
            sheet.append([None, *row])
        sheet["C3"].number_format = "#,##0.00 €"
        sheet["B5"] = "Other"
        sheet["C5"] = "table"
        sheet["B6"] = 1
        book.create_sheet("Empty")
        book.create_sheet("Secret").append(["unseen"])
        book["Secret"].sheet_state = "hidden"

    parsed = parse_xlsx(make_xlsx(write), "a.xlsx")
    assert [(block.kind, parsed.text[block.start : block.end]) for block in parsed.blocks] == [
        ("heading", "Fares"),
        ("paragraph", "Prices of 2026"),
        ("table", "| Route | Price | Since |\n| --- | --- | --- |\n| Sula | 12.50 € | 2026-01-31 |"),
        ("table", "| Other | table |\n| --- | --- |\n| 1 |  |"),
    ]
    assert parsed.warnings == ("hidden sheet 'Secret' was left out",)
    assert parsed.title == ""
    assert broken_rules(parsed) == []


def test_a_formula_shows_the_value_it_had(make_xlsx: MakeXlsx, make_zip: Callable[..., bytes]) -> None:
    content = _with_sheet(make_xlsx, make_zip, '<c r="A1"><f>20+22</f><v>42</v></c><c r="B1"><v>7</v></c>')
    assert parse_xlsx(content, "a.xlsx").text == "Sheet\n\n| 42 | 7 |\n| --- | --- |"


def test_formulas_that_were_never_calculated_are_counted(make_xlsx: MakeXlsx) -> None:
    def write(book: Any) -> None:
        book.active.append(["total", "=SUM(C1:C2)", 1])
        book.active.append(["other", "=1+1", 2])

    parsed = parse_xlsx(make_xlsx(write), "a.xlsx")
    assert "| total |  | 1 |" in parsed.text
    assert parsed.warnings == ("2 formulas have no saved value and are empty; save it from a spreadsheet program",)


def test_cells_far_apart_are_refused_in_time(make_xlsx: MakeXlsx, make_zip: Callable[..., bytes]) -> None:
    cells = '<c r="XFD1"><v>1</v></c></row><row r="4000000000"><c r="A4000000000"><v>1</v></c>'
    with pytest.raises(ParserLimit, match=r"a\.xlsx has more than 2,000,000 cells"):
        parse_xlsx(_with_sheet(make_xlsx, make_zip, cells), "a.xlsx")


def test_all_sheets_share_one_allowance(make_xlsx: MakeXlsx, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(book: Any) -> None:
        for title in ("one", "two"):
            book.create_sheet(title).append([1, 2, 3])

    content = make_xlsx(write)
    monkeypatch.setattr(xlsx, "MAX_CELLS", 6)
    assert len(parse_xlsx(content, "a.xlsx").blocks) == 4
    monkeypatch.setattr(xlsx, "MAX_CELLS", 5)
    with pytest.raises(ParserLimit):
        parse_xlsx(content, "a.xlsx")


def test_a_size_that_the_sheet_claims_is_not_believed(make_xlsx: MakeXlsx, make_zip: Callable[..., bytes]) -> None:
    content = _with_sheet(make_xlsx, make_zip, '<c r="A1"><v>1</v></c><c r="C1"><v>3</v></c>', dimension="A1")
    assert parse_xlsx(content, "a.xlsx").text == "Sheet\n\n| 1 |  | 3 |\n| --- | --- | --- |"


def test_a_workbook_without_values_is_empty(make_xlsx: MakeXlsx) -> None:
    with pytest.raises(EmptyDocument, match=r"a\.xlsx"):
        parse_xlsx(make_xlsx(lambda book: None), "a.xlsx")


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (None, "General", ""),
        (True, "General", "TRUE"),
        (0.1 + 0.2, "General", "0.3"),
        (1234567, "General", "1234567"),
        (1234567.891, "#,##0.00", "1,234,567.89"),
        (-5, "0.0", "-5.0"),
        (0.125, "0.0%", "12.5%"),
        (9.5, '"$"#,##0.00', "$9.50"),
        (9.5, "#,##0.00 [$€-407]", "9.50 €"),
        (-9.5, "$#,##0.00;[Red]-$#,##0.00", "-$9.50"),
        (-0.001, "0.00", "0.00"),
        (1234, "00000", "01234"),
        (0.00000012, "0.00E+00", "1.2e-07"),
        (5.5, "0" * 50_000, "0" * 29 + "6"),
        (5.5, "[" * 50_000, "5.5"),
        (1e300, "0.00", "1e+300"),
        (float("inf"), "0.00", "inf"),
        (datetime(2026, 1, 31, tzinfo=UTC).replace(tzinfo=None), "yyyy", "2026-01-31"),
        (datetime(2026, 1, 31, 9, 5, tzinfo=UTC).replace(tzinfo=None), "General", "2026-01-31 09:05"),
        (time(9, 5, 7), "General", "09:05:07"),
        (timedelta(hours=26, minutes=3), "[h]:mm", "26:03:00"),
        ("text", "General", "text"),
    ],
)
def test_values_are_what_people_see(value: object, number_format: str, text: str) -> None:
    assert format_value(value, number_format) == text


def _with_sheet(make_xlsx: MakeXlsx, make_zip: Callable[..., bytes], cells: str, dimension: str = "A1:B1") -> bytes:
    """A workbook whose only sheet holds this XML, which no library would write."""
    with zipfile.ZipFile(io.BytesIO(make_xlsx(lambda book: None))) as archive:
        parts: dict[str, str | bytes] = {name: archive.read(name) for name in archive.namelist()}
    parts["xl/worksheets/sheet1.xml"] = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f'<dimension ref="{dimension}"/><sheetData><row r="1">{cells}</row></sheetData></worksheet>'
    )
    return make_zip(parts)
