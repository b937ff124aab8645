"""Original files under the data folder, with names that the server chooses, sealed when there is a key."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from ragstone.core.errors import NotFoundError, StoreError, StoreFull
from ragstone.core.ids import opaque_id
from ragstone.stores.corpus.atomic_file import sync_folder
from ragstone.stores.ledger.sqlite.file import translate_errors
from ragstone.stores.vault import HEADER_BYTES, Owner, Vault

_HEXADECIMAL = frozenset("0123456789abcdef")
SETTLED_SECONDS = 3600.0
"""A file this old that no job needs was left behind by a crash; a younger one may be on its way in."""
NAME_CHARACTERS = 32
"""The length of an opaque id. A draft is named by the file that it is to replace and an id of its own."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """The outcome of encrypting a tenant's files with the present key."""

    renewed: int
    current: int
    """Those that had it already."""
    failed: tuple[str, ...]
    """Why others could not be renewed, one line each. They are as they were."""


class Blobs:
    """One tenant's files: `documents/{tenant}/{document}/{name}`.

    Every file gets a name of its own, so that removing what a document had cannot hit what came in since.
    A sealed file can be read only as the file of this tenant, document and name.
    """

    def __init__(self, folder: Path, vault: Vault | None = None, tenant_id: str = "") -> None:
        self._folder = folder
        self._vault = vault or Vault()
        self.tenant_id = tenant_id or folder.name

    def put(self, document_id: str, content: bytes) -> str:
        """Write a file durably, whole or not at all, and return its name."""
        name = opaque_id()
        place = self._place(document_id, name)
        stored = self._vault.seal(content, self._owner(document_id, name))
        with translate_errors(place):
            try:
                with os.fdopen(_create(place), "wb") as file:
                    _write(file, stored)
                sync_folder(place.parent)
            except OSError:
                place.unlink(missing_ok=True)
                raise
        return name

    def get(self, document_id: str, name: str) -> bytes:
        """Return the content; raise `NotFoundError` when it has been deleted."""
        place = self._place(document_id, name)
        with translate_errors(place):
            try:
                stored = place.read_bytes()
            except FileNotFoundError:
                raise NotFoundError(f"the original of document {document_id} is gone") from None
        return self._vault.open(stored, self._owner(document_id, name))

    def size(self, document_id: str, name: str) -> int:
        """Return the stored size of a file in bytes; 0 when there is no such file."""
        if not (_is_ours(document_id) and _is_ours(name)):
            return 0
        place = self._place(document_id, name)
        with translate_errors(place):
            try:
                return place.stat().st_size
            except (FileNotFoundError, NotADirectoryError):
                return 0

    def names(self, document_id: str) -> list[str]:
        """Return the names of the files that a document has."""
        folder = self._folder / _safe(document_id)
        with translate_errors(folder):
            return [name for name in _list_names(folder) if len(name) <= NAME_CHARACTERS]

    def remove(self, document_id: str, names: Iterable[str]) -> None:
        """Remove files of a document, and its folder with the last of them."""
        folder = self._folder / _safe(document_id)
        files = {_safe(name) for name in names}
        with translate_errors(folder):
            _unlink(folder, files)
            drafts = [name for name in _list_names(folder) if name[:NAME_CHARACTERS] in files]
            if drafts:
                _unlink(folder, drafts)
                # Once more: a draft may have taken a file's place between the two.
                _unlink(folder, files)
            _drop_if_empty(folder)

    def list_old(self, document_ids: Iterable[str] | None = None) -> dict[str, list[str]]:
        """Return files that are not new, by document: of all documents, or of some."""
        before = time.time() - SETTLED_SECONDS
        found = {}
        with translate_errors(self._folder):
            for document_id in _list_names(self._folder) if document_ids is None else document_ids:
                folder = self._folder / _safe(document_id)
                names = _list_names(folder)
                old = [name for name in names if _is_older(folder / name, before)]
                if old or (not names and folder.is_dir()):
                    found[document_id] = old
        return found

    def missing_keys(self) -> Counter[str]:
        """Count the files whose key is missing, by that key."""
        missing: Counter[str] = Counter()
        for document_id in self._documents():
            for name in self.names(document_id):
                place = self._place(document_id, name)
                with translate_errors(place), suppress(FileNotFoundError):  # deleted in between
                    missing[self._vault.missing_key(_head(place))] += 1
        del missing[""]
        return missing

    def rotate(self) -> Rotation:
        """Bring every file under the present key; run again after a crash, it goes on where it was."""
        self._vault.require_key()
        documents = self._documents()
        outcomes: Counter[str] = Counter()
        failed: list[str] = []
        for document_id in documents:
            for name in self.names(document_id):
                try:
                    outcomes[self._renew(document_id, name)] += 1
                except StoreFull:
                    raise
                except StoreError as error:
                    failed.append(str(error))
        return Rotation(outcomes["renewed"], outcomes["current"], tuple(failed))

    def _renew(self, document_id: str, name: str) -> Literal["renewed", "current", "gone"]:
        place = self._place(document_id, name)
        draft = place.with_name(name + opaque_id())
        with translate_errors(place):
            try:
                if self._vault.is_current(_head(place)):
                    return "current"
                # The draft is there before the original is read. A caller that removes the original after that removes
                # the draft too, and one that did so before leaves nothing to read: what is deleted stays deleted.
                with os.fdopen(_open_new(draft), "wb") as file:
                    content = self.get(document_id, name)
                    _write(file, self._vault.seal(content, self._owner(document_id, name)))
                draft.replace(place)
                sync_folder(place.parent)
            except (FileNotFoundError, NotFoundError):
                return "gone"
            finally:
                draft.unlink(missing_ok=True)
                _drop_if_empty(place.parent)
        return "renewed"

    def _documents(self) -> list[str]:
        with translate_errors(self._folder):
            return _list_names(self._folder)

    def _place(self, document_id: str, name: str) -> Path:
        return self._folder / _safe(document_id) / _safe(name)

    def _owner(self, document_id: str, name: str) -> Owner:
        return Owner(self.tenant_id, "document", document_id, name)


def _create(place: Path) -> int:
    while True:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileNotFoundError):  # the folder went with its last file just now
            return _open_new(place)


def _open_new(place: Path) -> int:
    return os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _write(file: BinaryIO, content: bytes | bytearray) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _head(place: Path) -> bytes:
    with place.open("rb") as file:
        return file.read(HEADER_BYTES)


def _list_names(folder: Path) -> list[str]:
    # Others may remove files and folders at any time, and a file system may keep things of its own there.
    try:
        return [entry.name for entry in folder.iterdir() if _is_ours(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_older(place: Path, moment: float) -> bool:
    try:
        return place.stat().st_mtime < moment
    except FileNotFoundError:
        return False


def _unlink(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)


def _drop_if_empty(folder: Path) -> None:
    with suppress(OSError):  # not empty: something has come in since
        folder.rmdir()


def _is_ours(name: str) -> bool:
    return bool(name) and _HEXADECIMAL.issuperset(name)


def _safe(name: str) -> str:
    # Ids and names are ours and hexadecimal; anything else must not become a path.
    if not _is_ours(name):
        raise NotFoundError(f"no document {name!r:.80}")
    return name
