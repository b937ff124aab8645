"""Pictures: PNG, JPEG, WebP, BMP and TIFF, read by OCR; each frame of a TIFF is a page."""

from __future__ import annotations

import io
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from ragstone.core.errors import ParseError, ParserLimit, UnsupportedFormat
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, SCANS_PER_WINDOW, Draft, ParseOptions
from ragstone.ingest.parsers.images import ocr
from ragstone.ingest.parsers.pdf.flow import add_pages
from ragstone.ingest.parsers.pdf.layout import LaidOutPage, scanned_page

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

_ICON = 40
"""Pixels: what is smaller on all sides has no room for words."""
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF")


def parse_image(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read the words in a picture."""
    if not options.ocr:
        raise UnsupportedFormat(f"{name} is a picture, and extract.ocr is off", hint="set extract.ocr to auto")
    if not ocr.is_installed():
        raise UnsupportedFormat(f"{name} is a picture: no OCR engine is installed", hint=ocr.NOT_INSTALLED)
    with _open(content, name) as image:
        # Other formats with several frames are films, or hold one picture in several sizes.
        total = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1
        options.check_pages(total, name)
        numbers = options.asked_pages(total)
        numbers = numbers[:SCANS_PER_WINDOW] if options.window else numbers
        pages = {number: _read_frame(image, number, name) for number in numbers}
        media_type = f"image/{(image.format or '').lower().replace('mpo', 'jpeg')}"
    next_page = numbers.stop if numbers.stop <= total else None
    draft = Draft(name)
    add_pages(draft, pages)
    parsed = draft.finish(
        media_type,
        metadata={"pages": total},
        unseen_hint="no text could be seen in it; scan it again, larger",
        may_be_empty=next_page is not None or options.first_page > 1,
    )
    return replace(parsed, next_page=next_page)


def _read_frame(image: ImageFile, number: int, name: str) -> LaidOutPage:
    try:
        image.seek(number - 1)
        if max(image.size) < _ICON:
            return scanned_page([], image.height)
        shown = _upright(image)
    except (OSError, ValueError, SyntaxError, EOFError) as problem:
        raise _damage_error(name) from problem
    try:
        return scanned_page(ocr.read_image(shown), shown.height)
    except ocr.OcrFailed as problem:
        raise ParseError(f"{name} could not be read: {problem}", hint=problem.hint) from problem


def _open(content: bytes, name: str) -> ImageFile:
    from PIL import Image, UnidentifiedImageError

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            return Image.open(io.BytesIO(content), formats=_FORMATS)
        except (Image.DecompressionBombWarning, Image.DecompressionBombError) as problem:
            raise ParserLimit(f"{name} has too many pixels", hint="save it smaller") from problem
        except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as problem:
            raise _damage_error(name) from problem


def _upright(image: ImageFile) -> Image:
    """Return the picture as a viewer shows it: turned as its camera says, on white paper, no larger than is of use."""
    from PIL import Image, ImageOps

    # JPEG can be unpacked at a part of its size; what is large is made small before it is copied.
    image.draft("RGB", (ocr.LONGEST_SIDE, ocr.LONGEST_SIDE))
    image.load()
    scale = min(1.0, ocr.LONGEST_SIDE / max(image.size))
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    small = image.convert("L") if image.mode == "1" else image
    shown = ImageOps.exif_transpose(small.resize(size, reducing_gap=2.0)).convert("RGBA")
    paper = Image.new("RGB", shown.size, "white")
    paper.paste(shown, mask=shown.getchannel("A"))
    return paper


def _damage_error(name: str) -> ParseError:
    return ParseError(f"{name} is a damaged picture", hint="open it in a viewer and save it again")
