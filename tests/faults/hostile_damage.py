"""Good files of every kind, then cut off, with bits flipped, and under names that are not theirs."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from functools import cache

from tests.faults.hostile_archives import book
from tests.faults.hostile_file import End, Hostile, zipped
from tests.faults.hostile_mail import attached
from tests.faults.hostile_office import office, office_parts
from tests.faults.hostile_pdf import drawn
from tests.faults.hostile_pictures import drawn_picture

WORDS = "The ferry leaves at nine in the morning. "
XML_PARTS = {
    "docx": ("word/document.xml", "word/styles.xml", "word/numbering.xml", "_rels/.rels"),
    "pptx": ("ppt/presentation.xml", "ppt/slides/slide1.xml", "ppt/slides/_rels/slide1.xml.rels"),
    "xlsx": ("xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/styles.xml", "xl/_rels/workbook.xml.rels"),
    "odt": ("content.xml",),
}
_VALUE = re.compile(rb'(?<!xmlns)(?<!xmlns:\w)="([^"]{1,80})"')
_MISSTATEMENTS = (
    b"", b"-1", b"0", b"99999999999999999999", b"1e999", b"NaN", b"../../etc/passwd", b"file:///etc/passwd",
    b"&#x202E;", b"A1:XFD1048576", b"x" * 5000, b"&amp;" * 50,
)  # fmt: skip


@cache
def samples() -> Mapping[str, bytes]:
    """A good file of every kind, by suffix."""
    page = f"# Ferry\n\n{WORDS * 9}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\n```\n"
    mail = attached(b"note.txt", WORDS.encode())
    return {
        "txt": (WORDS * 20).encode(),
        "md": page.encode(),
        "mdx": f"import A from 'a';\n\n<A title='Ferry'>{WORDS}</A>\n\n{page}".encode(),
        "html": f"<html><head><title>Ferry</title></head><body><h1>Ferry</h1><p>{WORDS}</p></body></html>".encode(),
        "pdf": drawn(30, 2),
        "docx": office("docx"),
        "pptx": office("pptx"),
        "xlsx": office("xlsx"),
        "odt": office("odt"),
        "csv": b"port,leaves\n" + b"Sula,nine\n" * 40,
        "epub": book(),
        "json": b'{"title": "Ferry", "text": "The ferry leaves.", "stops": [{"name": "Sula"}, {"name": "Rork"}]}',
        "jsonl": b'{"title": "Ferry", "text": "The ferry leaves."}\n' * 9,
        "eml": mail,
        "mbox": b"From anna@ferry.example Mon Nov  2 09:00:00 2026\n" + mail + b"\n",
        "zip": zipped({"a.txt": WORDS * 9, "b/c.md": page}),
        "png": drawn_picture("PNG"),
        "jpg": drawn_picture("JPEG"),
        "tif": drawn_picture("TIFF"),
        "py": b"class Ferry:\n    def leave(self) -> None:\n        return None\n" * 9,
        "js": b"export class Ferry { leave() { return `at ${9}`; } }\n" * 9,
        "ts": b"export const leave = (at: number): string => `at ${at}`;\n" * 9,
        "go": b'package ferry\n\nfunc (f *Ferry) Leave() string { return "nine" }\n' * 9,
        "rs": b"impl Ferry { fn leave(&self) -> u8 { 9 } }\n" * 9,
        "java": b"class Ferry { int leave() { return 9; } }\n" * 9,
    }


PACKED = ("pdf", "docx", "pptx", "xlsx", "odt", "epub", "zip", "eml", "mbox", "png", "jpg", "tif")


def damaged_files() -> Iterator[Hostile]:
    """Every kind cut off at many places, and with a few bits the other way round."""
    for suffix, content in samples().items():
        for share in (2, 20, 50, 80, 98) if suffix in PACKED else (7, 60):
            yield Hostile(f"cut at {share} percent.{suffix}", content[: len(content) * share // 100 or 1])
        for seed in range(4 if suffix in PACKED else 1):
            yield Hostile(f"flipped {seed}.{suffix}", flipped(content, random.Random(f"{suffix} {seed}")))
    for suffix, parts in XML_PARTS.items():
        for seed, part in enumerate(parts * 3):
            broken = misstated(office_parts(suffix)[part], random.Random(f"{part} {seed}"))
            yield Hostile(f"misstated {seed}.{suffix}", zipped({**office_parts(suffix), part: broken}))


def flipped(content: bytes, chance: random.Random, bits: int = 12) -> bytes:
    """The content with some bits the other way round."""
    changed = bytearray(content)
    for _ in range(bits):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def misstated(xml: bytes, chance: random.Random) -> bytes:
    """Well-formed XML in which a few attributes say something else."""
    places = [found.span(1) for found in _VALUE.finditer(xml)]
    for start, end in sorted(chance.sample(places, min(3, len(places))), reverse=True):
        xml = xml[:start] + chance.choice(_MISSTATEMENTS) + xml[end:]
    return xml


def misnamed_files() -> Iterator[Hostile]:
    """What is in a file decides, and not what it is called."""
    good = samples()
    swapped: dict[str, tuple[bytes, End, str]] = {
        "a page called a document.docx": (good["html"], "refused", "is not a DOCX: it contains a web page"),
        "text called a page.pdf": (good["txt"], "refused", "is not a PDF: it contains text"),
        "a page called a picture.png": (good["html"], "refused", "is not a picture"),
        "a document called a book.epub": (good["docx"], "read", "leaves at nine"),
        "a book called a workbook.xlsx": (good["epub"], "read", "leaves at nine"),
        "a document called an archive.zip": (good["docx"], "read", "leaves at nine"),
        "a workbook called text.txt": (good["xlsx"], "read", "north"),
        "a document called a mail.eml": (good["docx"], "read", "leaves at nine"),
        "an archive called a document.docx": (good["zip"], "refused", ""),
        "a mail called a table.csv": (good["eml"], "read", "leaves at nine"),
        "code called a page.md": (good["py"], "read", "class Ferry"),
        "a program.txt": (b"MZ" + bytes(200), "refused", ""),
        "another program.md": (b"\x7fELF" + bytes(200), "refused", ""),
        "a database.csv": (b"SQLite format 3\x00" + bytes(200), "refused", ""),
        "a song.txt": (b"ID3\x03\x00" + bytes(200), "refused", ""),
        "a font.html": (b"\x00\x01\x00\x00\x00\x0f" + bytes(200), "refused", ""),
        "rich text.docx": (b"{\\rtf1 words}", "refused", "is not a DOCX"),
        "of no kind": (good["txt"], "read", "leaves at nine"),
        "a page of no kind": (good["html"], "read", "leaves at nine"),
        "of a kind that nobody knows.xyz": (good["txt"], "read", "leaves at nine"),
        "IN CAPITALS.PDF": (good["pdf"], "read", "leaves at"),
        "with two endings.pdf.txt": (good["pdf"], "any", ""),
        ".txt": (good["txt"], "read", "leaves at nine"),
        "../../hostile-escape up.txt": (good["txt"], "read", "leaves at nine"),
        "/tmp/hostile-escape rooted.txt": (good["txt"], "read", "leaves at nine"),
        "nul \x00 and lines \n in a name.txt": (b"", "refused", "is empty"),
        "a half \ud800 in a name.txt": (b"", "refused", "is empty"),
        "x" * 5000 + ".txt": (b"", "refused", "is empty"),
    }
    for name, (content, ends, says) in swapped.items():
        yield Hostile(name, content, ends, says)
