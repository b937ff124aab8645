"""The headers of a mail, however broken: decoded, bounded, never an exception."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime

from ragstone.core.clock import canonical
from ragstone.core.types import Json
from ragstone.ingest.parsers.cleaning import one_line
from ragstone.ingest.parsers.mail_charset import decode_words
from ragstone.ingest.parsers.mail_message import MAX_HEADER

MAX_SUBJECT = 500
MAX_ADDRESSES = 50
NO_SUBJECT = "(no subject)"
_ID = re.compile(r"<\s*([^<>\s]{1,400})\s*>")
_ADDRESS = re.compile(r"[\w.+-]{1,100}@[\w.-]{1,200}")
_PREFIX = re.compile(r"\s*(?:\[[^\]]{1,80}\]\s*)?([^\W\d_]{1,8})\s?(?:\[\d{1,3}\])?[:：]")
_REPLY = frozenset(
    {"re", "aw", "antw", "antwort", "sv", "vs", "odp", "rif", "ris", "res", "r", "回复", "答复"}
)
_FORWARD = frozenset({"fw", "fwd", "wg", "tr", "rv", "enc", "i", "doorst", "pd", "vb", "vl", "vid", "转发"})


@dataclass(frozen=True, slots=True)
class Envelope:
    """Who wrote to whom, when and about what."""

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
    """Whether Gmail's export wrote its thread number into it."""

    @property
    def title(self) -> str:
        """The subject as people see it."""
        return self.subject or NO_SUBJECT

    def metadata(self) -> dict[str, Json]:
        """What is kept with the document; what the mail does not say is left out."""
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
    """The headers that say something to people."""
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
    """The first header of this name, decoded, on one line; empty when there is none."""
    return next(_headers(message, name), "")


def gmail_labels(value: str) -> tuple[str, ...]:
    """The labels of Takeout's `X-Gmail-Labels`: apart by commas, in quotes when they hold one."""
    found = re.findall(r'\s*("[^"]*"|[^,"]+)', value[:MAX_HEADER])
    labels = (label.strip().strip('"') for label in found)
    return tuple(dict.fromkeys(label for label in labels if label))[:MAX_ADDRESSES]


def _headers(message: Message, name: str) -> Iterator[str]:
    for key, value in message.raw_items():
        if key.lower() == name:
            yield one_line(decode_words(str(value)))


def _addresses(message: Message, *names: str) -> Iterator[str]:
    """`Anna Berg <anna@example.org>`, or the address alone."""
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
    for value in (*_headers(message, "date"), *received):
        try:
            moment = parsedate_to_datetime(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _ids(message: Message, name: str) -> list[str]:
    return _ID.findall(header(message, name))
