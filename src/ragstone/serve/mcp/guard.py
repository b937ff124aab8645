"""In front of the MCP application: only sessions that the server has issued, and bodies that come whole and in time."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragstone.serve.http.bodies import BodyRefused, LimitedBody
from ragstone.serve.mcp.sessions import MOST_SESSIONS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SESSION = b"mcp-session-id"
KEPT_HEADERS = frozenset({b"host", b"mcp-protocol-version"})
IDLE_SECONDS = 600.0
"""The time after which a session ends that nothing is asked of."""
BODY_SECONDS = 30.0
"""The time in which the whole of a body must come."""
MOST_BYTES = 1_000_000
MOST_BODIES = 200
"""Bodies that may be on their way at once."""
MOST_OF_GROUP = 100
"""Sessions that one tenant may have; with one more the oldest of them ends."""


@dataclass(frozen=True, slots=True)
class SessionOwner:
    """The caller that a session belongs to, and the tenant with which it shares a number of them."""

    name: str
    group: str


ANYBODY = SessionOwner("", "")


@dataclass(slots=True)
class _Issued:
    last: float
    owner: SessionOwner
    under_way: int = 0


class McpGuard:
    """Wraps the application; keeps the ids of sessions that its answers have issued, and to whom."""

    def __init__(self, app: ASGIApp, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock
        self._issued: OrderedDict[bytes, _Issued] = OrderedDict()
        self._bodies = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send, owner: SessionOwner = ANYBODY) -> None:
        """Serve a request of somebody, whose sessions are unknown to all others."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == SESSION), None)
        session = self._find(given, owner) if given is not None else None
        if given is not None and session is None:
            await _refuse(send, 404, "Session not found")
            return
        if self._bodies >= MOST_BODIES:
            await _refuse(send, 503, "Too many requests are on their way")
            return
        try:
            body = await self._read_body(scope, receive)
        except BodyRefused as refused:
            said = "The body is too large" if refused.status_code == 413 else "The body did not come in time"
            await _refuse(send, refused.status_code, said)
            return
        if body is not None:
            await self._serve(scope, _replay(body, receive), send, session, owner)

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, session: _Issued | None, owner: SessionOwner
    ) -> None:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._remember((value for name, value in message["headers"] if name.lower() == SESSION), owner)
            await send(message)

        if session is not None:
            session.under_way += 1
        try:
            await self._app(scope, receive, answer)
        finally:
            if session is not None:
                session.under_way -= 1
                session.last = self._clock()
        for surplus in self._forget_surplus(owner.group):
            await self._end(surplus, scope)

    def _find(self, session_id: bytes, owner: SessionOwner) -> _Issued | None:
        """Return a session that was issued to a caller and has not expired."""
        found = self._issued.get(session_id)
        if found and not found.under_way and self._clock() - found.last >= IDLE_SECONDS:
            del self._issued[session_id]
            return None
        return found if found and found.owner.name == owner.name else None

    def _remember(self, session_ids: Iterable[bytes], owner: SessionOwner) -> None:
        for session_id in session_ids:
            self._issued.setdefault(session_id, _Issued(self._clock(), owner))
            self._issued.move_to_end(session_id)

    def _forget_surplus(self, group: str) -> list[bytes]:
        """Return the sessions that are too many, which are unknown from now on."""
        surplus = list(self._issued)[: max(len(self._issued) - MOST_SESSIONS, 0)]
        if group:
            own = [session_id for session_id, issued in self._issued.items() if issued.owner.group == group]
            surplus += own[: max(len(own) - MOST_OF_GROUP, 0)]
        return [session_id for session_id in surplus if self._issued.pop(session_id, None)]

    async def _end(self, session_id: bytes, scope: Scope) -> None:
        """Have the application end a session, as its client would."""
        headers = [(name, value) for name, value in scope["headers"] if name in KEPT_HEADERS]

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def drop(_: Message) -> None: ...

        await self._app({**scope, "method": "DELETE", "headers": [*headers, (SESSION, session_id)]}, receive, drop)

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the whole body; None if the client is gone."""
        self._bodies += 1
        try:
            limited = LimitedBody(scope, receive, MOST_BYTES, pause=BODY_SECONDS, whole=BODY_SECONDS)
            return await limited.read()
        finally:
            self._bodies -= 1


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a way to receive a body that has been read, and then what follows it."""
    waiting = [body]

    async def again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again


async def _refuse(send: Send, status: int, message: str) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(error).encode()})
