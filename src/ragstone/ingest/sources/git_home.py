"""Where a repository's objects lie. What is read must belong to the folder that was given, and to no other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ragstone.core.errors import SourceError
from ragstone.ingest.sources.walk import real

MAX_POINTER = 1024 * 1024
MAX_STORES = 10
_POINTER = b"gitdir: "
_REPAIR = "give that repository itself as the path; git worktree repair mends a checkout that was moved"
_COPY = "copy what it borrows: git repack -a -d, then remove objects/info/alternates and links"


def place_of(path: Path) -> Path:
    """What Git is told to open: `.git` of a checkout, or the bare repository itself."""
    inside = path / ".git"
    return inside if inside.exists() else path


def check_home(path: Path) -> None:
    """Raise unless all that Git would open lies in the path, or in the repository that the path is a checkout of."""
    place = _followed(place_of(path))
    common = _common(place)
    homes = [real(path)]
    if not (place.is_relative_to(homes[0]) and common.is_relative_to(homes[0])):
        if not _names_back(place, common, path):
            raise _leads_out(path, common, _REPAIR)
        homes.append(common)
    for store in _stores(common / "objects", path):
        for opened in (store, *_links(store)):
            if not any(real(opened).is_relative_to(home) for home in homes):
                raise _leads_out(path, real(opened), _COPY)


def _followed(place: Path) -> Path:
    """Where a `.git` that is a file or a link leads."""
    pointer = _read(place) if place.is_file() else b""
    return real(_from(place.parent, pointer.removeprefix(_POINTER)) if pointer else place)


def _common(place: Path) -> Path:
    """The repository that a second working tree shares with the first."""
    pointer = _read(place / "commondir")
    return real(_from(place, pointer)) if pointer else place


def _names_back(place: Path, common: Path, path: Path) -> bool:
    """Whether the repository says that this folder is a checkout of it, as only those who may write to it can."""
    if named := _read(place / "gitdir"):
        tree = _from(place, named)
        return (
            place.parent == common / "worktrees" and tree.name == ".git" and real(tree.parent) == real(path)
        )
    # A submodule's repository lies in the one above it, and names its folder in its settings.
    return place == common and any(real(tree) == real(path) for tree in _work_trees(place))


def _work_trees(place: Path) -> Iterator[Path]:
    section = b""
    for line in _read(place / "config").split(b"\n"):
        name, _, value = line.partition(b"=")
        if line.startswith(b"["):
            section = line.strip().lower()
        elif section == b"[core]" and name.strip().lower() == b"worktree":
            yield _from(place, value.strip().strip(b'"'))


def _stores(objects: Path, path: Path) -> Iterator[Path]:
    """The folder of objects, and those that it borrows from."""
    known = [objects]
    for store in known:
        yield store
        for line in _read(store / "info" / "alternates").split(b"\n"):
            if not line or line.startswith(b"#"):
                continue
            borrowed = _from(store, line)
            if line.startswith(b'"') or len(known) == MAX_STORES:
                raise _leads_out(path, borrowed, _COPY)  # a spelling, or a chain, that nobody needs
            if borrowed not in known:
                known.append(borrowed)


def _links(store: Path) -> Iterator[Path]:
    """Links where Git looks for objects: in the folder and in those directly in it."""
    for folder in (store, *(Path(entry) for entry in _entries(store) if entry.is_dir())):
        yield from (Path(entry) for entry in _entries(folder) if entry.is_symlink())


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []  # Git cannot list it either


def _from(folder: Path, pointer: bytes) -> Path:
    return folder / os.fsdecode(pointer.rstrip(b"\r\n"))


def _read(file: Path) -> bytes:
    """A file that may not be there. What Git would read otherwise than this is refused."""
    if not file.exists():
        return b""
    try:
        content = file.read_bytes() if file.is_file() and file.stat().st_size <= MAX_POINTER else b"\0"
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror or error}") from error
    if b"\0" in content:
        raise SourceError(
            f"{file} is not what it is in a Git repository", hint="git fsck shows what is damaged"
        )
    return content


def _leads_out(path: Path, place: Path, hint: str) -> SourceError:
    return SourceError(f"the repository {path} takes content from outside of it, from {place}", hint=hint)
