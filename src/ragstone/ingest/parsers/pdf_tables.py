"""Tables with ruled lines on PDF pages: found cheaply by their rules, read by pdfplumber when it is installed."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from ragstone.ingest.parsers.pdf_words import Box
from ragstone.ingest.parsers.tables import markdown_table

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

MAX_PATHS = 2000
"""A page with more than this is a drawing, over which looking for tables takes minutes."""
_THIN = 3.0
_SHORTEST = 8.0


@dataclass(frozen=True, slots=True)
class Table:
    """A table as Markdown, and where on the unturned page it stands."""

    text: str
    box: Box


def is_installed() -> bool:
    """Whether tables can be read."""
    return find_spec("pdfplumber") is not None


def has_rules(page: PdfPage) -> bool:
    """Whether lines run both ways on the page, so that it may hold a table."""
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
    """The tables of these pages, and warnings about those that could not be told from text."""
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
            tables.append(Table(markdown_table(rows), _unturned(table.bbox, page, media_box)))
    return tables


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    """Two rows and two columns with something in them: less is a frame around text."""
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    columns = {place for row in filled for place, cell in enumerate(row) if cell.strip()}
    return len(filled) >= 2 and len(columns) >= 2


def _unturned(box: Sequence[float], page: Any, media_box: Box) -> Box:
    """From pdfplumber's place on the page as it is shown to the place in the file, where y grows upwards."""
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
