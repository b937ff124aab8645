"""Write the PDF and the DOCX of the sample corpus; the same bytes every time."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import docx

# reportlab ships without types.
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.platypus import BaseDocTemplate, Frame, FrameBreak, NextPageTemplate, PageBreak, PageTemplate, Paragraph

CORPUS = Path(__file__).parent.parent / "src" / "ragstone" / "samples" / "corpus"
WRITTEN = datetime(2025, 12, 2, 9, 0, tzinfo=UTC)
BOLD, PLAIN = "Helvetica-Bold", "Times-Roman"
STYLES = {
    "#": ParagraphStyle("title", fontName=BOLD, fontSize=22, leading=27, spaceAfter=8),
    "##": ParagraphStyle("heading", fontName=BOLD, fontSize=15, leading=19, spaceBefore=12, spaceAfter=5),
    "###": ParagraphStyle("subheading", fontName=BOLD, fontSize=12, leading=15, spaceBefore=8, spaceAfter=3),
    "": ParagraphStyle("body", fontName=PLAIN, fontSize=10, leading=13.5, spaceAfter=7),
}

# A line of its own says where a page, or the next column, begins.
SURVEY = """
# Harbour porpoises in Kestrel Sound

## Summary

Kestrel Sound is home to about 340 harbour porpoises in summer and about 120 in winter. This is the result of the
first full survey of the Sound, carried out from March to October 2025 by the Hennay Field Station with the help of
the ferry crews. The number is higher than the 200 that had been assumed since the count from the cliffs in 2011.

Porpoises avoid the ferries by very little: on average they surface 160 metres from a passing ship and return to
feeding within nine minutes. The exception is the Orran bank in June and July, when mothers with calves stay away
from the route for more than an hour. We recommend a speed of no more than 9 knots over the bank in these two months.

=== two columns

## Methods

### Hydrophones

Six hydrophones were moored between Port Arden and Little Orran. Each listened for the narrow clicks of porpoises at
130 kilohertz and stored the time of every click, but no sound, so that no conversation on a passing boat could be
recorded. Batteries lasted for 75 days.

A click train counts as one visit when it is followed by ten minutes of silence. Over the season the six instruments
registered 41,870 visits. Instrument 4, south of the Sula breakwater, was lost in the gale of 11 September and its
last three weeks are missing.

### Counts from the bridge

On 212 crossings a trained observer stood on the bridge wing of MV Tarrant and wrote down every porpoise within 500
metres, its distance and its direction. Observers changed every forty minutes. Crossings with waves higher than half
a metre were not counted, because porpoises cannot be seen reliably in them.

=== next column

The officer of the watch called out the course and speed every five minutes. Without this the distances could not
have been corrected for the ship's own movement.

### Photographs from the air

A small aircraft flew the same eleven lines on four clear days. The photographs were read twice by people who did not
know each other's counts. Where they differed by more than two animals a third reader decided.

Because porpoises are under water for most of the time, the counts from the air were multiplied by 3.1, a figure
taken from six animals that carried a depth tag for a week each in 2024.

=== one column

## Results

### Numbers

The three methods agree well. The hydrophones give 352 animals for July, the bridge counts 331 and the photographs
338. We report 340, with a margin of 45 to either side. In the winter months only the hydrophones were at work; they
give 120 with a margin of 30.

### Where they are

Half of all visits were registered at two places: the Orran bank, where sand eels gather, and the tidal race north of
Hennay. The dredged channel into Port Arden was almost empty.

### Calves

Thirty-eight calves were seen, the first of them on 9 June. All but four were within two miles of the Orran bank.

## Recommendations

1. Sail at no more than 9 knots over the Orran bank in June and July. This adds four minutes to the crossing.

2. Keep the hydrophone south of the Sula breakwater until the end of September 2026.

3. Repeat the bridge counts every third year with the same observers where possible.

4. Do not build the second pier on the west side of Little Orran before the bank has been surveyed in winter.
"""

PLAN = """
# Winter overhaul plan 2026/27

Each vessel is out of service once between November and March. The order is chosen so that every island keeps at
least one sailing a day. The sum set aside for the whole winter is 1.26 million crowns.

## Order of the vessels

| Vessel | Out of service | Yard | Stands in
| MV Eider | 3 to 21 November 2026 | Port Arden slip | MV Tarrant on a shared timetable
| MV Tarrant | 11 January to 5 February 2027 | Dry dock at Marwick | MV Eider
| MV Little Auk | 15 to 26 February 2027 | Sula boatyard | chartered launch Petrel

## Work on MV Tarrant

MV Tarrant goes to the dry dock at Marwick from 11 January to 5 February 2027. The hull is cleaned and painted, both
stabiliser fins are taken out, and the class surveyor inspects the rudder on 19 January.

### Battery

The chief electrician, Ingrid Sele, is responsible for the inspection of the battery. Cells that hold less than 82 %
of their first capacity are replaced; twelve spare modules are in store.

### Before the ship leaves

- Empty the fuel tanks to 10 %.

- Take the lifejackets ashore for counting.

- Hand the log to the yard.

## If a date slips

The technical superintendent tells the island councils at least ten days ahead. A delay of more than five days needs
the consent of the council of Sula, because its winter freight goes through Port Arden.
"""


def pieces(source: str) -> Iterator[tuple[str, str]]:
    """The paragraphs of a text, each with the mark it starts with."""
    for piece in source.strip().split("\n\n"):
        mark, _, words = piece.partition(" ")
        known = mark in ("#", "##", "###", "-", "|", "===")
        text = words if known else piece
        yield (mark if known else ""), text if mark == "|" else " ".join(text.split())


def porpoise_survey() -> bytes:
    """A research report: a title page, a page in two columns, results, and a foot on every page."""
    buffer = io.BytesIO()
    template = BaseDocTemplate(
        buffer,
        pagesize=A4,
        title="Harbour porpoises in Kestrel Sound: survey of 2025",
        author="Hennay Field Station",
        subject="Survey report",
    )
    width, height = A4
    margin, foot, gutter = 22 * mm, 25 * mm, 8 * mm
    column = (width - 2 * margin - gutter) / 2
    tall = height - foot - margin
    columns = [Frame(margin + index * (column + gutter), foot, column, tall) for index in range(2)]
    template.addPageTemplates(
        [
            PageTemplate("one", [Frame(margin, foot, width - 2 * margin, tall)], onPage=_foot),
            PageTemplate("two", columns, onPage=_foot),
        ]
    )
    # Without it the file would say when it was made, and never be the same twice.
    with mock.patch.dict(os.environ, SOURCE_DATE_EPOCH=str(int(WRITTEN.timestamp()))):
        template.build(_story())
    return buffer.getvalue()


def _story() -> list[Any]:
    story: list[Any] = []
    for mark, text in pieces(SURVEY):
        if mark != "===":
            story.append(Paragraph(text, STYLES[mark]))
        elif text == "next column":
            story.append(FrameBreak())
        else:
            story += [NextPageTemplate(text.partition(" ")[0]), PageBreak()]
    return story


def _foot(canvas: Any, template: Any) -> None:
    canvas.setFont("Helvetica", 8)
    canvas.drawString(22 * mm, 12 * mm, "Hennay Field Station · Porpoise survey 2025")
    canvas.drawRightString(A4[0] - 22 * mm, 12 * mm, f"Page {template.page}")


def winter_overhaul_plan() -> bytes:
    """A plan for the staff: headings, a list and a table."""
    plan = docx.Document()
    properties = plan.core_properties
    properties.title = "Winter overhaul plan 2026/27"
    properties.author = "Technical department"
    properties.created = properties.modified = datetime(2026, 2, 16, 9, 0, tzinfo=UTC)
    for mark, text in pieces(PLAN):
        if mark == "|":
            rows = [[cell.strip() for cell in row.strip("| ").split("|")] for row in text.split("\n")]
            table = plan.add_table(rows=0, cols=len(rows[0]))
            for row in rows:
                for cell, words in zip(table.add_row().cells, row, strict=True):
                    cell.text = words
        elif mark.startswith("#"):
            plan.add_heading(text, len(mark) - 1)
        else:
            plan.add_paragraph(text, style="List Bullet" if mark == "-" else None)
    buffer = io.BytesIO()
    plan.save(buffer)
    return _with_fixed_times(buffer.getvalue())


def _with_fixed_times(archive: bytes) -> bytes:
    """The same ZIP with one date on all entries."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(packed, "w") as target:
        for entry in source.infolist():
            fixed = zipfile.ZipInfo(entry.filename, date_time=(2026, 2, 16, 9, 0, 0))
            fixed.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(fixed, source.read(entry))
    return packed.getvalue()


def main(folder: Path = CORPUS) -> None:
    """Write both files under the folder."""
    for name, content in (
        ("research/porpoise-survey-2025.pdf", porpoise_survey()),
        ("staff/winter-overhaul-plan.docx", winter_overhaul_plan()),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"{path}: {len(content):,} bytes")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
