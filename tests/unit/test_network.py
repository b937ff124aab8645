"""The guard in conftest.py: a test that reaches for the network fails."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

OUTSIDE = ("192.0.2.1", 9)
"""TEST-NET-1: an address nobody has."""


def _connect() -> None:
    with socket.socket() as connection:
        connection.connect(OUTSIDE)


def _connect_ex() -> None:
    with socket.socket() as connection:
        connection.connect_ex(OUTSIDE)


def _datagram() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as connection:
        connection.sendto(b"x", OUTSIDE)


def _lookup() -> None:
    socket.getaddrinfo("example.invalid", 80)


@pytest.mark.parametrize("leave", [_connect, _connect_ex, _datagram, _lookup])
def test_the_network_is_closed(leave: Callable[[], None]) -> None:
    with pytest.raises(RuntimeError, match="tests may only use loopback"):
        leave()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_is_open(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection((host, port)) as client:
            assert client.getpeername() == ("127.0.0.1", port)


def test_unix_sockets_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path may be no longer than about 100 bytes
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("s")
        server.listen()
        client.connect("s")
        assert client.getpeername() == "s"
