"""Raw messages as items: who they are known as, when they were sent."""

from __future__ import annotations

import re

from ragstone.core.errors import ParseError
from ragstone.core.ids import content_hash
from ragstone.ingest.parsers.mail.headers import Envelope, read_envelope, read_message

MEDIA_TYPE = "message/rfc822"
_MAX_HEAD = 256 * 1024
_HEAD_END = re.compile(rb"\r?\n\r?\n")


def read_head(content: bytes) -> Envelope:
    """Return the headers of a message without reading its parts; an empty envelope when it has none."""
    head = content[:_MAX_HEAD]
    end = _HEAD_END.search(head)
    try:
        return read_envelope(read_message(head[: end.end()] if end else head, ""))
    except ParseError:
        return Envelope()


class MessageNames:
    """The external ids of the messages of a mailbox.

    Anyone may write any Message-ID into a mail: the first message with it has it, and one with other content
    gets a name of its own. The `#` is ours, for such names and for attachments.
    """

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}

    def of(self, envelope: Envelope, content: bytes) -> str:
        """Return the Message-ID, or else the content's own name."""
        name = (envelope.message_id or f"sha256:{content_hash(content)}").replace("#", "%23")
        hashed = content_hash(content)[:32]
        return name if self._taken.setdefault(name, hashed) == hashed else f"{name}#{hashed}"
