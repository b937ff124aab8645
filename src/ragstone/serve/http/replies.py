"""Responses: shapes as JSON, and events as they happen."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Scope

from ragstone.core.errors import RagstoneError
from ragstone.core.jobs import Job
from ragstone.core.keys import ApiKey
from ragstone.schemas.errors import ErrorSchema
from ragstone.schemas.jobs import JobSchema
from ragstone.schemas.schema import Schema

CHECK_SECONDS = 0.5
"""The time after which a stream looks again whether its key is still valid."""
FIRST_SECONDS = 2.0
"""The time in which an error has a status of its own; later it is told in the stream."""
EVENT_STREAM = "text/event-stream"
BINARY = "application/octet-stream"
Event = TypeVar("Event")
Write = Callable[[str, Schema], str]


def reply(shape: Schema, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a shape as JSON. A file name may hold what is no Unicode; it is escaped."""
    return Response(json.dumps(shape.as_json()), status, headers=dict(headers or {}), media_type="application/json")


def reply_queued(job: Job) -> Response:
    """Return a job that was queued, and where to follow it."""
    return reply(JobSchema.of(job), 202, {"Location": f"/v1/jobs/{job.id}"})


def send_file(content: bytes, filename: str, media_type: str = BINARY) -> Response:
    """Return a file for the caller to save. A browser neither shows it nor runs what is in it."""
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", filename) or "file"
    named = quote(filename.encode("utf-8", "replace"), safe="")
    headers = {
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{named}",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return Response(content, headers=headers, media_type=media_type)


def wants_events(request: Request) -> bool:
    """Return whether the caller asks for events instead of one body."""
    return EVENT_STREAM in request.headers.get("accept", "")


async def begin_events(events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
    """Wait a moment for the first event and raise what it fails with; return all events."""
    coming = asyncio.ensure_future(anext(events))
    await asyncio.wait([coming], timeout=FIRST_SECONDS)
    if coming.done():
        try:
            coming.result()
        except BaseException:
            await events.aclose()
            raise
    return _go_on(coming, events)


async def _go_on(coming: asyncio.Future[Event], events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
    try:
        yield await coming
        async for event in events:
            yield event
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)
        await events.aclose()


def stream_events(
    request: Request, events: AsyncGenerator[tuple[str, Schema]], *, write: Write | None = None, end: str = ""
) -> Response:
    """Return events as they come; an error ends them with an event `error`, and so does a key that is revoked.

    `write` puts an event into words, and `end` follows the last one of a stream without an error.
    """
    return StreamingResponse(
        _encode(request, events, write or write_event, end),
        media_type=EVENT_STREAM,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _encode(
    request: Request, events: AsyncGenerator[tuple[str, Schema]], write: Write, end: str
) -> AsyncIterator[str]:
    coming: asyncio.Future[tuple[str, Schema]] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait([coming], timeout=CHECK_SECONDS)
            if not await _is_still_valid(request):
                request.state.has_failed = True
                yield write("error", ErrorSchema.of_words("unauthenticated", "the key is not valid any more"))
                return
            if not done:
                yield ": waiting\n\n"  # keeps proxies from closing the connection
                continue
            name, shape = coming.result()
            coming = None
            yield write(name, shape)
    except StopAsyncIteration:
        if end:
            yield end
    except RagstoneError as error:
        request.state.has_failed = True
        yield write("error", ErrorSchema.of_error(error))
    finally:
        # A caller that has gone away must not leave a search or an answer running.
        if coming:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
        await events.aclose()


def has_failed(scope: Scope) -> bool:
    """Return whether a stream ended with an error, which its status does not tell."""
    return bool(scope.get("state", {}).get("has_failed"))


async def _is_still_valid(request: Request) -> bool:
    find: Callable[[str], Awaitable[ApiKey | None]] = request.app.state.keys.find
    _, _, token = request.headers.get("authorization", "").partition(" ")
    return await find(token.strip()) is not None


def write_event(name: str, shape: Schema) -> str:
    """Return an event with its name."""
    return f"event: {name}\ndata: {json.dumps(shape.as_json())}\n\n"
