"""Opens connections to checked addresses only.

The guard sits where sockets are made: the connection pool knows no other way to connect, it never resolves a name
itself, and it reads no proxy from the environment. Host header and TLS name stay those of the address that was given.
"""

from __future__ import annotations

import asyncio
import json as jsons
from collections.abc import Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlencode

import httpcore2

from ragstone.core.errors import FetchError
from ragstone.core.types import Json
from ragstone.fetch.calls import RetryPolicy, Sleep, tls_context
from ragstone.fetch.exchange import Fetched, FetchRequest, TransientFailure, exchange
from ragstone.fetch.guard import Guard, Resolve, Unresolved
from ragstone.fetch.urls import parse_url
from ragstone.settings.tree import FetchSettings

MAX_CONNECTIONS = 64
KEEP_ALIVE_SECONDS = 15.0


def open_pool(guard: Guard) -> httpcore2.AsyncConnectionPool:
    """Return a pool whose every connection goes through the guard."""
    return httpcore2.AsyncConnectionPool(
        ssl_context=tls_context(),
        max_connections=MAX_CONNECTIONS,
        max_keepalive_connections=MAX_CONNECTIONS // 4,
        keepalive_expiry=KEEP_ALIVE_SECONDS,
        network_backend=PinnedBackend(guard),
    )


class PinnedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to the first checked address of a host that answers."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._sockets = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the pool calls it so
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        *others, last = await self._guard.addresses(host, port)
        for address in others:
            try:
                return await self._sockets.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._sockets.connect_tcp(last, port, timeout, local_address, socket_options)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the pool calls it so
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        raise NotImplementedError("no address leads to a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        await self._sockets.sleep(seconds)


class Fetcher:
    """Fetches addresses that users and documents give. Keeps no cookies, uses no proxy, sends no credentials on."""

    def __init__(self, settings: FetchSettings, resolve: Resolve | None = None, *, wait: Sleep = asyncio.sleep) -> None:
        self.settings = settings
        self.wait = wait
        self._retries = RetryPolicy(attempts=settings.retries + 1)
        self._guard = Guard(settings.allow, resolve)
        self._pool: httpcore2.AsyncConnectionPool | None = None

    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str | int] | None = None,
        max_bytes: int | None = None,
    ) -> Fetched:
        """Return the answer of an address; a 304 to conditional headers is one too.

        Raises `AddressRefused` where nothing may be fetched from, and `FetchError` for everything else.
        """
        return await self._send(self._request("GET", url, headers, params, b"", max_bytes))

    async def post(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        json: Json = None,
        content: bytes | None = None,
        keep_body: bool = False,
    ) -> Fetched:
        """Send a form, JSON or bytes, and return the answer. It may be sent again after a transient failure.

        With `keep_body` a redirect that would be followed without what was sent raises `FetchError`.
        """
        body, kind = content or b"", ""
        if form is not None:
            body, kind = urlencode(form).encode(), "application/x-www-form-urlencoded"
        elif json is not None:
            body, kind = jsons.dumps(json).encode(), "application/json"
        given = {"content-type": kind, **_lower(headers)} if kind else headers
        request = self._request("POST", url, given, None, body, None)
        return await self._send(replace(request, keep_body=keep_body))

    async def address(self, host: str, port: int) -> str:
        """Return a checked address of a host, for protocols other than HTTP: connect to it and to nothing else."""
        return (await self._guard.addresses(host, port))[0]

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()
            self._pool = None

    def _request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        params: Mapping[str, str | int] | None,
        body: bytes,
        max_bytes: int | None,
    ) -> FetchRequest:
        parsed = parse_url(url)
        defaults = {"user-agent": self.settings.user_agent, "accept": "*/*", "accept-encoding": "gzip, deflate"}
        return FetchRequest(
            method=method,
            url=parsed.copy_merge_params(params) if params else parsed,
            headers=defaults | _lower(headers),
            body=body,
            max_bytes=self.settings.max_mb * 1024 * 1024 if max_bytes is None else max_bytes,
            timeout=self.settings.timeout,
        )

    async def _send(self, request: FetchRequest) -> Fetched:
        try:
            return await self._retries.call(
                lambda: self._attempt(request), lambda error: isinstance(error, TransientFailure), self.wait
            )
        except TransientFailure as failure:
            raise failure.error from failure

    async def _attempt(self, request: FetchRequest) -> Fetched:
        """Make one attempt, redirects included, and translate its errors."""
        try:
            async with asyncio.timeout(self.settings.timeout):
                return await self._follow(request)
        except (TimeoutError, httpcore2.TimeoutException) as problem:
            raise TransientFailure(
                FetchError(
                    f"{request.shown_url} did not answer within {self.settings.timeout:g} s",
                    hint="try again later, or raise fetch.timeout",
                )
            ) from problem
        except Unresolved as problem:
            if problem.transient:
                raise TransientFailure(problem) from problem
            raise
        except (httpcore2.LocalProtocolError, httpcore2.UnsupportedProtocol) as problem:
            raise FetchError(
                f"the request to {request.shown_url} cannot be sent: {problem!s:.200}",
                hint="check the headers it is configured with",
            ) from problem
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as problem:
            raise TransientFailure(
                FetchError(
                    f"{request.shown_url} cannot be reached or broke off: {problem!s:.200}",
                    hint="check the address and that the server runs",
                )
            ) from problem

    async def _follow(self, request: FetchRequest) -> Fetched:
        if self._pool is None:
            self._pool = open_pool(self._guard)
        first = request
        for _ in range(self.settings.redirects + 1):
            answer = await exchange(self._pool, request)
            if isinstance(answer, Fetched):
                return answer
            request = answer
        raise FetchError(
            f"{first.shown_url} leads on more than {self.settings.redirects} times",
            hint="use the address it leads to, or raise fetch.redirects",
        )


def _lower(headers: Mapping[str, str] | None) -> dict[str, str]:
    return {name.lower(): value for name, value in (headers or {}).items()}
