"""Lines of stdin that can be waited for without being bound to wait: a command ends while stdin stays open.

A read cannot be taken back, and asyncio and the MCP package wait for the thread that sits in one. This one is a daemon.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

STDIN = 0


@contextmanager
def stdin_lines() -> Iterator[AsyncIterator[str]]:
    """Yield the lines that come in; another reader of stdin, such as a child process, finds it at its end."""
    private = os.dup(STDIN)  # never closed: the thread may sit in it for as long as the process lives
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STDIN)
    os.close(nothing)
    try:
        yield _lines(private)
    finally:
        os.dup2(private, STDIN)


async def _lines(source: int) -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[bytes | OSError] = asyncio.Queue()
    wanted = threading.Semaphore(0)  # nothing is read ahead: who sends faster than we answer has to wait

    def read() -> None:
        # A loop that is closed by now has nobody left to read for.
        with open(source, "rb", closefd=False) as stream, suppress(RuntimeError):
            while wanted.acquire():
                loop.call_soon_threadsafe(arrived.put_nowait, _line(stream))

    threading.Thread(target=read, name="ragstone stdin", daemon=True).start()
    while True:
        wanted.release()
        line = await arrived.get()
        if isinstance(line, OSError):
            raise line
        if not line:
            return
        yield line.decode("utf-8", errors="replace")


def _line(stream: BinaryIO) -> bytes | OSError:
    try:
        return stream.readline()
    except OSError as error:
        return error
