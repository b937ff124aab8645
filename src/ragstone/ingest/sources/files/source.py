"""Files and folders."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from ragstone.core.errors import InputError, RagstoneError, SourceError
from ragstone.core.types import Failure, Item, Json, Page
from ragstone.ingest.sources.context import SourceContext
from ragstone.ingest.sources.files.archives import MEGABYTE
from ragstone.ingest.sources.files.batches import in_batches
from ragstone.ingest.sources.files.patterns import Patterns, Selection
from ragstone.ingest.sources.files.reading import is_container, list_documents, list_ids, read_documents
from ragstone.ingest.sources.files.walk import FoundFile, as_text, find, is_document, own_name, real
from ragstone.settings.base import SettingsModel
from ragstone.settings.tree import LimitSettings

SOURCE = "files"


def read_files(paths: Sequence[Path], max_bytes: int, limits: LimitSettings | None = None) -> Iterator[Item | Failure]:
    """Yield each file named, and each document under each folder named, in order of path, each once.

    A file is known by its absolute path, so that naming it alone or through its folder is the same document.
    Archives and mailboxes give the documents inside them, within `limits`. Hidden files, and links that lead
    out of a folder, are passed over.
    """
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} does not exist", hint="check the spelling; nothing was ingested")
    return _read_each(paths, max_bytes, limits or LimitSettings())


def count_files(paths: Sequence[Path], limits: LimitSettings | None = None) -> int:
    """About how many documents `read_files` would give: what mailboxes hold shows only when they are read."""
    return sum(
        1 if isinstance(found, Failure) else _count_inside(found, limits or LimitSettings())
        for found in _each_once(paths)
    )


def _count_inside(found: FoundFile, limits: LimitSettings) -> int:
    try:
        inside = list(list_documents(found, Item(SOURCE, found.relative, found.shown, b""), limits))
    except (OSError, RagstoneError):
        return 1  # reading it says what is wrong
    return sum(is_document(member.partition("!/")[2]) for member in inside) or 1


def _read_each(paths: Sequence[Path], max_bytes: int, limits: LimitSettings) -> Iterator[Item | Failure]:
    for found in _each_once(paths):
        if isinstance(found, Failure):
            yield found
        else:
            yield from read_documents(found, origin_of(found), limits, max_bytes)


def origin_of(found: FoundFile) -> Item:
    """Return the item of a file that is known by its absolute path, without its content."""
    external_id = own_name(as_text(real(found.path).as_posix()))
    return Item(SOURCE, external_id, found.shown, b"", metadata={"source_type": SOURCE})


def _each_once(paths: Sequence[Path]) -> Iterator[FoundFile | Failure]:
    seen: set[Path] = set()
    for path in paths:
        for found in find(path):
            if isinstance(found, Failure):
                yield found
            elif (place := real(found.path)) not in seen:
                # A link beside the file it leads to would be the same document under two places.
                seen.add(place)
                yield found


class FilesConfig(SettingsModel):
    """A folder, or one file, and which documents of it are meant."""

    path: Path
    glob: Patterns = ()
    """Such as `**/*.md`; pictures are taken only where a pattern names their suffix."""
    exclude: Patterns = ()


class FilesSource:
    """The documents under a folder, known by their path under it."""

    def __init__(self, config: FilesConfig, name: str, context: SourceContext) -> None:
        self._root = config.path.expanduser()
        self._selection = Selection(config.glob, config.exclude)
        self._name = name
        self._limits = context.limits

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield all documents there are. The first page lists them, unless a part of the folder could not be seen."""
        found = await asyncio.to_thread(self._find)
        listed = await asyncio.to_thread(list_ids, found, self._origin, self._limits)
        if listed is not None:
            yield Page((), listed=listed)
        broken = []
        async for entries in in_batches(self._read(found)):
            broken += [entry.uri for entry in entries if _broke_off(entry)]
            yield Page(entries)
        if broken and listed is not None:
            # It was listed and then broke off: what was not read of it must not count as removed.
            raise SourceError(f"{broken[0]} could not be read to its end", hint="nothing was removed; try again")

    async def close(self) -> None:
        """Nothing is held open."""

    def _find(self) -> list[FoundFile | Failure]:
        if not self._root.exists():
            raise SourceError(
                f"the folder {self._root} of source '{self._name}' does not exist",
                hint="check the path, or whether its disk is mounted; nothing was removed",
            )
        return list(_files_before_links(list(find(self._root, self._selection))))

    def _read(self, found: Sequence[FoundFile | Failure]) -> Iterator[Item | Failure]:
        for entry in found:
            if isinstance(entry, Failure):
                yield entry
            else:
                yield from read_documents(entry, self._origin(entry), self._limits, self._limits.file_mb * MEGABYTE)

    def _origin(self, found: FoundFile) -> Item:
        return Item(self._name, found.relative, found.shown, b"", metadata={"source_type": SOURCE})


def _broke_off(entry: Item | Failure) -> bool:
    return isinstance(entry, Failure) and entry.code == "unreadable" and is_container(entry.uri)


def _files_before_links(entries: Sequence[FoundFile | Failure]) -> Iterator[FoundFile | Failure]:
    """Yield each file once, under its own path if it was found there, else under that of the first link to it."""
    files = (entry.path for entry in entries if isinstance(entry, FoundFile))
    seen = {real(path) for path in files if not path.is_symlink()}
    for entry in entries:
        if isinstance(entry, FoundFile) and entry.path.is_symlink():
            if (target := real(entry.path)) in seen:
                continue
            seen.add(target)
        yield entry
