"""Mail: a message as its writer meant it, what was forwarded with it, and its files."""

from __future__ import annotations

from dataclasses import replace
from email.message import Message

from ragstone.core.errors import EmptyDocument
from ragstone.core.ids import content_hash
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import Draft
from ragstone.ingest.parsers.mail.headers import Envelope, read_envelope, read_message
from ragstone.ingest.parsers.mail.parts import PartReader
from ragstone.ingest.parsers.mail.passages import Passage, passages_of
from ragstone.ingest.parsers.mail.replies import forwarded_words, heading_of, own_words
from ragstone.ingest.parsers.options import DEFAULT, ParseOptions

MEDIA_TYPE = "message/rfc822"
_FORWARD_MARK = "---------- Forwarded message ----------"


def parse_mail(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a message: `Subject: …`, a blank line, its text. Its files are attachments."""
    message = read_message(content, name)
    envelope = read_envelope(message)
    reader = PartReader(name)
    passages = _passages(reader, message, envelope, 0)
    if not (passages or envelope.subject or reader.attachments):
        raise EmptyDocument(f"no text was found in {name}", hint="the mail has neither a subject nor a body")
    draft = Draft(name)
    draft.add("heading", f"Subject: {envelope.title}", level=1, label=envelope.title)
    for passage in passages:
        draft.add(passage.kind, passage.text, level=passage.level, label=passage.label)
    metadata = envelope.metadata() | {
        "source_type": "email",
        "content_type": "email",
        "has_attachments": bool(reader.attachments),
    }
    metadata.setdefault("thread_id", content_hash(content)[:32])
    parsed = draft.finish(MEDIA_TYPE, title=envelope.title, metadata=metadata, warnings=reader.warnings)
    return replace(parsed, attachments=tuple(reader.attachments))


def _passages(reader: PartReader, message: Message, envelope: Envelope, depth: int) -> list[Passage]:
    """Return the text of a message: the writer's own words of the mail itself, all words of a forwarded one."""
    own: list[Passage] = []
    forwarded: list[Passage] = []
    for piece in reader.pieces(message, depth):
        if isinstance(piece, Message):
            inner = read_envelope(piece)
            forwarded.append(heading_of(_head(inner), inner.subject, min(6, depth + 2)))
            forwarded += _passages(reader, piece, inner, depth + 1)
        else:
            own += passages_of(piece, reader.name)
    if depth:
        return [*forwarded_words(own), *forwarded]
    return [*own_words(own, reply=envelope.reply, forward=envelope.forward), *forwarded]


def _head(envelope: Envelope) -> str:
    """Return the headers of a forwarded message as mail programs copy them."""
    known = {
        "From": envelope.sender,
        "Date": f"{envelope.date:%a, %d %b %Y %H:%M} UTC" if envelope.date else "",
        "Subject": envelope.title,
        "To": ", ".join(envelope.to),
    }
    return "\n".join([_FORWARD_MARK, *(f"{label}: {value}" for label, value in known.items() if value)])
