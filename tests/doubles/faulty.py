"""A proxy on loopback in front of a service that works: it goes wrong in the way that it is told to."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import Literal, get_args

FaultKind = Literal["down", "hang", "reset", "drip", "500", "429", "truncated", "off_schema"]
FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
HOST = "127.0.0.1"
OFF_SCHEMA = b'{"surprise": [1]}'
RESET = struct.pack("ii", 1, 0)


class FaultyProxy:
    """Serves in threads while it is entered. Setting `fault` ends the connections that there are."""

    def __init__(self, address: str) -> None:
        """`address` is the HOST:PORT of the service behind."""
        host, _, port = address.rpartition(":")
        self._behind = host, int(port)
        self._fault: FaultKind | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def __enter__(self) -> FaultyProxy:
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._accept(self._listener)
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self.fault = "down"

    @property
    def fault(self) -> FaultKind | None:
        return self._fault

    @fault.setter
    def fault(self, kind: FaultKind | None) -> None:
        was_down, self._fault = self._fault == "down", kind
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        if kind == "down" and not was_down:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        elif kind != "down" and was_down:
            self._listener = socket.create_server((HOST, self.port))
            self._accept(self._listener)

    def _accept(self, listener: socket.socket) -> None:
        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return  # the service is down
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with self._lock:
            self._open.add(client)
        try:
            with client, contextlib.suppress(OSError, ValueError):
                while request := _read_message(client):
                    self._answer(client, request)
        finally:
            with self._lock:
                self._open.discard(client)

    def _answer(self, client: socket.socket, request: bytes) -> None:
        match self._fault:
            case "hang":
                self._closing.wait()
            case "reset":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                client.close()
            case "500" | "429":
                _send(client, int(self._fault), b'{"error": {"message": "not now"}}')
            case "off_schema":
                _send(client, 200, OFF_SCHEMA)
            case _:
                self._forward(client, self._ask(request))

    def _ask(self, request: bytes) -> bytes:
        with socket.create_connection(self._behind) as behind:
            behind.sendall(request)
            return _read_message(behind)

    def _forward(self, client: socket.socket, reply: bytes) -> None:
        if self._fault == "truncated":
            head = reply.index(b"\r\n\r\n") + 4
            client.sendall(reply[: head + (len(reply) - head) // 2])
            client.close()
        elif self._fault == "drip":
            for place in range(len(reply)):
                client.sendall(reply[place : place + 1])
                time.sleep(1)
        else:
            client.sendall(reply)


def _read_message(connection: socket.socket) -> bytes:
    """Return a whole request or response with a length; empty when the other side has gone."""
    message = b""
    while b"\r\n\r\n" not in message:
        if not (part := connection.recv(65536)):
            return b""
        message += part
    head, _, body = message.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
    length = int(fields.get(b"content-length", b"0"))
    while len(body) < length:
        if not (part := connection.recv(65536)):
            return b""
        body += part
    return head + b"\r\n\r\n" + body


def _send(client: socket.socket, status: int, body: bytes) -> None:
    head = f"HTTP/1.1 {status} Fault\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    client.sendall(head.encode() + body)
