"""Hashes of large files, remembered for as long as the file's size and time stay the same."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path


def file_sha256(path: Path, memory: Path | None = None) -> str:
    """SHA-256 of a file; `memory` is a folder where it is remembered, so that it is read once only."""
    stat = path.stat()
    identity = [str(path.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ino]
    if memory is None:
        return _hash(path)
    note = memory / f"sha256-{hashlib.sha256(str(identity).encode()).hexdigest()[:32]}.json"
    try:
        remembered = json.loads(note.read_text("utf-8"))
        if remembered["file"] == identity:
            return str(remembered["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # Nothing usable is remembered: the file is read.
    digest = _hash(path)
    _remember(note, json.dumps({"file": identity, "sha256": digest}))
    return digest


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remember(note: Path, content: str) -> None:
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=note.parent, suffix=".partial")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
        Path(temporary).replace(note)
    except OSError:
        return  # A folder that cannot be written only costs hashing the file again.
