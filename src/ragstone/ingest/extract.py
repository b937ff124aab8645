"""EXTRACT and NORMALIZE: read the text of an item, and bring its metadata under one set of names.

A long document is read in slices, each kept until the document is done. Of metadata, the source wins over the file,
since anyone may write anything into a file. Only the engine sets the origin of a document (`source`,
`parent_doc_id`), changes made to it (`hidden_characters`) and the document it resembles.
"""

from __future__ import annotations

import json
import mimetypes
import re
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from pathlib import PurePosixPath
from typing import Protocol
from urllib.parse import urljoin, urlsplit

from ragstone.core.clock import canonical, parse_moment
from ragstone.core.documents import SAID_BY_US, clean_metadata, origin_of
from ragstone.core.errors import NoTextSeen
from ragstone.core.types import Block, Item, Json, Metadata, Parsed
from ragstone.ingest.enrich.boilerplate import trim_boilerplate
from ragstone.ingest.parsers.draft import GAP, KINDS, MAX_TITLE, Draft, ParseOptions, is_picture, one_line
from ragstone.language.detector import detect_language

ParseFile = Callable[[bytes, str, ParseOptions], Awaitable[Parsed]]
OnPages = Callable[[int, int], None]
_NO_TEXT = "its pages may be pictures; this reads them: pip install 'ragstone[ocr]'"
WORDLESS = "wordless"
"""Part that marks a picture without words, so that OCR does not look for them again and again."""
SLICE_PAGES = 50
"""Pages that are read again at most after a worker died in a long document."""
MAIL = "message/rfc822"
"""Named by its media type: the uri of a mail ends like its Message-ID."""
_SUFFIXES = {MAIL: ".eml", "text/html": ".html", "application/xhtml+xml": ".html", "text/plain": ".txt"}
MAX_AUTHOR = 300
MAX_URL = 2000
MAX_DATE = 60
WEB = ("web", "rss", "hacker_news")
_NOT_THE_FILE_S = (*SAID_BY_US, "title")
_AUTHOR_KEYS = ("author", "authors", "creator", "byline", "sender")
_DATE_KEYS = ("date", "published_date", "published", "publication_date", "created", "updated", "year")
_URL_KEYS = ("url", "link", "canonical_url", "source")
_HIDDEN = re.compile(r"(\d{1,12}) hidden characters were removed")
_LANGUAGE_TAG = re.compile(r"([A-Za-z]{2,3})(?![A-Za-z0-9])")
_YEAR = re.compile(r"(?:1[5-9]|20)[0-9]{2}")
_WRITTEN_DATES = ("%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y", "%Y/%m/%d", "%d.%m.%Y", "%Y-%m")


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
    name = _parser_name(item)
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
        window = replace(options, first_page=page, window=SLICE_PAGES)
        parsed = _unpack(kept) if kept else Parsed("", ())
        if not parsed.blocks:  # an earlier version kept pages in which nothing was seen, perhaps for want of OCR
            parsed = await parse(content, name, window)
            if parsed.blocks and (slices or parsed.next_page):
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
    hidden = _count_hidden(said)
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


def _parser_name(item: Item) -> str:
    """Return the name that selects a parser; a name without a known suffix gets that of the media type."""
    media_type = item.media_type.split(";")[0].strip().lower()
    named = PurePosixPath(item.uri).suffix.lower() in KINDS and media_type != MAIL
    if not media_type or named:
        return item.uri
    return item.uri + (_SUFFIXES.get(media_type) or mimetypes.guess_extension(media_type) or "")


def _pack(parsed: Parsed) -> bytes:
    rows = [(block.kind, block.start, block.end, block.level, block.label, block.page) for block in parsed.blocks]
    fields = {**asdict(replace(parsed, attachments=(), blocks=())), "blocks": rows}
    return zlib.compress(json.dumps(fields).encode(), 1)


def _unpack(data: bytes) -> Parsed:
    fields = json.loads(zlib.decompress(data))
    fields["blocks"] = tuple(Block(*row) for row in fields["blocks"])
    fields["warnings"] = tuple(fields["warnings"])
    fields["attachments"] = ()
    return Parsed(**fields)


def normalize(item: Item, parsed: Parsed, *, detect: bool = True) -> Parsed:
    """Bring title, author, date, url, source, content type and language of a document under their names.

    Web text loses its boilerplate here; any other text stays as it is. Raises `InputError` for metadata that
    cannot be stored.
    """
    stated = {key: value for key, value in parsed.metadata.items() if key not in _NOT_THE_FILE_S}
    known: dict[str, Json] = {**stated, **item.metadata}
    if known.get("source_type") in WEB:
        parsed = trim_boilerplate(parsed)
    known["title"] = one_line(item.title)[:MAX_TITLE] or parsed.title or item.uri.rsplit("/", 1)[-1]
    known["source"] = origin_of(known, item.source, item.uri)
    if parsed.media_type == MAIL:
        known.setdefault("content_type", "email")
    given = (item.metadata, stated)
    _put(known, "author", _author(given))
    _put_date(known, _date(given, item.modified_at))
    _put(known, "url", _url(item, parsed.metadata))
    _put(known, "language", _language(item, parsed, detect))
    _put(known, "hidden_characters", _count_hidden(parsed.warnings))
    return replace(parsed, title=known["title"], metadata=clean_metadata(known))


def _put(metadata: dict[str, Json], key: str, value: Json) -> None:
    """Set a usable value; remove one that was stated but cannot be used."""
    if value:
        metadata[key] = value
    else:
        metadata.pop(key, None)


def _iter_stated(given: Iterable[Mapping[str, Json]], keys: Iterable[str]) -> Iterator[Json]:
    """Yield the values stated under any of these keys, those of the source before those of the file."""
    keys = tuple(keys)
    for metadata in given:
        for key in keys:
            if metadata.get(key):
                yield metadata[key]


def _author(given: Iterable[Mapping[str, Json]]) -> str:
    for value in _iter_stated(given, _AUTHOR_KEYS):
        names = value if isinstance(value, list | tuple) else [value]
        text = one_line(", ".join(name for name in map(_person_name, names) if name))
        if text:
            return text[:MAX_AUTHOR]
    return ""


def _person_name(value: Json) -> str:
    """Return a name that stands by itself or, as in feeds and papers, in a record."""
    if isinstance(value, Mapping):
        value = value.get("name")
    return value.strip() if isinstance(value, str) else ""


def _put_date(metadata: dict[str, Json], moment: datetime | None) -> None:
    written = metadata.get("date")
    _put(metadata, "date", canonical(moment) if moment else None)
    if isinstance(written, str) and written and _to_datetime(written) is None:
        # Such a date cannot be compared with others, but perhaps a person can read it.
        metadata["date_as_written"] = one_line(written)[:MAX_DATE]


def _date(given: Iterable[Mapping[str, Json]], modified_at: datetime | None) -> datetime | None:
    """Return the stated date of the document, or else the time of its last change."""
    for value in _iter_stated(given, _DATE_KEYS):
        if (moment := _to_datetime(value)) is not None:
            return moment
    return modified_at


def _to_datetime(value: Json) -> datetime | None:
    """Return the time that a program or a person wrote down; None if it cannot be read."""
    match value:
        case bool() | None:
            return None
        case int() if 1500 <= value < 2100:
            return datetime(value, 1, 1, tzinfo=UTC)
        case date():  # a datetime is one as well
            return parse_moment(value.isoformat())
        case str():
            return _read_moment(value.strip()) if len(value) <= MAX_DATE else None
    return None


def _read_moment(text: str) -> datetime | None:
    """Parse ISO 8601, a year, a day written out, or the date of a mail header."""
    if _YEAR.fullmatch(text):
        return parse_moment(f"{text}-01-01")
    if (moment := parse_moment(text)) is not None:
        return moment
    for form in _WRITTEN_DATES:
        with suppress(ValueError):
            return datetime.strptime(text, form).replace(tzinfo=UTC)
    try:
        return parse_moment(parsedate_to_datetime(text).isoformat())
    except (ValueError, OverflowError, IndexError):
        return None


def _url(item: Item, stated: Metadata) -> str:
    """Return the address of the document: stated by the source, or its own uri, or stated by the file.

    A page may name another address as its own only on its own host, so that its author cannot make a citation
    lead elsewhere.
    """
    for value in _iter_stated([item.metadata], ("url", "link")):
        if address := _address(value):
            return address
    came_from = _address(item.uri)
    for value in _iter_stated([stated], _URL_KEYS):
        address = _address(value, base=came_from)
        if address and (not came_from or urlsplit(address).netloc == urlsplit(came_from).netloc):
            return address
    return came_from


def _address(value: Json, base: str = "") -> str:
    """Return an http address that can be followed; empty for anything else."""
    if not isinstance(value, str) or len(value) > MAX_URL or one_line(value) != value or " " in value:
        return ""
    try:
        address = urljoin(base, value)
        parts = urlsplit(address)
    except ValueError:
        return ""
    # `https://bank.example@evil.example` reads like one host and leads to another, and may hold a password.
    leads_somewhere = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
    return address if leads_somewhere else ""


def _language(item: Item, parsed: Parsed, detect: bool) -> str:
    """Return the language stated by the source, else detected, else stated by the file.

    The file comes last because pages often carry the language of their template.
    """
    detected = detect_language(parsed) if detect and not _code(item.metadata) else None
    return _code(item.metadata) or detected or _code(parsed.metadata)


def _code(metadata: Metadata) -> str:
    """Return the ISO 639 code that a tag such as `en-GB` begins with."""
    stated = metadata.get("language")
    tag = _LANGUAGE_TAG.match(stated) if isinstance(stated, str) else None
    return tag[1].lower() if tag else ""


def _count_hidden(warnings: Iterable[str]) -> int:
    """Return the number of invisible characters that the parser removed."""
    return sum(int(found[1]) for warning in warnings if (found := _HIDDEN.fullmatch(warning)))
