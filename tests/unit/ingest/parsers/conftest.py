"""Files made for the tests: what a PDF writer, an office program and a scanner would save."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import openpyxl
import pptx
import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas
from tests.word_files import new_document

Write = Callable[[Any], None]


@pytest.fixture
def make_pdf() -> Callable[..., bytes]:
    def make(draw: Write, **options: Any) -> bytes:
        buffer = io.BytesIO()
        page = canvas.Canvas(buffer, **{"pagesize": A4, "invariant": 1, **options})
        draw(page)
        page.save()
        return buffer.getvalue()

    return make


def _saved(document: Any, write: Write) -> bytes:
    write(document)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


@pytest.fixture
def make_docx() -> Callable[[Write], bytes]:
    return lambda write: _saved(new_document(), write)


@pytest.fixture
def make_pptx() -> Callable[[Write], bytes]:
    return lambda write: _saved(pptx.Presentation(), write)


@pytest.fixture
def make_xlsx() -> Callable[[Write], bytes]:
    return lambda write: _saved(openpyxl.Workbook(), write)


@pytest.fixture
def make_zip() -> Callable[[Mapping[str, str | bytes]], bytes]:
    def make(parts: Mapping[str, str | bytes]) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, part in parts.items():
                archive.writestr(name, part)
        return buffer.getvalue()

    return make


@pytest.fixture
def make_picture() -> Callable[..., Image.Image]:
    def make(lines: Sequence[str], width: int = 900) -> Image.Image:
        picture = Image.new("RGB", (width, 60 + 50 * len(lines)), "white")
        pen = ImageDraw.Draw(picture)
        for number, line in enumerate(lines):
            pen.text((30, 30 + 50 * number), line, fill="black", font=ImageFont.load_default(30))
        return picture

    return make


@pytest.fixture
def make_scan(make_pdf: Callable[..., bytes], make_picture: Callable[..., Image.Image]) -> Callable[..., bytes]:
    """A PDF whose pages are pictures of these lines."""

    def make(*pages: Sequence[str]) -> bytes:
        def draw(page: Any) -> None:
            for lines in pages:
                picture = make_picture(lines)
                width = A4[0] - 40
                page.drawImage(ImageReader(picture), 20, 400, width, width * picture.height / picture.width)
                page.showPage()

        return make_pdf(draw)

    return make
