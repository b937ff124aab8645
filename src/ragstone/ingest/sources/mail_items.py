"""Raw messages as items: who they are known as, when they were sent."""

from __future__ import annotations

import re

from ragstone.core.errors import ParseError
from ragstone.core.ids import content_hash
from ragstone.ingest.parsers.mail_headers import Envelope, read_envelope
from ragstone.ingest.parsers.mail_message import read_message

MEDIA_TYPE = "message/rfc822"
_MAX_HEAD = 256 * 1024
_HEAD_END = re.compile(rb"\r?\n\r?\n")


def read_head(content: bytes) -> Envelope:
    """What the headers of a message say, without reading its parts; nothing when it has none."""
    head = content[:_MAX_HEAD]
    end = _HEAD_END.search(head)
    try:
        return read_envelope(read_message(head[: end.end()] if end else head, ""))
    except ParseError:
        return Envelope()


def identity_of(envelope: Envelope, content: bytes) -> str:
    """What a message is known as: its Message-ID, or else its content."""
    return envelope.message_id or f"sha256:{content_hash(content)}"
