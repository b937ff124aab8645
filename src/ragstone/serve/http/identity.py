"""Find the caller of a request: its key, the tenant that this is for, and what it may do."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from math import ceil
from typing import Annotated, Any

from fastapi import Depends
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from ragstone.core.ids import content_hash
from ragstone.core.keys import ApiKey, KeyScope
from ragstone.engine.engine import Engine
from ragstone.engine.workspace import Workspace
from ragstone.serve.http.oidc import IdentityUnavailable, TokenReader, is_token
from ragstone.serve.http.rates import GuessLimiter, KeyLimiter, address_of
from ragstone.stores.control.keys import SqlKeyBook

FRESH_SECONDS = 0.5
"""The time for which a key is not looked up again: one that is revoked is refused within a second everywhere."""
REMEMBERED = 4096
bearer = HTTPBearer(
    auto_error=False, description="An API key: `ragstone keys create` makes one. Or a token of the identity provider."
)
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


class KeyRing:
    """Looks up keys, each at most twice a second, and holds callers to their limits."""

    def __init__(
        self, book: SqlKeyBook, clock: Callable[[], float] = time.monotonic, tokens: TokenReader | None = None
    ) -> None:
        """`tokens` reads those of an identity provider."""
        self._book = book
        self._tokens = tokens
        self._clock = clock
        self._known: OrderedDict[str, tuple[ApiKey | None, float]] = OrderedDict()
        self._limiter = KeyLimiter(book, clock)
        self._guesses = GuessLimiter(clock)

    async def admit(self, connection: HTTPConnection, token: str | None) -> ApiKey:
        """Return the key of a request, which is counted, and note both with it; refuse it with 401 or 429.

        This is the one way in: whatever serves requests with a key calls it once for each of them.
        """
        if wait := self.seconds_to_wait(connection, token):
            raise HTTPException(
                429, "too many wrong keys came from this address", headers={"Retry-After": str(ceil(wait))}
            )
        key = await self._find(token) if token else None
        if key is None:
            if token:
                self._guesses.note(address_of(connection), token)
            said = "this key is not valid" if token else "a key is needed"
            raise HTTPException(401, said, headers={"WWW-Authenticate": "Bearer"})
        connection.state.key = key
        connection.state.allowance = await self._limiter.spend(key)
        return key

    def seconds_to_wait(self, connection: HTTPConnection, token: str | None) -> float:
        """Return how long a key is not looked up since too many wrong ones came from its address; 0 if it is known."""
        wait = self._guesses.seconds_to_wait(address_of(connection)) if token else 0.0
        known, _ = self._known.get(content_hash(token), (None, 0.0)) if wait and token else (None, 0.0)
        return 0.0 if known else wait

    async def find(self, token: str) -> ApiKey | None:
        """Return the key that a caller has sent, or None if it is not valid or nobody can say so now."""
        try:
            return await self._find(token)
        except IdentityUnavailable:
            return None

    async def close(self) -> None:
        if self._tokens:
            await self._tokens.close()

    async def _find(self, token: str) -> ApiKey | None:
        name = content_hash(token)  # a secret is not kept in memory for longer than needed
        known = self._known.get(name)
        if known and known[1] > self._clock():
            return known[0]
        reader = self._tokens if self._tokens and is_token(token) else self._book
        found = await reader.find(token)
        self._known[name] = found, self._clock() + FRESH_SECONDS
        self._known.move_to_end(name)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return found


async def authenticate(request: Request, credentials: Credentials) -> ApiKey:
    """Return the key of a request, or refuse it with 401, or 429 if it has made too many."""
    admitted: ApiKey | None = getattr(request.state, "key", None)
    if admitted:
        return admitted
    ring: KeyRing = request.app.state.keys
    return await ring.admit(request, credentials.credentials if credentials else None)


Authenticated = Annotated[ApiKey, Depends(authenticate)]


class KeyedRoute(APIRoute):
    """A route that authenticates a request before its body is read, where what it depends on does."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request: FastAPI reads and parses the body before anything that a route depends on."""
        answer = super().get_route_handler()
        if not _needs_key(self.dependant):
            return answer

        async def authenticate_first(request: Request) -> Response:
            await authenticate(request, await bearer(request))
            return await answer(request)

        return authenticate_first


def _needs_key(dependant: Dependant) -> bool:
    return dependant.call is authenticate or any(_needs_key(part) for part in dependant.dependencies)


def require(scope: KeyScope) -> Callable[..., Awaitable[Workspace]]:
    """Return the dependency that gives a route the workspace of its caller, if the key has a scope."""

    async def open_workspace(request: Request, key: Authenticated) -> Workspace:
        return _workspace_of(request, key, scope)

    return open_workspace


def open_reader(request: Request, key: ApiKey) -> Workspace:
    """Return the workspace of a key that may read."""
    return _workspace_of(request, key, "read")


def _workspace_of(request: Request, key: ApiKey, scope: KeyScope) -> Workspace:
    check_scope(key, scope)
    engine: Engine = request.app.state.engine
    return engine.workspace(
        key.tenant, actor=f"key:{key.id}", request_id=request.state.request_id, kbs=key.kbs, remote=True
    )


Reader = Annotated[Workspace, Depends(require("read"))]
Writer = Annotated[Workspace, Depends(require("write"))]
Admin = Annotated[Workspace, Depends(require("admin"))]


async def require_whole_tenant(key: Authenticated, workspace: Admin) -> Workspace:
    """Return the workspace of an administrator of the whole tenant: a limited key must not make others."""
    if key.kbs:
        raise HTTPException(403, "this concerns the whole tenant, and the key is limited to some knowledge bases")
    return workspace


async def require_operator(key: Authenticated) -> ApiKey:
    """Return the key of a request if it is one of the operator."""
    if key.tenant:
        raise HTTPException(403, "this needs a key of the operator")
    return key


def check_scope(key: ApiKey, scope: KeyScope) -> None:
    """Refuse a key that is of no tenant or lacks a scope."""
    if not key.tenant:
        raise HTTPException(403, "this is a key of the operator: use a key of the tenant")
    if scope not in key.scopes:
        raise HTTPException(403, f"this needs a key with the scope {scope}")


TenantAdmin = Annotated[Workspace, Depends(require_whole_tenant)]
Operator = Annotated[ApiKey, Depends(require_operator)]
