"""A documentation tree kept in Git: what is committed, and after that only what has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

from ragstone.core.ids import content_hash
from ragstone.core.types import Failure, Item, Json, Page
from ragstone.ingest.sources.config import SourceContext, StatelessSource
from ragstone.ingest.sources.files.archives import MEGABYTE
from ragstone.ingest.sources.files.walk import (
    Patterns,
    Selection,
    is_document,
    is_skipped,
    own_name,
    real,
    report_skipped,
)
from ragstone.ingest.sources.git.objects import Blob, BlobReader, Change, GitRepository, Missing, Oversize
from ragstone.ingest.sources.paging import in_batches
from ragstone.settings.base import SettingsModel

SOURCE_TYPE = "git"
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


def _ref_name(branch: str | None) -> str | None:
    if branch is not None and (not branch.isprintable() or set(branch) & set(" ~^:?*[\\") or not branch):
        raise ValueError(f"'{branch}' is not a branch name")
    return branch


def _folder(path: str) -> str:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError("must stay inside the repository")
    return "/".join(parts)


class GitConfig(SettingsModel):
    """A local checkout or bare repository, and which part of it is meant."""

    path: Path
    subfolder: Annotated[str, AfterValidator(_folder)] = ""
    branch: Annotated[str | None, AfterValidator(_ref_name)] = None
    """The commit that is checked out when none is named."""
    glob: Patterns = ()
    exclude: Patterns = ()


class _Work(NamedTuple):
    """The work of a run."""

    blobs: tuple[Blob, ...]
    skipped: tuple[str, ...]
    removed: tuple[str, ...]
    listed: frozenset[str] | None
    unread: dict[str, Failure]
    """Files by path that could not be read before and have not changed; those that fail now are added."""


class GitSource(StatelessSource):
    """The committed files of a repository, known by their path in it. What is not committed is not seen."""

    def __init__(self, config: GitConfig, name: str, context: SourceContext) -> None:
        self._repository = GitRepository(config.path.expanduser())
        self._config = config
        self._selection = Selection(config.glob, config.exclude)
        self._name = name
        self._max_bytes = context.limits.file_mb * MEGABYTE

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield what has changed since the commit in the cursor; everything, with a list, where that is unknown."""
        commit = await asyncio.to_thread(self._repository.commit, self._config.branch)
        reached = {"commit": commit, "selection": self._fingerprint()}
        if cursor == reached:
            return
        work = await asyncio.to_thread(self._work, cursor, commit)
        # A run that breaks off must start again at the old commit: only the last page moves on.
        if work.listed is not None:
            yield Page((), cursor=cursor, listed=work.listed)
        leaving = work.removed
        async for entries in in_batches(self._entries(work)):
            yield Page(entries, cursor=cursor, leaving=leaving)
            leaving = ()
        yield Page((), cursor={**reached, **_note_unread(work.unread)}, removed=work.removed)

    def _fingerprint(self) -> str:
        """Return a name for the selection: another one means other documents of the same commit."""
        config = self._config
        return content_hash(repr((config.subfolder, config.glob, config.exclude)))[:16]

    def _work(self, cursor: Json, commit: str) -> _Work:
        old = cursor.get("commit") if isinstance(cursor, dict) else None
        if old and cursor.get("selection") == self._fingerprint() and self._repository.has(old):
            changes = list(self._repository.changes(old, commit))
            found = [change.blob for change in changes if change.blob]
            gone = (change.path for change in changes if not change.blob)
            removed = tuple(own_name(path) for path in gone if self._wants(path))
            return _Work(*self._sort_blobs(found), removed, None, self._load_unread(cursor, changes))
        blobs, skipped = self._sort_blobs(self._repository.files(commit))
        return _Work(blobs, skipped, (), frozenset(own_name(blob.path) for blob in blobs), {})

    def _load_unread(self, cursor: Json, changes: Iterable[Change]) -> dict[str, Failure]:
        """Return the failures that the cursor remembers, without files that have changed since."""
        changed = {change.path for change in changes}
        noted = cursor.get("unread", ())
        return {path: Failure(self._uri(path), *why) for path, *why in noted if path not in changed}

    def _sort_blobs(self, blobs: Iterable[Blob]) -> tuple[tuple[Blob, ...], tuple[str, ...]]:
        """Return the documents among files, and the paths of pictures that would be some, had they been named."""
        wanted: list[Blob] = []
        skipped: list[str] = []
        for blob in blobs:
            if self._wants(blob.path):
                wanted.append(blob)
            elif self._wants(blob.path, is_skipped):
                skipped.append(blob.path)
        return tuple(wanted), tuple(skipped)

    def _wants(self, path: str, fits: Callable[[str, Selection], bool] = is_document) -> bool:
        folder = self._config.subfolder
        if folder and not path.startswith(f"{folder}/"):
            return False
        return fits(path.removeprefix(f"{folder}/") if folder else path, self._selection)

    def _entries(self, work: _Work) -> Iterator[Item | Failure]:
        yield from (report_skipped(self._uri(path)) for path in work.skipped)
        yield from list(work.unread.values())
        if not work.blobs:
            return
        with self._repository.reader() as reader:
            for blob in work.blobs:
                entry = self._entry(blob, reader)
                if isinstance(entry, Failure):
                    work.unread[blob.path] = entry
                yield entry

    def _uri(self, path: str) -> str:
        return f"{real(self._repository.path).name.removesuffix('.git')}/{own_name(path)}"

    def _entry(self, blob: Blob, reader: BlobReader) -> Item | Failure:
        uri = self._uri(blob.path)
        content = reader.read(blob.id, self._max_bytes)
        if isinstance(content, Missing):
            return Failure(uri, "unreadable", f"{uri} is not in this clone; fetch the whole repository")
        if isinstance(content, Oversize):
            sizes = f"{content.size / MEGABYTE:.0f} MB; limits.file_mb allows {self._max_bytes // MEGABYTE}"
            return Failure(uri, "too_large", f"{uri} has {sizes}")
        if content.startswith(_LFS_POINTER):
            return Failure(uri, "unreadable", f"{uri} is kept in Git LFS and not in the repository")
        return Item(
            source=self._name,
            external_id=own_name(blob.path),
            uri=uri,
            content=content,
            metadata={"source_type": SOURCE_TYPE, "source": blob.path, "filename": blob.path.rsplit("/", 1)[-1]},
        )


def _note_unread(unread: Mapping[str, Failure]) -> dict[str, Json]:
    """Return the failures for the cursor: later runs pass over unchanged files and still have to report them."""
    noted: Json = [[path, failure.code, failure.error] for path, failure in unread.items()]
    return {"unread": noted} if noted else {}
