"""Noticing that a folder has changed, from what the file system says of it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from ragstone.core.types import Failure
from ragstone.ingest.sources.files.walk import find

Wait = Callable[[float], Awaitable[None]]


async def changes(path: Path, seconds: float, *, wait: Wait = asyncio.sleep) -> AsyncIterator[None]:
    """Say so each time the documents under a path have changed and then stayed as they are for `seconds`.

    A file that is still being copied is thus not offered half. While the path is not there nothing is said:
    a disk that comes back as it was has not changed.
    """
    told = before = await asyncio.to_thread(signature, path)
    while True:
        await wait(seconds)
        now = await asyncio.to_thread(signature, path)
        if now and now == before != told:
            told = now
            yield
        before = now


def signature(path: Path) -> str:
    """Changes with the names, sizes and times of the documents under a path; empty while it is not there."""
    if not path.exists():
        return ""
    digest = hashlib.blake2b(digest_size=16)
    for found in find(path):
        if isinstance(found, Failure):
            digest.update(f"{found.uri}\0closed\0".encode())
            continue
        try:
            facts = found.path.stat()
        except OSError:
            continue  # gone since it was listed, or a link that leads nowhere
        digest.update(f"{found.relative}\0{facts.st_mtime_ns}\0{facts.st_size}\0".encode())
    return digest.hexdigest()


async def watch_rounds(paths: Sequence[Path], seconds: float, wait: Wait = asyncio.sleep) -> AsyncGenerator[None, None]:
    """Yield once at the start, and then once after each change under any of the paths."""
    stirred = asyncio.Event()
    watching = [asyncio.Event() for _ in paths]
    tasks = [
        asyncio.ensure_future(_watch(path, seconds, wait, begun, stirred))
        for path, begun in zip(paths, watching, strict=True)
    ]
    try:
        for begun in watching:
            # A change while the first round reads must be noticed, so the watching begins before it.
            await begun.wait()
        while True:
            yield
            await stirred.wait()
            stirred.clear()
            for task in tasks:
                if task.done():
                    task.result()  # that path is not watched any more: raise why
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _watch(path: Path, seconds: float, wait: Wait, begun: asyncio.Event, stirred: asyncio.Event) -> None:
    async def waiting(time: float) -> None:
        begun.set()
        await wait(time)

    try:
        async for _ in changes(path, seconds, wait=waiting):
            stirred.set()
    finally:
        begun.set()
        stirred.set()
