"""A stand-in for an OpenAI-compatible service on loopback: real HTTP, scripted faults, a record of requests."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ragstone.core.types import Json

Headers = dict[str, str]


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent."""

    path: str
    headers: Headers
    body: Json


@dataclass(frozen=True, slots=True)
class Reply:
    """What the service answers. `hang` keeps the connection open and says nothing; `cut` ends it half-way."""

    body: bytes = b"{}"
    status: int = 200
    headers: Headers = field(default_factory=lambda: {"content-type": "application/json"})
    hang: bool = False
    cut: bool = False


Handler = Callable[[Request], Reply]


def json_reply(body: Json, status: int = 200, **headers: str) -> Reply:
    """A reply with a JSON body; header names are given with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(json.dumps(body).encode(), status, {"content-type": "application/json"} | named)


Usage = tuple[int, int]
"""Tokens that were read and written."""


def chat_reply(text: str | None, finish_reason: str = "stop", usage: Usage | None = None) -> Reply:
    """A chat completion that says `text`."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    counted = {"usage": _usage(usage)} if usage else {}
    return json_reply(
        {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **counted}
    )


def stream_reply(
    *parts: str, finish_reason: str | None = "stop", done: bool = True, usage: Usage | None = None
) -> Reply:
    """A streamed chat completion; without a reason or `done` it breaks off."""
    deltas: list[dict[str, Any]] = [{"delta": {"content": part}, "finish_reason": None} for part in parts]
    if finish_reason:
        deltas.append({"delta": {}, "finish_reason": finish_reason})
    events = [
        {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0} | delta]}
        for delta in deltas
    ]
    if usage:
        events.append({**events[-1], "choices": [], "usage": _usage(usage)})
    lines = [f"data: {json.dumps(event)}\n\n" for event in events] + (["data: [DONE]\n\n"] if done else [])
    return Reply("".join(lines).encode(), headers={"content-type": "text/event-stream"})


def _usage(usage: Usage) -> dict[str, int]:
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}


class OpenAIDouble:
    """Serves in a thread while it is entered. `script` answers come first, one per request, then `handler`'s."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.script: deque[Reply | Handler] = deque()
        self.requests: list[Request] = []
        self._closing = threading.Event()

    def __enter__(self) -> OpenAIDouble:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._http_handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The base address to configure."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def _answer(self, request: Request) -> Reply:
        self.requests.append(request)
        answer = self.script.popleft() if self.script else self._handler
        return answer if isinstance(answer, Reply) else answer(request)

    def _http_handler(self) -> type[BaseHTTPRequestHandler]:
        double = self

        class Connection(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = json.loads(self.rfile.read(length))
                reply = double._answer(Request(self.path, dict(self.headers), body))
                if reply.hang:
                    double._closing.wait()
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body[: len(reply.body) // 2] if reply.cut else reply.body)
                self.close_connection = self.close_connection or reply.cut

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        return Connection
