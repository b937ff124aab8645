"""Objects of a Git repository, read only from the folder that was given and from no other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple

from ragstone.core.errors import SourceError
from ragstone.ingest.parsers.draft import printable
from ragstone.ingest.sources.files.walk import real

MAX_POINTER = 1024 * 1024
MAX_STORES = 10
_POINTER = b"gitdir: "
_REPAIR = "give that repository itself as the path; git worktree repair mends a checkout that was moved"
_COPY = "copy what it borrows: git repack -a -d, then remove objects/info/alternates and links"
SECONDS = 120
MAX_ENTRIES = 500_000
MAX_BYTES = 128 * 1024 * 1024
"""Of what Git lists: a tree that names the same subtrees again and again has a billion files in a dozen objects."""
_REGULAR = (b"100644", b"100755", b"100664")
_COMMIT = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_CHUNK = 64 * 1024
_MAX_RECORD = 1024 * 1024


def place_of(path: Path) -> Path:
    """Return the path for Git to open: `.git` of a checkout, or the bare repository itself."""
    inside = path / ".git"
    return inside if inside.exists() else path


def check_home(path: Path) -> None:
    """Raise unless all that Git would open lies in the path, or in the repository that the path is a checkout of."""
    place = _follow_pointer(place_of(path))
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


def _follow_pointer(place: Path) -> Path:
    """Return the folder that a `.git` leads to when it is a file or a link."""
    pointer = _read(place) if place.is_file() else b""
    return real(_from(place.parent, pointer.removeprefix(_POINTER)) if pointer else place)


def _common(place: Path) -> Path:
    """Return the repository that a second working tree shares with the first."""
    pointer = _read(place / "commondir")
    return real(_from(place, pointer)) if pointer else place


def _names_back(place: Path, common: Path, path: Path) -> bool:
    """Return whether the repository names this folder as its checkout, which takes the right to write to it."""
    if named := _read(place / "gitdir"):
        tree = _from(place, named)
        return place.parent == common / "worktrees" and tree.name == ".git" and real(tree.parent) == real(path)
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
    """Yield the folder of objects, and those that it borrows from."""
    known = [objects]
    for store in known:
        yield store
        for line in _read(store / "info" / "alternates").split(b"\n"):
            if not line or line.startswith(b"#"):
                continue
            borrowed = _from(store, line)
            if line.startswith(b'"') or len(known) == MAX_STORES:
                raise _leads_out(path, borrowed, _COPY)  # a spelling, or a chain, that no repository needs
            if borrowed not in known:
                known.append(borrowed)


def _links(store: Path) -> Iterator[Path]:
    """Yield links where Git looks for objects: in the folder and in those directly in it."""
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
    """Return the content of a file, empty when there is none. Refuses what Git would read differently."""
    if not file.exists():
        return b""
    try:
        content = file.read_bytes() if file.is_file() and file.stat().st_size <= MAX_POINTER else b"\0"
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror or error}") from error
    if b"\0" in content:
        raise SourceError(f"{file} is not what it is in a Git repository", hint="git fsck shows what is damaged")
    return content


def _leads_out(path: Path, place: Path, hint: str) -> SourceError:
    return SourceError(f"the repository {path} takes content from outside of it, from {place}", hint=hint)


class Blob(NamedTuple):
    """A regular file of a commit."""

    path: str
    id: str


class Change(NamedTuple):
    """A path that differs between two commits; `blob` is None when no regular file is there any more."""

    path: str
    blob: Blob | None


class Missing(NamedTuple):
    """An object that is not in this repository, as in a partial clone."""


class Oversize(NamedTuple):
    """A blob that is larger than what may be read."""

    size: int


@dataclass(frozen=True, slots=True)
class GitRepository:
    """A local checkout or bare repository."""

    path: Path

    def commit(self, branch: str | None) -> str:
        """Return the commit that a branch (HEAD when none is named) stands at."""
        check_home(self.path)
        names = ("HEAD",) if branch is None else (f"refs/heads/{branch}", f"refs/remotes/origin/{branch}")
        for name in names:
            found = self._try("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
            if _COMMIT.fullmatch(found):
                return found.decode()
        if not self._try("rev-parse", "--git-dir").strip():
            raise SourceError(
                f"{self.path} is not a Git repository", hint="give the folder that holds .git, or a bare repository"
            )
        what = f"no branch '{printable(branch)}'" if branch else "no commit yet"
        raise SourceError(f"the repository {self.path} has {what}", hint="check the branch, or fetch it first")

    def has(self, commit: str) -> bool:
        """Return whether the commit is still there: after a forced push it may be gone."""
        known = _COMMIT.fullmatch(commit.encode("utf-8", "replace"))
        return bool(known) and self._try("cat-file", "-t", commit).strip() == b"commit"

    def files(self, commit: str) -> Iterator[Blob]:
        """Yield the regular files of a commit; links and submodules are none."""
        for record in self._records("ls-tree", "-r", "-z", "--full-tree", commit):
            facts, _, path = record.partition(b"\t")
            mode, _, blob = facts.split(b" ")
            if mode in _REGULAR:
                yield Blob(path.decode("utf-8", "backslashreplace"), blob.decode())

    def changes(self, old: str, new: str) -> Iterator[Change]:
        """Yield what differs between two commits. A file that was moved is one removed and one added.

        Both are listed: `git diff-tree` would hold all that differs in memory before it prints any of it.
        """
        before = {blob.path: blob.id for blob in self.files(old)}
        for blob in self.files(new):
            if before.pop(blob.path, None) != blob.id:
                yield Change(blob.path, blob)
        yield from (Change(path, None) for path in before)

    def reader(self) -> BlobReader:
        """Return a reader of blobs, one after another, through one process."""
        return BlobReader(self._command("cat-file", "--batch"))

    def _records(self, *arguments: str) -> Iterator[bytes]:
        """Yield what Git lists, while it lists it. Raises unless Git ends without an error."""
        deadline = time.monotonic() + SECONDS
        with (
            tempfile.TemporaryFile() as problems,
            subprocess.Popen(  # noqa: S603  (a fixed program; names are refs, ids or after `--`)
                self._command(*arguments),
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=problems,
            ) as process,
        ):
            clock = threading.Timer(SECONDS, process.kill)
            clock.start()
            try:
                assert process.stdout
                yield from self._read_bounded(process.stdout)
                failed = process.wait()
            finally:
                clock.cancel()
                process.kill()
            if failed:
                problems.seek(0)
                raise (self._late() if time.monotonic() >= deadline else self._damage_error(problems.read(_CHUNK)))

    def _read_bounded(self, output: IO[bytes]) -> Iterator[bytes]:
        entries = size = 0
        rest = b""
        while part := output.read(_CHUNK):
            size += len(part)
            entries += part.count(b"\0")
            if entries > MAX_ENTRIES or size > MAX_BYTES or len(rest) > _MAX_RECORD:
                raise SourceError(
                    f"a commit of {self.path} lists more than {MAX_ENTRIES:,} files, "
                    f"or paths of more than {MAX_BYTES // 1024 // 1024} MB",
                    hint="no repository that people work in does; git ls-tree -r HEAD | head shows its files",
                )
            *records, rest = (rest + part).split(b"\0")
            yield from records

    def _try(self, *arguments: str) -> bytes:
        done = self._call(*arguments)
        return b"" if done.returncode else done.stdout

    def _call(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(  # noqa: S603  (a fixed program; names are refs, ids or after `--`)
                self._command(*arguments),
                env=_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise self._late() from error

    def _late(self) -> SourceError:
        return SourceError(f"git did not answer for {self.path} within {SECONDS} seconds")

    def _damage_error(self, said: bytes) -> SourceError:
        reason = printable(said.decode("utf-8", "replace").strip().split("\n")[0])
        return SourceError(f"git could not read {self.path}: {reason}", hint="git fsck shows what is damaged")

    def _command(self, *arguments: str) -> list[str]:
        git = shutil.which("git")
        if not git:
            raise SourceError("git is not installed", hint="install git; it reads the repository for Ragstone")
        return [git, "--no-pager", f"--git-dir={place_of(self.path)}", "-c", "core.fsmonitor=false", *arguments]


class BlobReader:
    """One `git cat-file` that is asked for one blob after another."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  (a fixed program and fixed arguments)
            command, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def __enter__(self) -> BlobReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def read(self, blob: str, max_bytes: int) -> bytes | Missing | Oversize:
        """Return the bytes of a blob, or why there are none."""
        requests, replies = self._process.stdin, self._process.stdout
        assert requests
        assert replies
        try:
            requests.write(f"{blob}\n".encode())
            requests.flush()
        except BrokenPipeError:
            raise _stop_error(blob) from None
        match replies.readline(200).split():
            case [_, b"missing"]:
                return Missing()
            case [_, b"blob", count]:
                size = int(count)
            case _:
                raise _stop_error(blob)
        if size > max_bytes:
            _skip(replies, size + 1)
            return Oversize(size)
        content = replies.read(size + 1)
        if len(content) != size + 1:
            raise _stop_error(blob)
        return content[:-1]


def _stop_error(blob: str) -> SourceError:
    return SourceError(
        f"git stopped while it read object {blob}",
        hint="git fsck shows what is damaged; a partial clone is made whole by git fetch --refetch --no-filter",
    )


def _skip(stream: IO[bytes], size: int) -> None:
    while size > 0 and (part := stream.read(min(size, _CHUNK))):
        size -= len(part)


def _environment() -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "none",  # a partial clone must not fetch what it lacks
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }
