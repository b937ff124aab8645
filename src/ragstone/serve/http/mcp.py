"""MCP at `/mcp` of the service: for the tenant and the knowledge bases of the key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from ragstone.core.errors import ModelUnavailable
from ragstone.core.keys import ApiKey
from ragstone.engine.engine import Engine
from ragstone.serve.http.identity import KeyRing, check_scope
from ragstone.serve.http.replies import CHECK_SECONDS

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from ragstone.serve.mcp.guard import McpGuard
    from ragstone.serve.mcp.server import McpCaller

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104  nothing is bound to them here
CALLER = "mcp_caller"


class McpMount:
    """An application that checks where a request comes from and whose it is, and starts MCP with the first one.

    The package for MCP takes a second to load, and a service without it works all the same.
    """

    def __init__(self, engine: Engine, keys: KeyRing) -> None:
        service = engine.settings.service
        self._engine = engine
        self._keys = keys
        self._hosts = LOOPBACK | {_plain(host) for host in (service.host, *service.hosts)} - EVERY_ADDRESS
        self._starting = asyncio.Lock()
        self._guard: McpGuard | None = None
        self._running: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        self._check_place(request)
        _, _, token = request.headers.get("authorization", "").partition(" ")
        key = await self._keys.admit(request, token.strip() or None)
        check_scope(key, "read")
        guard = await self._start()
        from ragstone.serve.mcp.guard import SessionOwner

        caller = self._caller(request, key)
        scope["state"][CALLER] = caller

        async def serve(answer: Send) -> None:
            await guard(scope, receive, answer, SessionOwner(caller.id, key.tenant_id))

        await self._serve_while_valid(serve, token.strip(), send)

    async def close(self) -> None:
        """End all sessions."""
        self._stop.set()
        if self._running:
            await asyncio.gather(self._running, return_exceptions=True)

    def _check_place(self, request: Request) -> None:
        """Refuse a request that a web page of somebody else has a browser make, by a name it made up for us."""
        given = request.headers.getlist("host")
        if not given or not all(_host_of(f"//{host}") in self._hosts for host in given):
            raise HTTPException(421, "this name of the service is not known: add it to service.hosts of the settings")
        for origin in request.headers.getlist("origin"):
            if not origin.startswith(("http://", "https://")) or _host_of(origin) not in self._hosts:
                raise HTTPException(403, "pages of this origin may not ask: add its host to service.hosts")

    def _caller(self, request: Request, key: ApiKey) -> McpCaller:
        from ragstone.serve.mcp.server import McpCaller

        return McpCaller(
            # Kept for a session of many requests, so that each says for itself by whom it was made.
            self._engine.workspace(key.tenant, kbs=key.kbs, remote=True),
            kb=request.query_params.get("kb"),
            actor=f"key:{key.id}",
            request_id=request.state.request_id,
            id=" ".join((key.tenant_id, key.id, *key.kbs)),
        )

    async def _start(self) -> McpGuard:
        async with self._starting:
            if self._guard is None:
                try:
                    guard, manager = await asyncio.to_thread(self._build)
                except ModelUnavailable as error:
                    raise HTTPException(501, f"{error}: {error.advice}") from error
                ready = asyncio.Event()
                self._running = asyncio.create_task(self._run(manager, ready))
                await ready.wait()
                self._guard = guard
            return self._guard

    def _build(self) -> tuple[McpGuard, StreamableHTTPSessionManager]:
        from ragstone.agents.budget import Budget
        from ragstone.serve.mcp.server import build_server

        server = build_server(_caller_of, budget=Budget(calls=self._engine.settings.service.mcp_calls))
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from ragstone.serve.mcp.guard import IDLE_SECONDS, MOST_BYTES, McpGuard

        manager = StreamableHTTPSessionManager(
            server, session_idle_timeout=IDLE_SECONDS, max_request_body_size=MOST_BYTES, max_sessions=None
        )
        return McpGuard(manager.handle_request), manager

    async def _run(self, manager: StreamableHTTPSessionManager, ready: asyncio.Event) -> None:
        async with manager.run():
            ready.set()
            await self._stop.wait()

    async def _serve_while_valid(self, serve: Callable[[Send], Awaitable[None]], token: str, send: Send) -> None:
        """Answer a request, and end the answer when its key is not valid any more."""
        has_begun = has_ended = False

        async def answer(message: Message) -> None:
            nonlocal has_begun, has_ended
            has_begun = True
            has_ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        serving = asyncio.ensure_future(serve(answer))
        try:
            while not (await asyncio.wait([serving], timeout=CHECK_SECONDS))[0]:
                if await self._keys.find(token) is None:
                    break
            else:
                return await serving
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        if not has_begun:
            raise HTTPException(401, "the key is not valid any more", headers={"WWW-Authenticate": "Bearer"})
        if not has_ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        return None


def _caller_of(context: Any) -> McpCaller:
    """Return the caller of the request that a message came with: a session is for one, but each is checked."""
    caller: McpCaller = context.request.scope["state"][CALLER]
    return caller


def _host_of(address: str) -> str:
    try:
        return _plain(urlsplit(address).hostname or "")
    except ValueError:
        return ""


def _plain(host: str) -> str:
    return host.strip("[]").lower().rstrip(".")
