"""Reading a Git repository through the `git` program: commits, trees, blobs, and nothing that runs its settings.

The repository is named outright, so none is looked for in the folders above it and no check of its owner is
needed. Only plumbing that reads objects is called: it runs no hook, filter, pager or diff program, whatever the
repository's own settings ask for. Settings of the machine and of the user are left aside, and so is the network.
"""

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
from ragstone.ingest.parsers.text.cleaning import printable
from ragstone.ingest.sources.git_home import check_home, place_of

SECONDS = 120
MAX_ENTRIES = 500_000
MAX_BYTES = 128 * 1024 * 1024
"""Of what Git lists: a tree that names the same subtrees again and again has a billion files in a dozen objects."""
_REGULAR = (b"100644", b"100755", b"100664")
_COMMIT = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_CHUNK = 64 * 1024
_MAX_RECORD = 1024 * 1024


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
class Repository:
    """A local checkout or bare repository."""

    path: Path

    def commit(self, branch: str | None) -> str:
        """The commit that a branch (HEAD when none is named) stands at."""
        check_home(self.path)
        names = ("HEAD",) if branch is None else (f"refs/heads/{branch}", f"refs/remotes/origin/{branch}")
        for name in names:
            found = self._try("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
            if _COMMIT.fullmatch(found):
                return found.decode()
        if not self._try("rev-parse", "--git-dir").strip():
            raise SourceError(
                f"{self.path} is not a Git repository",
                hint="give the folder that holds .git, or a bare repository",
            )
        what = f"no branch '{printable(branch)}'" if branch else "no commit yet"
        raise SourceError(
            f"the repository {self.path} has {what}", hint="check the branch, or fetch it first"
        )

    def has(self, commit: str) -> bool:
        """Whether the commit is still there: after a forced push it may be gone."""
        known = _COMMIT.fullmatch(commit.encode("utf-8", "replace"))
        return bool(known) and self._try("cat-file", "-t", commit).strip() == b"commit"

    def files(self, commit: str) -> Iterator[Blob]:
        """The regular files of a commit; links and submodules are none."""
        for record in self._records("ls-tree", "-r", "-z", "--full-tree", commit):
            facts, _, path = record.partition(b"\t")
            mode, _, blob = facts.split(b" ")
            if mode in _REGULAR:
                yield Blob(_path(path), blob.decode())

    def changes(self, old: str, new: str) -> Iterator[Change]:
        """What differs between two commits. A file that was moved is one that went and one that came.

        Both are listed: `git diff-tree` would hold all that differs in memory before it prints any of it.
        """
        before = {blob.path: blob.id for blob in self.files(old)}
        for blob in self.files(new):
            if before.pop(blob.path, None) != blob.id:
                yield Change(blob.path, blob)
        yield from (Change(path, None) for path in before)

    def reader(self) -> BlobReader:
        """Reads blobs one after another through one process."""
        return BlobReader(self._command("cat-file", "--batch"))

    def _records(self, *arguments: str) -> Iterator[bytes]:
        """What Git lists, while it lists it. Unless it comes to its end without an error, this ends in one."""
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
                yield from self._bounded(process.stdout)
                failed = process.wait()
            finally:
                clock.cancel()
                process.kill()
            if failed:
                problems.seek(0)
                raise self._late() if time.monotonic() >= deadline else self._damaged(problems.read(_CHUNK))

    def _bounded(self, output: IO[bytes]) -> Iterator[bytes]:
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

    def _damaged(self, said: bytes) -> SourceError:
        reason = printable(said.decode("utf-8", "replace").strip().split("\n")[0])
        return SourceError(f"git could not read {self.path}: {reason}", hint="git fsck shows what is damaged")

    def _command(self, *arguments: str) -> list[str]:
        git = shutil.which("git")
        if not git:
            raise SourceError(
                "git is not installed", hint="install git; it reads the repository for Ragstone"
            )
        return [
            git,
            "--no-pager",
            f"--git-dir={place_of(self.path)}",
            "-c",
            "core.fsmonitor=false",
            *arguments,
        ]


class BlobReader:
    """One `git cat-file` that is asked for one blob after another."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  (a fixed program and fixed arguments)
            command,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> BlobReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def read(self, blob: str, max_bytes: int) -> bytes | Missing | Oversize:
        """The bytes of a blob, or why there are none."""
        requests, replies = self._process.stdin, self._process.stdout
        assert requests
        assert replies
        try:
            requests.write(f"{blob}\n".encode())
            requests.flush()
        except BrokenPipeError:
            raise _stopped(blob) from None
        match replies.readline(200).split():
            case [_, b"missing"]:
                return Missing()
            case [_, b"blob", count]:
                size = int(count)
            case _:
                raise _stopped(blob)
        if size > max_bytes:
            _skip(replies, size + 1)
            return Oversize(size)
        content = replies.read(size + 1)
        if len(content) != size + 1:
            raise _stopped(blob)
        return content[:-1]


def _stopped(blob: str) -> SourceError:
    return SourceError(
        f"git stopped while it read object {blob}",
        hint="git fsck shows what is damaged; a partial clone is made whole by git fetch --refetch --no-filter",
    )


def _skip(stream: IO[bytes], size: int) -> None:
    while size > 0 and (part := stream.read(min(size, _CHUNK))):
        size -= len(part)


def _path(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


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
