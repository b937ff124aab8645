"""PDF: pages, headings by their font size, columns in reading order, running heads and feet left out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from ragstone.core.clock import canonical, parse_moment
from ragstone.core.errors import ParseError
from ragstone.core.types import Json, Parsed
from ragstone.ingest.parsers.draft import DEFAULT, SCANS_PER_WINDOW, Draft, ParseOptions, chosen_title
from ragstone.ingest.parsers.images import ocr
from ragstone.ingest.parsers.pdf import tables as pdf_tables
from ragstone.ingest.parsers.pdf.flow import add_pages
from ragstone.ingest.parsers.pdf.layout import LaidOutPage, TextSpan, lines_of, scanned_page, with_tables
from ragstone.ingest.parsers.pdf.tables import Box, Table, Turn, turn_box, words_of

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_DATE = re.compile(r"(?:D:)?(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?(Z|[+-]\d{2}'?(?:\d{2})?'?)?")
FEW_CHARS = 80
"""A stamp or a page number over a picture is no text layer."""
_DOTS_PER_POINT = 200 / 72
_UNREADABLE = frozenset({"Cc", "Cn", "Co", "Cs"})


def parse_pdf(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a PDF, or the pages of it that were asked for."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as problem:
        raise _cannot_open(problem, name) from problem
    try:
        return _parse(document, content, name, options)
    finally:
        document.close()


def _cannot_open(problem: Exception, name: str) -> ParseError:
    from pypdfium2 import raw

    code = getattr(problem, "err_code", None)
    if code == raw.FPDF_ERR_PASSWORD:
        return ParseError(f"{name} is encrypted and needs a password", hint="save a copy without a password")
    if code == raw.FPDF_ERR_SECURITY:
        return ParseError(f"{name} uses an encryption that is not supported", hint="save a copy without a password")
    return ParseError(f"{name} is a damaged PDF", hint="open it in a viewer and save or print it to a new PDF")


def _parse(document: PdfDocument, content: bytes, name: str, options: ParseOptions) -> Parsed:
    total = len(document)
    options.check_pages(total, name)
    if options.first_page > max(total, 1):
        raise ParseError(
            f"{name} has {total:,} pages; there is no page {options.first_page:,}",
            hint="the file may have changed while it was read; read it again from its first page",
        )
    reading = read_pages(document, content, options)
    next_page = reading.stop if reading.stop <= total else None
    is_part = next_page is not None or options.first_page > 1
    if not (is_part or any(page.lines for page in reading.pages.values())) and (problem := reading.failure()):
        raise ParseError(f"{name} could not be read: {problem}", hint="print it to a new PDF, or scan it again")
    draft = Draft(name)
    add_pages(draft, reading.pages)
    information = document.get_metadata_dict(skip_empty=True)
    parsed = draft.finish(
        "application/pdf",
        title=chosen_title(information.get("Title", "")),
        metadata=_metadata(information, total),
        warnings=reading.warnings(),
        unseen_hint=reading.why_empty(),
        may_be_empty=is_part,
    )
    return replace(parsed, next_page=next_page)


def _metadata(information: Mapping[str, str], pages: int) -> dict[str, Json]:
    metadata: dict[str, Json] = {"pages": pages}
    if author := chosen_title(information.get("Author", ""))[:1000]:
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


def looks_scanned(page: PdfPage, words: Sequence[TextSpan]) -> bool:
    """Return whether what a reader sees on the page is missing from its text layer."""
    from pypdfium2 import raw

    text = "".join(word.text for word in words)
    if not text:
        return bool(raw.FPDFPage_CountObjects(page.raw) > 0)
    return _is_garbage(text) or (len(text) < FEW_CHARS and _is_picture(page))


def read_scan(page: PdfPage) -> LaidOutPage:
    """Read the page as it is shown; raises `OcrFailed` when the engine cannot."""
    width, height = page.get_size()
    scale = min(_DOTS_PER_POINT, ocr.LONGEST_SIDE / max(width, height, 1.0))
    image = page.render(scale=scale, may_draw_forms=False).to_pil()
    lines = [
        replace(
            line, left=line.left / scale, right=line.right / scale, bottom=line.bottom / scale, top=line.top / scale
        )
        for line in ocr.read_image(image)
    ]
    return scanned_page(lines, height)


def _is_garbage(text: str) -> bool:
    """Return whether a third of the characters stand for nothing, as with fonts that do not name their shapes."""
    sample = text[:2000]
    lost = sum(mark == "\ufffd" or unicodedata.category(mark) in _UNREADABLE for mark in sample)
    return lost * 3 > len(sample)


def _is_picture(page: PdfPage) -> bool:
    """Return whether one picture covers most of the page."""
    from pypdfium2 import raw

    width, height = page.get_size()
    for image in islice(page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3), 20):
        left, bottom, right, top = image.get_bounds()
        if (right - left) * (top - bottom) > 0.6 * width * height:
            return True
    return False


@dataclass(slots=True)
class PdfReadResult:
    """The pages that were asked for, as far as they could be read."""

    options: ParseOptions
    stop: int
    """The page to go on with."""
    pages: dict[int, LaidOutPage] = field(default_factory=dict)
    unreadable: list[int] = field(default_factory=list)
    unread_pictures: list[int] = field(default_factory=list)
    scanned: list[int] = field(default_factory=list)
    ocr_runs: int = 0
    notes: list[str] = field(default_factory=list)
    ocr_failures: dict[int, str] = field(default_factory=dict)

    def warnings(self) -> list[str]:
        """Return notes for people on how the pages were read."""
        notes = [f"page {number} was read by OCR" for number in self.scanned]
        notes += [f"page {number} could not be read by OCR: {why}" for number, why in self.ocr_failures.items()]
        if self.unread_pictures:
            why = ocr.NOT_INSTALLED if self.options.ocr else "extract.ocr is off"
            notes.append(f"pages that are pictures were not read: {_list_numbers(self.unread_pictures)}; {why}")
        if self.unreadable:
            notes.append(f"pages that could not be read: {_list_numbers(self.unreadable)}")
        return notes + self.notes

    def failure(self) -> str:
        """Return the reason why there is no text; empty when nothing went wrong."""
        if self.ocr_failures:
            return f"it has no text layer, and {next(iter(self.ocr_failures.values()))}"
        return "it is a damaged PDF, and no page can be read" if self.unreadable and not self.pages else ""

    def why_empty(self) -> str:
        """Return a hint for a document whose pages hold no text."""
        if not self.unread_pictures:
            return "its pages have no text layer, and OCR found no words on them; scan it again, larger"
        if self.options.ocr:
            return f"its pages are pictures without a text layer; {ocr.NOT_INSTALLED}"
        return "its pages are pictures without a text layer; set extract.ocr to auto"


@dataclass(frozen=True, slots=True)
class _Printed:
    """A page with a text layer before its tables are known."""

    words: list[tuple[Turn, TextSpan]]
    crop_box: Box


def read_pages(document: PdfDocument, content: bytes, options: ParseOptions) -> PdfReadResult:
    """Read the pages that `options` asks for, fewer when many of them need OCR."""
    import pypdfium2

    asked = options.asked_pages(len(document))
    reading = PdfReadResult(options, asked.stop)
    printed: dict[int, _Printed] = {}
    ruled: dict[int, Box] = {}
    for number in asked:
        if options.window and reading.ocr_runs == SCANS_PER_WINDOW:
            reading.stop = number
            break
        try:
            page = document[number - 1]
        except pypdfium2.PdfiumError:
            reading.unreadable.append(number)
            continue
        try:
            words = words_of(page)
        except pypdfium2.PdfiumError:
            # What it shows may still be read.
            words = []
        if not (looks_scanned(page, [word for _, word in words]) and _read_picture(reading, page, number, words)):
            printed[number] = _Printed(words, _box(page.get_cropbox()))
            if options.tables and words and pdf_tables.is_installed() and pdf_tables.has_rules(page):
                ruled[number] = _box(page.get_mediabox())
        page.close()
    tables, reading.notes = pdf_tables.read_tables(content, ruled) if ruled else ({}, [])
    for number, text in printed.items():
        reading.pages[number] = _laid_out(text, tables.get(number, []))
    reading.pages = dict(sorted(reading.pages.items()))
    return reading


def _read_picture(reading: PdfReadResult, page: PdfPage, number: int, words: list[tuple[Turn, TextSpan]]) -> bool:
    """Read a page by OCR; False when its text layer, if any, is the better text."""
    if not (reading.options.ocr and ocr.is_installed()):
        reading.unread_pictures.append(number)
        return False
    reading.ocr_runs += 1
    try:
        scan = read_scan(page)
    except ocr.OcrFailed as problem:
        reading.ocr_failures[number] = str(problem)
        return False
    if _letters(scan.lines) <= _letters([word for _, word in words]):
        return False
    reading.pages[number] = scan
    reading.scanned.append(number)
    return True


def _letters(spans: list[TextSpan]) -> int:
    return sum(mark.isalnum() for span in spans for mark in span.text)


def _laid_out(page: _Printed, tables: list[Table]) -> LaidOutPage:
    """Return a page as most of its words stand; text set at another angle comes last, tables in their places."""
    turns = sorted({turn for turn, _ in page.words}, key=lambda turn: -sum(turn == other for other, _ in page.words))
    main = turns[0] if turns else 0
    lines: list[TextSpan] = []
    for turn in turns:
        boxes = [turn_box(table.box, turn) for table in tables]
        words = [word for other, word in page.words if other == turn]
        here = lines_of([word for word in words if not any(_is_inside(word, box) for box in boxes)])
        if turn == main:
            here = with_tables(
                here,
                [TextSpan(table.text, *box, size=0.0, is_table=True) for table, box in zip(tables, boxes, strict=True)],
            )
        lines += here
    _, _, bottom, top = turn_box(page.crop_box, main)
    return LaidOutPage(lines, bottom, top)


def _is_inside(word: TextSpan, box: Box) -> bool:
    left, right, bottom, top = box
    return left <= (word.left + word.right) / 2 <= right and bottom <= (word.bottom + word.top) / 2 <= top


def _box(edges: tuple[float, float, float, float]) -> Box:
    left, bottom, right, top = edges
    return left, right, bottom, top


def _list_numbers(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))[:200]
