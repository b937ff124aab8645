"""Finding files: what of a folder is a document, in which order, under which name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ragstone.core.types import Failure
from ragstone.ingest.sources.patterns import Selection

EVERYTHING = Selection()
# Kinds that are never documents: found inside a folder they are passed over without a word.
PASSED_OVER = re.compile(
    r"\.(avi|bmp|class|css|db(-wal|-shm|-journal)?|dll|eot|exe|gif|ico|jpe?g|lock|map|mov|mp[34]|o|otf|pack|png|pyc|so|svg|ttf|wav|web[mp]"
    r"|whl|woff2?)",
    re.IGNORECASE,
)

_LIKE_A_MEMBER = re.compile(r"(\.(?:mbox|zip))!/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """A file that was found: where it is, its name under the folder, and how its place is shown to people."""

    path: Path
    relative: str
    shown: str


def find(path: Path, selection: Selection = EVERYTHING) -> Iterator[Found | Failure]:
    """The file itself, or the documents under the folder, each folder's own before those below it.

    Hidden files, and links that lead out of the folder, are passed over; a folder that cannot be listed is a
    `Failure`, after everything that could be.
    """
    if not path.is_dir():
        name = as_text(path.name)
        return iter([Found(path, name, name)])
    return _walk(path, selection)


def _walk(folder: Path, selection: Selection) -> Iterator[Found | Failure]:
    root = real(folder)
    closed: list[OSError] = []
    for parent, folders, names in os.walk(folder, onerror=closed.append):
        under = Path(parent).relative_to(folder)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and selection.enters(as_text((under / name).as_posix()))
        )
        for name in sorted(names):
            file = Path(parent) / name
            relative = as_text((under / name).as_posix())
            if not is_document(relative, selection):
                continue
            if file.is_symlink() and not real(file).is_relative_to(root):
                continue
            yield Found(file, own_name(relative), _shown(root, under / name))
    for problem in closed:
        shown = _shown(root, Path(os.fsdecode(problem.filename)).relative_to(folder))
        yield Failure(shown, "unreadable", f"{shown} cannot be read: {problem.strerror or problem}")


def _shown(root: Path, under: Path) -> str:
    return own_name(as_text((Path(root.name) / under).as_posix()))


def is_document(relative: str, selection: Selection = EVERYTHING) -> bool:
    """Whether a path in a tree may be a document: not hidden, wanted, and of a kind that is one."""
    if any(part.startswith(".") for part in relative.split("/")) or not selection.takes(relative):
        return False
    return not PASSED_OVER.fullmatch(PurePosixPath(relative).suffix) or selection.names_kind(relative)


def real(path: Path) -> Path:
    """Where a path leads in the end."""
    # Path.resolve raises on a link that leads to itself.
    return Path(os.path.realpath(path))


def own_name(path: str) -> str:
    """A path as the name of what is there: `a.zip!/b` is what is in the archive a.zip, and no folder may seem to be it.

    It becomes `a.zip//b`, which is no other path's name, since no part of a path is empty.
    """
    return _LIKE_A_MEMBER.sub(r"\1//", path)


def as_text(name: str) -> str:
    """A name as text: bytes of it that are not UTF-8 are written out, since no store takes them."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
