"""Write the PDFs of the demo shop from the text in `scripts/shop`; the same bytes every time."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

# reportlab ships without types.
from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.platypus import BaseDocTemplate, Frame, PageBreak, PageTemplate, Paragraph

from scripts.make_samples import STYLES, WRITTEN, pieces

TEXTS = Path(__file__).parent / "shop"
SHOP = Path(__file__).parent.parent / "src" / "ragstone" / "samples" / "shop"
MARGIN, FOOT = 22 * mm, 25 * mm


def make_pdf(text: str) -> bytes:
    """Return the PDF of a text with headings; a line `=== page` begins a new page."""
    parts = list(pieces(text))
    title = next(words for mark, words in parts if mark == "#")
    buffer = io.BytesIO()
    template = BaseDocTemplate(buffer, pagesize=A4, title=title, author="Juniper Lane", subject="Demo shop")
    frame = Frame(MARGIN, FOOT, A4[0] - 2 * MARGIN, A4[1] - FOOT - MARGIN)
    template.addPageTemplates([PageTemplate("page", [frame], onPage=_draw_foot)])
    story: list[Any] = [PageBreak() if mark == "===" else Paragraph(words, STYLES[mark]) for mark, words in parts]
    # Without it the file would say when it was made, and never be the same twice.
    with mock.patch.dict(os.environ, SOURCE_DATE_EPOCH=str(int(WRITTEN.timestamp()))):
        template.build(story)
    return buffer.getvalue()


def _draw_foot(canvas: Any, template: Any) -> None:
    canvas.setFont("Helvetica", 8)
    canvas.drawString(MARGIN, 12 * mm, "Juniper Lane · 14 Juniper Lane, Port Arden")
    canvas.drawRightString(A4[0] - MARGIN, 12 * mm, f"Page {template.page}")


def main(folder: Path = SHOP) -> None:
    """Write the PDF of each text under the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for text in sorted(TEXTS.glob("*.md")):
        path = folder / f"{text.stem}.pdf"
        path.write_bytes(make_pdf(text.read_text(encoding="utf-8")))
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
