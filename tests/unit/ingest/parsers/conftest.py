"""Files made for the tests: what a PDF writer and a word processor would save."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import docx
import pytest
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen import canvas


@pytest.fixture
def make_pdf() -> Callable[..., bytes]:
    def make(draw: Callable[[Any], None], **options: Any) -> bytes:
        buffer = io.BytesIO()
        page = canvas.Canvas(buffer, pagesize=A4, invariant=1, **options)
        draw(page)
        page.save()
        return buffer.getvalue()

    return make


@pytest.fixture
def make_docx() -> Callable[[Callable[[Any], None]], bytes]:
    def make(write: Callable[[Any], None]) -> bytes:
        document = docx.Document()
        write(document)
        buffer = io.BytesIO()
        document.save(buffer)
        return buffer.getvalue()

    return make
