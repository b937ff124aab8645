"""Calls a search engine over HTTP: one deadline, a budget of retries, failures in our own words.

What an engine says is never repeated in an error: it may quote the key that it was sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragstone.core.errors import RateLimited, RemoteError, SettingsError
from ragstone.core.types import Json
from ragstone.fetch.retry import passes, pause
from ragstone.settings.web import WebSettings

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 4 * 1024 * 1024
LIMITED = (429, 432, 433)
"""Too many requests; the other two are Tavily's, for a plan that is used up."""
Sleep = Callable[[float], Awaitable[None]]


class SearchService:
    """An engine at one address. Redirects are not followed: they would take the key elsewhere."""

    def __init__(
        self,
        name: str,
        url: str,
        settings: WebSettings,
        headers: Mapping[str, str] | None = None,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.name = name
        self.url = _checked(url)
        self._timeout = settings.timeout
        self._retries = settings.retries
        self._headers = {"user-agent": "ragstone", "accept": "application/json", **(headers or {})}
        self._sleep = sleep
        self._client: httpx2.AsyncClient | None = None

    async def get(self, parameters: Mapping[str, str | int]) -> Json:
        """The JSON that a GET with these parameters answers."""
        return await self._call("GET", params=dict(parameters))

    async def post(self, body: Json) -> Json:
        """The JSON that a POST of this body answers."""
        return await self._call("POST", json=body)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around code that takes an answer apart: one of another shape is the engine's failure."""
        try:
            yield
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise self._failure("sent an answer of another shape than its interface says") from error

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _call(self, method: str, **request: Any) -> Json:
        try:
            async with asyncio.timeout(self._timeout):
                for attempt in range(self._retries + 1):
                    try:
                        return await self._attempt(method, request)
                    except RateLimited:
                        raise  # asking again at once is what it does not want
                    except RemoteError as error:
                        if not error.retryable or attempt == self._retries:
                            raise
                    await self._sleep(pause(attempt, None))
        except TimeoutError:
            raise self._failure(
                f"did not answer within {self._timeout:g} s", hint="raise web.timeout"
            ) from None
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _attempt(self, method: str, request: Mapping[str, Any]) -> Json:
        import httpx2

        try:
            async with self._connected().stream(
                method, self.url, headers=self._headers, **request
            ) as response:
                body = await _limited_body(response)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise self._failure("cannot be reached", hint="check web.url and the network") from error
        if body is None:
            raise self._refusal("sent far too much")
        return self._read(response.status_code, body)

    def _connected(self) -> httpx2.AsyncClient:
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(timeout=self._timeout)
        return self._client

    def _read(self, status: int, body: bytes) -> Json:
        if status in LIMITED or (status == 403 and _is_quota(body)):
            raise RateLimited(self._message(f"is limiting requests ({status})"), hint="try again later")
        if status in (401, 403):
            raise self._refusal(
                f"refused the request ({status})",
                hint="check web.api_key; SearXNG must allow the json format in its settings.yml",
            )
        if status >= 300:
            what = f"failed ({status})"
            raise self._failure(what) if passes(status) else self._refusal(what, hint="check web.url")
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise self._failure("sent an answer that is not JSON", hint="check web.url") from None

    def _failure(self, what: str, *, hint: str = "") -> RemoteError:
        return RemoteError(self._message(what), hint=hint)

    def _refusal(self, what: str, *, hint: str = "") -> RemoteError:
        """A failure that the same request would meet again."""
        error = self._failure(what, hint=hint)
        error.retryable = False
        return error

    def _message(self, what: str) -> str:
        # Without the path and the query: they may hold a key.
        return f"{self.name} at {urlsplit(self.url).netloc.rpartition('@')[2]} {what}"


async def _limited_body(response: httpx2.Response) -> bytes | None:
    parts, size = [], 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MOST_BYTES:
            return None
        parts.append(part)
    return b"".join(parts)


def _is_quota(body: bytes) -> bool:
    """Google says 403 for a quota that is used up as well as for a key that is wrong."""
    return b"LimitExceeded" in body or b"quotaExceeded" in body


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(f"web.url is not an address: {url!r:.80}", hint="such as http://localhost:8888")
    return url.rstrip("/")
