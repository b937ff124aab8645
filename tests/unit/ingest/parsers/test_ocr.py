from __future__ import annotations

import io
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageOps
from pypdfium2 import PdfiumError
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader

from ragstone.core.errors import EmptyDocument, ParseError, ParserLimit, UnsupportedFormat
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import SCANS_PER_WINDOW, ParseOptions, broken_rules
from ragstone.ingest.parsers.images import ocr
from ragstone.ingest.parsers.images.image import parse_image
from ragstone.ingest.parsers.pdf import parser as pdf_parser
from ragstone.ingest.parsers.pdf.layout import TextSpan
from ragstone.ingest.parsers.pdf.parser import parse_pdf
from ragstone.ingest.parsers.sandbox.pool import ParserPool

MakePicture = Callable[..., Image.Image]
MakeScan = Callable[..., bytes]

FERRY = ["The ferry leaves the pier at nine", "and returns at noon."]


@pytest.fixture(autouse=True)
def _own_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever is installed on this machine: the engine of the wheels, unless a test chooses another.

    Pages are drawn at a third of the size: these words can still be read, in a fraction of the time.
    """
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(ocr, "LONGEST_SIDE", 640)
    ocr._engine.cache_clear()
    yield
    ocr._engine.cache_clear()


def png(picture: Image.Image, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, **{"format": "PNG", **options})
    return buffer.getvalue()


def black_png(side: int) -> bytes:
    """A square of black pixels, made a row at a time: Pillow would take a byte for each of them."""
    packer = zlib.compressobj()
    rows = b"".join([*(packer.compress(bytes(1 + side // 8)) for _ in range(side)), packer.flush()])

    def part(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = side.to_bytes(4, "big") * 2 + bytes([1, 0, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", rows) + part(b"IEND", b"")


@pytest.mark.req("R-EXT-03")
async def test_a_scanned_page_is_read_inside_the_child_with_its_limits(make_scan: MakeScan) -> None:
    pool = ParserPool()
    try:
        parsed = await pool.parse(make_scan(FERRY), "scan.pdf")
    finally:
        await pool.close()
    assert parsed.text == " ".join(FERRY)
    assert [(block.kind, block.page) for block in parsed.blocks] == [("paragraph", 1)]
    assert parsed.warnings == ("page 1 was read by OCR",)


def test_only_pages_without_a_text_layer_are_read_by_ocr(
    make_pdf: Callable[..., bytes], make_picture: MakePicture
) -> None:
    # As high as a page is, or it would be drawn out of shape.
    picture = ImageReader(make_picture(["", "", "Words of the picture", *[""] * 21]))

    def draw(page: Any) -> None:
        page.drawString(72, 700, "A page with a text layer, long enough to be one.")
        page.showPage()
        page.drawImage(picture, 0, 0, *A4)
        page.drawString(72, 20, "p. 2")
        page.showPage()

    parsed = parse_pdf(make_pdf(draw), "a.pdf")
    assert parsed.warnings == ("page 2 was read by OCR",)
    assert parsed.text.startswith("A page with a text layer, long enough to be one.\n\nWords of the picture")


def test_a_text_layer_of_nothing_but_lost_characters_is_read_by_ocr(
    make_pdf: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(page: Any) -> list[tuple[int, TextSpan]]:
        return [(0, TextSpan("\ue001\ue002\ufffd" * 40, 72, 200, 700, 712, 12))]

    monkeypatch.setattr(pdf_parser, "words_of", lost)
    content = make_pdf(lambda page: [page.setFont("Helvetica", 24), page.drawString(72, 700, "Seen by people")])
    assert parse_pdf(content, "a.pdf").text == "Seen by people"


@pytest.mark.req("R-EXT-03", "R-REL-06")
def test_a_page_whose_text_cannot_be_taken_out_is_read_by_ocr(
    make_scan: MakeScan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(page: Any) -> list[tuple[int, TextSpan]]:
        raise PdfiumError("no text page")

    monkeypatch.setattr(pdf_parser, "words_of", fail)
    assert parse_pdf(make_scan(FERRY), "scan.pdf").text == " ".join(FERRY)


def test_a_window_ends_early_when_its_pages_need_ocr(make_scan: MakeScan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "read_image", lambda image: [TextSpan("Read", 0, 50, 100, 112, 12)])
    content = make_scan(*[FERRY] * (SCANS_PER_WINDOW + 2))
    parsed = parse_pdf(content, "a.pdf", ParseOptions(window=50))
    assert [block.page for block in parsed.blocks] == list(range(1, SCANS_PER_WINDOW + 1))
    assert parsed.next_page == SCANS_PER_WINDOW + 1
    rest = parse_pdf(content, "a.pdf", ParseOptions(window=50, first_page=SCANS_PER_WINDOW + 1))
    assert ([block.page for block in rest.blocks], rest.next_page) == ([5, 6], None)
    assert len(parse_pdf(content, "a.pdf").blocks) == SCANS_PER_WINDOW + 2


@pytest.mark.req("R-EXT-04")
def test_when_ocr_fails_too_the_reason_is_said(make_scan: MakeScan, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(image: Image.Image) -> list[TextSpan]:
        raise ocr.OcrFailed("the engine broke", hint="repair it")

    monkeypatch.setattr(ocr, "read_image", fail)
    with pytest.raises(ParseError, match=r"scan\.pdf could not be read: it has no text layer, and the engine broke"):
        parse_pdf(make_scan(FERRY), "scan.pdf")
    with pytest.raises(ParseError, match=r"note\.png could not be read: the engine broke"):
        parse_image(png(Image.new("RGB", (50, 50))), "note.png")


@pytest.mark.req("R-EXT-04")
def test_a_scan_without_words_is_an_empty_document(make_scan: MakeScan) -> None:
    with pytest.raises(EmptyDocument, match=r"scan\.pdf") as caught:
        parse_pdf(make_scan([]), "scan.pdf")
    assert "OCR found no words" in caught.value.hint


def test_without_an_engine_scans_and_pictures_say_what_to_install(
    make_scan: MakeScan, make_pdf: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "find_spec", lambda _: None)
    with pytest.raises(EmptyDocument) as empty:
        parse_pdf(make_scan(FERRY), "scan.pdf")
    with pytest.raises(UnsupportedFormat, match=r"note\.png is a picture") as unsupported:
        parse(png(Image.new("RGB", (50, 50))), "note.png")
    assert "pip install 'ragstone[ocr]'" in empty.value.hint
    assert "pip install 'ragstone[ocr]'" in unsupported.value.hint

    def draw(page: Any) -> None:
        page.drawString(72, 700, "A page with a text layer.")
        page.showPage()
        page.rect(10, 10, 200, 200)
        page.showPage()

    assert parse_pdf(make_pdf(draw), "a.pdf").warnings == (
        "pages that are pictures were not read: 2; to read pictures and scanned pages: pip install 'ragstone[ocr]'",
    )


def test_ocr_can_be_switched_off(make_scan: MakeScan) -> None:
    off = ParseOptions(ocr=False)
    with pytest.raises(EmptyDocument) as empty:
        parse_pdf(make_scan(FERRY), "scan.pdf", off)
    assert "extract.ocr" in empty.value.hint
    with pytest.raises(UnsupportedFormat, match=r"extract\.ocr is off"):
        parse(png(Image.new("RGB", (50, 50))), "note.png", off)


@pytest.mark.req("R-FUT-10")
def test_a_picture_is_read_whatever_its_form_and_name(make_picture: MakePicture) -> None:
    picture = make_picture(["Opening hours: nine to five"])
    turned = picture.rotate(90, expand=True)
    exif = Image.Exif()
    exif[0x0112] = 6
    black = Image.new("L", picture.size)
    clear = Image.merge("RGBA", (black, black, black, ImageOps.invert(picture.convert("L"))))
    for name, content, media_type in (
        ("a.png", png(picture), "image/png"),
        ("scan", png(picture.convert("1")), "image/png"),
        ("a.png", png(clear), "image/png"),
        ("a.jpg", png(turned, format="JPEG", exif=exif), "image/jpeg"),
    ):
        parsed = parse(content, name)
        assert (parsed.text, parsed.media_type) == ("Opening hours: nine to five", media_type)
        assert broken_rules(parsed) == []


def test_each_frame_of_a_tiff_is_a_page(make_picture: MakePicture) -> None:
    first, second = make_picture(["First page"]), make_picture(["Second page"])
    content = png(first, format="TIFF", save_all=True, append_images=[second])
    parsed = parse(content, "a.tif")
    assert [(block.page, parsed.text[block.start : block.end]) for block in parsed.blocks] == [
        (1, "First page"),
        (2, "Second page"),
    ]
    assert parsed.metadata == {"pages": 2}
    part = parse(content, "a.tif", ParseOptions(window=1, first_page=2))
    assert (part.text, part.next_page) == ("Second page", None)
    with pytest.raises(ParserLimit, match=r"a\.tif has 2 pages; the limit is 1"):
        parse(content, "a.tif", ParseOptions(pages=1))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: black_png(30_000), ParserLimit, "a.png has too many pixels"),
        (lambda: png(Image.new("RGB", (64, 64)))[:-40], ParseError, "a.png is a damaged picture"),
        (lambda: b"\x89PNG\r\n\x1a\n" + bytes(64), ParseError, "a.png is a damaged picture"),
        (lambda: png(Image.new("RGB", (3, 3), "white")), EmptyDocument, "no text was found in a.png"),
    ],
    ids=["bomb", "cut", "zeros", "tiny"],
)
def test_pictures_that_cannot_be_read(make: Callable[[], bytes], error: type[ParseError], message: str) -> None:
    with pytest.raises(error, match=message):
        parse(make(), "a.png")


HEADER = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"
ROWS = [
    "4\t1\t1\t1\t1\t0\t10\t20\t200\t30\t-1\t",
    '5\t1\t1\t1\t1\t1\t10\t20\t90\t30\t96.1\tThe "ferry"',
    "5\t1\t1\t1\t1\t2\t110\t22\t100\t30\t91.0\tleaves.",
    "5\t1\t1\t1\t2\t1\t10\t60\t90\t30\t12.0\tdirt",
]


@pytest.fixture
def tesseract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a program where tesseract would be."""

    def install(script: str) -> None:
        program = tmp_path / "tesseract"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(shutil, "which", lambda _: str(program))
        ocr._engine.cache_clear()

    return install


def test_tesseract_is_used_when_it_is_there(tesseract: Callable[[str], None], tmp_path: Path) -> None:
    (tmp_path / "answer.tsv").write_text("\n".join([HEADER, *ROWS]) + "\n")
    tesseract(f'echo "$@ $OMP_THREAD_LIMIT" > {tmp_path}/asked; cat > {tmp_path}/given; cat {tmp_path}/answer.tsv')
    lines = ocr.read_image(Image.new("RGB", (300, 100), "white"))
    assert lines == [TextSpan('The "ferry" leaves.', 10, 210, 48, 80, 32)]
    assert (tmp_path / "asked").read_text() == "stdin stdout --psm 3 tsv 1\n"
    with Image.open(tmp_path / "given") as given:
        assert given.size == (300, 100)


def test_a_tesseract_that_fails_says_why(tesseract: Callable[[str], None]) -> None:
    tesseract("cat > /dev/null; echo 'no language data' >&2; exit 1")
    with pytest.raises(ocr.OcrFailed, match="tesseract failed: no language data"):
        ocr.read_image(Image.new("RGB", (300, 100)))


def test_a_tesseract_that_hangs_is_ended(tesseract: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    tesseract("exec cat")
    monkeypatch.setattr(ocr, "_TESSERACT_SECONDS", 0.0)
    with pytest.raises(ocr.OcrFailed, match="tesseract took longer than"):
        ocr.read_image(Image.new("RGB", (300, 100)))
