"""A cell's value → what a person sees in it."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any

from ragstone.core.errors import ParserLimit
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, MAX_TITLE, Draft, ParseOptions
from ragstone.ingest.parsers.office.archive import office_properties, open_archive
from ragstone.ingest.parsers.sheets import MAX_MERGED, add_named_sheet, fill_down

_NUMBER = re.compile(r"(?P<thousands>#,##)?(?P<whole>0+)(?:\.(?P<decimals>0+))?(?P<percent>%)?")
_SIGN_OF_LOCALE = re.compile(r"\[\$([^\]-]*)[^\]]*\]")
_UNSEEN = re.compile(r"\[[^\]]*\]|\"|\\|_.|\*.")
_CURRENCY = "$€£¥"
_LONGEST_FORMAT = 200
_MOST_DIGITS = 30
_MOST_AMOUNT = 1e15
MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MAX_CELLS = 2_000_000
"""Empty ones between filled ones count too: a sheet can place two cells a billion apart."""
_SHEETS = "xl/worksheets/sheet"
_MERGED = re.compile(rb'<mergeCell ref="([A-Z]{1,3})(\d{1,7}):[A-Z]{1,3}(\d{1,7})"')
_LONGEST_MERGED = 60
_LONGEST_CELL = 100_000
_NO_VALUE = re.compile(rb"<f(?:\s[^<>]*)?(?:/>|>[^<]*</f>)\s{0,9}(?:<v\s{0,9}/>|<v></v>)?\s{0,9}</c>")


def format_value(value: object, number_format: str = "General") -> str:
    """Return dates in ISO form, numbers with the digits and the sign of their format, anything else as it is."""
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case datetime():
            return _moment(value)
        case date():
            return value.isoformat()
        case time():
            return value.isoformat("minutes" if not value.second else "seconds")
        case timedelta():
            return _duration(value)
        case int() | float():
            return _number(value, number_format)
    return str(value)


def _moment(value: datetime) -> str:
    if (value.hour, value.minute, value.second) == (0, 0, 0):
        return value.date().isoformat()
    return value.isoformat(" ", "minutes" if not value.second else "seconds")


def _duration(value: timedelta) -> str:
    seconds = round(value.total_seconds())
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _number(value: float, number_format: str) -> str:
    if not math.isfinite(value):
        return str(value)
    # Positive and negative numbers may have formats of their own; the first one is enough for the digits.
    wanted = _UNSEEN.sub("", _SIGN_OF_LOCALE.sub(r"\1", number_format[:_LONGEST_FORMAT].split(";", 1)[0]))
    found = _NUMBER.search(wanted)
    if found is None or "E" in wanted or abs(value) >= _MOST_AMOUNT:
        # Fifteen digits are what a spreadsheet keeps; more would show 0.1 + 0.2 as no spreadsheet does.
        return f"{value:.15g}"
    amount = abs(value) * 100 if found["percent"] else abs(value)
    decimals = min(len(found["decimals"] or ""), _MOST_DIGITS)
    width = 0 if found["thousands"] else min(len(found["whole"]), _MOST_DIGITS) + (decimals + 1 if decimals else 0)
    digits = f"{amount:0{width}{',' if found['thousands'] else ''}.{decimals}f}{found['percent'] or ''}"
    minus = "-" if value < 0 and digits.strip("0.%") else ""
    sign = next((mark for mark in _CURRENCY if mark in wanted), "")
    if not sign or wanted.find(sign) < found.start():
        return f"{minus}{sign}{digits}"
    return f"{minus}{digits} {sign}"


def parse_xlsx(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a workbook: the values that its formulas had when it was saved."""
    import openpyxl

    draft = Draft(name)
    with open_archive(content, name, "XLSX", options) as archive:
        properties = office_properties(archive, name, "XLSX")
        if unsaved := sum(_formulas_without_value(archive, part) for part in archive.namelist()):
            draft.warnings.append(
                f"{unsaved} formulas have no saved value and are empty; save it from a spreadsheet program"
            )
        merged = {part: _find_merged(archive, part) for part in archive.namelist() if part.startswith(_SHEETS)}
    workbook = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
    cells_left = MAX_CELLS
    for sheet in workbook.worksheets:
        if sheet.sheet_state == "visible":
            cells_left = _add_sheet(draft, sheet, merged.get(_part_of(sheet), []), cells_left)
        else:
            draft.warnings.append(f"hidden sheet {sheet.title!r} was left out")
    workbook.close()
    # A sheet's name is no title of the workbook.
    title = properties.pop("title", "")
    parsed = draft.finish(MEDIA_TYPE, metadata=properties, empty_hint="its visible sheets hold no values")
    return replace(parsed, title=title[:MAX_TITLE])


def _formulas_without_value(archive: zipfile.ZipFile, part: str) -> int:
    """Return how many cells of a sheet were never calculated, as programs that only write files leave them."""
    if not part.startswith(_SHEETS):
        return 0
    found = 0
    rest = b""
    with archive.open(part) as sheet:
        while chunk := sheet.read(1 << 20):
            cells, end, rest = (rest + chunk).rpartition(b"</c>")
            found += len(_NO_VALUE.findall(cells + end))
            rest = rest[-_LONGEST_CELL:]
    return found


def _find_merged(archive: zipfile.ZipFile, part: str) -> list[tuple[int, int, int]]:
    """Return first row, row behind the last, and column of cells that were merged downwards."""
    from openpyxl.utils import column_index_from_string

    found: set[tuple[bytes, bytes, bytes]] = set()
    rest = b""
    with archive.open(part) as sheet:
        while (chunk := sheet.read(1 << 20)) and len(found) < MAX_MERGED:
            found.update(_MERGED.findall(rest + chunk))
            rest = chunk[-_LONGEST_MERGED:]
    return [
        (int(top) - 1, int(bottom), column_index_from_string(column.decode()) - 1)
        for column, top, bottom in found
        if top != bottom
    ]


def _part_of(sheet: Any) -> str:
    return str(sheet._worksheet_path)


def _add_sheet(draft: Draft, sheet: Any, merged: list[tuple[int, int, int]], cells_left: int) -> int:
    """Write a sheet under its name and return how many cells the others may have."""
    # What a file says about its own size may be wrong, and then cells would be missing.
    sheet.reset_dimensions()
    rows = _Rows(sheet.iter_rows(), draft.name, cells_left)
    add_named_sheet(draft, sheet.title, fill_down(rows, merged))
    return rows.cells_left


class _Rows:
    """The rows of a sheet as people see them, while there are cells left."""

    def __init__(self, rows: Iterable[tuple[Any, ...]], name: str, cells_left: int) -> None:
        self._rows = rows
        self._name = name
        self.cells_left = cells_left

    def __iter__(self) -> Iterator[list[str]]:
        for row in self._rows:
            self.cells_left -= max(1, len(row))
            if self.cells_left < 0:
                raise ParserLimit(
                    f"{self._name} has more than {MAX_CELLS:,} cells",
                    hint="split it, or save the part that is to be found as CSV",
                )
            yield [format_value(cell.value, getattr(cell, "number_format", "General")) for cell in row]
