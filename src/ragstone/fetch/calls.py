"""Calls to services: one deadline, one retry policy, and no secret in an error.

An adapter translates what a service answers into the errors of its own seam. An error that may be over soon can carry
the service's `Retry-After` header as `retry_header`.
"""

from __future__ import annotations

import asyncio
import base64
import math
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from ragstone.core.clock import now, parse_mail_date

if TYPE_CHECKING:
    import ssl

    import httpx2

T = TypeVar("T")
_RANDOM = random.SystemRandom()
Sleep = Callable[[float], Awaitable[None]]
LONGEST_REASON = 200
WRONG_SHAPE = (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError)
"""Errors of code that takes an answer apart which is not what the service documents."""


@cache
def tls_context() -> ssl.SSLContext:
    """Return the trusted authorities, read once: reading them takes longer than many a request."""
    import httpcore2

    return httpcore2.default_ssl_context()


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Repeats a call that failed for a passing reason.

    It waits as long as the service asked for, or else twice as long each time.
    """

    attempts: int = 3
    first_wait: float = 0.5
    longest_wait: float = 60.0
    seconds: float = math.inf
    """Time for all attempts together; no wait goes beyond it."""
    jitter: float = 0.0
    """The share by which a wait is longer at random, so that callers that failed together do not come back together."""

    async def call(
        self,
        attempt: Callable[[], Awaitable[T]],
        is_transient: Callable[[Exception], bool],
        sleep: Sleep = asyncio.sleep,
    ) -> T:
        """Return what the first successful attempt returns, or raise the error of the last one."""
        began, failures = time.monotonic(), 0
        while True:
            try:
                return await attempt()
            except Exception as error:
                failures += 1
                wait = self._wait_after(error, failures, began)
                if wait is None or not is_transient(error):
                    raise
            await sleep(wait)

    def call_blocking(self, attempt: Callable[[], T], is_transient: Callable[[Exception], bool]) -> T:
        """Do the same in a thread, for a library whose calls block."""
        began, failures = time.monotonic(), 0
        while True:
            try:
                return attempt()
            except Exception as error:
                failures += 1
                wait = self._wait_after(error, failures, began)
                if wait is None or not is_transient(error):
                    raise
            time.sleep(wait)

    def _wait_after(self, error: Exception, failures: int, began: float) -> float | None:
        """Return the seconds until the next attempt; None when there is none."""
        asked = parse_retry_after(getattr(error, "retry_header", None))
        wait = min(self.first_wait * 2 ** (failures - 1) if asked is None else asked, self.longest_wait)
        wait *= 1 + self.jitter * _RANDOM.random()
        over = failures >= self.attempts or time.monotonic() - began + wait >= self.seconds
        return None if over else wait


def is_transient_status(status: int) -> bool:
    """Return whether the same request may succeed later."""
    return status in (408, 425, 429) or status >= 500


def parse_retry_after(header: str | None) -> float | None:
    """Return the seconds that a `Retry-After` header asks for; None when it cannot be read."""
    if not header:
        return None
    try:
        seconds = float(header)
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    except ValueError:
        pass
    moment = parse_mail_date(header)
    return None if moment is None else max((moment - now()).total_seconds(), 0.0)


def redact(reason: str, *secrets: str | None, most: int = LONGEST_REASON) -> str:
    """Return what a service said in one short line, without secrets that it may have quoted."""
    for secret in filter(None, secrets):
        for spelling in (secret, base64.b64encode(secret.encode()).decode()):
            reason = reason.replace(spelling, "***")
    return " ".join(reason.split())[:most]


def host_of(url: str) -> str:
    """Return the host and port of an address, without user, password, path or query."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def is_service_url(url: str) -> bool:
    """Return whether a setting is an http or https address with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def connection_owner() -> tuple[int, asyncio.AbstractEventLoop]:
    """Return the process and the event loop that connections opened here belong to."""
    return os.getpid(), asyncio.get_running_loop()


class ServiceReply(NamedTuple):
    """An answer of any status, read to its end."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class ReplyTooLarge(Exception):
    """The answer has more bytes than the caller takes."""


class ServiceClient:
    """Keeps HTTP connections to a service open. A child process or another event loop gets its own.

    Redirects are not followed: they would take the key elsewhere.
    """

    def __init__(self, timeout: float, max_bytes: float = math.inf) -> None:
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._client: httpx2.AsyncClient | None = None
        self._owner: tuple[int, asyncio.AbstractEventLoop] | None = None

    async def send(self, method: str, url: str, **request: Any) -> ServiceReply:
        """Make one attempt within the timeout.

        Raises `TimeoutError`, `ConnectionError` for a service that cannot be reached, and `ReplyTooLarge`.
        """
        import httpx2

        try:
            async with asyncio.timeout(self._timeout), self._connect().stream(method, url, **request) as response:
                return ServiceReply(response.status_code, response.headers, await self._read(response))
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise TimeoutError(f"did not answer within {self._timeout:g} s") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise ConnectionError("cannot be reached") from error

    async def close(self) -> None:
        client, owner = self._client, self._owner
        self._client = self._owner = None
        if client is not None and owner == connection_owner():
            await client.aclose()

    def _connect(self) -> httpx2.AsyncClient:
        import httpx2

        if self._client is None or self._owner != connection_owner():
            self._client = httpx2.AsyncClient(timeout=self._timeout, verify=tls_context())
            self._owner = connection_owner()
        return self._client

    async def _read(self, response: httpx2.Response) -> bytes:
        parts, size = [], 0
        async for part in response.aiter_bytes():
            size += len(part)
            if size > self._max_bytes:
                raise ReplyTooLarge
            parts.append(part)
        return b"".join(parts)
