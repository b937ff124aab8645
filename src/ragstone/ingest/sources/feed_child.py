"""One feed and the process that reads it, seen from its parent."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ragstone.core.errors import SourceError
from ragstone.core.settings import LimitSettings

# The child gets the parent's import path as arguments, as those of the parsers do.
_BOOT = "import sys; sys.path[:] = sys.argv[4:]; from ragstone.ingest.parsers.feed import main; main()"


async def parse_apart(content: bytes, name: str, limits: LimitSettings) -> dict[str, Any]:
    """What feedparser says of a feed, within the time and the memory that a file may cost."""
    child = _start(limits)
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


def _start(limits: LimitSettings) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  (our own interpreter, our own arguments)
        [
            *(sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _BOOT),
            *(str(limits.parse_memory_mb), str(limits.parse_seconds), str(os.getpid())),
            *(str(Path(entry).absolute()) for entry in sys.path if entry),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"MALLOC_ARENA_MAX": "1", "PATH": os.environ.get("PATH", os.defpath)},
        cwd=Path("/"),
        start_new_session=True,
    )


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
