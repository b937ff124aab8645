"""A real Chroma server on a free port of loopback, for tests."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed


@contextmanager
def chroma_server(folder: Path) -> Iterator[str]:
    """Its address, while it runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [Path(sys.executable).with_name("chroma"), "run", "--path", folder, "--host", "127.0.0.1"]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen([*command, "--port", str(port)], stdout=log, stderr=log, cwd=folder)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(server, f"{url}/api/v2/heartbeat")
        yield url
    finally:
        server.terminate()
        server.wait()


def _wait_for(server: subprocess.Popen[bytes], url: str) -> None:
    for attempt in Retrying(
        retry=retry_if_exception_type(httpx.TransportError), wait=wait_fixed(0.1), stop=stop_after_delay(60)
    ):
        with attempt:
            assert server.poll() is None, "the server has ended"
            httpx.get(url, timeout=5).raise_for_status()
