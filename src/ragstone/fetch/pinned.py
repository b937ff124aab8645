"""Opens connections to checked addresses only.

The guard sits where sockets are made: the connection pool knows no other way to connect, it never resolves a name
itself, and it reads no proxy from the environment. Host header and TLS name stay those of the address that was given.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from functools import cache

import httpcore2

from ragstone.fetch.guard import Guard

MAX_CONNECTIONS = 64
KEEP_ALIVE_SECONDS = 15.0


def open_pool(guard: Guard) -> httpcore2.AsyncConnectionPool:
    """A pool whose every connection goes through the guard."""
    return httpcore2.AsyncConnectionPool(
        ssl_context=_tls(),
        max_connections=MAX_CONNECTIONS,
        max_keepalive_connections=MAX_CONNECTIONS // 4,
        keepalive_expiry=KEEP_ALIVE_SECONDS,
        network_backend=PinnedBackend(guard),
    )


@cache
def _tls() -> ssl.SSLContext:
    # Reading the authorities takes longer than many a request.
    return httpcore2.default_ssl_context()


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
