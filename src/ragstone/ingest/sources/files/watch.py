"""Noticing that a folder has changed, from what the file system says of it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
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
