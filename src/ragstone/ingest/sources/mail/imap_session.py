"""The connection to an IMAP server: to the checked address, with an end to every answer."""

from __future__ import annotations

import base64
import imaplib
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from typing import Literal, cast

from ragstone.core.errors import FetchError, SourceError

Security = Literal["tls", "starttls", "none"]
LARGEST_ANSWER = 256 * 1024 * 1024
LONGEST_LINE = 1_000_000
TIMEOUTS_PER_ANSWER = 10
"""The timeouts that a whole answer may take: a large mail comes in many parts."""
WINDOW = 2000
"""The number of messages that one command lists."""
_UID = re.compile(rb"\bUID (\d{1,10})\b")
_SIZE = re.compile(rb"\bRFC822\.SIZE (\d{1,15})\b")
MAX_MESSAGES = 1_000_000
_UNSPOKEN = re.compile(r"[^\x20-\x7e]+")


@dataclass(frozen=True, slots=True)
class Server:
    """The address and the security of a connection."""

    host: str
    address: str
    """The checked address of the host: what is connected to."""
    port: int
    security: Security
    timeout: float


class ImapConnection(imaplib.IMAP4):
    """Connects to the checked address; takes no answer that is larger than a mail can be or that never ends.

    A socket's own timeout restarts with every byte, so each read is given what is left of the whole time.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._begin(TIMEOUTS_PER_ANSWER)
        super().__init__(server.host, server.port, server.timeout)

    def _create_socket(self, timeout: float | None) -> socket.socket:
        plain = socket.create_connection((self._server.address, self._server.port), timeout)
        if self._server.security != "tls":
            return plain
        try:
            return ssl.create_default_context().wrap_socket(plain, server_hostname=self._server.host)
        except OSError:
            plain.close()
            raise

    def restart_clock(self) -> None:
        """Begin to wait for the next answer."""
        self._begin(TIMEOUTS_PER_ANSWER)
        self.sock.settimeout(self._server.timeout)

    def wait_briefly(self) -> None:
        """Begin to wait for an answer that does not matter."""
        self._begin(1)
        self.sock.settimeout(self._server.timeout)

    def read(self, size: int) -> bytes:
        if size > LARGEST_ANSWER:
            raise self.abort(f"an answer of {size:,} bytes")
        content = bytearray()
        while len(content) < size:
            self._await()
            piece = self._stream.read1(size - len(content))
            if not piece:
                break
            self._count(piece)
            content += piece
        return bytes(content)

    def readline(self) -> bytes:
        line = bytearray()
        while not line.endswith(b"\n"):
            self._await()
            ready = self._stream.peek()
            # Reading no more than is there already reads from memory, and waits for nothing.
            piece = self._stream.readline(len(ready)) if ready else b""
            if not piece:
                break
            self._count(piece)
            line += piece
            if len(line) > LONGEST_LINE:
                raise self.error(f"a line of more than {LONGEST_LINE:,} bytes")
        return bytes(line)

    @property
    def _stream(self) -> BufferedReader:
        # imaplib replaces it when the connection becomes a secure one.
        return cast("BufferedReader", self.file)

    def _begin(self, timeouts: int) -> None:
        self._seconds = self._server.timeout * timeouts
        self._deadline = time.monotonic() + self._seconds
        self._received = 0

    def _await(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"an answer did not end within {self._seconds:.0f} s")
        self.sock.settimeout(min(left, self._server.timeout))

    def _count(self, piece: bytes) -> None:
        self._received += len(piece)
        if self._received > LARGEST_ANSWER:
            raise self.abort(f"an answer of more than {LARGEST_ANSWER:,} bytes")


@dataclass(frozen=True, slots=True)
class Mailbox:
    """A mailbox as it was opened."""

    validity: int
    """Changes when the server renumbers its messages."""
    count: int


class ImapSession:
    """One connection to one account. It changes nothing: mailboxes are opened for reading, mails are peeked at."""

    def __init__(self, server: Server, user: str, password: str) -> None:
        self._host = server.host
        with self._translate_errors():
            self._connection = ImapConnection(server)  # which begins to wait when it is made
        try:
            if server.security == "starttls":
                with self._answer():
                    self._connection.starttls(ssl.create_default_context())
            self._sign_in(user, password)
        except Exception:
            self.close()
            raise

    def open_mailbox(self, name: str) -> Mailbox | None:
        """Open a mailbox for reading; None when the server does not let it be opened."""
        with self._answer():
            state, data = self._connection.select(_quote(encode_mailbox(name)), readonly=True)
            if state != "OK":
                return None
            _, validity = self._connection.response("UIDVALIDITY")
        return Mailbox(_number(validity), _number(data))

    def sizes(self, mailbox: Mailbox) -> dict[int, int]:
        """Return the UIDs in the open mailbox and the size of each message."""
        if mailbox.count > MAX_MESSAGES:
            raise SourceError(
                f"a mailbox of {self._host} has {mailbox.count:,} messages, more than {MAX_MESSAGES:,}",
                hint="divide it, and name the parts in mailboxes",
            )
        found: dict[int, int] = {}
        for first in range(1, mailbox.count + 1, WINDOW):
            window = f"{first}:{min(mailbox.count, first + WINDOW - 1)}"
            with self._answer():
                # Messages are not renumbered while they are fetched by number, as they may be while searched.
                state, data = self._connection.fetch(window, "(UID RFC822.SIZE)")
            if state != "OK":
                raise FetchError(f"{self._host} does not list its messages", hint="try again later")
            for line in _lines(data):
                uid, size = _UID.search(line), _SIZE.search(line)
                if uid and size:
                    found[int(uid[1])] = int(size[1])
        return found

    def messages(self, uids: Sequence[int]) -> Mapping[int, bytes | None]:
        """Return the messages with these UIDs, as far as they are still there; None for one the server cannot give."""
        with self._answer():
            state, data = self._connection.uid("FETCH", ",".join(map(str, uids)), "(UID BODY.PEEK[])")
        if state == "OK":
            return dict(_contents(data))
        if len(uids) == 1:
            return {uids[0]: None}
        return {uid: content for wanted in uids for uid, content in self.messages([wanted]).items()}

    def close(self) -> None:
        """Leave, politely if the server still listens."""
        try:
            self._connection.wait_briefly()
            self._connection.logout()
        except (imaplib.IMAP4.error, OSError):
            with suppress(OSError):
                self._connection.shutdown()

    def _sign_in(self, user: str, password: str) -> None:
        with self._answer():
            try:
                if "AUTH=PLAIN" in self._connection.capabilities:
                    self._connection.authenticate("PLAIN", lambda _: f"\0{user}\0{password}".encode())
                else:
                    self._connection.login(_quote(user), password)
                return
            except imaplib.IMAP4.abort:
                raise
            except (imaplib.IMAP4.error, UnicodeEncodeError):
                pass  # what the server says may repeat what was sent
        raise SourceError(
            f"{self._host} refused the login of {user}",
            hint="check user and password; many providers want an app password for IMAP",
        )

    @contextmanager
    def _answer(self) -> Iterator[None]:
        with self._translate_errors():
            self._connection.restart_clock()
            yield

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except ssl.SSLError as problem:
            raise FetchError(
                f"no secure connection to {self._host}: {problem.reason or problem}",
                hint="check the port and the server's certificate, or set security to starttls",
            ) from problem
        except (imaplib.IMAP4.abort, OSError, EOFError) as problem:
            raise FetchError(
                f"the connection to {self._host} failed: {_printable(problem)}",
                hint="check host and port, and try again later",
            ) from problem
        except imaplib.IMAP4.error as problem:
            raise SourceError(
                f"{self._host} does not answer as an IMAP server should: {_printable(problem)}",
                hint="check host and port",
            ) from problem


def encode_mailbox(name: str) -> str:
    """Return a mailbox's name as IMAP writes it: modified UTF-7 (RFC 3501)."""

    def encode_run(run: re.Match[str]) -> str:
        encoded = base64.b64encode(run[0].encode("utf-16-be")).decode("ascii")
        return f"&{encoded.rstrip('=').replace('/', ',')}-"

    return _UNSPOKEN.sub(encode_run, name.replace("&", "&-"))


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _number(data: Sequence[object]) -> int:
    value = data[0] if data else None
    return int(value) if isinstance(value, bytes) and value.isdigit() else 0


def _contents(data: Sequence[object]) -> Iterator[tuple[int, bytes]]:
    for place, part in enumerate(data):
        if isinstance(part, tuple):
            # The number may stand before the message or behind it.
            behind = data[place + 1] if place + 1 < len(data) else b""
            uid = _UID.search(part[0]) or (_UID.search(behind) if isinstance(behind, bytes) else None)
            if uid:
                yield int(uid[1]), bytes(part[1])


def _lines(data: Sequence[object]) -> Iterator[bytes]:
    return (line for line in data if isinstance(line, bytes))


def _printable(problem: BaseException) -> str:
    return _UNSPOKEN.sub(" ", str(problem))[:200]
