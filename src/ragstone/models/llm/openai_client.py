"""Calls an OpenAI-compatible service: one deadline per call, a budget of retries, failures in our own words.

What a server says is never repeated in an error: it may quote the key that it was sent.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from ragstone.fetch.calls import RetryPolicy, Sleep, host_of, tls_context
from ragstone.settings.tree import RemoteModel

T = TypeVar("T")
Reason = Literal[
    "no_client", "no_key", "auth", "unknown_model", "refused", "busy", "broken", "absent", "down", "slow", "malformed"
]

OPENAI = "https://api.openai.com/v1"
KEY_VARIABLES = {OPENAI: "OPENAI_API_KEY", "https://openrouter.ai/api/v1": "OPENROUTER_API_KEY"}
"""The environment variable with the key of a service; no other service is sent it."""
PASSING: set[Reason] = {"busy", "broken", "down", "slow", "malformed"}
LONGEST_WAIT = 30.0
HINTS: dict[Reason, str] = {
    "no_client": 'pip install "ragstone[llm]"',
    "no_key": "set OPENAI_API_KEY or OPENROUTER_API_KEY, or an api_key next to the model in the settings",
    "auth": "check the api_key next to the model in the settings, or the variable it is read from",
    "unknown_model": "check the model's name and the base_url",
    "busy": "try again later, or raise the provider's rate limit",
    "absent": "check the base_url and that the service runs",
    "down": "check the base_url and that the service runs",
    "slow": "raise the timeout next to the model in the settings",
}


class CallFailed(Exception):
    """A call that brought nothing, and why; adapters turn it into the error of their seam."""

    def __init__(self, reason: Reason, message: str, *, retry_header: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_header = retry_header

    @property
    def hint(self) -> str:
        return HINTS.get(self.reason, "")


class OpenAIService:
    """A service at one address, with its key, timeout and retries."""

    def __init__(self, settings: RemoteModel, *, sleep: Sleep = asyncio.sleep) -> None:
        self._settings = settings
        self._retries = RetryPolicy(attempts=settings.retries + 1, longest_wait=LONGEST_WAIT)
        self._sleep = sleep
        self._connecting = threading.Lock()
        self._client: Any = None
        self.base_url = settings.base_url or OPENAI

    @property
    def is_openai(self) -> bool:
        return self.base_url.rstrip("/") == OPENAI

    @property
    def host(self) -> str:
        """Return the address as it may be shown: without user, password or query."""
        return host_of(self.base_url)

    @property
    def timeout(self) -> float:
        return self._settings.timeout

    async def call(self, request: Callable[[Any], Awaitable[T]], *, seconds: float | None = None) -> T:
        """Make a request, again while it fails for a passing reason; `seconds` bounds all attempts together."""
        # Importing the client takes longer than some deadlines: it is neither counted nor done on the loop.
        client = await asyncio.to_thread(self._connect)
        try:
            async with asyncio.timeout(seconds):
                return await self._retries.call(
                    lambda: self._attempt(client, request),
                    lambda error: isinstance(error, CallFailed) and error.reason in PASSING,
                    self._sleep,
                )
        except TimeoutError:
            raise self._make_failure("slow", f"did not answer within {seconds:g} s") from None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    def failure(self, error: Exception) -> CallFailed | None:
        """Translate a vendor's error; None for an error that is not the service's."""
        if isinstance(error, CallFailed):
            return error
        import openai

        match error:
            case TimeoutError() | openai.APITimeoutError():
                return self._make_failure("slow", f"did not answer within {self.timeout:g} s")
            case openai.APIConnectionError():
                return self._make_failure("absent" if _nobody_there(error) else "down", "cannot be reached")
            case openai.APIStatusError():
                return self._refusal(error.status_code, error.response.headers.get("retry-after"))
            case openai.OpenAIError() | ValueError() | TypeError() | AttributeError() | IndexError() | KeyError():
                return self._make_failure("malformed", "sent a reply that cannot be read")
        return None

    def _connect(self) -> Any:
        with self._connecting:
            if self._client is None:
                try:
                    import openai
                except ImportError:
                    raise self._make_failure("no_client", "needs the openai package, which is not installed") from None
                self._client = openai.AsyncOpenAI(
                    base_url=self.base_url,
                    api_key=self._key(),
                    timeout=self.timeout,
                    max_retries=0,
                    http_client=openai.DefaultAsyncHttpxClient(verify=tls_context()),
                )
            return self._client

    def _key(self) -> str:
        if self._settings.api_key is not None:
            return self._settings.api_key.get_secret_value()
        variable = KEY_VARIABLES.get(self.base_url.rstrip("/"))
        if variable is None:
            return "none"  # local servers want none
        key = os.environ.get(variable, "")
        if not key:
            raise self._make_failure("no_key", "needs an API key")
        return key

    async def _attempt(self, client: Any, request: Callable[[Any], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self.timeout):
                return await request(client)
        except Exception as error:
            failure = self.failure(error)
            if failure is None:
                raise
            raise failure from None

    def _refusal(self, status: int, retry_header: str | None) -> CallFailed:
        if status in (401, 403):
            return self._make_failure("auth", f"refused the API key ({status})")
        if status == 404:
            return self._make_failure("unknown_model", "does not know the model or the address (404)")
        if status == 429:
            return self._make_failure("busy", "is limiting requests (429)", retry_header=retry_header)
        if status in (408, 409) or status >= 500:
            return self._make_failure("broken", f"failed ({status})", retry_header=retry_header)
        return self._make_failure("refused", f"refused the request ({status})")

    def _make_failure(self, reason: Reason, what: str, *, retry_header: str | None = None) -> CallFailed:
        return CallFailed(reason, f"{self.host} {what}", retry_header=retry_header)


def _nobody_there(error: BaseException) -> bool:
    """Return whether a connection was refused or its host has no address: an immediate retry cannot help."""
    under, seen = [error], set[int]()
    while under:
        cause = under.pop()
        if isinstance(cause, ConnectionRefusedError):
            return True
        if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME:
            return True
        if id(cause) not in seen:
            seen.add(id(cause))
            group = cause.exceptions if isinstance(cause, BaseExceptionGroup) else ()
            under += [cause for cause in (cause.__cause__, cause.__context__, *group) if cause is not None]
    return False
