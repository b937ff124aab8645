"""The words of a PDF page with their places, turned so that each stands upright."""

from __future__ import annotations

import ctypes
import io
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from ragstone.ingest.parsers.pdf.layout import SOFT_HYPHEN, TextSpan
from ragstone.ingest.parsers.tables import markdown_table

if TYPE_CHECKING:
    from pypdfium2 import PdfPage


Box = tuple[float, float, float, float]
"""Left, right, bottom, top."""
Turn = int
"""Quarters of a circle by which the text is turned."""
_WORD = re.compile(f"[^\\s\\x00{SOFT_HYPHEN}]+{SOFT_HYPHEN}?")
_BOLD = re.compile(rb"bold|black|heavy", re.IGNORECASE)
_BREAK = 2
MAX_PATHS = 2000
"""A page with more than this is a drawing, over which looking for tables takes minutes."""
_THIN = 3.0
_SHORTEST = 8.0


def words_of(page: PdfPage) -> list[tuple[Turn, TextSpan]]:
    """Return every word with its place after turning the page so that the word stands upright."""
    from pypdfium2 import raw

    textpage = page.get_textpage()
    handle = textpage.raw
    matrix, first, last = raw.FS_MATRIX(), raw.FS_RECTF(), raw.FS_RECTF()
    font = ctypes.create_string_buffer(100)
    words = []
    for found in _WORD.finditer(_characters(handle)):
        begin = found.start()
        raw.FPDFText_GetLooseCharBox(handle, begin, first)
        raw.FPDFText_GetLooseCharBox(handle, found.end() - 1, last)
        raw.FPDFText_GetMatrix(handle, begin, matrix)
        raw.FPDFText_GetFontInfo(handle, begin, font, len(font), None)
        turn = _quarter_turns(matrix.a, matrix.b)
        box = (
            min(first.left, last.left),
            max(first.right, last.right),
            min(first.bottom, last.bottom),
            max(first.top, last.top),
        )
        size = raw.FPDFText_GetFontSize(handle, begin) * (math.hypot(matrix.a, matrix.b) or 1.0)
        bold = _BOLD.search(font.value) is not None
        words.append((turn, TextSpan(found[0], *turn_box(box, turn), round(size, 1), bold)))
    textpage.close()
    return words


def turn_box(box: Box, turn: Turn) -> Box:
    """Return the place of a box once the page is turned so that text of this turn is upright."""
    left, right, bottom, top = box
    match turn:
        case 1:
            return bottom, top, -right, -left
        case 2:
            return -right, -left, -top, -bottom
        case 3:
            return -top, -bottom, left, right
    return box


def _characters(handle: object) -> str:
    """Return one character per index of the page, so that a match's offsets are pdfium's own."""
    from pypdfium2 import raw

    count = raw.FPDFText_CountChars(handle)
    units = (ctypes.c_ushort * (count + 1))()
    if raw.FPDFText_GetText(handle, 0, count, units) == count + 1:
        text = bytes(units)[:-2].decode("utf-16-le", "replace")
        if len(text) == count:
            # How pdfium marks a hyphen that breaks a word at the end of a line.
            return text.replace("\ufffe", SOFT_HYPHEN)
    codes = (raw.FPDFText_GetUnicode(handle, index) for index in range(count))
    return "".join(SOFT_HYPHEN if code == _BREAK else chr(code if code < sys.maxunicode else 0xFFFD) for code in codes)


def _quarter_turns(a: float, b: float) -> Turn:
    if abs(a) >= abs(b):
        return 0 if a >= 0 else 2
    return 1 if b > 0 else 3


@dataclass(frozen=True, slots=True)
class Table:
    """A table as Markdown, and where on the unturned page it stands."""

    text: str
    box: Box


def is_installed() -> bool:
    """Return whether tables can be read."""
    return find_spec("pdfplumber") is not None


def has_rules(page: PdfPage) -> bool:
    """Return whether lines run both ways on the page, so that it may hold a table."""
    from pypdfium2 import raw

    paths = list(islice(page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=3), MAX_PATHS + 1))
    if len(paths) > MAX_PATHS:
        return False
    across = down = 0
    for path in paths:
        left, bottom, right, top = path.get_bounds()
        width, height = right - left, top - bottom
        # Boxes, and grids drawn in one go, are lines both ways.
        across += width >= _SHORTEST and (height <= _THIN or height >= _SHORTEST)
        down += height >= _SHORTEST and (width <= _THIN or width >= _SHORTEST)
    return (across >= 2 and down >= 2) or any(_is_grid(path) for path in paths)


def read_tables(content: bytes, media_boxes: Mapping[int, Box]) -> tuple[dict[int, list[Table]], list[str]]:
    """Return the tables of these pages, and warnings about those that could not be told from text."""
    import pdfplumber

    found: dict[int, list[Table]] = {}
    warnings = []
    # Where the library fails, the words are still read as text: nothing is lost but the lines between them.
    try:
        with pdfplumber.open(io.BytesIO(content), pages=sorted(media_boxes)) as document:
            for page in document.pages:
                found[page.page_number] = _tables_on(page, media_boxes[page.page_number])
                page.close()
    except MemoryError:
        raise
    except Exception as problem:
        unread = ", ".join(str(number) for number in sorted(media_boxes.keys() - found.keys()))
        warnings.append(f"tables were read as text on pages {unread[:200]}: {type(problem).__name__}")
    return found, warnings


def _is_grid(path: Any) -> bool:
    from pypdfium2 import raw

    return int(raw.FPDFPath_CountSegments(path.raw)) >= 8


def _tables_on(page: Any, media_box: Box) -> list[Table]:
    tables = []
    for table in page.find_tables():
        rows = [[cell or "" for cell in row] for row in table.extract()]
        if _is_table(rows):
            tables.append(Table(markdown_table(rows), _restore_box(table.bbox, page, media_box)))
    return tables


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether two rows and two columns hold something: less is a frame around text."""
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    columns = {place for row in filled for place, cell in enumerate(row) if cell.strip()}
    return len(filled) >= 2 and len(columns) >= 2


def _restore_box(box: Sequence[float], page: Any, media_box: Box) -> Box:
    """Return pdfplumber's place on the page as it is shown as the place in the file, where y grows upwards."""
    left, right, bottom, top = media_box
    x0, x1 = box[0] - page.mediabox[0], box[2] - page.mediabox[0]
    y0, y1 = box[1] - page.mediabox[1], box[3] - page.mediabox[1]
    match page.rotation:
        case 90:
            return left + y0, left + y1, bottom + x0, bottom + x1
        case 180:
            return right - x1, right - x0, bottom + y0, bottom + y1
        case 270:
            return right - y1, right - y0, top - x1, top - x0
    return left + x0, left + x1, top - y1, top - y0
