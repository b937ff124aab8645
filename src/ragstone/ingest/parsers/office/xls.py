"""Workbooks of Excel 97 to 2003: the same tables, read from another container."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ragstone.core.errors import ParseError, ParserLimit
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions
from ragstone.ingest.parsers.office.xlsx import MAX_CELLS, format_value
from ragstone.ingest.parsers.sheets import add_named_sheet, fill_down

if TYPE_CHECKING:
    from xlrd.book import Book
    from xlrd.sheet import Sheet

MEDIA_TYPE = "application/vnd.ms-excel"
_VISIBLE = 0


def parse_xls(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a workbook: the values that its formulas had when it was saved."""
    draft = Draft(name)
    book = _open(content, name)
    cells_left = MAX_CELLS
    for number in range(book.nsheets):
        sheet = book.sheet_by_index(number)
        if sheet.visibility == _VISIBLE:
            cells_left -= sheet.nrows * max(1, sheet.ncols)
            if cells_left < 0:
                raise ParserLimit(
                    f"{name} has more than {MAX_CELLS:,} cells",
                    hint="split it, or save the part that is to be found as CSV",
                )
            add_named_sheet(draft, sheet.name, _rows(book, sheet))
        else:
            draft.warnings.append(f"hidden sheet {sheet.name!r} was left out")
        book.unload_sheet(number)
    return draft.finish(MEDIA_TYPE, empty_hint="its visible sheets hold no values")


def _open(content: bytes, name: str) -> Book:
    import xlrd
    from xlrd.compdoc import CompDocError

    try:
        # The library writes what it wonders about to its log, which would be our output.
        return xlrd.open_workbook(
            file_contents=content, formatting_info=True, on_demand=True, ragged_rows=True, logfile=io.StringIO()
        )
    except (xlrd.XLRDError, CompDocError) as problem:
        if "encrypted" in str(problem).lower():
            raise ParseError(
                f"{name} is encrypted: its cells cannot be read", hint="save it without a password"
            ) from problem
        raise ParseError(
            f"{name} is a damaged XLS: {problem!s:.200}", hint="open it in a spreadsheet program and save it again"
        ) from problem


def _rows(book: Book, sheet: Sheet) -> Iterator[list[str]]:
    """Yield the rows as people see them."""
    rows = ([_show(book, cell) for cell in sheet.row(number)] for number in range(sheet.nrows))
    return fill_down(rows, ((top, bottom, left) for top, bottom, left, _ in sheet.merged_cells))


def _show(book: Book, cell: Any) -> str:
    import xlrd

    if cell.ctype == xlrd.XL_CELL_DATE:
        return _show_date(cell.value, book.datemode)
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return format_value(bool(cell.value))
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(cell.value, "#ERROR"))
    if cell.ctype == xlrd.XL_CELL_NUMBER:
        return format_value(cell.value, _number_format(book, cell.xf_index))
    return format_value(cell.value or "")


def _show_date(value: float, datemode: int) -> str:
    from xlrd.xldate import xldate_as_datetime

    try:
        moment = xldate_as_datetime(value, datemode)
    except (ValueError, OverflowError):
        return format_value(value)
    return format_value(moment.time() if 0 <= value < 1 else moment)


def _number_format(book: Book, style: int | None) -> str:
    if style is None or style >= len(book.xf_list):
        return "General"
    found = book.format_map.get(book.xf_list[style].format_key)
    return found.format_str if found else "General"
