"""Tell mail by its head, where the name of a file does not say what it is."""

from __future__ import annotations

import re

from ragstone.core.clock import parse_mail_date

MAX_HEAD = 64 * 1024
_BLANK = re.compile(rb"\r?\n[ \t]*\r?\n")
_FIELD = re.compile(rb"([!-9;-~]{1,76})[ \t]*:(.{0,998})")
_SEPARATOR = re.compile(rb"From \S{1,200} .{0,60}\d:\d\d.{0,60}\r?\n")
_ADDRESS = re.compile(rb"[^\s<>@,;:]{1,100}@[^\s<>@,;:]{1,200}")
_WRITERS = (b"from", b"sender", b"return-path")
_CARRIERS = (b"received", b"message-id", b"mime-version", b"delivered-to", b"dkim-signature")
_FEWEST = 3
_LONGEST = 2000


def looks_like_mail(content: bytes) -> bool:
    """Return whether a text begins with the headers of a message: who wrote it, and what only mail programs write.

    A memo or a note may begin with `From:`, `Note:` or `Subject:`; it names no address, and no day as mail does.
    """
    head = content[: MAX_HEAD + 1].removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    separator = _SEPARATOR.match(head)
    fields = _read_fields(head[separator.end() :] if separator else head)
    if len(fields) < _FEWEST or not any(_ADDRESS.search(fields.get(name, b"")) for name in _WRITERS):
        return False
    date = fields.get(b"date", b"").decode("latin-1").strip()
    return any(name in fields for name in _CARRIERS) or bool(date and parse_mail_date(date))


def begins_mailbox(head: bytes) -> bool:
    """Return whether a file begins with the line that stands between the messages of a mailbox, and with a message."""
    separator = _SEPARATOR.match(head)
    return bool(separator) and looks_like_mail(head)


def _read_fields(head: bytes) -> dict[bytes, bytes]:
    """Return the first header of each name; none when a line above the first blank one is no header."""
    end = _BLANK.search(head)
    if end is None and len(head) > MAX_HEAD:
        return {}
    fields: dict[bytes, bytes] = {}
    name = b""
    for line in head[: end.start() if end else None].splitlines():
        found = _FIELD.match(line)
        if line[:1] in (b" ", b"\t") and name:
            fields[name] = (fields[name] + line)[:_LONGEST]
        elif found:
            name = found[1].lower()
            fields.setdefault(name, found[2])
        else:
            return {}
    return fields
