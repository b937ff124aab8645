"""Run an ASGI application until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ragstone.core.errors import InputError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

GRACE_SECONDS = 10
"""The time that requests under way have when the server stops."""


async def run_app(app: ASGIApp, host: str, port: int, on_ready: Callable[[int], Awaitable[None]]) -> None:
    """Serve an application until cancelled; port 0 takes a free one, and `on_ready` hears which."""
    import uvicorn

    class Http(uvicorn.Server):
        """Leaves signals to its caller."""

        def capture_signals(self) -> Any:
            return nullcontext()

    config = uvicorn.Config(
        app, host=host, port=port, log_config=None, lifespan="on", timeout_graceful_shutdown=GRACE_SECONDS
    )
    with _listen(host, port, config.backlog) as listener:
        await on_ready(listener.getsockname()[1])
        http = Http(config)
        serving = asyncio.ensure_future(http.serve([listener]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            http.handle_exit(signal.SIGINT, None)  # open streams end, and what is being answered is finished
            await serving
            raise


def _listen(host: str, port: int, backlog: int) -> socket.socket:
    """Return a socket that listens, so that whoever reads the address may use it at once."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Headers and body are sent apart: without this the body waits 40 ms for the headers to be acknowledged.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((host, port))
        listener.listen(backlog)
    except OSError as error:
        listener.close()
        reason = "it is in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise InputError(
            f"cannot listen on port {port} of {host}: {reason}", hint="name another one with --port; 0 takes a free one"
        ) from error
    return listener
