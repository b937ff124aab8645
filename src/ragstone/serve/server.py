"""Run an ASGI application until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import nullcontext
from socket import IPPROTO_TCP, TCP_NODELAY
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import ASGIApp

GRACE_SECONDS = 10
"""The time that requests under way have when the server stops."""


async def run_app(app: ASGIApp, host: str, port: int, on_ready: Callable[[int], None]) -> None:
    """Serve an application until cancelled; port 0 takes a free one, and `on_ready` hears which."""
    import uvicorn

    class Http(uvicorn.Server):
        """Leaves signals to its caller."""

        def capture_signals(self) -> Any:
            return nullcontext()

    config = uvicorn.Config(
        app, host=host, port=port, log_config=None, lifespan="on", timeout_graceful_shutdown=GRACE_SECONDS
    )
    with config.bind_socket() as listener:
        # Headers and body are sent apart: without this the body waits 40 ms for the headers to be acknowledged.
        listener.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        listener.listen(config.backlog)  # who reads the address may use it at once
        on_ready(listener.getsockname()[1])
        http = Http(config)
        serving = asyncio.ensure_future(http.serve([listener]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            http.handle_exit(signal.SIGINT, None)  # open streams end, and what is being answered is finished
            await serving
            raise
