"""The body of a mail as passages: what a reader sees, with what is quoted marked as such."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from ragstone.core.errors import EmptyDocument
from ragstone.core.types import BlockKind
from ragstone.ingest.parsers.web.html import parse_markup

MAX_QUOTE_TAGS = 2000
"""A page with more is read in one piece: no person quotes that often."""
_QUOTE_MARKS = re.compile(r"[ \t]{0,3}>(?!From )[> \t]*")
_BLOCKQUOTE = re.compile(r"<(/?)blockquote(?=[\s/>])[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[a-zA-Z][^<>]*>")
# Mail has no navigation: a newsletter whose layout is named `footer` is all content.
_FRAME_NAME = re.compile(r"""(?<=[\s"'])(?:class|id|role)\s{0,4}=\s{0,4}(?:"[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)
_FRAME_TAG = re.compile(r"<(/?)(?:header|footer|aside|main)(?=[\s/>])", re.IGNORECASE)
_MARKUP = re.compile(r"\s*(?:<!doctype\s+html|<html[\s>])", re.IGNORECASE)
_SIGNED = "-----BEGIN PGP SIGNED MESSAGE-----"
_SIGNATURE = "-----BEGIN PGP SIGNATURE-----"
_SIGNATURE_END = "-----END PGP SIGNATURE-----"


@dataclass(frozen=True, slots=True)
class Body:
    """One text part of a message."""

    text: str
    html: bool = False
    flowed: bool = False
    """Lines that end in a space go on in the next one (RFC 3676)."""
    joined: bool = False
    """That space is not part of the text."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A block of a mail's body."""

    kind: BlockKind
    text: str
    quoted: bool = False
    level: int = 0
    label: str = ""


def passages_of(body: Body, name: str) -> list[Passage]:
    """Return the passages of a part, whatever its form."""
    if body.html or _MARKUP.match(body.text[:1000]):
        return list(_html(body.text, name))
    text = body.text.replace("\r\n", "\n").replace("\r", "\n")
    if _SIGNED in text:
        text = _without_armour(text)
    return list(_plain(_unflow(text, body.joined) if body.flowed else text))


def words_in(passages: list[Passage]) -> int:
    """Return how many words a reader would read."""
    return sum(len(passage.text.split()) for passage in passages)


def _plain(text: str) -> Iterator[Passage]:
    """Paragraphs are what blank lines keep apart, and where quoting begins or ends."""
    lines: list[str] = []
    quoted = False
    for raw in [*text.split("\n"), ""]:
        marks = _QUOTE_MARKS.match(raw)
        line = (raw[marks.end() :] if marks else raw.removeprefix(">") if raw.startswith(">From ") else raw).rstrip()
        if lines and (not line or quoted is not bool(marks)):
            yield Passage("paragraph", "\n".join(lines), quoted)
            lines = []
        quoted = bool(marks)
        if line:
            lines.append(line)
    if lines:
        yield Passage("paragraph", "\n".join(lines), quoted)


def _unflow(text: str, joined: bool) -> str:
    lines: list[str] = []
    goes_on = False
    for raw in text.split("\n"):
        # Quotes are left as they are; before other lines one space may stand so that they pass for none.
        whole = raw.startswith(">") or raw == "-- "
        line = raw if whole else raw.removeprefix(" ")
        if goes_on and line and not whole:
            lines[-1] += line
        else:
            lines.append(line)
        goes_on = not whole and raw.endswith(" ")
        if goes_on and joined:
            lines[-1] = lines[-1][:-1]
    return "\n".join(lines)


def _without_armour(text: str) -> str:
    before, _, rest = text.partition(_SIGNED)
    signed = rest.partition("\n\n")[2] or rest
    words, _, behind = signed.partition(_SIGNATURE)
    return f"{before}{words}{behind.partition(_SIGNATURE_END)[2]}"


def _html(markup: str, name: str) -> Iterator[Passage]:
    for quoted, piece in _pieces(_FRAME_TAG.sub(r"<\1div", _TAG.sub(_strip_names, markup))):
        try:
            parsed = parse_markup(piece, name)
        except EmptyDocument:
            continue
        for block in parsed.blocks:
            text = parsed.text[block.start : block.end]
            # A tag that was closed in another piece still says quote.
            kind = "paragraph" if block.kind == "quote" else block.kind
            yield Passage(kind, text, quoted, block.level, block.label)


def _strip_names(tag: re.Match[str]) -> str:
    return _FRAME_NAME.sub(" ", tag[0])


def _pieces(markup: str) -> Iterator[tuple[bool, str]]:
    """Yield the page cut where its outermost quotes begin and end."""
    tags = list(islice(_BLOCKQUOTE.finditer(markup), MAX_QUOTE_TAGS + 1))
    depth = start = 0
    for tag in tags if len(tags) <= MAX_QUOTE_TAGS else ():
        was_quoted = depth > 0
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if was_quoted != (depth > 0):
            yield was_quoted, markup[start : tag.start()]
            start = tag.end()
    yield depth > 0, markup[start:]
