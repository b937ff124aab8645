"""ODS: sheets row by row, repeated cells and rows within the bounds that other workbooks have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ragstone.core.errors import ParserLimit
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, MAX_CHARS, MAX_TITLE, Draft, ParseOptions, too_long
from ragstone.ingest.parsers.office.odf import OFFICE, STYLE, TABLE, TEXT, OdfFile, join_words, read_count
from ragstone.ingest.parsers.office.xlsx import MAX_CELLS, format_value
from ragstone.ingest.parsers.sheets import add_named_sheet, fill_down

MEDIA_TYPE = "application/vnd.oasis.opendocument.spreadsheet"
_SHEET, _ROW, _CELL, _COVERED = (f"{TABLE}{tag}" for tag in ("table", "table-row", "table-cell", "covered-table-cell"))
_FAR = 10**9
_WORDS = (f"{TEXT}p", f"{TEXT}h", f"{TEXT}list")


def parse_ods(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a workbook: the values that its formulas had when it was saved."""
    draft = Draft(name)
    file = OdfFile(content, name, "ODS", options)
    properties = file.read_properties()
    if unsaved := _add_sheets(draft, file.read_events()):
        draft.warnings.append(
            f"{unsaved} formulas have no saved value and are empty; save it from a spreadsheet program"
        )
    # A sheet's name is no title of the workbook.
    title = properties.pop("title", "")
    parsed = draft.finish(MEDIA_TYPE, metadata=properties, empty_hint="its visible sheets hold no values")
    return replace(parsed, title=title[:MAX_TITLE])


def _add_sheets(draft: Draft, events: Iterator[tuple[str, Any]]) -> int:
    """Write the visible sheets and return how many of their formulas were never calculated."""
    hidden: set[str] = set()
    cells_left, unsaved = MAX_CELLS, 0
    for event, element in events:
        if event == "end" and _hides_sheets(element):
            hidden.add(element.get(f"{STYLE}name"))
        elif event == "start" and element.tag == _SHEET:
            title = element.get(f"{TABLE}name", "")
            sheet = _Sheet(draft.name, cells_left, is_hidden=element.get(f"{TABLE}style-name") in hidden)
            sheet.read(events)
            cells_left, unsaved = sheet.cells_left, unsaved + sheet.unsaved
            if sheet.is_hidden:
                draft.warnings.append(f"hidden sheet {title!r} was left out")
            add_named_sheet(draft, title, fill_down(sheet.rows, sheet.merged))
    return unsaved


def _hides_sheets(style: Any) -> bool:
    if style.tag != f"{STYLE}style" or style.get(f"{STYLE}family") != "table":
        return False
    look = style.find(f"{STYLE}table-properties")
    return look is not None and look.get(f"{TABLE}display") == "false"


@dataclass(slots=True)
class _Sheet:
    """The rows of a sheet up to the last one that holds something."""

    name: str
    cells_left: int
    is_hidden: bool
    rows: list[list[str]] = field(default_factory=list)
    merged: list[tuple[int, int, int]] = field(default_factory=list)
    """First row, row behind the last, and column of cells that were merged downwards."""
    unsaved: int = 0
    _chars: int = 0
    _empty_rows: int = 0

    def read(self, events: Iterator[tuple[str, Any]]) -> None:
        """Take the rows up to the end of the sheet; tables inside of it are those of charts."""
        depth = 1
        for event, element in events:
            if element.tag == _SHEET:
                depth += 1 if event == "start" else -1
            elif event == "end" and element.tag == _ROW and depth == 1:
                if not self.is_hidden:
                    self._add(element)
                element.clear()
            if not depth:
                return

    def _add(self, row: Any) -> None:
        times = read_count(row, f"{TABLE}number-rows-repeated", _FAR)
        cells = self._read_cells(row)
        if any(cells):
            self._spend(self._empty_rows + times * len(cells))
            self._chars += times * sum(map(len, cells))
            if self._chars > MAX_CHARS:
                raise too_long(self.name)
            self.rows += [[]] * self._empty_rows + [cells] * times
            self._empty_rows = 0
        else:
            self._empty_rows += times

    def _read_cells(self, row: Any) -> list[str]:
        cells: list[str] = []
        gap = 0
        for cell in row:
            times = read_count(cell, f"{TABLE}number-columns-repeated", _FAR)
            if cell.tag not in (_CELL, _COVERED):
                continue
            text = self._show(cell) if cell.tag == _CELL else ""
            if not text and cell.tag == _CELL:
                gap += times
                continue
            if len(cells) + gap + times > self.cells_left:
                self._spend(_FAR)
            down = read_count(cell, f"{TABLE}number-rows-spanned", _FAR)
            if text and down > 1:
                top = len(self.rows) + self._empty_rows
                self.merged.append((top, top + down, len(cells) + gap))
            cells += [""] * gap + [text] * times
            gap = 0
        return cells

    def _show(self, cell: Any) -> str:
        """Return what a person sees in a cell, but dates in ISO form as in other workbooks."""
        kind = cell.get(f"{OFFICE}value-type", "")
        if kind == "date" and (date := _show_date(cell.get(f"{OFFICE}date-value", ""))):
            return date
        if kind == "boolean":
            return format_value(cell.get(f"{OFFICE}boolean-value") == "true")
        text = " ".join(filter(None, (join_words(part) for part in cell if part.tag in _WORDS)))
        if not (text or kind) and cell.get(f"{TABLE}formula"):
            self.unsaved += 1
        return text or _show_number(cell.get(f"{OFFICE}value", "")) or cell.get(f"{OFFICE}string-value", "")

    def _spend(self, cells: int) -> None:
        self.cells_left -= cells
        if self.cells_left < 0:
            raise ParserLimit(
                f"{self.name} has more than {MAX_CELLS:,} cells",
                hint="split it, or save the part that is to be found as CSV",
            )


def _show_date(value: str) -> str:
    try:
        return format_value(datetime.fromisoformat(value))
    except ValueError:
        return ""


def _show_number(value: str) -> str:
    try:
        return format_value(float(value))
    except ValueError:
        return ""
