"""Check files before a parser reads them: names, kinds and sizes of uploads, and the operator's malware scanner."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from ragstone.core.documents import FILENAME, within
from ragstone.core.errors import EmptyDocument, InputError, ParserLimit, SettingsError, UnsupportedFormat
from ragstone.ingest.parsers.draft import KINDS, printable

SOURCE = "upload"
_INSIDE = re.compile(r"!/|#\d+:")
CONTAINERS = frozenset({".zip", ".mbox", ".gz"})
SECONDS = 120.0
COPIES = "ragstone-scan-"
"""The beginning of the names of folders that hold a copy for the scanner."""
ABANDONED_SECONDS = 3 * SECONDS


def check_external_id(external_id: str) -> str:
    """Return the external id of an upload. Raises for one that belongs to a file inside another upload."""
    if _INSIDE.search(external_id):
        raise InputError(
            f"the external id {printable(external_id)!r} is of a file in an archive or of an attachment",
            hint="leave out '!/', and '#' before a number and a colon",
        )
    return external_id


def check_upload(content: bytes, filename: str, file_mb: int, types: Sequence[str] = ()) -> str:
    """Return the name of a file without folders. Raises for a file that no parser would take."""
    name = PurePosixPath(filename.replace("\\", "/")).name.replace("\0", "").strip()
    if name in ("", ".", ".."):
        raise InputError(f"{printable(filename)!r} is no file name", hint="give the file's own name")
    name = printable(within("the file name", name.encode("utf-8", "replace").decode(), FILENAME), FILENAME)
    suffix = PurePosixPath(name).suffix.lower()
    if types and suffix.lstrip(".") not in types:
        raise UnsupportedFormat(
            f"{name} is of a kind that is not allowed", hint=f"limits.upload_types allows: {', '.join(types)}"
        )
    if suffix and suffix not in KINDS and suffix not in CONTAINERS:
        allowed = ", ".join(sorted({*KINDS, *CONTAINERS}))
        raise UnsupportedFormat(f"{name} is of a kind that is not allowed", hint=f"allowed are: {allowed}")
    if not content:
        raise EmptyDocument(f"{name} is empty", hint="put text in it")
    if len(content) >= file_mb * 1024 * 1024:
        raise ParserLimit(
            f"{name} has {len(content) / 1024 / 1024:.0f} MB; limits.file_mb allows less than {file_mb}",
            hint="split the file, or raise the limit",
        )
    return name


class MalwareFound(InputError):
    """The scanner found something."""

    code = "malware"


async def scan(command: Sequence[str], content: bytes, name: str) -> None:
    """Run the command on a private copy of the file; an exit code other than 0 refuses it."""
    await asyncio.to_thread(_remove_abandoned)
    with tempfile.TemporaryDirectory(prefix=COPIES) as folder:
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


def _remove_abandoned() -> None:
    """Remove copies that processes left which were killed during a scan."""
    for folder in Path(tempfile.gettempdir()).glob(f"{COPIES}*"):
        with suppress(OSError):
            if time.time() - folder.lstat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(folder)


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
