"""The words of a PDF page with their places, turned so that each stands upright."""

from __future__ import annotations

import ctypes
import math
import re
import sys
from typing import TYPE_CHECKING

from ragstone.ingest.parsers.pdf_layout import SOFT_HYPHEN, Span

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

Box = tuple[float, float, float, float]
"""Left, right, bottom, top."""
Turn = int
"""How many quarters of a circle the text is turned."""
_WORD = re.compile(f"[^\\s\\x00{SOFT_HYPHEN}]+{SOFT_HYPHEN}?")
_BOLD = re.compile(rb"bold|black|heavy", re.IGNORECASE)
_BREAK = 2


def words_of(page: PdfPage) -> list[tuple[Turn, Span]]:
    """Every word with its place after turning the page so that the word stands upright."""
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
        words.append((turn, Span(found[0], *turned(box, turn), round(size, 1), bold)))
    textpage.close()
    return words


def turned(box: Box, turn: Turn) -> Box:
    """Where a box stands once the page is turned so that text of this turn is upright."""
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
    """One character per index of the page, so that a match's offsets are pdfium's own."""
    from pypdfium2 import raw

    count = raw.FPDFText_CountChars(handle)
    units = (ctypes.c_ushort * (count + 1))()
    if raw.FPDFText_GetText(handle, 0, count, units) == count + 1:
        text = bytes(units)[:-2].decode("utf-16-le", "replace")
        if len(text) == count:
            # How pdfium marks a hyphen that breaks a word at the end of a line.
            return text.replace("\ufffe", SOFT_HYPHEN)
    codes = (raw.FPDFText_GetUnicode(handle, index) for index in range(count))
    return "".join(
        SOFT_HYPHEN if code == _BREAK else chr(code if code < sys.maxunicode else 0xFFFD) for code in codes
    )


def _quarter_turns(a: float, b: float) -> Turn:
    if abs(a) >= abs(b):
        return 0 if a >= 0 else 2
    return 1 if b > 0 else 3
