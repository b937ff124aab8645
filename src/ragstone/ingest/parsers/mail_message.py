"""Bytes → the MIME tree, by the standard library, with its weak places covered."""

from __future__ import annotations

from email import message_from_bytes, message_from_string
from email.message import Message
from email.policy import Compat32
from typing import Any

from ragstone.core.errors import ParseError

MAX_HEADER = 8000
_KNOWN = ("from", "to", "subject", "date", "message-id", "received", "content-type", "mime-version")


class _Bounded(Compat32):
    """Headers are cut where no mail has any more: the library's own reading of them takes quadratic time.

    The older policy, since the newer one parses every header by a grammar that raises on broken ones.
    """

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:MAX_HEADER]


class _Part(Message):
    """A part whose parameters may contradict each other."""

    def get_param(
        self, param: str, failobj: Any = None, header: str = "content-type", unquote: bool = True
    ) -> Any:
        try:
            return super().get_param(param, failobj, header, unquote)
        except (TypeError, ValueError, LookupError):
            return failobj


def read_message(content: bytes, name: str) -> Message:
    """The parts of a mail; `ParseError` for bytes that do not begin with headers."""
    content = content.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    try:
        message = message_from_bytes(content, _Part, policy=_Bounded())
    except RecursionError as problem:
        raise ParseError(
            f"{name} is nested too deep to be read", hint="save its inner messages as files"
        ) from problem
    if not any(field in message for field in _KNOWN):
        raise ParseError(
            f"{name} is not a mail: it does not begin with headers such as From and Subject",
            hint="save the whole message from a mail program, or rename the file to what it is",
        )
    return message


def read_parts(text: str, boundary: str) -> Message:
    """The body of a message whose own boundary is missing or wrong, read with another one."""
    quoted = boundary.replace("\\", "\\\\").replace('"', '\\"')
    head = f'Content-Type: multipart/mixed; boundary="{quoted}"'
    return message_from_string(f"{head}\n\n{text}", _Part, policy=_Bounded())
