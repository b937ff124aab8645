"""A stand-in for web servers on loopback: real HTTP, scripted answers per path, a record of requests."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

from ragstone.core.types import Json


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent; header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answers.

    `cut` ends the connection half-way through the body, `reset` instead of any answer; `hang` never answers.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    reset: bool = False
    hang: bool = False


Answer = Reply | Callable[[Request], Reply]


def html(body: str, **headers: str) -> Reply:
    """A web page; header names are given with `_` for `-`."""
    return Reply(body.encode(), headers={"content-type": "text/html; charset=utf-8"} | _named(headers))


def xml(body: str, **headers: str) -> Reply:
    """A feed or a sitemap."""
    return Reply(body.encode(), headers={"content-type": "application/xml"} | _named(headers))


def json_reply(body: Json, status: int = 200, **headers: str) -> Reply:
    """A reply with a JSON body."""
    return Reply(json.dumps(body).encode(), status, {"content-type": "application/json"} | _named(headers))


def redirect(location: str, status: int = 302) -> Reply:
    """A reply that leads elsewhere."""
    return Reply(status=status, headers={"location": location})


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


class WebDouble:
    """Serves in a thread while it is entered; a path without an answer is a 404."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self._answers: dict[str, tuple[Answer, ...]] = {}
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def __enter__(self) -> WebDouble:
        self._server = _Server(("127.0.0.1", 0), self._http_handler())
        self._server.accepted = self._count
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        return self._server.server_port

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """The address of a path, under any name that leads to loopback."""
        return f"http://{host}:{self.port}{path}"

    def on(self, path: str, *answers: Answer) -> None:
        """Answer requests for a path, with or without its query, one after the other; the last one stays."""
        with self._lock:
            self._answers[path] = answers
            self._asked[path] = 0

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for, in order."""
        return [request.path for request in self.requests]

    def _count(self) -> None:
        self.connections += 1

    def _answer(self, target: str, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            key = target if target in self._answers else request.path
            answers = self._answers.get(key, (Reply(b"not found", 404),))
            answer = answers[min(self._asked[key], len(answers) - 1)]
            self._asked[key] += 1
        return answer if isinstance(answer, Reply) else answer(request)

    def _http_handler(self) -> type[BaseHTTPRequestHandler]:
        double = self

        class Connection(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                parameters = dict(parse_qsl(query, keep_blank_values=True))
                reply = double._answer(self.path, Request(self.command, path, parameters, headers, body))
                if reply.hang:
                    double._closing.wait()
                if reply.reset:
                    # A linger of zero seconds makes the close a reset.
                    linger = struct.pack("ii", 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                if reply.hang or reply.reset:
                    self.close_connection = True
                    return
                self._send(reply)

            def do_POST(self) -> None:
                self.do_GET()

            do_DELETE = do_GET  # noqa: N815

            def _send(self, reply: Reply) -> None:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if "content-length" not in reply.headers:
                    self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body[: len(reply.body) // 2] if reply.cut else reply.body)
                self.close_connection = self.close_connection or reply.cut

            def handle(self) -> None:
                try:
                    super().handle()
                except ConnectionError:
                    """The client hung up, as clients of broken answers do."""

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        return Connection


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    accepted: Callable[[], None]

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        accepted = super().get_request()
        self.accepted()
        return accepted

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        # The usual polite shutdown would turn a reset into an ordinary end.
        if isinstance(request, socket.socket):
            request.close()
