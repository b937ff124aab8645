"""PDF: pages, headings by their font size, columns in reading order, running heads and feet left out."""

from __future__ import annotations

import ctypes
import math
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from ragstone.core.clock import canonical, parse_moment
from ragstone.core.errors import ParseError, ParserLimit
from ragstone.core.types import Json, Parsed
from ragstone.ingest.parsers.cleaning import one_line
from ragstone.ingest.parsers.draft import Draft
from ragstone.ingest.parsers.pdf_flow import add_pages
from ragstone.ingest.parsers.pdf_layout import SOFT_HYPHEN, Page, Span, lines_of

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

MAX_PAGES = 5000
_DATE = re.compile(r"(?:D:)?(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?(Z|[+-]\d{2}'?(?:\d{2})?'?)?")
_NO_TITLE = re.compile(
    r"(?i)(?:untitled|unspecified|anonymous|microsoft word - .*|.*\.(?:docx?|indd|tex|dvi|pdf))?"
)
_WORD = re.compile(f"[^\\s\\x00{SOFT_HYPHEN}]+{SOFT_HYPHEN}?")
_BOLD = re.compile(rb"bold|black|heavy", re.IGNORECASE)
_BREAK = 2
_NO_TEXT_LAYER = (
    "its pages are pictures without a text layer; run OCR over it first, for example with ocrmypdf"
)


def parse_pdf(content: bytes, name: str, *, pages: int = MAX_PAGES) -> Parsed:
    """Read a PDF that has a text layer."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as problem:
        raise _cannot_open(problem, name) from problem
    try:
        return _parse(document, name, pages)
    finally:
        document.close()


def _cannot_open(problem: Exception, name: str) -> ParseError:
    from pypdfium2 import raw

    code = getattr(problem, "err_code", None)
    if code == raw.FPDF_ERR_PASSWORD:
        return ParseError(f"{name} is encrypted and needs a password", hint="save a copy without a password")
    if code == raw.FPDF_ERR_SECURITY:
        return ParseError(
            f"{name} uses an encryption that is not supported", hint="save a copy without a password"
        )
    return ParseError(
        f"{name} is a damaged PDF", hint="open it in a viewer and save or print it to a new PDF"
    )


def _parse(document: PdfDocument, name: str, pages: int) -> Parsed:
    if len(document) > pages:
        raise ParserLimit(
            f"{name} has {len(document):,} pages; the limit is {pages:,}",
            hint="split it, or raise limits.pages in the settings",
        )
    draft = Draft(name)
    readable, unreadable = _read_pages(document)
    if readable:
        add_pages(draft, readable)
    elif unreadable:
        raise ParseError(f"{name} is a damaged PDF: no page can be read", hint="print it to a new PDF")
    if unreadable:
        draft.warnings.append(f"pages that could not be read: {', '.join(map(str, unreadable))[:200]}")
    information = document.get_metadata_dict(skip_empty=True)
    title = one_line(information.get("Title", ""))
    return draft.finish(
        "application/pdf",
        title="" if _NO_TITLE.fullmatch(title) else title,
        metadata=_metadata(information, len(document)),
        empty_hint=_NO_TEXT_LAYER,
    )


def _read_pages(document: PdfDocument) -> tuple[dict[int, Page], list[int]]:
    import pypdfium2

    readable: dict[int, Page] = {}
    unreadable = []
    for index in range(len(document)):
        try:
            page = document[index]
        except pypdfium2.PdfiumError:
            unreadable.append(index + 1)
            continue
        readable[index + 1] = _read_page(page)
        page.close()
    return readable, unreadable


def _read_page(page: PdfPage) -> Page:
    """One page as most of its words stand; text set at another angle comes last."""
    by_turn: dict[int, list[Span]] = {}
    for turn, word in _words(page):
        by_turn.setdefault(turn, []).append(word)
    turns = sorted(by_turn, key=lambda turn: -len(by_turn[turn]))
    left, bottom, right, top = page.get_cropbox()
    _, _, bottom, top = _turned(left, right, bottom, top, turns[0] if turns else 0)
    return Page([line for turn in turns for line in lines_of(by_turn[turn])], bottom, top)


def _words(page: PdfPage) -> list[tuple[int, Span]]:
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
        box = _turned(
            min(first.left, last.left),
            max(first.right, last.right),
            min(first.bottom, last.bottom),
            max(first.top, last.top),
            turn,
        )
        size = raw.FPDFText_GetFontSize(handle, begin) * (math.hypot(matrix.a, matrix.b) or 1.0)
        words.append((turn, Span(found[0], *box, round(size, 1), _BOLD.search(font.value) is not None)))
    textpage.close()
    return words


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


def _quarter_turns(a: float, b: float) -> int:
    if abs(a) >= abs(b):
        return 0 if a >= 0 else 2
    return 1 if b > 0 else 3


def _turned(
    left: float, right: float, bottom: float, top: float, turn: int
) -> tuple[float, float, float, float]:
    match turn:
        case 1:
            return bottom, top, -right, -left
        case 2:
            return -right, -left, -top, -bottom
        case 3:
            return -top, -bottom, left, right
    return left, right, bottom, top


def _metadata(information: Mapping[str, str], pages: int) -> dict[str, Json]:
    metadata: dict[str, Json] = {"pages": pages}
    author = one_line(information.get("Author", ""))[:1000]
    if not _NO_TITLE.fullmatch(author):
        metadata["author"] = author
    if (created := _moment(information.get("CreationDate", ""))) is not None:
        metadata["date"] = canonical(created)
    return metadata


def _moment(text: str) -> datetime | None:
    found = _DATE.match(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second, zone = found.groups()
    digits = (zone or "").replace("'", "").replace("Z", "")
    offset = f"{digits[:3]}:{digits[3:] or '00'}" if digits else ""
    return parse_moment(
        f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}{offset}"
    )
