"""Calls a vector database over HTTP: a deadline per attempt, three attempts, failures in our own words.

Every call that providers make may be made twice. What a server says is repeated only in short and without the key.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx2
import numpy as np
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from ragstone.core.errors import SettingsError, StoreBusy, StoreError
from ragstone.core.types import Json, Vector
from ragstone.fetch.retry import passes, pause
from ragstone.settings.tree import Adapter

ATTEMPTS = 3
LONGEST_REASON = 200
Sleep = Callable[[float], Awaitable[None]]


class Answer(NamedTuple):
    """What a service answered; the body is None when there was none."""

    status: int
    body: Json
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, repr=False)
class Account:
    """How one service is called and what its errors advise."""

    name: str
    headers: Mapping[str, str]
    secret: str
    timeout: float
    """Seconds that one attempt may take."""
    key_hint: str
    address_hint: str


class RestService:
    """Keeps connections to a service open. A child process or another event loop gets connections of its own."""

    def __init__(self, account: Account, *, sleep: Sleep = asyncio.sleep) -> None:
        self._account = account
        self._sleep = sleep
        self._client: httpx2.AsyncClient | None = None
        self._owner: tuple[int, asyncio.AbstractEventLoop] | None = None

    async def call(
        self,
        method: str,
        url: str,
        body: Json = None,
        *,
        query: Mapping[str, str | int | list[str]] | None = None,
        expect: Collection[int] = (),
    ) -> Answer:
        """Make a request, again while it fails for a passing reason; `expect` names refusals that are an answer."""
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(_Passing),
            stop=stop_after_attempt(ATTEMPTS),
            wait=_pause,
            sleep=self._sleep,
            reraise=True,
        ):
            with attempt:
                response = await self._attempt(method, url, body, query or {})
                return self._read(response, expect)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def close(self) -> None:
        client, owner = self._client, self._owner
        self._client = self._owner = None
        if client is not None and owner == _owner():
            await client.aclose()

    def failure(self, url: str, what: str, *, hint: str = "") -> StoreError:
        """An error of this service that nothing but a change will mend."""
        return StoreError(self._message(url, what), hint=hint)

    @contextmanager
    def reading(self, url: str) -> Iterator[None]:
        """Around code that takes an answer apart: one of another shape is the service's failure."""
        try:
            yield
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
            what = "sent an answer of another shape than its interface says"
            raise self.failure(url, what, hint=self._account.address_hint) from error

    async def _attempt(self, method: str, url: str, body: Json, query: Mapping[str, Any]) -> httpx2.Response:
        account = self._account
        content = body if body is None or isinstance(body, bytes) else encoded(body)
        headers = dict(account.headers) | ({} if content is None else {"content-type": "application/json"})
        try:
            async with asyncio.timeout(account.timeout):
                return await self._connected().request(
                    method, url, content=content, params=dict(query), headers=headers
                )
        except (TimeoutError, httpx2.TimeoutException):
            what = f"did not answer within {account.timeout:g} s"
            hint = "raise store.vectors.options.timeout, or see why the service is slow"
            raise _Passing(self._message(url, what), hint=hint) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise _Passing(self._message(url, "cannot be reached"), hint=account.address_hint) from error

    def _connected(self) -> httpx2.AsyncClient:
        if self._client is None or self._owner != _owner():
            self._client = httpx2.AsyncClient(timeout=self._account.timeout)
            self._owner = _owner()
        return self._client

    def _read(self, response: httpx2.Response, expect: Collection[int]) -> Answer:
        status, url = response.status_code, str(response.request.url)
        if status < 300 or status in expect:
            return Answer(status, self._body(response, url), response.headers)
        if status in (401, 403):
            what = f"refused the API key ({status}){self._reason(response)}"
            raise self.failure(url, what, hint=self._account.key_hint)
        what = f"failed ({status}){self._reason(response)}"
        if passes(status):
            raise _Passing(
                self._message(url, what), hint="try again later", wait=response.headers.get("retry-after")
            )
        raise self.failure(url, what, hint=self._account.address_hint)

    def _body(self, response: httpx2.Response, url: str) -> Json:
        if not response.content:
            return None
        try:
            return response.json()
        except (ValueError, RecursionError):
            if response.status_code >= 300:
                return None
            raise self.failure(
                url, "sent an answer that is not JSON", hint=self._account.address_hint
            ) from None

    def _reason(self, response: httpx2.Response) -> str:
        try:
            said = first_message(response.json())
        except (ValueError, RecursionError):
            return ""
        return f": {self.without_key(said)}" if said else ""

    def without_key(self, said: str) -> str:
        """What a service said, short and without the key that it may have quoted."""
        if self._account.secret:
            said = said.replace(self._account.secret, "***")
        return " ".join(said.split())[:LONGEST_REASON]

    def _message(self, url: str, what: str) -> str:
        return f"{self._account.name} at {shown(url)} {what}"


class _Passing(StoreBusy):
    """A failure that may be over soon, and how long the server asked to wait."""

    def __init__(self, message: str, *, hint: str = "", wait: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.wait = wait


def _pause(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return pause(state.attempt_number - 1, error.wait if isinstance(error, _Passing) else None)


def _owner() -> tuple[int, asyncio.AbstractEventLoop]:
    return os.getpid(), asyncio.get_running_loop()


def service_url(adapter: Adapter, default: str | None = None) -> str:
    """The address of the settings without a slash at its end; refuses what is none."""
    for name in ("path", "dsn"):
        if getattr(adapter, name) is not None:
            raise SettingsError(
                f"store.vectors.{name} means nothing to {adapter.kind}",
                hint="set store.vectors.url to its address",
            )
    url = adapter.url or default
    if url is None:
        raise SettingsError(
            f"store.vectors: {adapter.kind} needs an address",
            hint="set store.vectors.url to something like http://host:8080",
        )
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise SettingsError(
            f"store.vectors.url of {adapter.kind} is not an address of a web service",
            hint="it looks like http://host:8080 or https://host",
        )
    return url.rstrip("/")


def shown(url: str) -> str:
    """The address as it may be shown: without user, password, path or query."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def encoded(body: Json) -> bytes:
    """A JSON body in as few bytes as it takes."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def first_message(said: Json) -> str:
    """The first `message` in an error body, however it is wrapped."""
    while True:
        match said:
            case {"message": str(message)} | {"error": str(message)}:
                return message
            case {"error": said} | [said, *_]:
                continue
        return ""


def numbers(vector: Vector) -> list[float]:
    """A vector of length one for a JSON body, in few enough digits and more than its own precision."""
    rounded: list[float] = np.round(vector.astype(np.float64), 9).tolist()
    return rounded
