"""PDF pages that are pictures of text: how they are told, and how they are read."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from ragstone.ingest.parsers import ocr
from ragstone.ingest.parsers.pdf_layout import Page, Span, scanned_page

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

FEW_CHARS = 80
"""A stamp or a page number over a picture is no text layer."""
_DOTS_PER_POINT = 200 / 72
_UNREADABLE = frozenset({"Cc", "Cn", "Co", "Cs"})


def looks_scanned(page: PdfPage, words: Sequence[Span]) -> bool:
    """Whether what a reader sees on the page is not in its text layer."""
    from pypdfium2 import raw

    text = "".join(word.text for word in words)
    if not text:
        return bool(raw.FPDFPage_CountObjects(page.raw) > 0)
    return _is_garbage(text) or (len(text) < FEW_CHARS and _is_picture(page))


def read_scan(page: PdfPage) -> Page:
    """Read the page as it is shown; raises `OcrFailed` when the engine cannot."""
    width, height = page.get_size()
    scale = min(_DOTS_PER_POINT, ocr.LONGEST_SIDE / max(width, height, 1.0))
    image = page.render(scale=scale, may_draw_forms=False).to_pil()
    lines = [
        replace(
            line,
            left=line.left / scale,
            right=line.right / scale,
            bottom=line.bottom / scale,
            top=line.top / scale,
        )
        for line in ocr.read_image(image)
    ]
    return scanned_page(lines, height)


def _is_garbage(text: str) -> bool:
    """Whether a third of the characters stand for nothing, as with fonts that say not what their shapes mean."""
    sample = text[:2000]
    lost = sum(mark == "\ufffd" or unicodedata.category(mark) in _UNREADABLE for mark in sample)
    return lost * 3 > len(sample)


def _is_picture(page: PdfPage) -> bool:
    """Whether one picture covers most of the page."""
    from pypdfium2 import raw

    width, height = page.get_size()
    for image in islice(page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3), 20):
        left, bottom, right, top = image.get_bounds()
        if (right - left) * (top - bottom) > 0.6 * width * height:
            return True
    return False
