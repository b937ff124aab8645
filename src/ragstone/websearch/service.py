"""Calls a search engine over HTTP: one deadline, a budget of retries, failures in our own words.

What an engine says is never repeated in an error: it may quote the key that it was sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ragstone.core.errors import RateLimited, RemoteError, SettingsError
from ragstone.core.types import Json
from ragstone.fetch.calls import (
    WRONG_SHAPE,
    ReplyTooLarge,
    RetryPolicy,
    ServiceClient,
    Sleep,
    host_of,
    is_service_url,
    is_transient_status,
)
from ragstone.settings.web import WebSettings

MOST_BYTES = 4 * 1024 * 1024
LIMITED = (429, 432, 433)
"""Too many requests; the other two are Tavily's, for a plan that is used up."""


class SearchService:
    """A search engine at one address."""

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
        if not is_service_url(url):
            raise SettingsError(f"web.url is not an address: {url!r:.80}", hint="such as http://localhost:8888")
        self.url = url.rstrip("/")
        self._timeout = settings.timeout
        self._retries = RetryPolicy(attempts=settings.retries + 1)
        self._headers = {"user-agent": "ragstone", "accept": "application/json", **(headers or {})}
        self._sleep = sleep
        self._client = ServiceClient(settings.timeout, MOST_BYTES)

    async def get(self, parameters: Mapping[str, str | int]) -> Json:
        """Return the JSON that a GET with these parameters answers."""
        return await self._call("GET", params=dict(parameters))

    async def post(self, body: Json) -> Json:
        """Return the JSON that a POST of this body answers."""
        return await self._call("POST", json=body)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Report an answer that the code inside cannot take apart as the engine's failure."""
        try:
            yield
        except WRONG_SHAPE as error:
            raise self._failure("sent an answer of another shape than its interface says") from error

    async def close(self) -> None:
        await self._client.close()

    async def _call(self, method: str, **request: Any) -> Json:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._retries.call(lambda: self._attempt(method, request), _is_transient, self._sleep)
        except TimeoutError:
            raise self._failure(f"did not answer within {self._timeout:g} s", hint="raise web.timeout") from None

    async def _attempt(self, method: str, request: Mapping[str, Any]) -> Json:
        try:
            reply = await self._client.send(method, self.url, headers=self._headers, **request)
        except ConnectionError as error:
            raise self._failure(str(error), hint="check web.url and the network") from error
        except ReplyTooLarge as error:
            raise self._refusal("sent far too much") from error
        return self._read(reply.status, reply.content)

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
            raise (self._failure(what) if is_transient_status(status) else self._refusal(what, hint="check web.url"))
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise self._failure("sent an answer that is not JSON", hint="check web.url") from None

    def _failure(self, what: str, *, hint: str = "") -> RemoteError:
        return RemoteError(self._message(what), hint=hint)

    def _refusal(self, what: str, *, hint: str = "") -> RemoteError:
        """Return a failure that the same request would meet again."""
        error = self._failure(what, hint=hint)
        error.retryable = False
        return error

    def _message(self, what: str) -> str:
        return f"{self.name} at {host_of(self.url)} {what}"


def _is_transient(error: Exception) -> bool:
    # A service that limits requests does not want to be asked again at once.
    return isinstance(error, RemoteError) and error.retryable and not isinstance(error, RateLimited)


def _is_quota(body: bytes) -> bool:
    """Return whether a 403 is about a used-up quota, which Google reports like a wrong key."""
    return b"LimitExceeded" in body or b"quotaExceeded" in body
