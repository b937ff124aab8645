"""An OpenAI-compatible address on loopback, with a model of this process behind it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.live.smollm import Completion, SmolLM

NAME = "SmolLM2-135M-Instruct"


@contextmanager
def serve(model: SmolLM) -> Iterator[str]:
    """Serve a model while the block runs; give its base address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(model))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(model: SmolLM) -> type[BaseHTTPRequestHandler]:
    one_at_a_time = threading.Lock()

    class Connection(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with one_at_a_time:
                made = model.complete(asked["messages"], int(asked["max_tokens"]), float(asked.get("temperature", 0.0)))
            streams = bool(asked.get("stream"))
            content = _events(made) if streams else json.dumps(_whole(made))
            with suppress(BrokenPipeError):  # whoever asked had no more time
                self.send_response(200)
                self.send_header("content-type", "text/event-stream" if streams else "application/json")
                self.send_header("content-length", str(len(content.encode())))
                self.end_headers()
                self.wfile.write(content.encode())

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    return Connection


def _whole(made: Completion) -> dict[str, Any]:
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": made.text or "…"},
        "finish_reason": "stop",
    }
    counted = {"prompt_tokens": made.read, "completion_tokens": made.written, "total_tokens": made.read + made.written}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": NAME, "choices": [choice], "usage": counted}


def _events(made: Completion) -> str:
    deltas = [{"content": word + " "} for word in (made.text or "…").split(" ")]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    whole = _whole(made)
    parts = [{**whole, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    return "".join(f"data: {json.dumps(part)}\n\n" for part in parts) + "data: [DONE]\n\n"
