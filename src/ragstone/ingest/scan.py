"""Run the operator's malware scanner on every file before a parser reads it."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ragstone.core.errors import InputError, SettingsError
from ragstone.ingest.parsers.draft import printable

SECONDS = 120.0


class MalwareFound(InputError):
    """The scanner found something."""

    code = "malware"


async def scan(command: Sequence[str], content: bytes, name: str) -> None:
    """Run the command on a private copy of the file; an exit code other than 0 refuses it."""
    with tempfile.TemporaryDirectory(prefix="ragstone-scan-") as folder:
        copy = Path(folder) / "file"
        await asyncio.to_thread(_write, copy, content)
        process = await _start((*command, str(copy)))
        try:
            output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
        except TimeoutError:
            await _end(process)
            raise MalwareFound(f"{name} was not scanned within {SECONDS:.0f} s") from None
        except asyncio.CancelledError:
            await _end(process)
            raise
    if process.returncode:
        words = printable(" ".join(output.decode("utf-8", "replace").replace(str(copy), name).split()))
        raise MalwareFound(f"{name} was refused by the malware scanner: {words or process.returncode}")


async def _start(command: Sequence[str]) -> asyncio.subprocess.Process:
    """Start the scanner; if the scan is cancelled before it has started, kill it with all that it started."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):
            await _end(await starting)
        raise
    except OSError as problem:
        raise SettingsError(
            f"the malware scanner {command[0]} cannot be run: {problem.strerror}",
            hint="check extract.scan_command; nothing is ingested without it",
        ) from problem


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the scanner and its children: as long as one of them holds its output it counts as running."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _write(place: Path, content: bytes) -> None:
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
