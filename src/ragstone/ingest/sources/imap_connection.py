"""The connection to an IMAP server: to the checked address, with an end to every answer."""

from __future__ import annotations

import imaplib
import socket
import ssl
import time
from dataclasses import dataclass
from io import BufferedReader
from typing import Literal, cast

Security = Literal["tls", "starttls", "none"]
LARGEST_ANSWER = 256 * 1024 * 1024
LONGEST_LINE = 1_000_000
PATIENCE = 10
"""How many times the timeout a whole answer may take: a large mail comes in many parts."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where to connect, and how."""

    host: str
    address: str
    """The checked address of the host: what is connected to."""
    port: int
    security: Security
    timeout: float


class ImapConnection(imaplib.IMAP4):
    """Connects to the checked address; takes no answer that is larger than a mail can be or that never ends.

    A socket's own timeout begins anew with every byte, so each read is given what is left of the whole time.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._begin(PATIENCE)
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

    def wait_anew(self) -> None:
        """Begin to wait for the next answer."""
        self._begin(PATIENCE)
        self.sock.settimeout(self._server.timeout)

    def wait_briefly(self) -> None:
        """Begin to wait for an answer that nobody needs."""
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
        # imaplib makes it anew when the connection becomes a secure one.
        return cast("BufferedReader", self.file)

    def _begin(self, patience: int) -> None:
        self._seconds = self._server.timeout * patience
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
