"""Entity tags: a caller that has the newest version of something is told so instead of getting it again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PREFIX = "/v1/"


class EntityTags:
    """Gives what is read under `/v1` an `ETag`, and answers 304 where `If-None-Match` has it.

    The tag is a hash of the body, so it is right whatever the body depends on. Streams have none. HEAD gets what GET
    would, without the body.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            await self._answer_head(scope, receive, send)
            return
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, _Tagging(send, Headers(scope=scope).get("if-none-match", "")).send)

    async def _answer_head(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as GET, without its body: monitors and `curl -I` ask so, and no route knows the method."""

        async def send_start(message: Message) -> None:
            await send(message if message["type"] == "http.response.start" else {**message, "body": b""})

        meant = {**scope, "method": "GET"}
        try:
            await self(meant, receive, send_start)
        finally:
            scope["route"] = meant.get("route")  # for the log and the metrics


@dataclass(slots=True)
class _Tagging:
    """Holds the start of a response back until its body has come, if that comes in one part."""

    pass_on: Send
    known: str
    start: Message | None = field(default=None)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            self.start = message
            return
        start, self.start = self.start, None
        if start is None:
            await self.pass_on(message)
            return
        if not message.get("more_body", False):
            start, message = self._tag(start, message)
        await self.pass_on(start)
        await self.pass_on(message)

    def _tag(self, start: Message, message: Message) -> tuple[Message, Message]:
        tag = f'"{hashlib.sha256(message.get("body", b"")).hexdigest()[:32]}"'
        headers = MutableHeaders(raw=list(start["headers"]))
        headers["ETag"] = tag
        headers.setdefault("Cache-Control", "private, no-cache")
        if not _matches(self.known, tag):
            return {**start, "headers": headers.raw}, message
        for name in ("content-length", "content-type", "content-disposition"):
            del headers[name]
        return {**start, "status": 304, "headers": headers.raw}, {**message, "body": b""}


def _matches(known: str, tag: str) -> bool:
    return known.strip() == "*" or tag in {part.strip().removeprefix("W/") for part in known.split(",")}
