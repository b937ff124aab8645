"""The body of a request: how large it may be, and how long it is waited for."""

from __future__ import annotations

import asyncio
import math
import time

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope


class BodyRefused(HTTPException):
    """A body that is not read to its end."""

    def __init__(self, status: int, detail: str, hint: str = "") -> None:
        super().__init__(status, detail)
        self.hint = hint


class LimitedBody:
    """Counts the bytes of a body and waits for each part of it, and for the whole, only so long."""

    def __init__(
        self, scope: Scope, receive: Receive, most_bytes: int, *, pause: float, whole: float = math.inf, hint: str = ""
    ) -> None:
        """`pause` and `whole` are in seconds; `hint` goes with the refusal of a large body."""
        self._receive = receive
        length = Headers(scope=scope).get("content-length", "")
        self._announced = int(length) if length.isdigit() else 0
        self._most_bytes = most_bytes
        self._pause = pause
        self._until = time.monotonic() + whole
        self._hint = hint
        self._bytes = 0
        self._is_whole = False

    async def receive(self) -> Message:
        """Return the next part, or raise `BodyRefused`."""
        if self._announced > self._most_bytes:
            raise self._too_large()
        if self._is_whole:
            return await self._receive()  # what comes now is the end of the connection
        seconds = min(self._pause, self._until - time.monotonic())
        try:
            async with asyncio.timeout(seconds):
                message = await self._receive()
        except TimeoutError:
            raise BodyRefused(408, f"the body did not come: no more of it within {seconds:.0f} s") from None
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
            if self._bytes > self._most_bytes:
                raise self._too_large()
        return message

    async def read(self) -> bytes | None:
        """Return the whole body; None if the caller has gone away before its end."""
        parts = []
        while not self._is_whole:
            message = await self.receive()
            if message["type"] != "http.request":
                return None
            parts.append(message.get("body", b""))
        return b"".join(parts)

    def _too_large(self) -> BodyRefused:
        return BodyRefused(413, f"the body has more than {self._most_bytes} bytes", self._hint)
