"""Qdrant's local mode: the official client as an engine of its own, on a folder that one process may hold.

The client keeps points as pickles in SQLite files and commits each one by itself. So the folder is for its owner only,
and the files are written ahead: a batch costs one synced write instead of one for each point.
"""

from __future__ import annotations

import importlib.metadata
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragstone.core.errors import StoreError
from ragstone.core.vectors import Health
from ragstone.stores.vectors.qdrant.engine import CollectionMissing
from ragstone.stores.vectors.qdrant.resident import Resident, in_use

if TYPE_CHECKING:
    from qdrant_client.local.qdrant_local import QdrantLocal


class LocalCalls:
    """Implements `Calls` on a folder."""

    indexes_payload = False

    def __init__(self, folder: Path) -> None:
        self._resident = Resident(folder, _open_client, _close_client)

    async def read(self, collection: str, request: Callable[[Any], Any]) -> Any:
        return await self._resident.run(lambda client: _call(client, collection, request))

    async def write(self, collection: str, request: Callable[[Any], Any]) -> Any:
        return await self._resident.run(lambda client: _change(client, collection, request))

    async def health(self) -> Health:
        points = await self._resident.run(lambda client: sum(len(held.ids) for held in client.collections.values()))
        version = importlib.metadata.version("qdrant-client")
        return Health(version, f"local mode, {points} vectors in {self._resident.folder}")

    async def close(self) -> None:
        await self._resident.close()


def _call(client: QdrantLocal, collection: str, request: Callable[[Any], Any]) -> Any:
    try:
        return request(client)
    except ValueError as error:
        if collection not in client.collections:
            raise CollectionMissing from error
        raise StoreError(f"Qdrant's local mode refused a request: {error}") from error


def _change(client: QdrantLocal, collection: str, request: Callable[[Any], Any]) -> Any:
    result = _call(client, collection, request)
    _write_ahead(client, collection)
    return result


def _write_ahead(client: QdrantLocal, collection: str) -> None:
    """Let single commits go to a write-ahead log, and sync it so that it survives a power cut."""
    known = client.collections.get(collection)
    if known is None or known.storage is None:
        return
    known.storage.storage.execute("PRAGMA journal_mode=WAL")
    known.storage.storage.execute("PRAGMA synchronous=NORMAL")
    ahead = Path(f"{known.storage.location}-wal")
    if ahead.exists():
        with ahead.open("rb") as file:
            os.fsync(file.fileno())


def _open_client(folder: Path) -> QdrantLocal:
    # Not `QdrantClient`: that one closes itself when it is collected, in a forked child as well.
    from qdrant_client.local.qdrant_local import QdrantLocal

    # Our documentation says what local mode is for; it need not be said on every start.
    warnings.filterwarnings("ignore", "Local mode is not recommended", UserWarning)
    index = folder / "meta.json"
    if index.exists() and not index.stat().st_size:
        index.unlink()  # a first start that was killed: nothing was stored yet
    try:
        client = QdrantLocal(str(folder))
    except RuntimeError as error:
        raise in_use(folder) from error
    for collection in client.collections:
        _write_ahead(client, collection)
    return client


def _close_client(client: QdrantLocal) -> None:
    client.close()
