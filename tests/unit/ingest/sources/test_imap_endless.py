"""IMAP servers whose answers never end."""

from __future__ import annotations

import asyncio
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.doubles.imap import ImapDouble, MailboxDouble

from ragstone.core.errors import FetchError, RagstoneError, SourceError
from ragstone.fetch.fetcher import Fetcher
from ragstone.ingest.sources.config import SourceContext
from ragstone.ingest.sources.mail import imap_session as imap_connection
from ragstone.ingest.sources.mail.imap import ImapConfig, ImapSource
from ragstone.ingest.sources.mail.imap_session import ImapSession, Mailbox
from ragstone.settings.tree import FetchSettings, LimitSettings

READY = b"* OK ready\r\n"


@contextmanager
def speaking(greeting: bytes, piece: bytes, pause: float) -> Iterator[int]:
    """A server that greets and then says the same again and again, whatever it is told."""
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                self.request.sendall(greeting)
                while not over.wait(pause):
                    self.request.sendall(piece)
            except OSError:
                pass  # the other side has left

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            over.set()
            server.shutdown()
            thread.join()


async def read(port: int, seconds: float) -> None:
    fetcher = Fetcher(FetchSettings(allow=("127.0.0.1",)))
    config = ImapConfig(
        host="127.0.0.1",
        port=port,
        user="anna",
        password="secret",  # type: ignore[arg-type]
        security="none",
        timeout=seconds,
    )
    source = ImapSource(config, "post", SourceContext(fetcher, LimitSettings(), {}))
    try:
        async with asyncio.timeout(240):
            _ = [page async for page in source.fetch(None)]
    finally:
        await fetcher.close()


@pytest.mark.parametrize(
    ("greeting", "piece"),
    [(b"* OK ", b"x"), (READY, b"x"), (READY, b"* OK still here\r\n"), (READY + b"* 1 FETCH {900000}\r\n", b"x")],
    ids=["greeting", "line", "lines", "literal"],
)
async def test_a_server_that_speaks_on_and_on_is_left(
    greeting: bytes, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imap_connection, "TIMEOUTS_PER_ANSWER", 2)
    endless = pytest.raises(FetchError, match=r"to 127\.0\.0\.1 failed: (?:an answer did not end|timed out)")
    with speaking(greeting, piece, pause=0.01) as port, endless:
        await read(port, seconds=0.4)


@pytest.mark.parametrize(
    ("greeting", "piece", "error", "complaint"),
    [
        (READY, b"* OK still here\r\n" * 2000, FetchError, "an answer of more than 50,000 bytes"),
        (READY + b"* 1 FETCH {90000}\r\n", b"x" * 2000, FetchError, "an answer of 90,000 bytes"),
        (READY, b"x" * 2000, SourceError, "a line of more than 10,000 bytes"),
    ],
    ids=["lines", "literal", "line"],
)
async def test_a_server_that_says_too_much_is_left(
    greeting: bytes, piece: bytes, error: type[RagstoneError], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imap_connection, "LARGEST_ANSWER", 50_000)
    monkeypatch.setattr(imap_connection, "LONGEST_LINE", 10_000)
    with speaking(greeting, piece, pause=0) as port, pytest.raises(error, match=complaint):
        await read(port, seconds=5)


def test_a_mailbox_that_claims_billions_of_messages_is_refused() -> None:
    with ImapDouble({"INBOX": MailboxDouble()}) as server:
        where = imap_connection.Server("127.0.0.1", "127.0.0.1", server.port, "none", 5.0)
        session = ImapSession(where, "anna", "secret")
        with pytest.raises(SourceError, match="has 4,000,000,000 messages, more than 1,000,000"):
            session.sizes(Mailbox(validity=1, count=4_000_000_000))
        session.close()
    assert not any(command.startswith("FETCH") for command in server.commands)
