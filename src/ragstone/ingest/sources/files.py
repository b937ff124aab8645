"""Files and folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ragstone.core.errors import InputError
from ragstone.core.types import Failure, Item

SOURCE = "files"
# Kinds that are never documents: found inside a folder they are passed over without a word.
PASSED_OVER = re.compile(
    r"\.(avi|bmp|class|css|db(-wal|-shm|-journal)?|dll|eot|exe|gif|ico|jpe?g|lock|map|mov|mp[34]|o|otf|pack|png|pyc|so|svg|ttf|wav|web[mp]"
    r"|whl|woff2?)",
    re.IGNORECASE,
)


def read_files(paths: Sequence[Path], max_bytes: int) -> Iterator[Item | Failure]:
    """Each file named, and each document under each folder named, in order of path, each once.

    A file is known by its absolute path, so that naming it alone or through its folder is the same document.
    Hidden files, and links that lead out of a folder, are passed over.
    """
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} does not exist", hint="check the spelling; nothing was ingested")
    return (
        entry if isinstance(entry, Failure) else _read(*entry, max_bytes=max_bytes) for entry in _find(paths)
    )


def count_files(paths: Sequence[Path]) -> int:
    """How many files `read_files` would look at."""
    return sum(1 for _ in _find(paths))


def _find(paths: Sequence[Path]) -> Iterator[tuple[Path, str] | Failure]:
    """Files and how their place is shown to people."""
    seen: set[Path] = set()
    for path in paths:
        for entry in _walk(path) if path.is_dir() else [(path, _text(path.name))]:
            if isinstance(entry, Failure):
                yield entry
            elif (real := _real(entry[0])) not in seen:
                # A link beside the file it leads to would be the same document under two places.
                seen.add(real)
                yield entry


def _walk(folder: Path) -> Iterator[tuple[Path, str] | Failure]:
    root = _real(folder)
    closed: list[OSError] = []
    for parent, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(parent) / name
            if name.startswith(".") or PASSED_OVER.fullmatch(file.suffix):
                continue
            if file.is_symlink() and not _real(file).is_relative_to(root):
                continue
            yield file, _shown(file, folder)
    for problem in closed:
        shown = _shown(Path(os.fsdecode(problem.filename)), folder)
        yield Failure(shown, "unreadable", f"{shown} cannot be read: {problem.strerror or problem}")


def _real(path: Path) -> Path:
    # Path.resolve raises on a link that leads to itself.
    return Path(os.path.realpath(path))


def _shown(file: Path, folder: Path) -> str:
    return _text((Path(_real(folder).name) / file.relative_to(folder)).as_posix())


def _text(name: str) -> str:
    """A name as text: bytes of it that are not UTF-8 are written out, since no store takes them."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _read(file: Path, uri: str, *, max_bytes: int) -> Item | Failure:
    try:
        if not file.is_file():
            return Failure(uri, "invalid_input", f"{uri} is not a regular file")
        facts = file.stat()
        if facts.st_size > max_bytes:
            megabytes = facts.st_size / 1024 / 1024
            limit = max_bytes // 1024 // 1024
            return Failure(uri, "too_large", f"{uri} has {megabytes:.0f} MB; limits.file_mb allows {limit}")
        content = file.read_bytes()
    except OSError as error:
        return Failure(uri, "unreadable", f"{uri} cannot be read: {error.strerror or error}")
    modified = datetime.fromtimestamp(facts.st_mtime, UTC).replace(microsecond=0)
    return Item(
        source=SOURCE,
        external_id=_text(_real(file).as_posix()),
        uri=uri,
        content=content,
        metadata={"source_type": "files", "filename": _text(file.name), "modified_date": modified},
        modified_at=modified,
    )
