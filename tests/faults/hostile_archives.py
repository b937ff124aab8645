"""Hostile books and ZIP archives."""

from __future__ import annotations

import gzip
import stat
from collections.abc import Iterator
from dataclasses import replace

from tests.faults.hostile_file import MEGABYTE, Bait, End, Entry, Hostile, archive, packed_run, zero_bomb, zipped
from tests.faults.hostile_office import LAUGHS

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="%s"/></rootfiles></container>'
)
CHAPTER = "<html><body><h1>Ferry</h1><p>The ferry leaves at nine.</p></body></html>"


def package(items: str = '<item id="c" href="c.xhtml"/>', spine: str = '<itemref idref="c"/>') -> str:
    """What a book says about itself."""
    return (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata/>'
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )


def book(**parts: str | bytes) -> bytes:
    """A small book with some parts replaced."""
    named = {
        "container": "META-INF/container.xml",
        "opf": "b.opf",
        "chapter": "c.xhtml",
        "rights": "META-INF/encryption.xml",
        "toc": "toc.xhtml",
    }
    whole = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER % "b.opf",
        "b.opf": package(),
        "c.xhtml": CHAPTER,
    }
    return zipped({**whole, **{named[name]: part for name, part in parts.items()}})


def epub_files(bait: Bait) -> Iterator[Hostile]:
    """Books that lead in circles, or out of themselves."""
    doctype = f'<!DOCTYPE x [<!ENTITY x SYSTEM "file://{bait.secret_file}">]>'
    nav = '<item id="c" href="c.xhtml"/><item id="n" href="toc.xhtml" properties="nav"/>'
    links = "<html><nav>" + '<a href="c.xhtml">Ferry</a>' * 50_000 + "</nav></html>"
    rights = '<encryption><CipherReference URI="c.xhtml"/></encryption>'
    refused = {
        "an entity in its list": (book(opf=doctype + package()), "holds a DTD"),
        "laughs in its list": (book(opf=f"{LAUGHS}]>{package()}"), "holds a DTD"),
        "an entity in its container": (book(container=doctype + CONTAINER % "b.opf"), "holds a DTD"),
        "a list above it": (book(container=CONTAINER % "../../../../etc/passwd"), "no package document"),
        "a list elsewhere": (book(container=CONTAINER % bait.url), "no package document"),
        "a list that is none": (book(opf="<nonsense"), "is not XML"),
        "deep xml": (book(opf="<a>" * 100_000), "is not XML"),
        "locked chapters": (book(rights=rights), "protected against copying"),
        "chapters above it": (book(opf=package('<item id="c" href="../../../../etc/passwd"/>')), "no text was found"),
        "chapters elsewhere": (book(opf=package(f'<item id="c" href="{bait.url}"/>')), "no text was found"),
        "chapters in percents": (
            book(opf=package('<item id="c" href="%2e%2e/%2e%2e/etc/passwd%00"/>')),
            "no text was found",
        ),
        "nothing to read": (book(opf=package("", "")), "no text was found"),
    }
    for name, (content, says) in refused.items():
        yield Hostile(f"{name}.epub", content, "refused", says)
    laughing = f"<!DOCTYPE html [{LAUGHS.partition('[')[2]}]><html><p>The ferry leaves &l11; at nine.</p></html>"
    read = {
        "the same chapter again": book(opf=package(spine='<itemref idref="c"/>' * 100_000)),
        "many names for a chapter": book(
            opf=package(
                "".join(f'<item id="{n}" href="./{"x/../" * (n % 9)}c.xhtml"/>' for n in range(20_000)),
                "".join(f'<itemref idref="{n}"/>' for n in range(20_000)),
            )
        ),
        "a list that is its own chapter": book(
            opf=package(
                '<item id="c" href="c.xhtml"/><item id="o" href="b.opf"/>', '<itemref idref="c"/><itemref idref="o"/>'
            )
        ),
        "a table of contents in a circle": book(opf=package(nav), toc=links),
        "an entity in a chapter": book(chapter=doctype + CHAPTER.replace("nine", "nine &x;")),
        "laughs in a chapter": book(chapter=laughing),
        "a title that ends itself": book(chapter=CHAPTER.replace("<body>", "<head><title/></head><body>")),
        "tags that end themselves": book(chapter=CHAPTER.replace("</body>", "<a " * 50_000 + "/></body>")),
        "deep chapters": book(chapter="<div>" * 50_000 + CHAPTER),
        "hidden orders": book(chapter=CHAPTER.replace("nine", "ni\u200bne")),
        "addresses outside": book(
            chapter=CHAPTER.replace("</p>", f'<img src="{bait.url}"/><link href="file://{bait.secret_file}"/></p>')
        ),
    }
    for name, content in read.items():
        yield Hostile(f"{name}.epub", content, "read", "leaves")
    bomb = [zero_bomb("c.xhtml", 300)]
    rest = {"META-INF/container.xml": CONTAINER % "b.opf", "b.opf": package()}
    plain = [Entry(name, part.encode()) for name, part in rest.items()]
    yield Hostile("a chapter that is a bomb.epub", archive([*plain, *bomb]), "refused", "unpack to", bomb=True)
    small = Entry("c.xhtml", packed_run(150), 8, size=len(CHAPTER))
    yield Hostile("a bomb that says it is a chapter.epub", archive([*plain, small]), "refused", bomb=True)


def zip_files() -> Iterator[Hostile]:
    """Archives of files: bombs, lies and names that lead out."""
    note = Entry("note.txt", b"The ferry leaves at nine.")
    kernel = packed_run(150)
    claims = Entry("0.txt", kernel, 8, size=150 * MEGABYTE, packed=len(kernel), crc=0)
    overlap = [claims, *(replace(claims, name=f"{n}.txt", data=b"") for n in range(1, 40))]
    same = [Entry(f"{n}.txt", offset=0, size=900) for n in range(500)]
    inner = archive([zero_bomb("inner.txt", 120)])
    two_deep = zipped({"one.zip": zipped({"two.zip": zipped({"deep.txt": "deep"}), "flat.txt": "flat words"})})
    matryoshka = zipped({"x.txt": "core"})
    for depth in range(40):
        matryoshka = zipped({f"{depth}.zip": matryoshka})
    bombs: dict[str, tuple[bytes, End, str]] = {
        "one huge member": (archive([note, zero_bomb("huge.txt", 90)]), "partly", "packed more than 200 times"),
        "a member beyond every limit": (archive([note, zero_bomb("huge.txt", 1100)]), "refused", "would unpack to"),
        "members over each other": (archive(overlap), "refused", "would unpack to"),
        "entries at one place": (
            archive([Entry("a.txt", b"x" * 900), *same]),
            "partly",
            "is damaged",
        ),
        "a bomb in an archive": (zipped({"note.txt": "words", "b.zip": inner}), "partly", "limits.file_mb allows 100"),
        "a small lie": (archive([Entry("lie.txt", packed_run(200), 8, size=1000)]), "refused", "is damaged"),
        "a book that is a bomb": (
            zipped({"b.docx": archive([Entry("word/document.xml", b"<x/>"), zero_bomb("m.bin", 90)])}),
            "refused",
            "unpack",
        ),
        "a mailbox that is a bomb": (archive([note, zero_bomb("all.mbox", 90)]), "partly", "packed more than 200"),
        "archives in archives": (two_deep, "partly", "two archives deep"),
        "forty archives deep": (matryoshka, "refused", "two archives deep"),
        "twenty thousand members": (archive(Entry(str(n), b"x") for n in range(20_000)), "refused", "archive_entries"),
    }  # fmt: skip
    for name, (content, ends, says) in bombs.items():
        yield Hostile(f"{name}.zip", content, ends, says, bomb=True)
    names: dict[str, str | bytes] = {
        "up": "../../hostile-escape.txt",
        "from the root": "/tmp/hostile-escape.txt",
        "of a drive": "C:\\hostile-escape.txt",
        "of a share": "\\\\server\\hostile-escape.txt",
        "with a nul": b"hostile-escape.txt\x00.md",
        "up inside": "a/../../hostile-escape.txt",
        "up the other way": "..\\..\\hostile-escape.txt",
    }
    for name, member in names.items():
        entries = [note, Entry(member, b"escaped")]
        yield Hostile(f"a name {name}.zip", archive(entries), "partly", "a name that leads out of it")
    others: dict[str, tuple[list[Entry], str]] = {
        "a link": ([Entry("link.txt", b"/etc/passwd", mode=stat.S_IFLNK | 0o777)], "which is a link"),
        "a device": ([Entry("device.txt", mode=stat.S_IFCHR | 0o666)], "no regular file"),
        "a locked member": ([Entry("locked.txt", b"x" * 40, flags=0x801)], "which is encrypted"),
        "lzma": ([Entry("x.txt", b"\x09\x14\x05\x00\x5d" + b"\xff" * 40, 14, size=99)], "a method that is not read"),
        "a member twice": ([Entry("note.txt", b"again")], "holds note.txt twice"),
        "a wrong sum": ([Entry("sum.txt", b"words", crc=7)], "is damaged"),
        "a member outside": ([Entry("far.txt", b"words", offset=0x7FFFFFFF)], "is damaged"),
        "sizes below nothing": ([Entry("less.txt", b"words", size=2**32 - 1, packed=2**32 - 1)], "would unpack to"),
        "sizes in 64 bits": ([Entry("more.txt", b"x", size=2**32 - 1, extra=b"\x01\x00\x08\x00" + b"\xff" * 8)], ""),
        "a page in it that is noise": ([Entry("noise.txt", bytes(range(256)))], "is not text"),
    }
    for name, (entries, says) in others.items():
        yield Hostile(f"{name}.zip", archive([note, *entries]), "any", says)
    odd = {
        "a comment with an end in it": archive([note], comment=b"PK\x05\x06" + bytes(18)),
        "junk before it": b"PK\x03\x04" + b"\xff" * 500 + archive([note]),
        "only its end": b"PK\x05\x06" + bytes(18),
        "a count that lies": archive([note], count=60_000),
        "names without end": archive([note, Entry("x" * 60_000 + ".txt", b"words")]),
        "names in no encoding": archive([note, Entry(b"\xff\xfe\xfd.txt", b"words", flags=0)]),
        "the day before the calendar": archive([note, Entry("day.txt", b"words", date=0)]),
        "only folders": archive([Entry("a/"), Entry("a/b/")]),
        "hidden names": archive([note, Entry("wo\u202ergs\u200b.txt", b"words")]),
        "only hidden files": archive([Entry(".hidden", b"x"), Entry("__MACOSX/x.txt", b"x")]),
    }
    for name, content in odd.items():
        yield Hostile(f"{name}.zip", content)
    squeezed = gzip.compress(bytes(30 * MEGABYTE), mtime=0)
    for suffix in ("gz", "txt", "docx"):
        yield Hostile(f"squeezed zeros.{suffix}", squeezed, "refused", bomb=True)
    yield Hostile("a tape.tar", b"note.txt".ljust(257, b"\x00") + b"ustar\x0000".ljust(255, b"\x00"), "refused")
