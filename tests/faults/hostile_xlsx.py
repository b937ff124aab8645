"""Hostile workbooks."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.hostile_file import Bait, Hostile
from tests.faults.hostile_office import REACHES, R, archive_tricks, office, office_parts, outside

S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def _sheet(rows: str) -> bytes:
    return office("xlsx", xl__worksheets__sheet1_xml=f"<worksheet {S}><sheetData>{rows}</sheetData></worksheet>")


def xlsx_files(bait: Bait) -> Iterator[Hostile]:
    """Workbooks."""
    yield from archive_tricks("xlsx", "xl/workbook.xml")
    for name, xml in outside(bait, "<x>…</x>").items():
        yield Hostile(f"{name}.xlsx", office("xlsx", xl__worksheets__sheet1_xml=xml), "refused", REACHES)

    def text(place: str, words: str) -> str:
        return f'<c r="{place}" t="inlineStr"><is><t>{words}</t></is></c>'

    def row(cells: str, number: object = 1) -> str:
        return f'<row r="{number}">{cells}</row>'

    dates = "".join(f'<c r="{chr(65 + n)}1" s="1"><v>{value}</v></c>' for n, value in enumerate(
        ("1e308", "-1e308", "-1", "0", "60", "2958466", "99999999999", "1e-300", "9" * 300)
    ))  # fmt: skip
    styles = office_parts("xlsx")["xl/styles.xml"].decode()
    dated = styles.replace("</cellXfs>", '<xf numFmtId="14" applyNumberFormat="1"/></cellXfs>')
    shared = f"<sst {S}><si><t>{'long words ' * 90_000}</t></si></sst>"
    types = office_parts("xlsx")["[Content_Types].xml"].decode()
    sharing = types.replace(
        "</Types>",
        '<Override PartName="/xl/sharedStrings.xml" ContentType="application/vnd.openxmlformats-officedocument.'
        'spreadsheetml.sharedStrings+xml"/></Types>',
    )
    pointing = "".join(row('<c t="s"><v>0</v></c>', n) for n in range(1, 2001))
    sheets = {
        "a row a billion down": _sheet(row(text("A1", "words")) + row(text("A1000000000", "far"), 10**9)),
        "a column far out": _sheet(row(text("XFD1", "words") + text("ZZZZZZ1", "far"))),
        "rows that go back": _sheet(row(text("A5", "words"), 5) + row(text("A1", "back"), 1)),
        "a row below nothing": _sheet(row(text("A-1", "words"), -1)),
        "a row of no number": _sheet(row(text("A", "words"), "x")),
        "a place of no cell": _sheet(row(text("!!", "words"))),
        "a hundred thousand cells": _sheet("".join(row("<c><v>1</v></c>" * 100, n) for n in range(1, 1001))),
        "sparse rows": _sheet("".join(row(text(f"XFD{n}", "x"), n) for n in range(1, 201))),
        "absurd dates": office(
            "xlsx",
            xl__styles_xml=dated,
            xl__worksheets__sheet1_xml=f"<worksheet {S}><sheetData>{row(dates)}</sheetData></worksheet>",
        ),
        "a number that is none": _sheet(row("<c><v>NaN</v></c><c><v>x</v></c>")),
        "formulas": _sheet(
            row('<c r="A1" t="str"><f>HYPERLINK("http://x")</f><v>=cmd|calc</v></c>' + text("B1", "=1+1"))
        ),
        "formulas without a value": _sheet(row("<c><f>A1</f></c>" * 5000 + text("A1", "words"))),
        "a formula without end": _sheet(row("<c><f>" + "(" * 500_000 + "</f><v>1</v></c>" + text("B1", "words"))),
        "a shared text of nowhere": _sheet(row('<c t="s"><v>999999</v></c><c t="s"><v>-5</v></c>')),
        "letters of no character": _sheet(row(text("A1", "wo_x0000_rds_x202E_ \u200b"))),
        "errors": _sheet(row('<c t="e"><v>#REF!</v></c>' + '<c t="b"><v>7</v></c>' + text("C1", "words"))),
        "runs of letters": _sheet(row("<c r='A1' t='inlineStr'><is>" + "<r><t>a</t></r>" * 50_000 + "</is></c>")),
        "deep xml": _sheet("<a>" * 100_000),
        "a shared text many times": office(
            "xlsx",
            types=sharing,
            xl__sharedStrings_xml=shared,
            xl__worksheets__sheet1_xml=f"<worksheet {S}><sheetData>{pointing}</sheetData></worksheet>",
        ),
        "shared texts": office(
            "xlsx", types=sharing, xl__sharedStrings_xml=f"<sst {S}>" + "<si><t>a</t></si>" * 100_000 + "</sst>"
        ),
        "formats": office(
            "xlsx",
            xl__styles_xml=styles.replace(
                "<cellXfs", "<x>" + '<numFmt numFmtId="164" formatCode="0.0"/>' * 50_000 + "</x><cellXfs", 1
            ),
        ),
    }
    for name, content in sheets.items():
        yield Hostile(f"{name}.xlsx", content, bomb=name == "a shared text many times")
    books = office_parts("xlsx")["xl/workbook.xml"].decode()
    listed = books.replace("</sheets>", f'<sheet xmlns:r="{R}" name="x" sheetId="1" r:id="rId1"/>' * 1000 + "</sheets>")
    yield Hostile("one sheet a thousand times.xlsx", office("xlsx", xl__workbook_xml=listed))
    names = books.replace('name="Sheet"', 'name="She\u202eet &lt;b&gt; ../../x"')
    yield Hostile("a sheet with a name.xlsx", office("xlsx", xl__workbook_xml=names))
    hidden = books.replace('state="visible"', 'state="veryHidden"')
    yield Hostile("nothing to see.xlsx", office("xlsx", xl__workbook_xml=hidden), "refused", "no text was found")
