"""Reads bodies: unpacked as they come in, and never more of them than is allowed."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import httpcore2
import httpx2

from ragstone.core.errors import AddressRefused, FetchError
from ragstone.fetch.calls import is_transient_status
from ragstone.fetch.urls import parse_url, port_of, redact_url

STEP = 256 * 1024
MAX_FILES = 1000
"""A gzip body may be several files one after the other; a bomb is very many."""


class BodyTooLarge(Exception):
    """More bytes than the limit."""


class Damaged(Exception):
    """Packed in a way that cannot be read, or cut off."""


async def read_body(parts: AsyncIterable[bytes], encoding: str, limit: int, declared: int = 0) -> bytes:
    """Return all of a body, unpacked. What is declared, what is sent and what it unpacks to must all fit the limit."""
    if declared > limit:
        raise BodyTooLarge
    unpack = _unpacker(encoding)
    received = size = 0
    kept: list[bytes] = []
    async for part in parts:
        received += len(part)
        for piece in unpack.feed(part) if unpack else (part,):
            size += len(piece)
            kept.append(piece)
            if size > limit:
                raise BodyTooLarge
        if received > limit:
            raise BodyTooLarge
    if unpack and received:
        unpack.finish()
    return b"".join(kept)


def unzip(content: bytes, limit: int) -> bytes:
    """Unpack a gzip file that is itself the content."""
    unpack = Unpacker(_gzip)
    kept: list[bytes] = []
    size = 0
    for start in range(0, len(content), STEP):
        for piece in unpack.feed(content[start : start + STEP]):
            size += len(piece)
            kept.append(piece)
            if size > limit:
                raise BodyTooLarge
    unpack.finish()
    return b"".join(kept)


class Unpacker:
    """Unpacks gzip or deflate in bounded steps."""

    def __init__(self, start: Callable[[bytes], zlib._Decompress]) -> None:
        self._start = start
        self._stream: zlib._Decompress | None = None
        self._files = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the unpacked data in pieces."""
        while data:
            if self._stream is None or self._stream.eof:
                self._files += 1
                if self._files > MAX_FILES:
                    raise BodyTooLarge
                self._stream = self._start(data)
            try:
                piece = self._stream.decompress(data, STEP)
            except zlib.error as problem:
                raise Damaged("it is not packed the way it says") from problem
            if piece:
                yield piece
            data = self._stream.unconsumed_tail or self._stream.unused_data

    def finish(self) -> None:
        """Raise `Damaged` when the end is missing."""
        if self._stream is None or not self._stream.eof:
            raise Damaged("it is cut off")


def _gzip(_: bytes) -> zlib._Decompress:
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


def _deflate(first: bytes) -> zlib._Decompress:
    # The name means zlib's format, and some servers send the bare stream; zlib's first byte tells.
    bare = first[0] & 0x0F != 8
    return zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)


def _unpacker(encoding: str) -> Unpacker | None:
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return Unpacker(_gzip)
        case "deflate":
            return Unpacker(_deflate)
    raise Damaged(f"it is packed as {encoding!r:.40}, which was not asked for")


REDIRECTS = (301, 302, 303, 307, 308)
# What may go to another host than the one it was meant for. A list of what must not would miss somebody's key.
HARMLESS = frozenset(
    {"accept", "accept-encoding", "accept-language", "if-modified-since", "if-none-match", "user-agent"}
)
_HINTS = {
    401: "it wants credentials",
    403: "it refuses this client; fetch.user_agent says who is asking",
    404: "check the address",
    407: "proxies are not used",
    410: "it is gone for good; remove it from the source",
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer: the address it came from after redirects, and the unpacked body."""

    url: str
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    content: bytes


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A request to one address."""

    method: str
    url: httpx2.URL
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    max_bytes: int
    timeout: float
    keep_body: bool = False
    """True where an answer counts only if the body arrived: a redirect that drops it is an error."""

    @property
    def shown_url(self) -> str:
        return redact_url(str(self.url))


class TransientFailure(Exception):
    """A failure that may be over soon, and the error to raise if it is not."""

    def __init__(self, error: FetchError, retry_header: str | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry_header = retry_header


async def exchange(pool: httpcore2.AsyncConnectionPool, request: FetchRequest) -> Fetched | FetchRequest:
    """Return the answer, or the request to make instead where the answer leads elsewhere."""
    response = await pool.handle_async_request(_wire(request))
    try:
        headers = _headers(response)
        if response.status in REDIRECTS and "location" in headers:
            return follow_redirect(request, response.status, headers["location"])
        if response.status == 304:
            return Fetched(str(request.url), 304, headers, b"")
        if not 200 <= response.status < 300:
            raise _unwelcome(request, response.status, headers)
        return Fetched(str(request.url), response.status, headers, await _content(request, response, headers))
    finally:
        await response.aclose()


def follow_redirect(request: FetchRequest, status: int, location: str) -> FetchRequest:
    """Return the request that a redirect asks for; to another host it carries nothing that was meant for the first."""
    url = parse_url(location, request.url)
    method, body = request.method, request.body
    if status in (301, 302, 303):
        if request.keep_body:
            raise FetchError(
                f"{request.shown_url} answered {status} and leads on to {redact_url(str(url))} without what was sent",
                hint="use the address that takes it, if that host is trusted",
                status=status,
            )
        method, body = "GET", b""
    headers = {name: value for name, value in request.headers.items() if body or name != "content-type"}
    if not _same_host(request.url, url):
        if body:
            raise AddressRefused(
                f"{request.shown_url} asks to send the request's content on to {url.host}",
                hint="use the address it leads to, if that host is trusted",
            )
        headers = {name: value for name, value in headers.items() if name in HARMLESS}
    return replace(request, method=method, url=url, headers=headers, body=body)


def _same_host(here: httpx2.URL, there: httpx2.URL) -> bool:
    """Return whether both are one server; the step from http to https on the usual ports is no change."""
    if here.host != there.host:
        return False
    upgrade = (here.scheme, there.scheme) == ("http", "https") and (port_of(here), port_of(there)) == (80, 443)
    return upgrade or (here.scheme, port_of(here)) == (there.scheme, port_of(there))


def _wire(request: FetchRequest) -> httpcore2.Request:
    url = request.url
    headers = {"host": url.netloc.decode("ascii"), **request.headers}
    if request.body or request.method != "GET":
        headers["content-length"] = str(len(request.body))
    seconds = dict.fromkeys(("connect", "read", "write", "pool"), request.timeout)
    return httpcore2.Request(
        request.method,
        httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=list(headers.items()),
        content=request.body,
        extensions={"timeout": seconds},
    )


def _headers(response: httpcore2.Response) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in response.headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


async def _content(request: FetchRequest, response: httpcore2.Response, headers: Mapping[str, str]) -> bytes:
    declared = headers.get("content-length", "")
    length = int(declared[:20]) if declared.isdecimal() else 0
    try:
        return await read_body(response.aiter_stream(), headers.get("content-encoding", ""), request.max_bytes, length)
    except BodyTooLarge:
        raise FetchError(
            f"{request.shown_url} is larger than {request.max_bytes / 1024 / 1024:g} MB",
            hint="raise fetch.max_mb, or leave it out",
            status=response.status,
        ) from None
    except Damaged as problem:
        raise TransientFailure(
            FetchError(f"the body of {request.shown_url} cannot be read: {problem}", status=response.status)
        ) from problem


def _unwelcome(request: FetchRequest, status: int, headers: Mapping[str, str]) -> FetchError | TransientFailure:
    transient = is_transient_status(status)
    hint = _HINTS.get(status, "try again later" if transient else "")
    error = FetchError(f"{request.shown_url} answered {status}", hint=hint, status=status)
    return TransientFailure(error, headers.get("retry-after")) if transient else error
