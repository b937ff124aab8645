"""Calls a Qdrant server: a deadline for each call, a budget of retries, failures in our own words.

What a server says is never repeated in an error: it may quote the key that it was sent.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from ragstone.core.errors import SettingsError, StoreError
from ragstone.core.vectors import Health
from ragstone.fetch.calls import RetryPolicy, Sleep, connection_owner, is_transient_status
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.qdrant.engine import CollectionMissing
from ragstone.stores.vectors.rest import ServiceBusy

GRPC_PASSING = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED", "INTERNAL", "UNKNOWN")
UNREADABLE = (ValueError, TypeError, AttributeError, AssertionError, RecursionError)
CHECK_ADDRESS = "check store.vectors.url and that the server runs"


class ServerCalls:
    """Implements `Calls` for a server, over REST or gRPC."""

    indexes_payload = True

    def __init__(self, adapter: Adapter, *, timeout: float, prefer_grpc: bool, grpc_port: int, sleep: Sleep) -> None:
        self.address = _address(adapter.url or "")
        self._url = adapter.url
        self._key = adapter.api_key
        self._timeout = timeout
        self._prefer_grpc = prefer_grpc
        self._grpc_port = grpc_port
        self._sleep = sleep
        self._client: Any = None
        self._owner: tuple[int, asyncio.AbstractEventLoop] | None = None

    async def read(self, collection: str, request: Callable[[Any], Any]) -> Any:
        """Make a request; all attempts together get the time of one."""
        ends = asyncio.get_running_loop().time() + self._timeout
        return await self._retry(RetryPolicy(seconds=self._timeout), request, ends)

    async def write(self, collection: str, request: Callable[[Any], Any]) -> Any:
        """Make a request that may be made twice, with the whole time for each attempt."""
        return await self._retry(RetryPolicy(), request)

    async def health(self) -> Health:
        info = await self.read("", lambda client: client.info())
        # The greeting needs no key everywhere; this does.
        collections = await self.read("", lambda client: client.get_collections())
        detail = f"{len(collections.collections)} collections at {self.address}"
        if self._key is not None and self.address.startswith("http:"):
            detail += "; the api_key travels unencrypted, use https"
        return Health(info.version, detail)

    async def close(self) -> None:
        client, owner, self._client = self._client, self._owner, None
        if client is not None and owner == connection_owner():
            await client.close()

    async def _retry(self, policy: RetryPolicy, request: Callable[[Any], Any], ends: float | None = None) -> Any:
        return await policy.call(
            lambda: self._attempt(request, ends), lambda error: isinstance(error, ServiceBusy), self._sleep
        )

    async def _attempt(self, request: Callable[[Any], Any], ends: float | None = None) -> Any:
        from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        try:
            async with asyncio.timeout_at(ends or asyncio.get_running_loop().time() + self._timeout):
                return await request(self._connect())
        except TimeoutError as error:
            raise self._slow() from error
        except ResponseHandlingException as error:
            raise self._loss(error.source) from error
        except UnexpectedResponse as error:
            raise self._refusal(error.status_code or 0, error.content, error.headers) from None
        except ResourceExhaustedResponse as error:
            raise self._busy("is limiting requests", retry_header=str(error.retry_after_s)) from None
        except QdrantException:
            raise self._busy("is limiting requests") from None
        except UNREADABLE as error:
            raise self._strange("sent an answer that cannot be read") from error
        except Exception as error:
            failure = self._grpc_failure(error)
            if failure is None:
                raise
            raise failure from None

    def _connect(self) -> Any:
        """Return the client; a new one after a fork or in another event loop, which cannot use the old connections."""
        if self._client is None or self._owner != connection_owner():
            from qdrant_client import AsyncQdrantClient

            # As a header, since the client would warn of a key without https on every start; `health` says it once.
            headers = {"api-key": self._key.get_secret_value()} if self._key else None
            self._client = AsyncQdrantClient(
                url=self._url,
                headers=headers,
                timeout=math.ceil(self._timeout),
                prefer_grpc=self._prefer_grpc,
                grpc_port=self._grpc_port,
                check_compatibility=False,
            )
            self._owner = connection_owner()
        return self._client

    def _loss(self, source: Exception) -> StoreError:
        import httpx

        if isinstance(source, httpx.TimeoutException):
            return self._slow()
        if isinstance(source, httpx.TransportError):
            return self._busy("cannot be reached", hint=CHECK_ADDRESS)
        return self._strange("sent an answer that cannot be read")

    def _refusal(self, status: int, content: bytes, headers: Any) -> Exception:
        if status in (401, 403):
            return self._failure(f"refused the api_key ({status})", "check store.vectors.api_key")
        if status == 404 and _is_qdrants(content):
            return CollectionMissing()
        if is_transient_status(status):
            return self._busy(f"failed ({status})", retry_header=headers.get("retry-after"))
        if status in (400, 409, 413, 422) and _is_qdrants(content):
            return self._failure(f"refused the request ({status})", "the server's log says why")
        return self._strange(f"answered {status}")

    def _grpc_failure(self, error: Exception) -> Exception | None:
        # grpc has no types; its errors are known by their code.
        code = getattr(getattr(error, "code", lambda: None)(), "name", None)
        if code is None:
            return None
        if code == "NOT_FOUND":
            return CollectionMissing()
        if code in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
            return self._failure(f"refused the api_key ({code})", "check store.vectors.api_key")
        if code in GRPC_PASSING:
            return self._busy(f"failed ({code})", hint=CHECK_ADDRESS)
        return self._failure(f"refused the request ({code})", "the server's log says why")

    def _slow(self) -> ServiceBusy:
        hint = "raise store.vectors.options.timeout"
        return self._busy(f"did not answer within {self._timeout:g} s", hint=hint)

    def _busy(self, what: str, *, hint: str = "try again later", retry_header: str | None = None) -> ServiceBusy:
        return ServiceBusy(f"Qdrant at {self.address} {what}", hint=hint, retry_header=retry_header)

    def _strange(self, what: str) -> StoreError:
        return self._failure(f"{what}, as a Qdrant server does not", CHECK_ADDRESS)

    def _failure(self, what: str, hint: str) -> StoreError:
        return StoreError(f"Qdrant at {self.address} {what}", hint=hint)


def _address(url: str) -> str:
    """Return the address as it may be shown; refuse one that cannot be used."""
    hint = "write it as http://localhost:6333, and the key as store.vectors.api_key"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise SettingsError("store.vectors.url is not an address", hint=hint) from None
    if parts.scheme not in ("http", "https") or not host:
        raise SettingsError("store.vectors.url is not an address of http or https", hint=hint)
    if parts.username is not None or parts.query:
        raise SettingsError("store.vectors.url may hold no password and no query", hint=hint)
    return f"{parts.scheme}://{host}:{port or 6333}{parts.path.rstrip('/')}"


def _is_qdrants(content: bytes) -> bool:
    """Return whether an error is Qdrant's own: any web server can answer 404, and that is no missing collection."""
    try:
        return isinstance(json.loads(content)["status"]["error"], str)
    except (ValueError, KeyError, TypeError):
        return False
