"""Hostile PDFs, written object by object."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator

from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas
from tests.faults.hostile_file import MEGABYTE, Bait, Hostile, packed_run, zlib_zeros

FONT = "<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
CATALOG = "<</Type/Catalog/Pages 2 0 R>>"
SAYS = "BT /F 12 Tf 72 700 Td (The ferry leaves at nine.) Tj ET"


def stream(content: bytes | str, entries: str = "", length: int | None = None) -> bytes:
    """A stream object; its length may lie."""
    data = content.encode("latin-1") if isinstance(content, str) else content
    shown = len(data) if length is None else length
    return f"<</Length {shown} {entries}>>stream\n".encode() + data + b"\nendstream"


def pdf(objects: dict[int, str | bytes], trailer: str = "", head: bytes = b"%PDF-1.7\n") -> bytes:
    """A file of these objects, with a table of where they stand."""
    out = bytearray(head)
    places = {}
    for number, content in objects.items():
        places[number] = len(out)
        out += f"{number} 0 obj".encode()
        out += content if isinstance(content, bytes) else content.encode("latin-1")
        out += b"\nendobj\n"
    start = len(out)
    out += b"xref\n"
    for number, place in places.items():
        out += f"{number} 1\n{place:010} 00000 n \n".encode()
    out += f"trailer<</Root 1 0 R/Size 99 {trailer}>>\nstartxref\n{start}\n%%EOF".encode()
    return bytes(out)


def page(content: bytes | str = SAYS, *, resources: str = FONT, box: str = "0 0 612 792", **more: str | bytes) -> bytes:
    """One page that shows this; further objects by number, `catalog` and `extra` into the two dictionaries."""
    entries = {key: str(more.pop(key, "")) for key in ("catalog", "extra", "filter")}
    objects: dict[int, str | bytes] = {
        1: f"<</Type/Catalog/Pages 2 0 R {entries['catalog']}>>",
        2: "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        3: f"<</Type/Page/Parent 2 0 R/MediaBox[{box}]/Resources{resources}/Contents 4 0 R {entries['extra']}>>",
        4: stream(content, entries["filter"]),
    }
    return pdf({**objects, **{int(key.strip("_")): value for key, value in more.items()}})


def _zipped(data: bytes) -> bytes:
    return zlib.compress(data, 9)


def drawn(lines: int = 5, pages: int = 1, **options: object) -> bytes:
    """What a program would write."""
    file = io.BytesIO()
    canvas = Canvas(file, invariant=1, **options)
    for number in range(pages):
        for line in range(lines):
            canvas.drawString(72, 720 - 14 * line, f"The ferry {number} leaves at {line} in the morning.")
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def many_pages(count: int) -> bytes:
    """Pages that share what they show."""
    kids = " ".join(f"{number + 9} 0 R" for number in range(count))
    shared: dict[int, str | bytes] = {
        1: CATALOG,
        2: f"<</Type/Pages/Kids[{kids}]/Count {count}/MediaBox[0 0 612 792]/Resources{FONT}>>",
        4: stream(SAYS),
    }
    return pdf({**shared, **{number + 9: "<</Type/Page/Parent 2 0 R/Contents 4 0 R>>" for number in range(count)}})


def circles() -> Iterator[tuple[str, bytes]]:
    """Objects that hold themselves."""
    form = "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F 5 0 R>>>>"
    yield "pages of themselves", pdf({1: CATALOG, 2: "<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9>>"})
    yield "pages of each other", pdf({
        1: CATALOG, 2: "<</Type/Pages/Kids[3 0 R]/Count 9>>", 3: "<</Type/Pages/Kids[2 0 R]/Count 9>>",
    })  # fmt: skip
    yield "a page that is its parent", pdf({1: CATALOG, 2: "<</Type/Page/Parent 2 0 R/Kids[2 0 R]/Count 1>>"})
    yield "a catalog of itself", pdf({1: "<</Type/Catalog/Pages 1 0 R/Kids[1 0 R]/Count 1>>"})
    yield (
        "a form of itself",
        page("/F Do " + SAYS, resources="<</XObject<</F 5 0 R>>>>", _5=stream("/F Do /F Do", form)),
    )
    yield "a length of itself", page(_4=b"<</Length 4 0 R>>stream\nBT ET\nendstream")
    yield "a filter of itself", page(SAYS, filter="/Filter 4 0 R")
    yield (
        "a font of itself",
        page(resources="<</Font<</F 5 0 R>>>>", _5="<</Type/Font/Subtype/Type0/DescendantFonts[5 0 R]/BaseFont/X>>"),
    )
    glyph = (
        "<</Type/Font/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[1 0 0 1 0 0]/CharProcs<</a 6 0 R>>"
        "/Encoding<</Differences[84/a]>>/FirstChar 84/LastChar 84/Widths[9]/Resources<</Font<</F 5 0 R>>>>>>"
    )
    yield "letters of themselves", page(resources="<</Font<</F 5 0 R>>>>", _5=glyph, _6=stream(SAYS))
    outline = "/Outlines<</First 5 0 R/Last 5 0 R/Count 9>>"
    yield ("an outline in a circle", page(catalog=outline, _5="<</Title(x)/Next 5 0 R/First 5 0 R/Parent 5 0 R>>"))
    yield "names in a circle", page(catalog="/Names<</Dests 5 0 R>>", _5="<</Kids[5 0 R]/Limits[(a)(z)]>>")
    yield "a table of itself", pdf({1: CATALOG, 2: "<</Type/Pages/Kids[]/Count 0>>"}, trailer="/Prev 9")
    yield ("articles in a circle", page(catalog="/Threads[5 0 R]", _5="<</F 6 0 R>>", _6="<</N 6 0 R/V 6 0 R>>"))
    mask = "/ExtGState<</G<</SMask<</S/Alpha/G 5 0 R>>>>>>"
    yield (
        "a mask of itself",
        page(
            "/G gs " + SAYS,
            resources=f"<<{mask}>>",
            _5=stream("/G gs 0 0 9 9 re f", form.replace("/XObject<<", mask + "/XObject<<")),
        ),
    )
    pattern = (
        "/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 1 1]/XStep .001/YStep .001"
        "/Resources<</Pattern<</P 5 0 R>>>>"
    )
    yield (
        "a pattern of itself",
        page(
            "/Pattern cs /P scn 0 0 612 792 re f",
            resources="<</Pattern<</P 5 0 R>>>>",
            _5=stream("/Pattern cs /P scn 0 0 9 9 re f", pattern),
        ),
    )


def bombs() -> Iterator[tuple[str, bytes]]:
    """Streams that are larger than they look."""
    zeros = zlib_zeros(300)
    packer = zlib.compressobj(9)
    spaces = packer.compress(SAYS.encode()) + packer.flush(zlib.Z_FULL_FLUSH) + packed_run(200, b" ")
    yield "a stream of zeros", page(zeros, filter="/Filter/FlateDecode")
    yield "a stream of spaces", page(spaces, filter="/Filter/FlateDecode")
    twice = _zipped(_zipped(zlib_zeros(300)))
    yield "a stream packed three times", page(twice, filter="/Filter[/FlateDecode/FlateDecode/FlateDecode]")
    yield "a stream of many filters", page(b"7" * 1000, filter=f"/Filter[{'/ASCIIHexDecode' * 500}]")
    yield "run lengths", page(b"\x81 " * 300_000 + b"\x80", filter="/Filter/RunLengthDecode")
    yield (
        "a predictor beyond numbers",
        page(
            _zipped(bytes(MEGABYTE)),
            filter="/Filter/FlateDecode/DecodeParms<</Predictor 15/Columns 2147483647/Colors 99>>",
        ),
    )
    for kind in ("FlateDecode", "JPXDecode", "JBIG2Decode"):
        size = "/Width 100000/Height 100000/BitsPerComponent 8/ColorSpace/DeviceRGB"
        picture = f"/Type/XObject/Subtype/Image{size}/Filter/{kind}"
        data = zeros[:100_000] if kind == "FlateDecode" else b"\x00" * 1000
        yield (
            f"a huge picture of {kind}",
            page("q 612 0 0 792 0 0 cm /I Do Q", resources="<</XObject<</I 5 0 R>>>>", _5=stream(data, picture)),
        )


def loads() -> Iterator[tuple[str, bytes]]:
    """Pages with too much on them."""
    words = " ".join(f"1 0 0 1 {n % 600} {n // 600 % 790} Tm (w{n}) Tj" for n in range(8000))
    yield "eight thousand words", page(f"BT /F 1 Tf {words} ET")
    far = " ".join(
        f"1 0 0 1 {x} {700 - 14 * n} Tm (far away words here) Tj"
        for n, x in enumerate((0, 9e8, 5e8, 1e8, 7e8, 3e8, 2e8))
    )
    yield "words far apart", page(f"BT /F 12 Tf {far} ET")
    for size in ("0", "1e30", "-12"):
        yield f"letters of size {size}", page(f"BT /F {size} Tf 72 700 Td (The ferry leaves at nine.) Tj ET")
    yield (
        "letters turned every way",
        page(
            "BT /F 9 Tf "
            + " ".join(
                f"{n % 3 - 1} {n % 5 - 2} {n % 7 - 3} 1 {n % 600} {n % 700} Tm (turned{n}) Tj" for n in range(3000)
            )
            + " ET"
        ),
    )
    yield "saved and never restored", page("q " * 300_000 + SAYS)
    yield "restored and never saved", page("Q " * 300_000 + SAYS)
    yield "brackets", page("[" * 100_000 + SAYS)
    yield "dictionaries", page("<<" * 100_000 + SAYS)
    yield "a text that never ends", page("BT /F 12 Tf 72 700 Td (" + "(" * 200_000)
    yield "operands", page("1 " * 500_000 + SAYS)
    grid = " ".join(f"{x} 0 m {x} 700 l S 0 {x} m 600 {x} l S" for x in range(0, 600, 3))
    yield "a grid of forty thousand cells", page(f"{grid} {SAYS}")
    lines = " ".join(f"{n % 600} {n % 790} {n % 90} {n % 70} re S" for n in range(1900))
    yield "boxes over boxes", page(f"{lines} {SAYS}")
    yield (
        "a hundred thousand lines",
        page(" ".join(f"0 {n % 790} m 600 {n % 790} l S" for n in range(100_000)) + SAYS),
    )
    for box in ("0 0 0 0", "0 0 1e30 1e30", "0 0 -612 -792", "0 0 99999999 99999999", "nan 0 x 792", ""):
        yield f"a page of {box or 'no size'}", page(box=box)
    for box in ("0 0 0 0", "0 0 1e30 1e30"):
        yield f"a picture of {box}", page("0 0 300 300 re f", box=box)
    yield "a page blown up", page(extra="/UserUnit 1e9")
    yield "annotations", page(extra="/Annots[" + "<</Type/Annot/Subtype/Link/Rect[0 0 9 9]>>" * 20_000 + "]")


def pdf_files(bait: Bait) -> Iterator[Hostile]:
    """All of them, and those that only say or want strange things."""
    for name, content in circles():
        yield Hostile(f"{name}.pdf", content, endless=name == "a pattern of itself")
    for name, content in bombs():
        yield Hostile(f"{name}.pdf", content, bomb=True)
    for name, content in loads():
        yield Hostile(f"{name}.pdf", content)
    run = f"/OpenAction<</S/Launch/F(/bin/sh)/Win<</F(cmd.exe)>>>>/AA<</WC<</S/URI/URI({bait.url})>>>>"
    wants = {
        "a script": page(catalog="/OpenAction<</S/JavaScript/JS(app.launchURL\\('http://x'\\))>>"),
        "a program to start": page(catalog=run),
        "a form to send": page(catalog=f"/AcroForm<</Fields[]/XFA({bait.url})>>"),
        "an address for its text": page(_4=stream(SAYS, f"/F<</FS/URL/F({bait.url})>>")),
        "a file for its text": page(_4=stream(SAYS, f"/F({bait.secret_file})")),
        "a file inside": page(
            catalog="/Names<</EmbeddedFiles<</Names[(../hostile-escape)5 0 R]>>>>",
            _5="<</Type/Filespec/F(../hostile-escape)/EF<</F 6 0 R>>>>",
            _6=stream("escaped"),
        ),
    }
    for name, content in wants.items():
        yield Hostile(f"{name}.pdf", content)
    lies = {
        "a length below nothing": page(_4=stream(SAYS, length=-5)),
        "a length beyond numbers": page(_4=stream(SAYS, length=2**63)),
        "an object of a huge number": pdf({1: CATALOG, 2: "<</Kids[2147483647 0 R]/Count 1>>"}),
        "a count beyond numbers": pdf({1: CATALOG, 2: "<</Type/Pages/Kids[]/Count 99999999999>>"}),
        "a count below nothing": pdf({1: CATALOG, 2: "<</Type/Pages/Kids[]/Count -9>>"}),
        "no table": page().partition(b"xref")[0],
        "a table far away": page().replace(b"startxref\n", b"startxref\n9999999999"),
        "only its first line": b"%PDF-1.7\n",
        "only comments": b"%PDF-1.7\n" + b"%x\n" * 100_000,
        "junk before it": b"x" * 900 + page(),
        "a page of HTML before it": b"<html><p>words" + page(),
        "deep brackets": b"%PDF-1.7\n1 0 obj" + b"[" * 200_000,
        "deep dictionaries": b"%PDF-1.7\n1 0 obj" + b"<</A" * 100_000,
        "a thousand endings": page() + b"\nstartxref\n9\n%%EOF" * 1000,
        "a title with orders": drawn().replace(b"(untitled)", b"(\xfe\xff\x20\x2e\x00t\x20\x0b)"),
        "a day that never was": drawn().replace(b"D:2000", b"D:9999"),
    }  # fmt: skip
    for name, content in lies.items():
        yield Hostile(f"{name}.pdf", content)
    locked = StandardEncryption("secret", canPrint=0)
    yield Hostile("locked.pdf", drawn(encrypt=locked), "refused", "needs a password")
    strange = drawn().replace(b"/Root", b"/Encrypt<</Filter/Mine/V 99>>/Root")
    yield Hostile("locked in a strange way.pdf", strange, "refused")
    yield Hostile("ten thousand pages.pdf", many_pages(10_000), "refused", "10,000 pages; the limit is 5,000")
    meaning = "1 begincodespacerange <00><FF> endcodespacerange 1 beginbfrange <00><FF><202E> endbfrange"
    font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>"
    other = page(resources="<</Font<</F 5 0 R>>>>", _5=font, _6=stream(f"/CIDInit {meaning} endcmap"))
    yield Hostile("letters that mean other ones.pdf", other)
