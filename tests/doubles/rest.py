"""A stand-in for a JSON service on loopback: real HTTP, one handler, faults on demand, a record of requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Set
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from tests.doubles.web import Reply, Request

Handler = Callable[[Request], Reply]


class Refused(Exception):
    """Raised in a handler: the request is not one that the real service would take."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class RestDouble:
    """Serves in a thread while it is entered. `faults` come first, one per request, then the handler's answers.

    The handler is never run twice at the same time. A parameter given several times is joined by commas.
    """

    def __init__(self, handler: Handler, address: str = "127.0.0.1") -> None:
        self._handler = handler
        self._address = address
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.faults: deque[Reply] = deque()
        self.requests: list[Request] = []
        self.connections = 0
        """How often somebody has connected."""

    def __enter__(self) -> RestDouble:
        self._server = _Server((self._address, 0), self._http_handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def host(self) -> str:
        return f"{self._address}:{self._server.server_port}"

    def _answer(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            return self.faults.popleft() if self.faults else self._handler(request)

    def _http_handler(self) -> type[BaseHTTPRequestHandler]:
        double = self

        class Connection(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                with double._lock:
                    double.connections += 1

            def _serve(self) -> None:
                path, _, query = self.path.partition("?")
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                given = parse_qs(query, keep_blank_values=True)
                parameters = {name: ",".join(values) for name, values in given.items()}
                reply = double._answer(Request(self.command, path, parameters, headers, body))
                if reply.hang:
                    double._closing.wait()
                    self.close_connection = True
                    return
                self._send(reply)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _serve  # noqa: N815 - the library's names

            def _send(self, reply: Reply) -> None:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(reply.body[: len(reply.body) // 2] if reply.cut else reply.body)
                self.close_connection = self.close_connection or reply.cut

            def handle(self) -> None:
                try:
                    super().handle()
                except ConnectionError:
                    """The client hung up, as clients of slow answers do."""

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        return Connection


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def check_fields(given: Any, required: Set[str], optional: Set[str] = frozenset()) -> None:
    """Refuse an object that lacks a field or has one that nobody knows."""
    if not isinstance(given, dict):
        raise Refused(400, "an object was expected")
    if missing := required - given.keys():
        raise Refused(400, f"missing field: {min(missing)}")
    if unknown := given.keys() - required - optional:
        raise Refused(400, f"unknown field: {min(unknown)}")
