"""Requests that carry an `Idempotency-Key`: done once, however often they come, and answered the same each time.

A reply is kept for a day, sealed with the caller's own key: neither a document's text nor a new API key can be read
from the database. Only what succeeded is kept; a request that failed may be made again under the same key.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragstone.core.errors import RagstoneError
from ragstone.core.ids import opaque_id
from ragstone.core.keys import ApiKey
from ragstone.serve.http.identity import KeyRing
from ragstone.serve.http.problems import make_problem, tell_error
from ragstone.serve.http.replies import has_failed

if TYPE_CHECKING:
    from ragstone.stores.control.replies import SqlReplyBook

logger = logging.getLogger(__name__)
HEADER = "Idempotency-Key"
KEY = re.compile(r"[\x21-\x7e]{1,255}")
BOUNDARY = re.compile(rb"boundary=\"?([^\";,]{1,200})")
MOST_BYTES = 256 * 1024
"""Of a reply that is kept."""
RENEW_SECONDS = 5.0
POLL_SECONDS = 0.1
WAIT_SECONDS = 10.0
"""The time for which a repeated request waits for the first one."""
NONCE_BYTES = 12


class IdempotencyKeys:
    """Wraps the application inside of the `RequestGuard`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        named = request.headers.get(HEADER)
        token = request.headers.get("authorization", "").partition(" ")[2].strip()
        keys: KeyRing = scope["app"].state.keys
        may_look = named is not None and token and not keys.seconds_to_wait(request, token)
        key = await keys.find(token) if may_look else None
        if named is None or key is None:
            await self._app(scope, receive, send)  # without a valid key the route refuses it
            return
        try:
            _check_name(named)
            body = await _read_body(receive)
            once = _Once(
                scope["app"].state.engine.replies, request, key, token, named, await _fingerprint(request, body)
            )
            if reply := await once.begin():
                await keys.admit(request, token)  # a repeated request counts as one, too
                await reply(scope, receive, send)
                return
        except HTTPException as error:
            response = make_problem(request, error.status_code, str(error.detail), headers=error.headers)
            await response(scope, receive, send)
            return
        except RagstoneError as error:
            await tell_error(request, error)(scope, receive, send)
            return
        await self._run(once, scope, _repeat_body(body, receive), send)

    async def _run(self, once: _Once, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the application do the request, and keep its reply before the end of it is sent."""
        start: Message = {}
        body = bytearray()
        is_small = True

        async def answer(message: Message) -> None:
            nonlocal is_small
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body":
                is_small = is_small and len(body) + len(message.get("body", b"")) <= MOST_BYTES
                body.extend(message.get("body", b"") if is_small else b"")
                is_done = start["status"] < 300 and not has_failed(scope)
                if not message.get("more_body", False) and is_done:
                    await once.keep(_pack(start, bytes(body)) if is_small else None)
            await send(message)

        async with once.holding():
            await self._app(scope, receive, answer)


class _Once:
    """One request with an idempotency key, from a caller."""

    def __init__(
        self, book: SqlReplyBook, request: Request, key: ApiKey, token: str, named: str, fingerprint: str
    ) -> None:
        self._book = book
        self._request = request
        self._tenant_id = key.tenant_id
        self._fingerprint = fingerprint
        # One key of a tenant must not get the reply to another that may do more.
        self._id = _digest("reply", key.tenant_id, key.id, named)
        self._secret = bytes.fromhex(_digest("seal", token, named))
        self._owner = opaque_id()
        self._is_kept = False

    async def begin(self) -> Response | None:
        """Claim the request; return the reply or the refusal if it was made before."""
        waited = 0.0
        while True:
            found = await self._book.begin(self._id, self._tenant_id, self._fingerprint, self._owner)
            if found.state == "begun":
                return None
            if found.state == "other":
                return self._refuse(422, "idempotency_key_reused", f"another request was made with this {HEADER}")
            if found.state == "done":
                said = "this request was done, and its reply is not kept"
                return _unseal(self._secret, self._id, found.sealed) or self._refuse(409, "reply_not_kept", said)
            if waited >= WAIT_SECONDS:
                return self._refuse(409, "request_under_way", "the same request is being done", {"Retry-After": "5"})
            await asyncio.sleep(POLL_SECONDS)
            waited += POLL_SECONDS

    async def keep(self, reply: bytes | None) -> None:
        """Keep the reply of a request that is done."""
        sealed = None if reply is None else _seal(self._secret, self._id, reply)
        self._is_kept = True
        try:
            await self._book.finish(self._id, self._owner, sealed)
        except RagstoneError as error:
            # The work is done, and its caller is to hear of it.
            logger.warning("cannot keep the reply to a request with an idempotency key: %s", error)

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[None]:
        """Hold the claim while the block runs; without a reply it is given up."""
        beating = asyncio.create_task(self._renew())
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
            if not self._is_kept:
                await asyncio.shield(self._release())

    async def _release(self) -> None:
        try:
            await self._book.release(self._id, self._owner)
        except RagstoneError as error:
            logger.warning("cannot give up a request with an idempotency key, its lease ends soon: %s", error)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await self._book.renew(self._id, self._owner)
            except RagstoneError as error:
                logger.warning("cannot renew the lease of a request with an idempotency key: %s", error)

    def _refuse(self, status: int, code: str, said: str, headers: dict[str, str] | None = None) -> Response:
        hint = f"use a new {HEADER} for a new request"
        return make_problem(self._request, status, said, code=code, hint=hint, headers=headers)


def _check_name(named: str) -> None:
    if not KEY.fullmatch(named):
        raise HTTPException(422, f"{HEADER} is 1 to 255 visible ASCII characters")


async def _read_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HTTPException(400, "the connection was closed before the whole body had come")
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _repeat_body(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return pending.pop() if pending else await receive()

    return again


async def _fingerprint(request: Request, body: bytes) -> str:
    """Return a hash of what is asked for; clients choose another boundary each time they send the same form."""
    content_type = request.headers.get("content-type", "").encode("latin-1")
    if content_type.startswith(b"multipart/") and (found := BOUNDARY.search(content_type)):
        body = body.replace(found[1], b"")
    media_type = content_type.partition(b";")[0].strip().lower()
    asked = (request.url.path, request.url.query, request.headers.get("accept", ""), media_type.decode("latin-1"))
    return await asyncio.to_thread(lambda: _digest(*asked, hashlib.sha256(body).hexdigest()))


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _pack(start: Message, body: bytes) -> bytes:
    headers: Sequence[tuple[bytes, bytes]] = start["headers"]
    told = {
        "status": start["status"],
        "headers": [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers],
    }
    return json.dumps(told).encode() + b"\n" + body


def _seal(secret: bytes, name: str, content: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(secret).encrypt(nonce, content, name.encode())


def _unseal(secret: bytes, name: str, sealed: bytes | None) -> Response | None:
    """Return a reply that was kept; None if it was not, or if the caller has another token by now."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if sealed is None:
        return None
    try:
        content = AESGCM(secret).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], name.encode())
    except InvalidTag:
        return None
    head, _, body = content.partition(b"\n")
    told: dict[str, Any] = json.loads(head)
    response = Response(body, told["status"])
    kept = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in told["headers"]]
    response.raw_headers = [*kept, (b"idempotency-replayed", b"true")]
    return response
