"""Calls to a vector database over HTTP, each of which may be made twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ragstone.core.errors import SettingsError, StoreBusy, StoreError
from ragstone.core.types import Json, Vector
from ragstone.fetch.calls import (
    WRONG_SHAPE,
    RetryPolicy,
    ServiceClient,
    ServiceReply,
    Sleep,
    host_of,
    is_service_url,
    is_transient_status,
    redact,
)
from ragstone.settings.tree import Adapter


class RestReply(NamedTuple):
    """A response of a service; the body is None when it was empty."""

    status: int
    body: Json
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, repr=False)
class Account:
    """The credentials and time limit of a service, and the advice its errors give."""

    name: str
    headers: Mapping[str, str]
    secret: str
    timeout: float
    """Seconds that one attempt may take."""
    key_hint: str
    address_hint: str


class RestService:
    """A vector database behind a JSON interface."""

    def __init__(self, account: Account, *, sleep: Sleep = asyncio.sleep) -> None:
        self._account = account
        self._sleep = sleep
        self._client = ServiceClient(account.timeout)

    async def call(
        self,
        method: str,
        url: str,
        body: Json = None,
        *,
        query: Mapping[str, str | int | list[str]] | None = None,
        expect: Collection[int] = (),
    ) -> RestReply:
        """Make a request, again while it fails for a passing reason; `expect` names refusals that are an answer."""

        async def attempt() -> RestReply:
            return self._read(url, await self._attempt(method, url, body, query or {}), expect)

        return await RetryPolicy().call(attempt, lambda error: isinstance(error, ServiceBusy), self._sleep)

    async def close(self) -> None:
        await self._client.close()

    def failure(self, url: str, what: str, *, hint: str = "") -> StoreError:
        """Return an error of this service that no retry can mend."""
        return StoreError(self._message(url, what), hint=hint)

    @contextmanager
    def reading(self, url: str) -> Iterator[None]:
        """Translate errors of code that takes an answer apart: another shape is the service's failure."""
        try:
            yield
        except WRONG_SHAPE as error:
            what = "sent an answer of another shape than its interface says"
            raise self.failure(url, what, hint=self._account.address_hint) from error

    async def _attempt(self, method: str, url: str, body: Json, query: Mapping[str, Any]) -> ServiceReply:
        account = self._account
        content = body if body is None or isinstance(body, bytes) else encode(body)
        headers = dict(account.headers) | ({} if content is None else {"content-type": "application/json"})
        try:
            return await self._client.send(method, url, content=content, params=dict(query), headers=headers)
        except TimeoutError as error:
            hint = "raise store.vectors.options.timeout, or see why the service is slow"
            raise ServiceBusy(self._message(url, str(error)), hint=hint) from error
        except ConnectionError as error:
            raise ServiceBusy(self._message(url, str(error)), hint=account.address_hint) from error

    def _read(self, url: str, reply: ServiceReply, expect: Collection[int]) -> RestReply:
        status = reply.status
        if status < 300 or status in expect:
            return RestReply(status, self._body(reply, url), reply.headers)
        if status in (401, 403):
            what = f"refused the API key ({status}){self._reason(reply)}"
            raise self.failure(url, what, hint=self._account.key_hint)
        what = f"failed ({status}){self._reason(reply)}"
        if is_transient_status(status):
            raise ServiceBusy(
                self._message(url, what), hint="try again later", retry_header=reply.headers.get("retry-after")
            )
        raise self.failure(url, what, hint=self._account.address_hint)

    def _body(self, reply: ServiceReply, url: str) -> Json:
        if not reply.content:
            return None
        try:
            return json.loads(reply.content)
        except (ValueError, RecursionError):
            if reply.status >= 300:
                return None
            raise self.failure(url, "sent an answer that is not JSON", hint=self._account.address_hint) from None

    def _reason(self, reply: ServiceReply) -> str:
        try:
            said = first_message(json.loads(reply.content))
        except (ValueError, RecursionError):
            return ""
        return f": {self.without_key(said)}" if said else ""

    def without_key(self, said: str) -> str:
        """Return what a service said, short and without the key that it may have quoted."""
        return redact(said, self._account.secret)

    def _message(self, url: str, what: str) -> str:
        return f"{self._account.name} at {host_of(url)} {what}"


class ServiceBusy(StoreBusy):
    """A failure that may be over soon, and how long the service asked to wait."""

    def __init__(self, message: str, *, hint: str = "", retry_header: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_header = retry_header


def service_url(adapter: Adapter, default: str | None = None) -> str:
    """Return the address of the settings without a slash at its end; refuse what is no address."""
    for name in ("path", "dsn"):
        if getattr(adapter, name) is not None:
            raise SettingsError(
                f"store.vectors.{name} means nothing to {adapter.kind}", hint="set store.vectors.url to its address"
            )
    url = adapter.url or default
    if url is None:
        raise SettingsError(
            f"store.vectors: {adapter.kind} needs an address",
            hint="set store.vectors.url to something like http://host:8080",
        )
    if not is_service_url(url):
        raise SettingsError(
            f"store.vectors.url of {adapter.kind} is not an address of a web service",
            hint="it looks like http://host:8080 or https://host",
        )
    return url.rstrip("/")


def encode(body: Json) -> bytes:
    """Return a JSON body in as few bytes as possible."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def first_message(said: Json) -> str:
    """Return the first `message` in an error body, however it is wrapped."""
    while True:
        match said:
            case {"message": str(message)} | {"error": str(message)}:
                return message
            case {"error": said} | [said, *_]:
                continue
        return ""


def numbers(vector: Vector) -> list[float]:
    """Return a vector for a JSON body, in few digits and with more than its own precision."""
    rounded: list[float] = np.round(vector.astype(np.float64), 9).tolist()
    return rounded
