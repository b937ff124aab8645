"""Mail messages: reading them, their headers and their charsets."""

from __future__ import annotations

import binascii
import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from email import message_from_bytes, message_from_string
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.policy import Compat32
from email.utils import getaddresses
from typing import Any

from ragstone.core.clock import canonical, parse_mail_date
from ragstone.core.errors import ParseError
from ragstone.core.types import Json
from ragstone.ingest.parsers.draft import one_line
from ragstone.ingest.parsers.text.text import decode

# Escapes in plain ASCII: such text would pass for UTF-8.
_SEVEN_BIT = ("iso2022", "hz", "utf-7")
# Python's own codecs that no mail uses; some take quadratic time.
_NO_CHARSET = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})
MAX_HEADER = 8000
_KNOWN = ("from", "to", "subject", "date", "message-id", "received", "content-type", "mime-version")
MAX_SUBJECT = 500
MAX_ADDRESSES = 50
NO_SUBJECT = "(no subject)"
_ID = re.compile(r"<\s*([^<>\s]{1,400})\s*>")
_ADDRESS = re.compile(r"[\w.+-]{1,100}@[\w.-]{1,200}")
_PREFIX = re.compile(r"\s*(?:\[[^\]]{1,80}\]\s*)?([^\W\d_]{1,8})\s?(?:\[\d{1,3}\])?[:：]")
_REPLY = frozenset({"re", "aw", "antw", "antwort", "sv", "vs", "odp", "rif", "ris", "res", "r", "回复", "答复"})
_FORWARD = frozenset({"fw", "fwd", "wg", "tr", "rv", "enc", "i", "doorst", "pd", "vb", "vl", "vid", "转发"})


def decode_text(content: bytes, charset: str) -> str:
    """Return the text; what cannot be read shows as �."""
    declared = _codec(charset)
    if declared.startswith(_SEVEN_BIT):
        return content.decode(declared, "replace")
    if content.isascii() and b"\x00" not in content:
        return content.decode("ascii")
    try:
        return decode(content, "", declared=declared).text
    except ParseError:
        return content.decode("latin-1").replace("\x00", "")


def decode_words(value: str) -> str:
    """Return a header with its encoded words as what they stand for, and raw bytes in it as what they probably are."""
    value = decode_text(value.encode("utf-8", "surrogateescape"), "")
    try:
        pieces = decode_header(value)
    except (HeaderParseError, binascii.Error, ValueError):
        return value
    return "".join(
        decode_text(piece, charset or "") if isinstance(piece, bytes) else piece for piece, charset in pieces
    )


def _codec(charset: str) -> str:
    try:
        name = codecs.lookup(charset.strip()).name
    except (LookupError, ValueError):
        return ""
    return "" if name in _NO_CHARSET else name


class _Bounded(Compat32):
    """Headers are cut where no mail has any more: the library's own reading of them takes quadratic time.

    The older policy, since the newer one parses every header by a grammar that raises on broken ones.
    """

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:MAX_HEADER]


class _Part(Message):
    """A part whose parameters may contradict each other."""

    def get_param(self, param: str, failobj: Any = None, header: str = "content-type", unquote: bool = True) -> Any:
        try:
            return super().get_param(param, failobj, header, unquote)
        except (TypeError, ValueError, LookupError):
            return failobj


def read_message(content: bytes, name: str) -> Message:
    """Return the parts of a mail; `ParseError` for bytes that do not begin with headers."""
    content = content.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    try:
        message = message_from_bytes(content, _Part, policy=_Bounded())
    except RecursionError as problem:
        raise ParseError(f"{name} is nested too deep to be read", hint="save its inner messages as files") from problem
    if not any(field in message for field in _KNOWN):
        raise ParseError(
            f"{name} is not a mail: it does not begin with headers such as From and Subject",
            hint="save the whole message from a mail program, or rename the file to what it is",
        )
    return message


def read_parts(text: str, boundary: str) -> Message:
    """Return the body of a message whose own boundary is missing or wrong, read with another one."""
    quoted = boundary.replace("\\", "\\\\").replace('"', '\\"')
    head = f'Content-Type: multipart/mixed; boundary="{quoted}"'
    return message_from_string(f"{head}\n\n{text}", _Part, policy=_Bounded())


@dataclass(frozen=True, slots=True)
class Envelope:
    """The headers of a mail that say something to people."""

    subject: str = ""
    sender: str = ""
    to: tuple[str, ...] = ()
    cc: tuple[str, ...] = ()
    date: datetime | None = None
    message_id: str = ""
    in_reply_to: str = ""
    thread_id: str = ""
    labels: tuple[str, ...] = ()
    reply: bool = False
    forward: bool = False
    from_gmail: bool = False
    """True if Gmail's export wrote its thread number into it."""

    @property
    def title(self) -> str:
        """Return the subject as people see it."""
        return self.subject or NO_SUBJECT

    def metadata(self) -> dict[str, Json]:
        """Return the document's metadata; headers that the mail does not have are left out."""
        known: dict[str, Json] = {
            "subject": self.subject,
            "sender": self.sender,
            "to": list(self.to),
            "cc": list(self.cc),
            "date": canonical(self.date) if self.date else "",
            "message_id": self.message_id,
            "in_reply_to": self.in_reply_to,
            "thread_id": self.thread_id,
        }
        return {key: value for key, value in known.items() if value} | {"labels": list(self.labels)}


def read_envelope(message: Message) -> Envelope:
    """Return the headers that say something to people."""
    subject = header(message, "subject")[:MAX_SUBJECT]
    own = _ids(message, "message-id")
    answered = _ids(message, "in-reply-to")
    earlier = _ids(message, "references") or answered
    prefix = _PREFIX.match(subject)
    word = prefix[1].lower() if prefix else ""
    gmail_thread = header(message, "x-gm-thrid")[:100]
    return Envelope(
        subject=subject,
        sender=next(_addresses(message, "from", "sender"), ""),
        to=tuple(_addresses(message, "to")),
        cc=tuple(_addresses(message, "cc")),
        date=_date(message),
        message_id=own[0] if own else "",
        in_reply_to=answered[0] if answered else "",
        thread_id=gmail_thread or (earlier or own or [""])[0],
        labels=gmail_labels(header(message, "x-gmail-labels")),
        reply=bool(earlier) or word in _REPLY,
        forward=word in _FORWARD,
        from_gmail=bool(gmail_thread),
    )


def header(message: Message, name: str) -> str:
    """Return the first header of this name, decoded, on one line; empty when there is none."""
    return next(_headers(message, name), "")


def gmail_labels(value: str) -> tuple[str, ...]:
    """Return the labels of Takeout's `X-Gmail-Labels`: apart by commas, in quotes when they hold one."""
    found = re.findall(r'\s*("[^"]*"|[^,"]+)', value[:MAX_HEADER])
    labels = (label.strip().strip('"') for label in found)
    return tuple(dict.fromkeys(label for label in labels if label))[:MAX_ADDRESSES]


def _headers(message: Message, name: str) -> Iterator[str]:
    for key, value in message.raw_items():
        if key.lower() == name:
            yield one_line(decode_words(str(value)))


def _addresses(message: Message, *names: str) -> Iterator[str]:
    """Yield addresses as `Anna Berg <anna@example.org>`, or the address alone."""
    # Addresses are taken apart before their names are decoded: an encoded name may hold a comma.
    given = [str(value) for key, value in message.raw_items() if key.lower() in names]
    try:
        found = getaddresses(given)
    except RecursionError:  # comments inside comments
        found = [("", address) for value in given for address in _ADDRESS.findall(value)]
    for name, address in found[:MAX_ADDRESSES]:
        shown = one_line(decode_words(name))[:200]
        where = one_line(decode_words(address))[:300]
        if where:
            yield f"{shown} <{where}>" if shown else where


def _date(message: Message) -> datetime | None:
    received = (value.rpartition(";")[2] for value in _headers(message, "received"))
    return next(filter(None, map(parse_mail_date, (*_headers(message, "date"), *received))), None)


def _ids(message: Message, name: str) -> list[str]:
    return _ID.findall(header(message, name))
