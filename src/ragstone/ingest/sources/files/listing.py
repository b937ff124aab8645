"""The documents under folders that were named, so that those no longer there can be removed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ragstone.core.clock import reading_now
from ragstone.core.errors import RagstoneError
from ragstone.core.types import SKIPPED, Failure, Item
from ragstone.ingest.diff import SourceListing
from ragstone.ingest.sources.files.reading import list_documents
from ragstone.ingest.sources.files.source import SOURCE, read_files
from ragstone.ingest.sources.files.walk import as_text, find, own_name, real
from ragstone.settings.tree import LimitSettings


async def scan_paths(
    paths: Sequence[str | Path], limits: LimitSettings
) -> tuple[Iterator[Item | Failure], list[SourceListing]]:
    """Return the documents at these paths, and a listing of each path that is a folder."""
    named = [Path(path) for path in paths]
    items = read_files(named, limits.file_mb * 1024 * 1024, limits)
    return items, await asyncio.to_thread(folder_listings, named, limits)


def folder_listings(paths: Sequence[Path], limits: LimitSettings) -> list[SourceListing]:
    """One listing per folder that could be seen whole; a file that was named by itself says nothing about others."""
    began = reading_now()
    listed = ((path, _list_ids(path, limits)) for path in paths if path.is_dir())
    return [
        SourceListing(
            SOURCE,
            ids,
            under=own_name(as_text(real(path).as_posix()).rstrip("/") + "/"),
            is_there=os.path.lexists,
            read=began,
        )
        for path, ids in listed
        if ids is not None
    ]


def _list_ids(folder: Path, limits: LimitSettings) -> frozenset[str] | None:
    """Return all external ids under a folder; None when a part of it cannot be seen, which reading it will report."""
    ids: set[str] = set()
    try:
        for entry in find(folder):
            if isinstance(entry, Failure):
                if entry.code != SKIPPED:
                    return None
                continue
            external_id = own_name(as_text(real(entry.path).as_posix()))
            ids.add(external_id)
            ids.update(list_documents(entry, Item(SOURCE, external_id, entry.shown, b""), limits))
    except (OSError, RagstoneError):
        return None
    return frozenset(ids)
