"""Metadata of chunks as a JSON file, by chunk id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ragstone.core.collections import ChunkMetadata
from ragstone.core.errors import NotFoundError, StoreCorrupt, StoreError
from ragstone.stores.whole_file import write_whole

REBUILD = "build it again with: ragstone corpus build PATH --overwrite"


def save_metadata(chunks: Iterable[ChunkMetadata], path: Path) -> None:
    """Write the metadata of chunks, whole or not at all."""
    try:
        write_whole(path, _lines(chunks))
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error}", hint="make room, or name another folder"
        ) from error


def load_metadata(path: Path) -> dict[str, ChunkMetadata]:
    """Read what `save_metadata` wrote, by chunk id; anything else is refused."""
    try:
        entries = json.loads(path.read_bytes())
        return {key: _chunk(key, entry) for key, entry in entries.items()}
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no chunk metadata at {path}", hint=REBUILD) from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}", hint=REBUILD) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreCorrupt(
            f"{path} is no chunk metadata of Ragstone: {error!s:.200}", hint=REBUILD
        ) from error


def _lines(chunks: Iterable[ChunkMetadata]) -> Iterator[bytes]:
    """One line a chunk, so that a large file need not be in memory as a whole."""
    before = "{\n"
    for one in chunks:
        entry = {**one.fields, "chunk_id": one.chunk_id, "source": one.source, "position": one.position}
        yield f"{before}{json.dumps(one.chunk_id)}: {json.dumps(entry)}".encode()
        before = ",\n"
    yield b"{}\n" if before == "{\n" else b"\n}\n"


def _chunk(key: str, entry: dict[str, Any]) -> ChunkMetadata:
    fields = dict(entry)
    chunk_id, source, position = (fields.pop(name) for name in ("chunk_id", "source", "position"))
    if chunk_id != key or not isinstance(source, str) or type(position) is not int:
        raise ValueError(f"the entry {key!r:.60} is not that of a chunk")
    return ChunkMetadata(chunk_id, source, position, fields)
