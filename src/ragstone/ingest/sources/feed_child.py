"""One feed and the process that reads it, seen from its parent."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from typing import Any

from ragstone.core.errors import SourceError
from ragstone.ingest.parsers.sandbox.isolation import start_isolated
from ragstone.settings.tree import LimitSettings

_CHILD = "ragstone.ingest.parsers.web.feed"


async def parse_apart(content: bytes, name: str, limits: LimitSettings) -> dict[str, Any]:
    """What feedparser says of a feed, within the time and the memory that a file may cost."""
    child = start_isolated(_CHILD, str(limits.parse_memory_mb), str(limits.parse_seconds), str(os.getpid()))
    try:
        # The thread also ends what it waits for, and so must run whatever becomes of this task.
        answer = await asyncio.shield(asyncio.to_thread(_ask, child, content, limits.parse_seconds))
    except asyncio.CancelledError:
        child.kill()
        raise
    if not answer:
        raise SourceError(
            f"{name} takes more time or memory to read than a file may",
            hint="it may be hostile; if it is not, raise limits.parse_seconds or limits.parse_memory_mb",
        )
    said: dict[str, Any] = json.loads(answer)
    return said


def _ask(child: subprocess.Popen[bytes], content: bytes, seconds: float) -> bytes:
    with child:
        try:
            # Twice the time, since the child ends by itself when it has used its processor time.
            answer, _ = child.communicate(content, timeout=2 * seconds)
        except subprocess.TimeoutExpired:
            return b""
        finally:
            child.kill()
    return b"" if child.returncode else answer
