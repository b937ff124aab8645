"""Hostile OpenDocument files."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.hostile_file import Bait, Hostile, zipped
from tests.faults.hostile_office import LAUGHS, REACHES, archive_tricks, outside
from tests.unit.ingest.parsers.odf_files import document, flat

WORDS = "<text:p>words</text:p>"


def odf_files(bait: Bait) -> Iterator[Hostile]:
    """Texts, workbooks and presentations."""
    for trick in archive_tricks("odt", "content.xml"):
        # Parts that are not read are not opened, so entries that lie over each other do no harm.
        yield trick if not trick.name.startswith("entries over") else Hostile(trick.name, trick.content, "read")
    root = document(WORDS.replace("words", "…"))
    for name, xml in outside(bait, root, "words").items():
        # Nothing acts on an include: it is an element without words.
        says = "no text was found" if name == "an include" else REACHES
        yield Hostile(f"{name}.odt", _packed("text", xml), "refused", says)
    doctype = f'<!DOCTYPE x [<!ENTITY x SYSTEM "file://{bait.secret_file}">]>'
    whole = flat(WORDS).decode().partition("\n")[2]
    yield Hostile("an entity.fodt", f"{doctype}{whole}".encode(), "refused", REACHES)
    yield Hostile("laughs.ods", _packed("spreadsheet", f"{LAUGHS}]>{document('', 'spreadsheet')}"), "refused", REACHES)
    yield Hostile(
        "laughs in its styles.odt", _packed("text", document(WORDS), "styles.xml", f"{LAUGHS}]><x/>"), "refused"
    )
    yield from _nested()
    yield from _sheets()


def _nested() -> Iterator[Hostile]:
    parent = '<style:style style:name="A" style:family="paragraph" style:parent-style-name="A"/>'
    spans = "<text:span>" * 30_000 + "words" + "</text:span>" * 30_000
    box = "<text:p><draw:frame><draw:text-box>"
    texts = {
        "lists in lists": "<text:list><text:list-item>" * 9000 + WORDS + "</text:list-item></text:list>" * 9000,
        "tables in tables": "<table:table><table:table-row><table:table-cell>" * 3000
        + WORDS
        + "</table:table-cell></table:table-row></table:table>" * 3000,
        "boxes in boxes": box * 9000 + WORDS + "</draw:text-box></draw:frame></text:p>" * 9000,
        "spans in spans": f"<text:p>{spans}</text:p>",
        "notes in notes": "<text:p>words<text:note><text:note-body>" * 3000
        + "</text:note-body></text:note></text:p>" * 3000,
        "a style of itself": '<text:p text:style-name="A">words</text:p>',
        "spaces without end": '<text:p>words<text:s text:c="999999999"/></text:p>' * 2000,
        "markup in words": "<text:p>words &lt;script>&lt;/ol>&lt;/ul>&lt;/table></text:p>",
        "spans beyond numbers": "<table:table><table:table-row><table:table-cell "
        f'table:number-columns-spanned="{10**30}" table:number-rows-spanned="-1">{WORDS}'
        "</table:table-cell></table:table-row></table:table>",
    }
    for name, inner in texts.items():
        yield Hostile(f"{name}.odt", _packed("text", document(inner, styles=parent)), "read", "words")
    slide = '<draw:page><draw:frame><draw:object xlink:href="%s"/></draw:frame></draw:page>'
    objects = document(
        "".join(slide % target for target in ("./Object 1", "../../etc/passwd", ".", "") * 500), "presentation"
    )
    again = _packed("presentation", objects, "Object 1/content.xml", document("<table:table/>", "chart"))
    yield Hostile("an object again and again.odp", again, "refused", "no text was found")
    slides = _packed("presentation", document("<draw:page/>" * 6000, "presentation"))
    yield Hostile("slides without end.odp", slides, "refused", "the limit is 5,000")


def _sheets() -> Iterator[Hostile]:
    def row(times: int, columns: int, words: str) -> str:
        cell = f'<table:table-cell table:number-columns-repeated="{columns}">{words}</table:table-cell>'
        return f'<table:table-row table:number-rows-repeated="{times}">{cell}</table:table-row>'

    sheets = {
        "a row a million times": (row(1_048_576, 1, WORDS) * 3, "more than 2,000,000 cells"),
        "a cell without end": (row(1, 10**8, WORDS), "more than 2,000,000 cells"),
        "long words again and again": (row(10**6, 1, f"<text:p>{'long ' * 5000}</text:p>"), "characters of text"),
        "empty rows without end": (row(10**8, 10**8, "") * 3 + row(1, 1, ""), "no text was found"),
    }
    for name, (rows, says) in sheets.items():
        table = f'<table:table table:name="S">{rows}</table:table>'
        yield Hostile(f"{name}.ods", _packed("spreadsheet", document(table, "spreadsheet")), "refused", says)


def _packed(kind: str, content: str, *more: str) -> bytes:
    part = {more[0]: more[1]} if more else {}
    return zipped({"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content, **part})
