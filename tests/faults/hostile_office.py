"""Hostile DOCX, PPTX and XLSX: archives of XML that lie, repeat themselves or reach outside."""

from __future__ import annotations

import bz2
import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import cache

import openpyxl
import pptx
from tests.faults.hostile_file import (
    MEGABYTE,
    Bait,
    End,
    Entry,
    Hostile,
    archive,
    deflated,
    packed_run,
    zero_bomb,
    zipped,
)
from tests.unit.ingest.parsers.odf_files import document, packed
from tests.word_files import new_document

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
REACHES = "holds a DTD, an entity or an include"
BZIP2 = bz2.compress(bytes(20 * MEGABYTE))
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4096)
LAUGHS = "<!DOCTYPE x [" + "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "ha"}">' for n in range(12))


@cache
def office_parts(kind: str) -> Mapping[str, bytes]:
    """The parts of a small file as its library writes it."""
    file = io.BytesIO()
    match kind:
        case "docx":
            words = new_document()
            words.add_heading("Ferry", 1)
            words.add_paragraph("The ferry leaves at nine.")
            words.save(file)
        case "pptx":
            slides = pptx.Presentation()
            slide = slides.slides.add_slide(slides.slide_layouts[1])
            slide.shapes.title.text = "Ferry"
            slide.placeholders[1].text = "The ferry leaves at nine."
            slides.save(file)
        case "odt":
            text = '<text:h text:outline-level="1">Ferry</text:h><text:p>The ferry leaves at nine.</text:p>'
            file.write(packed(document(text)))
        case _:
            book = openpyxl.Workbook()
            for row in (["Ferry", "leaves"], ["north", 9], ["south", 10]):
                book.active.append(row)
            book.save(file)
    with zipfile.ZipFile(file) as parts:
        return {name: parts.read(name) for name in parts.namelist()}


def office(kind: str, **parts: str | bytes) -> bytes:
    """A small file with some parts replaced: `__` in a name stands for a slash, `_` before its end for a dot."""
    named = {_part(name): part for name, part in parts.items()}
    return zipped({**office_parts(kind), **named})


def _part(name: str) -> str:
    path, _, suffix = name.replace("__", "/").rpartition("_")
    return "[Content_Types].xml" if name == "types" else f"{path}.{suffix}"


def outside(bait: Bait, root: str, text: str = "") -> dict[str, str]:
    """Ways for XML to read what it should not, around a root element."""
    opened, _, closed = root.partition("…")
    return {
        "a file": f'<!DOCTYPE x [<!ENTITY x SYSTEM "file://{bait.secret_file}">]>{opened}&x;{closed}',
        "passwd": f'<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd">]>{opened}&x;{closed}',
        "an address": f'<!DOCTYPE x SYSTEM "{bait.url}">{root.replace("…", text)}',
        "a parameter": f'<!DOCTYPE x [<!ENTITY % p SYSTEM "{bait.url}"> %p;]>{root.replace("…", text)}',
        "an include": f'{opened}<i:include xmlns:i="http://www.w3.org/2001/XInclude" parse="text" '
        f'href="file://{bait.secret_file}"/>{closed}',
        "laughs": f"{LAUGHS}]>{opened}&l11;{closed}",
        "one long entity": f'<!DOCTYPE x [<!ENTITY a "{"a" * 50_000}">]>{opened}{"&a;" * 50_000}{closed}',
    }


def archive_tricks(kind: str, main: str) -> Iterator[Hostile]:
    """What can be done to any document that is an archive."""
    good = office_parts(kind)
    plain = [Entry(name, deflated(part), 8, size=len(part), crc=zlib.crc32(part)) for name, part in good.items()]
    body = good[main]
    rest = [entry for entry in plain if entry.name != main]
    tricks = {
        "a bomb inside": archive([*plain, zero_bomb("media/x.bin", 300)]),
        "a bomb that is its body": archive([*rest, zero_bomb(main, 300)]),
        "a bomb that says it is small": archive([*rest, Entry(main, packed_run(300), 8, size=len(body))]),
        "a bomb behind its body": archive(
            [*rest, Entry(main, _then_zeros(body), 8, size=len(body), crc=zlib.crc32(body))]
        ),
        "many small bombs": archive([*plain, *(zero_bomb(f"media/{n}.xml", 5) for n in range(60))]),
        "six thousand parts": archive([*plain, *(Entry(f"media/{n}.xml") for n in range(6000))]),
        "entries over each other": archive([*plain, *(Entry(f"x{n}.xml", offset=0, size=0) for n in range(50))]),
        "a size that lies": archive([*rest, Entry(main, deflated(body), 8, size=len(body) + 2**31)]),
        "a size below nothing": archive([*rest, Entry(main, body, size=0xFFFFFFFF, packed=0xFFFFFFFF)]),
        "an offset outside": archive([*rest, Entry(main, body, offset=0xFFFFFFF0)]),
        "a wrong sum": archive([*rest, Entry(main, body, crc=1)]),
        "a locked part": archive([*rest, Entry(main, body, flags=0x801)]),
        "lzma": archive([*rest, Entry(main, b"\x09\x14\x05\x00\x5d" + b"\xff" * 100, 14, size=900)]),
        "bzip2": archive([*rest, Entry(main, BZIP2, 12, size=len(body))]),
        "an unknown method": archive([*rest, Entry(main, body, 99)]),
        "a count that lies": archive(plain, count=65535),
        "parts twice": archive([*plain, *plain]),
        "a name that climbs": archive([*plain, Entry("../../hostile-escape.xml", b"<x/>")]),
        "no body": archive(rest),
        "zip64 without end": archive(
            [*rest, Entry(main, body, extra=b"\x01\x00\x10\x00" + b"\xff" * 16, size=2**32 - 1)]
        ),
    }
    whole = {"a count that lies", "parts twice", "a name that climbs"}
    bombs = {"bzip2", "a bomb inside", "a bomb that is its body", "a bomb behind its body", "many small bombs"}
    for name, content in tricks.items():
        ends: End = "read" if name in whole else "any" if name == "a bomb behind its body" else "refused"
        yield Hostile(f"{name}.{kind}", content, ends, bomb=name in bombs)
    yield Hostile(f"old office file.{kind}", OLE, "refused", "an old or encrypted Office file")


def _then_zeros(body: bytes) -> bytes:
    """What unpacks to the body first, as it should, and then does not stop."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(body) + packer.flush(zlib.Z_FULL_FLUSH) + packed_run(300)


def docx_files(bait: Bait) -> Iterator[Hostile]:
    """Word processor documents."""
    yield from archive_tricks("docx", "word/document.xml")
    root = f"<w:document {W}><w:body><w:p><w:r><w:t>…</w:t></w:r></w:p></w:body></w:document>"
    for name, xml in outside(bait, root, "words").items():
        yield Hostile(f"{name}.docx", office("docx", word__document_xml=xml), "refused", REACHES)
    styles = office_parts("docx")["word/styles.xml"].decode()
    loop = styles.replace("</w:styles>", '<w:style w:type="paragraph" w:styleId="A"><w:basedOn w:val="B"/></w:style>')
    loop += '<w:style w:type="paragraph" w:styleId="B"><w:basedOn w:val="A"/></w:style></w:styles>'

    def written(inner: str) -> bytes:
        return office("docx", word__document_xml=f"<w:document {W}><w:body>{inner}</w:body></w:document>")

    word = "<w:p><w:r><w:t>words</w:t></w:r></w:p>"
    nested = "<w:tbl><w:tr><w:tc>"
    closing = "</w:tc></w:tr></w:tbl>"
    rels = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{R}/officeDocument" Target="%s"/></Relationships>'
    )
    pages = {
        "styles in a circle": office("docx", word__styles_xml=loop),
        "tables in tables": written(nested * 3000 + word + closing * 3000),
        "boxes in boxes": written("<w:sdt><w:sdtContent>" * 3000 + word + "</w:sdtContent></w:sdt>" * 3000),
        "runs": written("<w:p>" + "<w:r><w:t>a</w:t></w:r>" * 8000 + "</w:p>"),
        "paragraphs": written(word * 4000),
        "spans beyond numbers": written(
            f'<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="{10**30}"/></w:tcPr>{word}</w:tc></w:tr></w:tbl>'
        ),
        "a span that is no number": written(
            f'<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="x"/></w:tcPr>{word}</w:tc></w:tr></w:tbl>'
        ),
        "a note of itself": written('<w:p><w:r><w:t>words</w:t><w:footnoteReference w:id="1"/></w:r></w:p>'),
        "fields without end": written('<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r></w:p>' * 2000 + word),
        "hidden orders": written("<w:p><w:r><w:t>wo\u200brds\u202e</w:t></w:r></w:p>"),
        "a link to a script": written(
            '<w:p><w:hyperlink w:anchor="javascript:alert(1)"><w:r><w:t>words</w:t></w:r></w:hyperlink></w:p>'
        ),
        "its body elsewhere": office("docx", _rels___rels=rels % bait.url),
        "its body above": office("docx", _rels___rels=rels % "../../../../etc/passwd"),
        "its body is itself": office("docx", _rels___rels=rels % "_rels/.rels"),
        "its body in two bytes": office("docx", word__document_xml=root.replace("…", "words").encode("utf-16")),
        "its body in utf-7": office(
            "docx", word__document_xml='<?xml version="1.0" encoding="utf-7"?>' + root.replace("…", "words")
        ),
        "deep xml": office("docx", word__document_xml="<a>" * 100_000),
        "attributes": office("docx", word__document_xml="<a " + " ".join(f'b{n}="x"' for n in range(20_000)) + "/>"),
        "no kinds": office("docx", types=b""),
    }
    for name, content in pages.items():
        yield Hostile(f"{name}.docx", content)
    yield Hostile("macros.docx", office("docx", word__vbaProject_bin=OLE), "read", "leaves at nine")


def pptx_files(bait: Bait) -> Iterator[Hostile]:
    """Presentations."""
    yield from archive_tricks("pptx", "ppt/presentation.xml")
    slide = office_parts("pptx")["ppt/slides/slide1.xml"].decode()
    head, _, _ = slide.partition("<p:sp>")
    tail = slide[slide.rindex("</p:sp>") + len("</p:sp>") :]
    for name, xml in outside(bait, "<x>…</x>").items():
        yield Hostile(f"{name}.pptx", office("pptx", ppt__slides__slide1_xml=xml), "refused", REACHES)
    group = "<p:grpSp><p:nvGrpSpPr><p:cNvPr id='1' name=''/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>"
    shape = slide[slide.index("<p:sp>") : slide.rindex("</p:sp>") + len("</p:sp>")]
    shows = {
        "groups in groups": head + group * 2000 + shape + "</p:grpSp>" * 2000 + tail,
        "shapes": head + shape * 3000 + tail,
        "a slide that is none": "<x/>",
        "no shapes": head + tail,
        "deep xml": "<a>" * 100_000,
        "huge levels": slide.replace("<a:p>", f'<a:p><a:pPr lvl="{10**12}"/>'),
    }
    for name, xml in shows.items():
        yield Hostile(f"{name}.pptx", office("pptx", ppt__slides__slide1_xml=xml))
    listed = office_parts("pptx")["ppt/presentation.xml"].decode()
    again = listed.replace("</p:sldIdLst>", '<p:sldId id="256" r:id="rId7"/>' * 6000 + "</p:sldIdLst>")
    yield Hostile("one slide six thousand times.pptx", office("pptx", ppt__presentation_xml=again))
    rels = office_parts("pptx")["ppt/slides/_rels/slide1.xml.rels"].decode()
    loop = rels.replace("../slideLayouts/slideLayout2.xml", "slide1.xml")
    files = {**office_parts("pptx"), "ppt/slides/_rels/slide1.xml.rels": loop.encode()}
    yield Hostile("a slide that is its own layout.pptx", zipped(files))
