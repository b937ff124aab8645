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
    r"\.(avi|bmp|class|css|db|dll|eot|exe|gif|ico|jpe?g|lock|map|mov|mp[34]|o|otf|pack|png|pyc|so|svg|ttf|wav|web[mp]"
    r"|whl|woff2?)",
    re.IGNORECASE,
)


def read_files(paths: Sequence[Path], max_bytes: int) -> Iterator[Item | Failure]:
    """Each file named, and each document under each folder named, in order of path.

    A file is known by its absolute path, so that naming it alone or through its folder is the same document.
    Hidden files, and links that lead out of a folder, are passed over.
    """
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} does not exist", hint="check the spelling; nothing was ingested")
    for path in paths:
        if path.is_dir():
            for file in _walk(path):
                yield _read(file, _shown(file, path), max_bytes)
        else:
            yield _read(path, path.name, max_bytes)


def count_files(paths: Sequence[Path]) -> int:
    """How many files `read_files` would look at."""
    return sum(sum(1 for _ in _walk(path)) if path.is_dir() else 1 for path in paths)


def _walk(folder: Path) -> Iterator[Path]:
    root = folder.resolve()
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(parent) / name
            if name.startswith(".") or PASSED_OVER.fullmatch(file.suffix):
                continue
            if file.is_symlink() and not file.resolve().is_relative_to(root):
                continue
            yield file


def _shown(file: Path, folder: Path) -> str:
    return (Path(folder.resolve().name) / file.relative_to(folder)).as_posix()


def _read(file: Path, uri: str, max_bytes: int) -> Item | Failure:
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
        external_id=file.resolve().as_posix(),
        uri=uri,
        content=content,
        metadata={"source_type": "files", "filename": file.name, "modified_date": modified},
        modified_at=modified,
    )
