"""Files made once from a model's weights and kept: written whole or not at all, checked when read.

A file is one page of header (magic, length, CRC-32), then the content, so that it can be mapped in place.
The checksum finds a damaged disk or a cut copy; it is not a defence against someone who can write here.
"""

from __future__ import annotations

import logging
import os
import re
import struct
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

logger = logging.getLogger(__name__)

MAGIC = b"RAGSTONE-ART-1\n\0"
HEADER = struct.Struct("<16sQI")
PAGE = 4096
ABANDONED_SECONDS = 3600


def cache_folder(chosen: Path | None = None) -> Path:
    """Return the cache folder: the chosen one, `RAGSTONE_CACHE_DIR`, the user's cache, or a temporary one."""
    folder = chosen or _default_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    spare = Path(tempfile.gettempdir()) / f"ragstone-cache-{os.getuid()}"
    spare.mkdir(mode=0o700, exist_ok=True)
    if spare.stat().st_uid != os.getuid():
        return Path(tempfile.mkdtemp(prefix="ragstone-cache-"))
    logger.warning("cannot write to %s; models are cached in %s", folder, spare)
    return spare


def file_name(*parts: str) -> str:
    """Return a safe file name made of what the artefact depends on."""
    return "-".join(re.sub(r"[^A-Za-z0-9._]+", "_", part) for part in parts) + ".artefact"


def load(path: Path) -> NDArray[np.uint8] | None:
    """Map an artefact's content, private and writable; None when there is none or it is damaged."""
    try:
        # Opened once: another process may put a new file in its place at any moment.
        whole = np.memmap(path, np.uint8, mode="c")
        magic, length, checksum = HEADER.unpack(whole[: HEADER.size].tobytes())
    except FileNotFoundError:
        return None
    except (OSError, struct.error, ValueError):
        logger.warning("%s cannot be read; it is made again", path)
        return None
    content = whole[PAGE:]
    if magic != MAGIC or len(content) != length or zlib.crc32(content.data) != checksum:
        logger.warning("%s is damaged; it is made again", path)
        return None
    return content


def store(path: Path, content: bytes | memoryview) -> bool:
    """Write an artefact so that a reader sees all of it or none; False when the disk refuses."""
    header = HEADER.pack(MAGIC, len(content), zlib.crc32(content)).ljust(PAGE, b"\0")
    _remove_abandoned(path.parent)
    temporary = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".partial")
        with os.fdopen(descriptor, "wb") as file:
            file.write(header)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        logger.warning("cannot keep %s (%s); it will be made again next time", path, error)
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        return False
    return True


def _default_folder() -> Path:
    chosen = os.environ.get("RAGSTONE_CACHE_DIR")
    if chosen:
        return Path(chosen)
    user_cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(user_cache) if user_cache else Path("~/.cache").expanduser()) / "ragstone"


def _remove_abandoned(folder: Path) -> None:
    """Remove partial files of processes that were killed while writing."""
    for partial in folder.glob("*.partial"):
        try:
            if time.time() - partial.stat().st_mtime > ABANDONED_SECONDS:
                partial.unlink(missing_ok=True)
        except OSError:
            continue
