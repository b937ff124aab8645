"""Mail: a message as its writer meant it, what was forwarded with it, and its files."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from email.message import Message

from ragstone.core.errors import EmptyDocument, ParseError
from ragstone.core.ids import content_hash
from ragstone.core.types import Attachment, Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, one_line
from ragstone.ingest.parsers.mail.headers import (
    Envelope,
    decode_text,
    decode_words,
    read_envelope,
    read_message,
    read_parts,
)
from ragstone.ingest.parsers.mail.marks import SENT
from ragstone.ingest.parsers.mail.replies import (
    Body,
    Passage,
    forwarded_words,
    heading_of,
    own_words,
    passages_of,
    words_in,
)

MEDIA_TYPE = "message/rfc822"
LEFT_OUT = "text quoted from an earlier mail was left out"
_FORWARD_MARK = "---------- Forwarded message ----------"
MAX_NAME = 150
MAX_SHOWN = 5
"""Receivers named in the text; the metadata holds more of them."""
_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
_SUFFIXES = {
    "application/pdf": ".pdf",
    "application/json": ".json",
    "application/epub+zip": ".epub",
    f"{_OFFICE}.wordprocessingml.document": ".docx",
    f"{_OFFICE}.presentationml.presentation": ".pptx",
    f"{_OFFICE}.spreadsheetml.sheet": ".xlsx",
    f"{_OPEN_DOCUMENT}.text": ".odt",
    f"{_OPEN_DOCUMENT}.presentation": ".odp",
    f"{_OPEN_DOCUMENT}.spreadsheet": ".ods",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/tiff": ".tif",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
}
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*]')
MAX_DEPTH = 20
MAX_PARTS = 1000
SMALL_IMAGE = 64 * 1024
"""An image shown inside the text that has fewer bytes is a logo or an icon, not an attachment."""
_SEALS = frozenset({
    "application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-keys",
})  # fmt: skip
_SMIME = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})
_TNEF = frozenset({"application/ms-tnef", "application/vnd.ms-tnef"})
_REPORTS = frozenset({"message/delivery-status", "message/disposition-notification", "text/rfc822-headers"})
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}", re.ASCII)
_PGP = "-----BEGIN PGP MESSAGE-----"
_STUB_WORDS = 30
_BOUNDARY = re.compile(r"^--([^\s-]\S{0,199}?)[ \t]*\r?\nContent-", re.MULTILINE | re.IGNORECASE)
Piece = Body | Message


def parse_mail(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a message: `Subject: …`, its text, and who sent it to whom and when. Its files are attachments."""
    message = read_message(content, name)
    envelope = read_envelope(message)
    reader = PartReader(name)
    read, inside = _read_parts(reader, message, 0)
    own = own_words(read, reply=envelope.reply, forward=envelope.forward, sender=envelope.sender)
    if own.left_out:
        reader.warnings.append(LEFT_OUT)
    forwarded = [*own.forwarded, *inside]
    if not (own.passages or forwarded or envelope.subject or reader.attachments):
        raise EmptyDocument(f"no text was found in {name}", hint="the mail has neither a subject nor a body")
    draft = Draft(name)
    draft.add("heading", f"Subject: {envelope.title}", level=1, label=envelope.title)
    for passage in (*own.passages, *_sending(envelope), *forwarded):
        draft.add(passage.kind, passage.text, level=passage.level, label=passage.label)
    metadata = envelope.metadata() | {
        "source_type": "email",
        "content_type": "email",
        "has_attachments": bool(reader.attachments),
    }
    metadata.setdefault("thread_id", content_hash(content)[:32])
    parsed = draft.finish(MEDIA_TYPE, title=envelope.title, metadata=metadata, warnings=reader.warnings)
    return replace(parsed, attachments=tuple(reader.attachments))


def _read_parts(reader: PartReader, message: Message, depth: int) -> tuple[list[Passage], list[Passage]]:
    """Return the text of a message, and that of the messages inside it with a heading for each."""
    text: list[Passage] = []
    inside: list[Passage] = []
    for piece in reader.pieces(message, depth):
        if isinstance(piece, Message):
            envelope = read_envelope(piece)
            inside.append(heading_of(_head(envelope), envelope.subject, min(6, depth + 2)))
            words, further = _read_parts(reader, piece, depth + 1)
            inside += [*forwarded_words(words), *further]
        else:
            text += passages_of(piece, reader.name)
    return text, inside


def _head(envelope: Envelope) -> str:
    """Return the headers of a forwarded message as mail programs copy them."""
    known = {
        "From": envelope.sender,
        "Date": f"{envelope.date:%a, %d %b %Y %H:%M} UTC" if envelope.date else "",
        "Subject": envelope.title,
        "To": ", ".join(envelope.to),
    }
    return "\n".join([_FORWARD_MARK, *(f"{label}: {value}" for label, value in known.items() if value)])


def _sending(envelope: Envelope) -> list[Passage]:
    """Return who sent the mail to whom, and when, as a sentence that can be found and quoted."""
    date = f"on {envelope.date:%a}, {envelope.date.day} {envelope.date:%b %Y %H:%M} UTC" if envelope.date else ""
    people = " ".join(filter(None, (_shown_people("by", [envelope.sender]), _shown_people("to", envelope.to))))
    said = ", ".join(filter(None, (people, _shown_people("with a copy to", envelope.cc), date)))
    # As a table it is no prose: it does not count for the language, the keywords and the summary of the mail.
    return [Passage("table", f"{SENT} {said}.")] if said else []


def _shown_people(word: str, people: Sequence[str]) -> str:
    more = f" and {len(people) - MAX_SHOWN} more" if len(people) > MAX_SHOWN else ""
    return f"{word} {', '.join(people[:MAX_SHOWN])}{more}" if any(people) else ""


def safe_name(given: str, media_type: str, number: int) -> str:
    """Return the last part of a name without what a file system or a shell would take for more than a letter."""
    name = _UNSAFE.sub("_", one_line(given.replace("\\", "/").rpartition("/")[2])).strip(". ")
    if not name:
        return f"attachment-{number}{_SUFFIXES.get(media_type, '')}"
    stem, dot, suffix = name.rpartition(".")
    if len(name) <= MAX_NAME:
        return name
    return f"{stem[: MAX_NAME - len(suffix) - 1]}.{suffix}" if dot and len(suffix) < 20 else name[:MAX_NAME]


def unique_name(name: str, taken: Container[str]) -> str:
    """Return the name, with a number when a file of that name is there already."""
    stem, dot, suffix = name.rpartition(".")
    number = 1
    unique = name
    while unique in taken:
        number += 1
        unique = f"{stem}-{number}{dot}{suffix}" if stem else f"{name}-{number}"
    return unique


@dataclass(slots=True)
class PartReader:
    """Reads messages and those inside them, within one bound on parts and depth."""

    name: str
    attachments: list[Attachment] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _parts: int = 0

    def pieces(self, part: Message, depth: int) -> list[Piece]:
        """Return texts and forwarded mails in reading order; files are added to `attachments`."""
        if depth > MAX_DEPTH or self._parts >= MAX_PARTS:
            bound = f"{MAX_DEPTH} levels" if depth > MAX_DEPTH else f"{MAX_PARTS} parts"
            self._warn(f"parts beyond {bound} were not read")
            return []
        self._parts += 1
        kind = part.get_content_type()
        if kind == "multipart/encrypted" or (kind in _SMIME and not part.is_multipart()):
            raise _encryption_error(self.name, kind)
        if kind.startswith("multipart/"):
            return self._several(part, kind, depth)
        if kind == "message/rfc822" and part.is_multipart():
            return [*_children(part)]
        if kind in _SEALS or kind in _REPORTS:
            return []
        return self._leaf(part, kind)

    def _several(self, part: Message, kind: str, depth: int) -> list[Piece]:
        children = _children(part) if part.is_multipart() else _children_of_broken(part)
        if not children:
            return [_body(part, html=False)]
        inside = [self.pieces(child, depth + 1) for child in children]
        if kind == "multipart/alternative":
            return self._best(inside)
        return [piece for pieces in inside for piece in pieces]

    def _best(self, versions: list[list[Piece]]) -> list[Piece]:
        """Return the plain version, unless it is empty or only says that there is another one."""
        plain = next((version for version in versions if version and not _has_html(version)), [])
        html = next((version for version in reversed(versions) if _has_html(version)), [])
        if not plain or not html:
            return plain or html
        words = self._words(plain)
        is_stub = words < _STUB_WORDS and self._words(html) > 3 * words + 10
        return html if is_stub or not words else plain

    def _words(self, version: list[Piece]) -> int:
        return sum(words_in(passages_of(piece, self.name)) for piece in version if isinstance(piece, Body))

    def _leaf(self, part: Message, kind: str) -> list[Piece]:
        given = decode_words(part.get_filename("") or "")
        if kind in _TNEF or given.lower() == "winmail.dat":
            self._warn("winmail.dat, a container of Outlook's own, was not opened")
            return []
        attached = part.get_content_disposition() == "attachment" or bool(given)
        if kind.startswith("text/") and not attached:
            return [] if kind == "text/calendar" else [self._readable(_body(part, html=kind == "text/html"))]
        if kind.startswith("message/") and part.is_multipart():
            return []
        self._attach(part, kind, given)
        return []

    def _readable(self, body: Body) -> Body:
        if body.text.lstrip().startswith(_PGP):
            raise _encryption_error(self.name, "pgp")
        return body

    def _attach(self, part: Message, kind: str, given: str) -> None:
        content = _payload(part)
        shown_inside = part.get_content_disposition() != "attachment" and "content-id" in part
        if not content or (kind.startswith("image/") and shown_inside and len(content) < SMALL_IMAGE):
            return
        taken = {attachment.name for attachment in self.attachments}
        name = unique_name(safe_name(given, kind, len(self.attachments) + 1), taken)
        media_type = kind if _MEDIA_TYPE.fullmatch(kind) else "application/octet-stream"
        self.attachments.append(Attachment(name, media_type, content))

    def _warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)


def _children(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [child for child in payload if isinstance(child, Message)] if isinstance(payload, list) else []


def _children_of_broken(part: Message) -> list[Message]:
    """Return the parts of a message that does not say, or says wrongly, what keeps them apart."""
    payload = part.get_payload()
    text = payload if isinstance(payload, str) else ""
    boundary = _BOUNDARY.search(text)
    return _children(read_parts(text, boundary[1])) if boundary else []


def _body(part: Message, *, html: bool) -> Body:
    text = decode_text(_payload(part), _parameter(part, "charset"))
    flowed = _parameter(part, "format").lower() == "flowed"
    return Body(text, html, flowed, _parameter(part, "delsp").lower() == "yes")


def _payload(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _parameter(part: Message, name: str) -> str:
    value = part.get_param(name)
    return value if isinstance(value, str) else value[2] if isinstance(value, tuple) else ""


def _has_html(version: list[Piece]) -> bool:
    return any(isinstance(piece, Body) and piece.html for piece in version)


def _encryption_error(name: str, kind: str) -> ParseError:
    way = "S/MIME" if kind in _SMIME else "PGP"
    return ParseError(
        f"{name} is encrypted or sealed with {way}: its text cannot be read",
        hint="open it in the mail program that has the key and save the decrypted message",
    )
