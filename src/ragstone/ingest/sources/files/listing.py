"""The documents under folders that were named, so that those no longer there can be removed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ragstone.core.clock import current_read_time
from ragstone.core.types import Failure, Item
from ragstone.ingest.diff import SourceListing
from ragstone.ingest.sources.files.reading import list_ids
from ragstone.ingest.sources.files.source import SOURCE, origin_of, read_files
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
    """Return one listing per folder that could be seen whole; a file named by itself says nothing about others."""
    began = current_read_time()
    listed = ((path, list_ids(find(path), origin_of, limits)) for path in paths if path.is_dir())
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
