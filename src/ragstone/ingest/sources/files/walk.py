"""Find the documents of a tree: which paths are meant, in which order, under which names."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from ragstone.core.types import SKIPPED, Failure, Item
from ragstone.ingest.parsers.images import ocr

# Kinds that are never documents: found inside a folder they are passed over without a word.
PASSED_OVER = re.compile(
    r"\.(avi|class|css|db(-wal|-shm|-journal)?|dll|eot|exe|gif|ico|lock|map|mov|mp[34]|o|otf|pack|pyc|so|svg|ttf|wav|webm"
    r"|whl|woff2?)",
    re.IGNORECASE,
)
# OCR takes seconds for a photo and a minute for a full screen: it is for those who ask for it.
PICTURES = re.compile(r"\.(bmp|jpe?g|png|webp)", re.IGNORECASE)
MAIL = "message/rfc822"
_MAILDIR = frozenset({"cur", "new", "tmp"})
_MAILDIR_FILE = re.compile(r"dovecot|courier|subscriptions$|maildirfolder$|maildirsize$")
"""Files that mail servers keep beside the messages."""
_LIKE_A_MEMBER = re.compile(r"(\.(?:mbox|zip))!/", re.IGNORECASE)
Wait = Callable[[float], Awaitable[None]]


def as_tuple(value: object) -> object:
    """Let a setting of several texts be written as one text."""
    return (value,) if isinstance(value, str) else value


def _usable(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        if not pattern.strip("/") or pattern.startswith("/") or ".." in pattern.split("/"):
            raise ValueError(f"the pattern '{pattern}' must name paths under the root, such as '**/*.md'")
    return patterns


Patterns = Annotated[tuple[str, ...], BeforeValidator(as_tuple), AfterValidator(_usable)]
"""Patterns as settings hold them; one may be written without a list."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Paths that are wanted: all that fit one of `glob` (any when there is none) and nothing of `exclude`.

    `*` stays inside one folder, `**` goes through any number of them. A pattern without a slash is about names,
    at any depth. What stands under an excluded folder is excluded too.
    """

    glob: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def takes(self, path: str) -> bool:
        """Return whether the file at this path, written with slashes from the root, is wanted."""
        return self.enters(path) and (not self.glob or any(_fits(path, pattern) for pattern in self.glob))

    def enters(self, path: str) -> bool:
        """Return whether neither this path nor a folder above it is excluded."""
        parts = path.split("/")
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)] if self.exclude else ()
        return not any(_fits(place, pattern) for pattern in self.exclude for place in above)

    def names_kind(self, path: str) -> bool:
        """Return whether a pattern asks for the path by its very suffix, as `*.png` does and `**/*` does not."""
        suffix = PurePosixPath(path).suffix
        return any(PurePosixPath(pattern).suffix == suffix and _fits(path, pattern) for pattern in self.glob)


def _fits(path: str, pattern: str) -> bool:
    if "/" not in pattern.rstrip("/"):
        return fnmatchcase(path.rsplit("/", 1)[-1], pattern.rstrip("/"))
    return _segments_fit(path.split("/"), pattern.rstrip("/").split("/"))


def _segments_fit(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Walk both at once; on a mismatch let the last `**` take one folder more. Never worse than parts × pattern."""
    part = piece = 0
    retry: tuple[int, int] | None = None
    while part < len(parts):
        if piece < len(pattern) and pattern[piece] == "**":
            retry = (part, piece + 1)
            piece += 1
        elif piece < len(pattern) and fnmatchcase(parts[part], pattern[piece]):
            part, piece = part + 1, piece + 1
        elif retry:
            part, piece = retry[0] + 1, retry[1]
            retry = (part, piece)
        else:
            return False
    return all(rest == "**" for rest in pattern[piece:])


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that was found: where it is, its name under the folder, and how its place is shown to people."""

    path: Path
    relative: str
    shown: str
    media_type: str = ""
    """Known of a message in a Maildir; empty when the name and the bytes must tell."""


def find(path: Path, selection: Selection = EVERYTHING) -> Iterator[FoundFile | Failure]:
    """Yield the file itself, or the documents under the folder, each folder's own before those below it.

    Hidden files, and links that lead out of the folder, are passed over; a folder that cannot be listed is a
    `Failure`, after everything that could be.
    """
    if not path.is_dir():
        mail = MAIL if _holds_messages(path.parent) else ""
        return iter([FoundFile(path, as_text(path.name), shown_path(real(path.parent) / path.name), mail)])
    return _walk(path, selection)


def _walk(folder: Path, selection: Selection) -> Iterator[FoundFile | Failure]:
    root = real(folder)
    closed: list[OSError] = []
    for parent, folders, names in os.walk(folder, onerror=closed.append):
        under = Path(parent).relative_to(folder)
        mailboxes = _list_maildirs(Path(parent), folders)
        holds_mail = _holds_messages(Path(parent))
        folders[:] = sorted(
            name
            for name in folders
            if (not name.startswith(".") or name in mailboxes)
            and not (mailboxes and name == "tmp")
            and selection.enters(as_text((under / name).as_posix()))
        )
        for name in sorted(names):
            file = Path(parent) / name
            relative = as_text((under / name).as_posix())
            # The folders of a Maildir begin with a dot, and are not hidden.
            meant = relative.replace("/.", "/").removeprefix(".") if holds_mail else relative
            wanted, shown = is_document(meant, selection), shown_path(root / under / name)
            if not wanted and is_skipped(relative, selection):
                yield report_skipped(shown)
            if not wanted or (file.is_symlink() and not real(file).is_relative_to(root)):
                continue
            if not (mailboxes and _MAILDIR_FILE.match(name)):
                yield FoundFile(file, own_name(relative), shown, MAIL if holds_mail else "")
    for problem in closed:
        shown = shown_path(root / Path(os.fsdecode(problem.filename)).relative_to(folder))
        yield Failure(shown, "unreadable", f"{shown} cannot be read: {problem.strerror or problem}")


def _list_maildirs(parent: Path, folders: Sequence[str]) -> frozenset[str]:
    """Return `.` and the folders below, such as `.Sent`, that are Maildirs; none when the folder itself is not one."""
    if not _MAILDIR.issubset(folders):
        return frozenset()
    inside = (name for name in folders if name.startswith(".") and _is_maildir(parent / name))
    return frozenset({".", *inside})


def _is_maildir(folder: Path) -> bool:
    return all((folder / name).is_dir() for name in _MAILDIR)


def _holds_messages(folder: Path) -> bool:
    """Return whether a folder is where a Maildir has its messages, which have names without a kind."""
    place = real(folder)
    return place.name in ("cur", "new") and _is_maildir(place.parent)


def shown_path(path: Path) -> str:
    """Return a path as people see it and can open it: from the working folder if it is in there, else absolute.

    It is the same however the folder that it was found in was named.
    """
    here = Path.cwd()
    inside = here != Path(here.anchor) and path.is_relative_to(here)
    return own_name(as_text((path.relative_to(here) if inside else path).as_posix()))


def is_from_disk(item: Item) -> bool:
    """Return whether an item is shown by the path of a file: its own, or that of the archive or mailbox it is in."""
    return item.metadata.get("source_type") == "files" or "mailbox" in item.metadata or "archive" in item.metadata


def name_of(item: Item) -> str:
    """Return what an item is called: where its file lies and how that is shown may change, and it stays the same."""
    return item.uri.rpartition("/")[2] if is_from_disk(item) and "!/" not in item.uri else item.uri


def keep_shown_path(item: Item, known: str) -> Item:
    """Return a file's item under the path that its document is shown by, as long as that path leads to it from here.

    If it does not, somebody works in another folder by now, and only the absolute path is the same in both.
    """
    if not known or item.uri == known or not is_from_disk(item):
        return item
    (before, *member), (after, *known_member) = item.uri.split("!/", 1), known.split("!/", 1)
    if member != known_member or os.path.realpath(before) != os.path.realpath(after):
        after = Path(before).absolute().as_posix()
    given = item.metadata
    containers = {key: str(given[key]) for key in ("archive", "mailbox", "source") if key in given}
    kept = {key: after + path.removeprefix(before) for key, path in containers.items() if path.startswith(before)}
    return replace(item, uri="!/".join([after, *member]), metadata={**given, **kept})


def is_document(relative: str, selection: Selection = EVERYTHING) -> bool:
    """Return whether a path in a tree may be a document: not hidden, wanted, and of a kind that is one."""
    if not _is_meant(relative, selection):
        return False
    suffix = PurePosixPath(relative).suffix
    passed_over = PASSED_OVER.fullmatch(suffix) or PICTURES.fullmatch(suffix)
    return not passed_over or selection.names_kind(relative)


def is_skipped(relative: str, selection: Selection = EVERYTHING) -> bool:
    """Return whether a file is a picture that would be read if it were named: it is reported, not passed over."""
    return bool(PICTURES.fullmatch(PurePosixPath(relative).suffix)) and _is_meant(relative, selection)


def report_skipped(uri: str) -> Failure:
    """Return the notice about a picture that was not asked for by name."""
    how = "pictures are read if they are named, by their path or by a glob such as *.png"
    return Failure(uri, SKIPPED, how if ocr.is_installed() else f"{how}; {ocr.NOT_INSTALLED}")


def _is_meant(relative: str, selection: Selection) -> bool:
    return not any(part.startswith(".") for part in relative.split("/")) and selection.takes(relative)


def real(path: Path) -> Path:
    """Return the path with all links followed."""
    # Path.resolve raises on a link that leads to itself.
    return Path(os.path.realpath(path))


def own_name(path: str) -> str:
    """Return a path as the name of its file. `a.zip!/b` means a member of the archive a.zip, never a folder.

    It becomes `a.zip//b`, which is no other path's name, since no part of a path is empty.
    """
    return _LIKE_A_MEMBER.sub(r"\1//", path)


def as_text(name: str) -> str:
    """Return a name as text: bytes of it that are not UTF-8 are written out, since no store takes them."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


async def changes(path: Path, seconds: float, *, wait: Wait = asyncio.sleep) -> AsyncIterator[None]:
    """Yield each time the documents under a path have changed and then stayed as they are for `seconds`.

    A file that is still being copied is thus not offered half. While the path does not exist nothing is yielded:
    a disk that comes back as it was has not changed.
    """
    reported = before = await asyncio.to_thread(signature, path)
    while True:
        await wait(seconds)
        now = await asyncio.to_thread(signature, path)
        if now and now == before != reported:
            reported = now
            yield
        before = now


def signature(path: Path) -> str:
    """Return a digest of the names, sizes and times of the documents under a path; empty while it is not there."""
    if not path.exists():
        return ""
    digest = hashlib.blake2b(digest_size=16)
    for found in find(path):
        if isinstance(found, Failure):
            digest.update(f"{found.uri}\0closed\0".encode())
            continue
        try:
            facts = found.path.stat()
        except OSError:
            continue  # gone since it was listed, or a link that leads nowhere
        digest.update(f"{found.relative}\0{facts.st_mtime_ns}\0{facts.st_size}\0".encode())
    return digest.hexdigest()


async def watch_rounds(paths: Sequence[Path], seconds: float, wait: Wait = asyncio.sleep) -> AsyncGenerator[None, None]:
    """Yield once at the start, and then once after each change under any of the paths."""
    changed = asyncio.Event()
    watching = [asyncio.Event() for _ in paths]
    tasks = [
        asyncio.ensure_future(_watch(path, seconds, wait, begun, changed))
        for path, begun in zip(paths, watching, strict=True)
    ]
    try:
        for begun in watching:
            # A change while the first round reads must be noticed, so the watching begins before it.
            await begun.wait()
        while True:
            yield
            await changed.wait()
            changed.clear()
            for task in tasks:
                if task.done():
                    task.result()  # that path is not watched any more: raise why
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _watch(path: Path, seconds: float, wait: Wait, begun: asyncio.Event, changed: asyncio.Event) -> None:
    async def waiting(time: float) -> None:
        begun.set()
        await wait(time)

    try:
        async for _ in changes(path, seconds, wait=waiting):
            changed.set()
    finally:
        begun.set()
        changed.set()
