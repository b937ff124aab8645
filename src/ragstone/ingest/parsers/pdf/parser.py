"""PDF: pages, headings by their font size, columns in reading order, running heads and feet left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from ragstone.core.clock import canonical, parse_moment
from ragstone.core.errors import ParseError
from ragstone.core.types import Json, Parsed
from ragstone.ingest.parsers.draft import Draft, chosen_title
from ragstone.ingest.parsers.options import DEFAULT, ParseOptions
from ragstone.ingest.parsers.pdf.flow import add_pages
from ragstone.ingest.parsers.pdf.pages import read_pages

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

_DATE = re.compile(r"(?:D:)?(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?(Z|[+-]\d{2}'?(?:\d{2})?'?)?")


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
