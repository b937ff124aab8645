"""Requests to a service: connections that stay open, deadlines, retries where they are safe, events as they come."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from email.utils import collapse_rfc2231_value
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

from ragstone.core.errors import AccessDenied, InputError, NotFoundError, RagstoneError, RemoteError
from ragstone.core.ids import opaque_id
from ragstone.core.types import Json
from ragstone.fetch.calls import RetryPolicy, host_of, is_service_url, parse_retry_after, tls_context

if TYPE_CHECKING:
    import httpx2

PASSING = frozenset({408, 425, 429, 502, 503, 504})
"""The statuses of a request that may succeed later."""
EVENT_STREAM = "text/event-stream"
UNDER_WAY = "request_under_way"
KEY = re.compile(r"[\x21-\x7e]*")
FIRST_WAIT = 0.5
"""Seconds before a request is repeated for the first time; later waits are twice as long each."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The longest times to wait, in seconds."""

    connect: float = 5.0
    read: float = 60.0
    """For the next part of an answer, or until the service has taken the next part of an upload."""
    total: float = 300.0
    """For a request with all its retries. An upload and a stream may take longer, as long as they go on."""


@dataclass(slots=True)
class ServiceRequest:
    """A request, and what it takes to send it again."""

    method: str
    path: str
    params: Mapping[str, Any] | None = None
    body: Json = None
    form: Mapping[str, Any] = field(default_factory=dict)
    file: tuple[str, IO[bytes]] | None = None
    """The name and the content of an upload."""
    accept: str = "application/json"
    key: str = ""
    """Makes the service do a repeated request only once."""
    is_read: bool = False
    """True for a POST that changes nothing, such as a search."""

    @property
    def is_safe(self) -> bool:
        """Return whether the request may be sent again even if the service may have received it."""
        return self.method in ("GET", "PUT") or self.is_read or bool(self.key)

    def options(self) -> dict[str, Any]:
        """Return the request as httpx2 takes it."""
        params = {name: value for name, value in (self.params or {}).items() if value is not None}
        headers = {"Accept": self.accept} | ({"Idempotency-Key": self.key} if self.key else {})
        options: dict[str, Any] = {"params": params, "headers": headers}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
            options["content"] = _replace_halves(write_json(self.body)).encode()
        if self.file:
            name, content = self.file
            form = {
                key: _replace_halves(value) if isinstance(value, str) else value for key, value in self.form.items()
            }
            options |= {"data": form, "files": {"file": (_replace_halves(name), UploadedContent(content))}}
        return options


def write_json(value: Json) -> str:
    """Return a value as JSON, or raise `InputError` if it has none."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"this is not JSON: {error}") from error


def _replace_halves(text: str) -> str:
    """Return a text with "?" for halves of characters, which file names may hold; the engine reads them so, too."""
    return text.encode("utf-8", "replace").decode()


def _read_filename(disposition: str) -> str:
    """Return the file name of a reply: the last form of it has all characters, another one is for old programs."""
    header = Message()
    header["Content-Disposition"] = disposition
    names = [value for name, value in header.get_params([], "Content-Disposition") if name == "filename"]
    return collapse_rfc2231_value(names[-1]) if names else ""


class UploadedContent:
    """A file as it is read, whose length is not that of the pipe or the packed file on the disk behind it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.read = file.read
        if file.seekable():
            self.seek, self.tell = file.seek, file.tell


class ServiceConnection:
    """Sends requests to one service under one key. Redirects are not followed: they would take the key elsewhere."""

    def __init__(self, url: str, key: str, timeouts: Timeouts, retries: int) -> None:
        if not is_service_url(url):
            raise InputError(f"{url!r:.80} is not the address of a service", hint="such as http://127.0.0.1:8000")
        self._url = url.rstrip("/")
        self._key = key.strip()  # a key that was read from a file has the end of its line
        if not KEY.fullmatch(self._key):
            raise InputError(
                "the key holds characters that no key has", hint="copy it again, without what is around it"
            )
        self._timeouts = timeouts
        self._attempts = max(0, retries) + 1
        self._client: httpx2.AsyncClient | None = None

    async def get(self, path: str, **params: Any) -> Json:
        """Return the JSON of a resource; parameters that are None are left out."""
        return _parse(await self._send(ServiceRequest("GET", path, params)))

    async def get_text(self, path: str) -> str:
        """Return a resource that is plain text."""
        return (await self._send(ServiceRequest("GET", path, accept="text/plain"))).text

    async def get_file(self, path: str) -> tuple[str, str, bytes]:
        """Return the name, the media type and the content of a file."""
        response = await self._send(ServiceRequest("GET", path, accept="*/*"))
        name = _read_filename(response.headers.get("content-disposition", ""))
        return name, response.headers.get("content-type", ""), response.content

    async def post(self, path: str, body: Json = None, **params: Any) -> Json:
        """Return the JSON that a POST answers."""
        return _parse(await self._send(ServiceRequest("POST", path, params, body, key=opaque_id())))

    async def query(self, path: str, body: Mapping[str, Json]) -> Json:
        """Return the JSON that a question answers. Only a turn of a conversation is something to be done once."""
        return _parse(await self._send(_make_query(path, body)))

    async def patch(self, path: str, body: Json) -> Json:
        """Return the JSON that a PATCH answers."""
        return _parse(await self._send(ServiceRequest("PATCH", path, body=body)))

    async def put(self, path: str, body: Json) -> Json:
        """Return the JSON that a PUT answers."""
        return _parse(await self._send(ServiceRequest("PUT", path, body=body)))

    async def delete(self, path: str, **params: Any) -> Json:
        """Return the JSON that a DELETE answers."""
        return _parse(await self._send(ServiceRequest("DELETE", path, params)))

    async def upload(self, path: str, name: str, content: IO[bytes], form: Mapping[str, Any]) -> Json:
        """Return the JSON that an upload answers. The file is read while it is sent."""
        request = ServiceRequest("POST", path, form=form, file=(name, content), key=opaque_id())
        return _parse(await self._send(request, total=math.inf))

    async def stream(self, path: str, body: Mapping[str, Json] | None = None) -> AsyncGenerator[tuple[str, Json]]:
        """Yield the name and the data of each event. A stream that has begun is not asked for again."""
        request = ServiceRequest("GET", path) if body is None else _make_query(path, body)
        request.accept = EVENT_STREAM
        response = await self._send(request, stream=True)
        try:
            async for name, data in self._events(response):
                if name == "error":
                    raise read_error_event(data)
                yield name, data
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close the connections."""
        if self._client:
            await self._client.aclose()
            self._client = None

    async def _events(self, response: httpx2.Response) -> AsyncGenerator[tuple[str, Json]]:
        import httpx2

        name = ""
        try:
            async for line in response.aiter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, json.loads(value)
        except (httpx2.HTTPError, ValueError) as error:
            raise self._cannot("broke off while it answered") from error

    async def _send(
        self, request: ServiceRequest, *, total: float | None = None, stream: bool = False
    ) -> httpx2.Response:
        seconds = self._timeouts.total if total is None else total
        # Each attempt reads a file from its beginning; a pipe can be read only once.
        is_readable_again = request.file is None or request.file[1].seekable()

        async def attempt() -> httpx2.Response:
            return await self._attempt(request, stream)

        attempts = self._attempts if is_readable_again else 1
        policy = RetryPolicy(attempts, FIRST_WAIT, longest_wait=math.inf, seconds=seconds, jitter=0.5)
        try:
            async with asyncio.timeout(None if math.isinf(seconds) else seconds):
                return await policy.call(attempt, _is_transient)
        except _FailedAttempt as failed:
            raise failed.error from failed.__cause__
        except TimeoutError as error:
            raise self._cannot(f"did not answer within {seconds:g} s") from error

    async def _attempt(self, request: ServiceRequest, stream: bool) -> httpx2.Response:
        import httpx2

        client = self._connect()
        try:
            made = client.build_request(request.method, request.path, **request.options())
            response = await client.send(made, stream=True)
            if not stream or response.status_code != 200:
                try:
                    await response.aread()
                finally:
                    await response.aclose()
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise _FailedAttempt(self._cannot("cannot be reached"), is_repeatable=True) from error
        except httpx2.TimeoutException as error:
            failed = self._cannot(f"sent nothing for {self._timeouts.read:g} s")
            raise _FailedAttempt(failed, is_repeatable=request.is_safe) from error
        except (httpx2.HTTPError, OSError) as error:
            raise _FailedAttempt(self._cannot("broke off"), is_repeatable=request.is_safe) from error
        if response.is_success:
            return response
        raise self._refusal(request, response)

    def _refusal(self, request: ServiceRequest, response: httpx2.Response) -> _FailedAttempt:
        status = response.status_code
        if status < 400:
            return _FailedAttempt(self._cannot(f"answered {status}: give its own address, not one that leads to it"))
        try:
            data = response.json()
        except ValueError:
            data = None
        error = read_problem(status, data, response.headers)
        # A request that is refused with 429 was not begun; one that was repeated too early is being done.
        may_pass = status in PASSING or error.code == UNDER_WAY
        is_repeatable = may_pass and error.retryable and (request.is_safe or status == 429)
        return _FailedAttempt(error, response.headers.get("retry-after"), is_repeatable=is_repeatable)

    def _cannot(self, what: str) -> RemoteError:
        return RemoteError(f"the service at {host_of(self._url)} {what}")

    def _connect(self) -> httpx2.AsyncClient:
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(
                base_url=self._url,
                headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
                timeout=httpx2.Timeout(self._timeouts.read, connect=self._timeouts.connect),
                verify=tls_context(),
            )
        return self._client


class _FailedAttempt(Exception):
    def __init__(self, error: RagstoneError, retry_header: str | None = None, *, is_repeatable: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry_header = retry_header
        self.is_repeatable = is_repeatable


def _is_transient(error: Exception) -> bool:
    return isinstance(error, _FailedAttempt) and error.is_repeatable


def _make_query(path: str, body: Mapping[str, Json]) -> ServiceRequest:
    key = opaque_id() if body.get("conversation") else ""
    return ServiceRequest("POST", path, body=body, key=key, is_read=True)


def _parse(response: httpx2.Response) -> Json:
    try:
        return response.json()
    except ValueError as error:
        raise RemoteError(f"the service answered {response.url.path} with something else than JSON") from error


class RemotePart:
    """A part of the client of a service, over its one connection."""

    def __init__(self, connection: ServiceConnection) -> None:
        self._connection = connection


def path_of(*steps: str) -> str:
    """Return the path of a resource under `/v1`; a name may hold any character."""
    return "/v1/" + "/".join(quote(step, safe="") for step in steps)


BY_STATUS: Mapping[int, type[RagstoneError]] = {401: AccessDenied, 403: AccessDenied, 404: NotFoundError}
"""The kinds of codes that only the service has, such as `unauthenticated`."""


def read_problem(status: int, data: Json, headers: Mapping[str, str]) -> RagstoneError:
    """Return the error that an answer with a status of 400 or more stands for."""
    problem = data if isinstance(data, dict) else {}
    error = _make_error(
        str(problem.get("code") or ""),
        str(problem.get("detail") or f"the service answered {status}"),
        str(problem.get("hint") or ""),
        BY_STATUS.get(status, RemoteError if status >= 500 or status == 429 else InputError),
    )
    _allow_retry(error, parse_retry_after(headers.get("retry-after")))
    error.request_id = str(problem.get("request_id") or headers.get("x-request-id", ""))
    return error


def read_error_event(data: Json) -> RagstoneError:
    """Return the error that ends a stream of events."""
    said = data.get("error", {}) if isinstance(data, dict) else {}
    code = str(said.get("code") or "")
    other = AccessDenied if code == "unauthenticated" else RemoteError
    error = _make_error(code, str(said.get("message") or "the service failed"), str(said.get("hint") or ""), other)
    _allow_retry(error, said.get("retry_after"))
    return error


def _make_error(code: str, message: str, hint: str, otherwise: type[RagstoneError]) -> RagstoneError:
    error = _KINDS.get(code, otherwise)(message, hint=hint)
    if code:
        error.code = code
    return error


def _allow_retry(error: RagstoneError, seconds: float | None) -> None:
    if seconds is not None:
        error.retry_after = seconds
        error.retryable = True


def _list_kinds(kind: type[RagstoneError]) -> Iterator[type[RagstoneError]]:
    yield kind
    for narrower in kind.__subclasses__():
        if narrower.__module__ == kind.__module__:  # those that adapters raise for themselves have no code of their own
            yield from _list_kinds(narrower)


_KINDS = {kind.code: kind for kind in _list_kinds(RagstoneError)}
