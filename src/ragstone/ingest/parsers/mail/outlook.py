"""Messages that Outlook saved (.msg): their properties become a mail, which is read as any other."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email import policy
from email.header import Header
from email.message import Message
from email.mime.application import MIMEApplication
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import format_datetime, formataddr
from typing import TYPE_CHECKING

from ragstone.core.errors import ParseError, ParserLimit, RagstoneError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, ParseOptions, one_line
from ragstone.ingest.parsers.mail.compressed_rtf import decompress
from ragstone.ingest.parsers.mail.parser import parse_mail

if TYPE_CHECKING:
    from olefile import OleFileIO

MAX_DEPTH = 5
"""Messages inside messages that are opened."""
MAX_PARTS = 500
_SUBJECT, _CLASS, _SENT, _DELIVERED = 0x0037, 0x001A, 0x0039, 0x0E06
_BODY, _HTML, _RTF = 0x1000, 0x1013, 0x1009
_SENDER_NAME, _SENDER_ADDRESS, _SENDER_SMTP = 0x0C1A, 0x0C1F, 0x5D01
_MESSAGE_ID, _ANSWERED, _REFERENCES = 0x1035, 0x1042, 0x1039
_NAME, _ADDRESS, _SMTP, _ROLE = 0x3001, 0x3003, 0x39FE, 0x0C15
_FILE, _LONG_NAME, _SHORT_NAME, _TYPE, _CONTENT_ID = 0x3701, 0x3707, 0x3704, 0x370E, 0x3712
_CODEPAGE, _HTML_CODEPAGE = 0x3FFD, 0x3FDE
_UNICODE, _ANSI, _BINARY, _OBJECT = "001F", "001E", "0102", "000D"
_PROPERTIES = "__properties_version1.0"
_ROLES = {1: "To", 2: "Cc"}
_FIRST_DAY = datetime(1601, 1, 1, tzinfo=UTC)


def parse_outlook(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read a message: `Subject: …`, a blank line, its text. Its files are attachments."""
    import olefile

    try:
        with olefile.OleFileIO(io.BytesIO(content)) as file:
            message = _build(_Folder(file, (), name, [2 * len(content) + 65_536]), 0)
    except (OSError, ValueError, IndexError, struct.error) as problem:
        raise ParseError(
            f"{name} is a damaged Outlook message: {problem!s:.200}", hint="save the message again in the mail program"
        ) from problem
    return parse_mail(message.as_bytes(policy=policy.SMTP), name, options)


@dataclass(slots=True)
class _Folder:
    """A message, a recipient or an attachment: its properties."""

    file: OleFileIO
    path: tuple[str, ...]
    name: str
    room: list[int]
    """The bytes that may still be read: the same ones may be named as the content of many streams."""

    def below(self, *names: str) -> _Folder:
        return _Folder(self.file, (*self.path, *names), self.name, self.room)

    def folders(self, prefix: str) -> list[_Folder]:
        """Return the folders whose names begin so, in order."""
        depth = len(self.path)
        names = {
            path[depth]
            for path in self.file.listdir()
            if len(path) > depth + 1 and tuple(path[:depth]) == self.path and path[depth].startswith(prefix)
        }
        if len(names) > MAX_PARTS:
            raise ParserLimit(f"{self.name} has more than {MAX_PARTS} parts", hint="save its attachments as files")
        return [self.below(name) for name in sorted(names)]

    def stream(self, name: str) -> bytes:
        path = [*self.path, name]
        if not self.file.exists(path):
            return b""
        self.room[0] -= self.file.get_size(path)
        if self.room[0] < 0:
            raise ParserLimit(f"{self.name} holds more than its size allows", hint="the file may be damaged")
        return bytes(self.file.openstream(path).read())

    def binary(self, tag: int) -> bytes:
        return self.stream(f"__substg1.0_{tag:04X}{_BINARY}")

    def text(self, tag: int) -> str:
        if found := self.stream(f"__substg1.0_{tag:04X}{_UNICODE}"):
            return found.decode("utf-16-le", "replace").rstrip("\0")
        return _decode(self.stream(f"__substg1.0_{tag:04X}{_ANSI}"), self.number(_CODEPAGE)).rstrip("\0")

    def line(self, tag: int) -> str:
        return one_line(self.text(tag))[:2000]

    def fixed(self, tag: int) -> bytes:
        """Return the eight bytes of a property that has no stream of its own."""
        data = self.stream(_PROPERTIES)
        header = 8 if self.path and self.path[-1].startswith(("__recip", "__attach")) else 24 if self.path else 32
        for place in range(header, len(data) - 15, 16):
            if int.from_bytes(data[place + 2 : place + 4], "little") == tag:
                return data[place + 8 : place + 16]
        return b""

    def number(self, tag: int) -> int:
        return int.from_bytes(self.fixed(tag)[:4], "little")

    def moment(self, *tags: int) -> datetime | None:
        for tag in tags:
            ticks = int.from_bytes(self.fixed(tag), "little")
            if 0 < ticks < 1 << 60:
                return _FIRST_DAY + timedelta(microseconds=ticks // 10)
        return None


def _build(folder: _Folder, depth: int) -> Message:
    _check_readable(folder)
    message = MIMEMultipart("mixed")
    message.attach(_body(folder))
    _add_header(message, "Subject", folder.line(_SUBJECT))
    address = folder.line(_SENDER_SMTP) or folder.line(_SENDER_ADDRESS)
    _add_people(message, "From", [(folder.line(_SENDER_NAME), address)])
    people = [(one.number(_ROLE), _person(one)) for one in folder.folders("__recip_version1.0_")]
    for role, label in _ROLES.items():
        _add_people(message, label, [person for given, person in people if given == role])
    if moment := folder.moment(_SENT, _DELIVERED):
        message["Date"] = format_datetime(moment)
    for label, tag in (("Message-ID", _MESSAGE_ID), ("In-Reply-To", _ANSWERED), ("References", _REFERENCES)):
        _add_header(message, label, folder.line(tag))
    for attachment in folder.folders("__attach_version1.0_"):
        if part := _attachment(attachment, depth):
            message.attach(part)
    return message


def _check_readable(folder: _Folder) -> None:
    kind = folder.line(_CLASS).lower()
    if kind.startswith("ipm.note.smime") and not kind.endswith("multipartsigned"):
        raise ParseError(
            f"{folder.name} is encrypted or sealed with S/MIME: its text cannot be read",
            hint="open it in the mail program that has the key and save the decrypted message",
        )


def _person(folder: _Folder) -> tuple[str, str]:
    return folder.line(_NAME), folder.line(_SMTP) or folder.line(_ADDRESS)


def _add_people(message: Message, label: str, people: Iterable[tuple[str, str]]) -> None:
    shown = []
    for name, address in people:
        # Within a company an address is a path in its directory, which says nothing to people.
        known = address.encode("ascii", "replace").decode() if "@" in address else ""
        if known:
            shown.append(formataddr((name if name != address else "", known)))
        elif name:
            shown.append(Header(name.replace(",", " "), "utf-8").encode())
    if shown:
        message[label] = ", ".join(shown)


def _add_header(message: Message, label: str, value: str) -> None:
    if value:
        message[label] = Header(value, "utf-8").encode() if not value.isascii() else value


def _body(folder: _Folder) -> MIMEText:
    """Return the text: plain, else HTML, else what its RTF says."""
    if text := folder.text(_BODY).strip():
        return MIMEText(text, "plain", "utf-8")
    page = folder.binary(_HTML)
    if html := (_decode(page, folder.number(_HTML_CODEPAGE)) if page else folder.text(_HTML)).strip():
        return MIMEText(html, "html", "utf-8")
    return MIMEText(_rtf_text(folder), "plain", "utf-8")


def _rtf_text(folder: _Folder) -> str:
    from ragstone.ingest.parsers.office.rtf import parse_rtf

    packed = folder.binary(_RTF)
    if not packed:
        return ""
    try:
        return parse_rtf(decompress(packed), folder.name).text
    except RagstoneError:
        return ""  # an empty text: the subject and the attachments may say something


def _attachment(folder: _Folder, depth: int) -> Message | None:
    inner = folder.below(f"__substg1.0_{_FILE:04X}{_OBJECT}")
    if folder.file.exists([*inner.path, _PROPERTIES]):
        return MIMEMessage(_build(inner, depth + 1)) if depth < MAX_DEPTH else None
    content = folder.binary(_FILE)
    if not content:
        return None
    kind = folder.line(_TYPE).partition("/")[2]
    part = MIMEApplication(content)
    part.set_type(folder.line(_TYPE) if kind.replace("-", "").replace(".", "").replace("+", "").isalnum() else _UNKNOWN)
    name = folder.line(_LONG_NAME) or folder.line(_SHORT_NAME)
    shown_inside = bool(folder.line(_CONTENT_ID))
    part.add_header("Content-Disposition", "inline" if shown_inside else "attachment", filename=("utf-8", "", name))
    if shown_inside:
        part["Content-ID"] = "<inside>"
    return part


_UNKNOWN = "application/octet-stream"


def _decode(content: bytes, codepage: int) -> str:
    for codec in (f"cp{codepage}" if codepage not in (0, 65001) else "utf-8", "cp1252"):
        try:
            return content.decode(codec)
        except (LookupError, UnicodeDecodeError):
            continue
    return content.decode("cp1252", "replace")
