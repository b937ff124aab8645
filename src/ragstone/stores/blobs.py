"""Original files under the data folder, with names that the server chooses."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ragstone.core.errors import NotFoundError
from ragstone.core.ids import opaque_id
from ragstone.stores.ledger.sqlite_file import translated

SETTLED_SECONDS = 3600.0
"""A file this old that no job needs was left behind by a crash; a younger one may be on its way in."""


class Blobs:
    """One tenant's files: `documents/{tenant}/{document}/{name}`.

    Every file gets a name of its own, so that whoever removes what a document had cannot hit what came in since.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, document_id: str, content: bytes) -> str:
        """Write it down for good: it is there, whole, when this returns its name."""
        name = opaque_id()
        place = self._place(document_id, name)
        with translated(place):
            handle = _create(place)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(handle)
                _sync(place.parent)
            except OSError:
                place.unlink(missing_ok=True)
                raise
        return name

    def get(self, document_id: str, name: str) -> bytes:
        """The content, or `NotFoundError` when it has been deleted."""
        place = self._place(document_id, name)
        with translated(place):
            try:
                return place.read_bytes()
            except FileNotFoundError:
                raise NotFoundError(f"the original of document {document_id} is gone") from None

    def names(self, document_id: str) -> list[str]:
        """The files that a document has now."""
        folder = self._folder / _safe(document_id)
        with translated(folder):
            return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []

    def remove(self, document_id: str, names: Iterable[str]) -> None:
        """Remove files of a document, and its folder with the last of them."""
        folder = self._folder / _safe(document_id)
        with translated(folder):
            for name in names:
                (folder / _safe(name)).unlink(missing_ok=True)
            with suppress(OSError):  # not empty: something has come in since
                folder.rmdir()

    def settled(self) -> dict[str, list[str]]:
        """Files that are not new, by document."""
        if not self._folder.is_dir():
            return {}
        before = time.time() - SETTLED_SECONDS
        found = {}
        with translated(self._folder):
            for folder in self._folder.iterdir():
                old = [file.name for file in folder.iterdir() if file.stat().st_mtime < before]
                if old or not any(folder.iterdir()):
                    found[folder.name] = old
        return found

    def _place(self, document_id: str, name: str) -> Path:
        return self._folder / _safe(document_id) / _safe(name)


def _create(place: Path) -> int:
    while True:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileNotFoundError):  # the folder went with its last file just now
            return os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _safe(name: str) -> str:
    # Ids and names are ours and hexadecimal; anything else must not become a path.
    if not name or not all(character in "0123456789abcdef" for character in name):
        raise NotFoundError(f"no document {name!r:.80}")
    return name


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
