"""Messages as items, and mailbox files found in a folder, in an archive or on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from ragstone.core.errors import ParseError
from ragstone.core.ids import content_hash
from ragstone.core.types import Failure, Item, Json
from ragstone.ingest.parsers.mail.headers import Envelope, read_envelope, read_message
from ragstone.ingest.sources.mail.mbox_reader import read_mbox
from ragstone.settings.tree import LimitSettings

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


def is_mailbox(name: str) -> bool:
    """Return whether a file of this name is a mailbox."""
    return name.lower().endswith(".mbox")


def read_mailbox(file: BinaryIO, origin: Item, limits: LimitSettings) -> Iterator[Item | Failure]:
    """Yield the messages of a mailbox of any size, one in memory at a time. `origin` says what it is known as.

    A message that stands in it twice is one document; two that only share their Message-ID are two.
    """
    names, seen = MessageNames(), set[str]()
    found = False
    for message in read_mbox(file, limits.file_mb * 1024 * 1024):
        found = True
        if message.content is None:
            where = f"the message at byte {message.start:,} of {origin.uri}"
            error = f"{where} is larger than limits.file_mb allows"
            yield Failure(f"{origin.uri}!/{message.start}", "too_large", error)
        else:
            envelope = read_head(message.content)
            name = names.of(envelope, message.content)
            if name not in seen:
                seen.add(name)
                yield _message(name, envelope, message.content, origin)
    if not found and file.tell():
        error = f"{origin.uri} is not a mailbox: no message in it begins with a line 'From …'"
        yield Failure(origin.uri, ParseError.code, error)


def _message(name: str, envelope: Envelope, content: bytes, origin: Item) -> Item:
    metadata: dict[str, Json] = {**origin.metadata, "source_type": "email", "mailbox": origin.uri}
    metadata.pop("modified_date", None)  # the mailbox's, which changes with every mail that comes
    if envelope.from_gmail:
        metadata["source"] = "gmail"
    return replace(
        origin,
        external_id=f"{origin.external_id}!/{name}",
        uri=f"{origin.uri}!/{name}.eml",  # so that a Message-ID from example.md is no Markdown
        content=content,
        title="",
        metadata=metadata,
        modified_at=envelope.date,
        media_type=MEDIA_TYPE,
    )
