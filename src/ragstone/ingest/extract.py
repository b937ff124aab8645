"""EXTRACT: read the text of an item. A long document is read in slices, each kept until the document is done."""

from __future__ import annotations

import json
import mimetypes
import re
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from pathlib import PurePosixPath
from typing import Protocol

from ragstone.core.errors import NoTextSeen
from ragstone.core.types import Block, Item, Parsed
from ragstone.ingest.parsers.dispatch import KINDS, is_picture
from ragstone.ingest.parsers.draft import GAP, MAX_TITLE, Draft
from ragstone.ingest.parsers.options import ParseOptions

ParseFile = Callable[[bytes, str, ParseOptions], Awaitable[Parsed]]
OnPages = Callable[[int, int], None]
_HIDDEN = re.compile(r"(\d+) hidden characters were removed")
_NO_TEXT = "its pages may be pictures; this reads them: pip install 'ragstone[ocr]'"
WORDLESS = "wordless"
"""Part that marks a picture without words, so that OCR does not look for them again and again."""
SLICE_PAGES = 50
"""Pages that are read again at most after a worker died in a long document."""


class PartStore(Protocol):
    """Parts of one unfinished document."""

    async def load(self, part: str) -> bytes | None: ...

    async def save(self, part: str, data: bytes) -> None: ...


async def extract(
    item: Item, parse: ParseFile, options: ParseOptions, parts: PartStore, on_pages: OnPages = lambda _a, _b: None
) -> Parsed:
    """Return the whole text of an item. Raises `ParseError` if it cannot be a document."""
    if isinstance(item.content, str):
        return plain_text(item.content, item.uri, item.title)
    name = _name(item)
    if not is_picture(name):
        return await _read(item.content, name, parse, options, parts, on_pages)
    if await parts.load(WORDLESS) is not None:
        raise NoTextSeen(f"no text was found in {name}")
    try:
        return await _read(item.content, name, parse, options, parts, on_pages)
    except NoTextSeen:
        await parts.save(WORDLESS, b"")
        raise


async def _read(
    content: bytes, name: str, parse: ParseFile, options: ParseOptions, parts: PartStore, on_pages: OnPages
) -> Parsed:
    slices: list[Parsed] = []
    page: int | None = 1
    while page is not None:
        part = f"pages:{page}"
        kept = await parts.load(part) if slices or len(content) > 100_000 else None
        parsed = _unpack(kept) if kept else await _slice(content, name, parse, options, page)
        if not kept and (slices or parsed.next_page):
            await parts.save(part, _pack(parsed))
        slices.append(parsed)
        page = parsed.next_page
        total = parsed.metadata.get("pages", 0)
        if total:
            on_pages((page or total + 1) - 1, total)
    parsed = join_slices(slices)
    if not parsed.blocks:
        raise NoTextSeen(f"no text was found in {name}", hint=_NO_TEXT)
    return parsed


async def _slice(content: bytes, name: str, parse: ParseFile, options: ParseOptions, page: int) -> Parsed:
    return await parse(content, name, replace(options, first_page=page, window=SLICE_PAGES))


def join_slices(slices: list[Parsed]) -> Parsed:
    """Join consecutive slices into one document; title and metadata are those of the first."""
    first = slices[0]
    if len(slices) == 1:
        return replace(first, next_page=None)
    texts: list[str] = []
    blocks: list[Block] = []
    length = 0
    for part in slices:
        if not part.blocks:
            continue
        start = length + (len(GAP) if texts else 0)
        blocks += [replace(block, start=block.start + start, end=block.end + start) for block in part.blocks]
        texts.append(part.text)
        length = start + len(part.text)
    return replace(
        first,
        text=GAP.join(texts),
        blocks=tuple(blocks),
        title=next((part.title for part in slices if part.title), ""),
        warnings=_warnings(slices),
        attachments=tuple(attachment for part in slices for attachment in part.attachments),
        next_page=None,
    )


def _warnings(slices: list[Parsed]) -> tuple[str, ...]:
    """Return each warning once, with hidden characters counted over all slices."""
    said = [warning for part in slices for warning in part.warnings]
    hidden = sum(int(found[1]) for warning in said if (found := _HIDDEN.fullmatch(warning)))
    rest = dict.fromkeys(warning for warning in said if not _HIDDEN.fullmatch(warning))
    return (*rest, *([f"{hidden} hidden characters were removed"] if hidden else []))


def plain_text(text: str, name: str, title: str = "") -> Parsed:
    """Parse text that needs no parser: the title becomes a heading, blank lines separate paragraphs."""
    draft = Draft(name)
    if title:
        draft.add("heading", title, level=1, label=title)
    for paragraph in text.replace("\r\n", "\n").split("\n\n"):
        draft.add("paragraph", paragraph)
    return draft.finish("text/plain", title=title[:MAX_TITLE])


def _name(item: Item) -> str:
    """Return the name that selects a parser; a name without a known suffix gets that of the media type."""
    media_type = item.media_type.split(";")[0].strip().lower()
    named = PurePosixPath(item.uri).suffix.lower() in KINDS and media_type != MAIL
    if not media_type or named:
        return item.uri
    return item.uri + (_SUFFIXES.get(media_type) or mimetypes.guess_extension(media_type) or "")


MAIL = "message/rfc822"
"""Named by its media type: the uri of a mail ends like its Message-ID."""
_SUFFIXES = {MAIL: ".eml", "text/html": ".html", "application/xhtml+xml": ".html", "text/plain": ".txt"}


def _pack(parsed: Parsed) -> bytes:
    fields = {**asdict(replace(parsed, attachments=(), blocks=())), "blocks": [_row(block) for block in parsed.blocks]}
    return zlib.compress(json.dumps(fields).encode(), 1)


def _unpack(data: bytes) -> Parsed:
    fields = json.loads(zlib.decompress(data))
    fields["blocks"] = tuple(Block(*row) for row in fields["blocks"])
    fields["warnings"] = tuple(fields["warnings"])
    fields["attachments"] = ()
    return Parsed(**fields)


def _row(block: Block) -> list[str | int | None]:
    return [block.kind, block.start, block.end, block.level, block.label, block.page]
