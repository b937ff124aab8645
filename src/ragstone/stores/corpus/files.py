"""The files of built collections: a BM25 index, and the metadata of chunks as JSON by chunk id."""

from __future__ import annotations

import asyncio
import fcntl
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ragstone.core.collections import COLLECTION, ChunkMetadata
from ragstone.core.errors import CollectionBusy, NotFoundError, StoreCorrupt, StoreError
from ragstone.core.ids import NAME, check_name
from ragstone.core.remedies import Action, Remedy
from ragstone.settings.tree import Settings
from ragstone.stores.corpus.atomic_file import put_in_place, write_atomically
from ragstone.stores.ledger.sqlite.file import remove_folder
from ragstone.stores.lexical.bm25_file import Origin, load_index

T = TypeVar("T")
REBUILD = Remedy(Action.BUILD_CORPUS)


def save_metadata(chunks: Iterable[ChunkMetadata], path: Path) -> None:
    """Write the metadata of chunks, whole or not at all."""
    try:
        write_atomically(path, _lines(chunks))
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error}", hint="make room, or name another folder") from error


def load_metadata(path: Path) -> dict[str, ChunkMetadata]:
    """Read what `save_metadata` wrote, by chunk id; anything else is refused."""
    try:
        entries = json.loads(path.read_bytes())
        return {key: _chunk(key, entry) for key, entry in entries.items()}
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no chunk metadata at {path}", remedy=REBUILD) from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}", remedy=REBUILD) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreCorrupt(f"{path} is no chunk metadata of Ragstone: {error!s:.200}", remedy=REBUILD) from error


def _lines(chunks: Iterable[ChunkMetadata]) -> Iterator[bytes]:
    """Yield one line per chunk, so that a large file need not be in memory as a whole."""
    before = "{\n"
    for chunk in chunks:
        entry = {**chunk.fields, "chunk_id": chunk.chunk_id, "source": chunk.source, "position": chunk.position}
        yield f"{before}{json.dumps(chunk.chunk_id)}: {json.dumps(entry)}".encode()
        before = ",\n"
    yield b"{}\n" if before == "{\n" else b"\n}\n"


def _chunk(key: str, entry: dict[str, Any]) -> ChunkMetadata:
    fields = dict(entry)
    chunk_id, source, position = (fields.pop(name) for name in ("chunk_id", "source", "position"))
    if chunk_id != key or not isinstance(source, str) or type(position) is not int:
        raise ValueError(f"the entry {key!r:.60} is not that of a chunk")
    return ChunkMetadata(chunk_id, source, position, fields)


ASIDE = ".next"
DATA = "data"
"""The name of the data folder in paths of the settings, wherever it is."""
USUAL = "default", COLLECTION
"""Tenant and collection whose files are where the settings say. Fixed, or `--kb` would lead to another one's files."""


@dataclass(frozen=True, slots=True)
class FilePair:
    """The two files of one collection."""

    collection: str
    index: Path
    metadata: Path

    @property
    def next_index(self) -> Path:
        """Return the path of an index whose collection is not live yet."""
        return self.index.with_name(self.index.name + ASIDE)

    @property
    def next_metadata(self) -> Path:
        return self.metadata.with_name(self.metadata.name + ASIDE)

    @property
    def exist(self) -> bool:
        """Return whether either file exists."""
        return any(path.exists() for path in self._all())

    def origin(self) -> Origin | None:
        """Return the kb that the index in place was made of; None when no index can be read."""
        return _origin(self.index)

    def is_of(self, tenant_id: str, *, by_path: bool = True) -> bool:
        """Return whether there are files of this tenant; without a readable index, `by_path` says whose they are."""
        if origin := self.origin():
            return origin.tenant_id == tenant_id
        return by_path and _load_if_whole(load_metadata, self.metadata) is not None

    def ids(self) -> tuple[set[str] | None, set[str] | None]:
        """Return the chunk ids of each file in place; None for a file that is missing or damaged."""
        return _ids(self.index, self.metadata)

    def waiting_ids(self) -> tuple[set[str] | None, set[str] | None]:
        """Return the same of the files that wait."""
        return _ids(self.next_index, self.next_metadata)

    def put_aside(self, chunks: Iterable[ChunkMetadata]) -> None:
        """Write the metadata beside an index that waits already."""
        save_metadata(chunks, self.next_metadata)

    def install(self) -> None:
        """Put in place what waits: the collection that it is of is live."""
        with _translate_errors():
            for aside, path in ((self.next_index, self.index), (self.next_metadata, self.metadata)):
                if aside.exists():
                    put_in_place(aside, path)

    def settle(self, tenant_id: str, kb_id: int | None) -> None:
        """Finish what a crash cut short if the live kb is the one that waits, else undo it."""
        waiting = self.next_index.exists() or self.next_metadata.exists()
        origin = _origin(self.next_index) or (None if self.next_index.exists() else self.origin())
        if waiting and origin is not None and (origin.tenant_id, origin.kb_id) == (tenant_id, kb_id):
            self.install()
        with _translate_errors():
            for path in (self.index, self.metadata):
                # Also what was not written to its end, under temporary names.
                for left in path.parent.glob(f"{path.name}{ASIDE}*"):
                    left.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove both; the index, which says whose they are, last."""
        with _translate_errors():
            for path in reversed(self._all()):
                path.unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from building this collection; the lock ends with this process, however that ends."""
        with _translate_errors():
            self.index.parent.mkdir(parents=True, exist_ok=True)
            lock = (self.index.parent / f".{self.collection}.lock").open("ab")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise CollectionBusy(
                    f"collection '{self.collection}' is being built already", hint="try again when it is done"
                ) from error
            try:
                yield
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)  # a child forked in between has the same open file

    def _all(self) -> tuple[Path, ...]:
        return self.index, self.metadata, self.next_index, self.next_metadata


class CorpusFiles:
    """The files of all collections: of the usual one where the settings say, of others in folders beside that."""

    def __init__(self, settings: Settings) -> None:
        paths = settings.ingestion.bm25_index_path, settings.ingestion.chunk_metadata_path
        self._index, self._metadata = (_in_data(settings.data_dir, path) for path in paths)

    def of(self, tenant: str, tenant_id: str, collection: str) -> FilePair:
        """Return the files of a tenant's collection."""
        if (tenant, collection) == USUAL:
            return FilePair(collection, self._index, self._metadata)
        under = Path(check_name(tenant_id, "tenant id"), check_name(collection, "collection"))
        index, metadata = (path.parent / under / path.name for path in (self._index, self._metadata))
        return FilePair(collection, index, metadata)

    def all_of(self, tenant: str, tenant_id: str) -> list[FilePair]:
        """Return the files that a tenant has."""
        with _translate_errors():
            there = {path.name for folder in self._folders(tenant_id) for path in folder.glob("*")}
            names = {name for name in there if NAME.fullmatch(name)}  # a file manager leaves files of its own
            names |= {USUAL[1]} if tenant == USUAL[0] else set()
            return [pair for name in sorted(names) if (pair := self.of(tenant, tenant_id, name)).exist]

    async def forget(self, tenant: str, tenant_id: str) -> None:
        """Remove all files of a tenant."""
        await asyncio.to_thread(self._forget, tenant, tenant_id)

    def _forget(self, tenant: str, tenant_id: str) -> None:
        first = FilePair(USUAL[1], self._index, self._metadata)
        waiting = FilePair("", first.next_index, first.next_metadata)
        if any(pair.is_of(tenant_id, by_path=tenant == USUAL[0]) for pair in (first, waiting)):
            first.remove()
        for folder in self._folders(tenant_id):
            remove_folder(folder)

    def _folders(self, tenant_id: str) -> set[Path]:
        name = check_name(tenant_id, "tenant id")
        return {found for path in (self._index, self._metadata) if (found := path.parent / name).is_dir()}


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise file errors as `StoreError`, with what to do."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"the files of a collection cannot be read or written: {error}",
            hint="free disk space, and check that the folder belongs to you",
            remedy=Remedy(Action.REPAIR_STORES),
        ) from error


def _in_data(data_dir: Path, path: Path) -> Path:
    return data_dir.joinpath(*path.parts[1:]) if path.parts[:1] == (DATA,) else data_dir / path


def _load_if_whole(load: Callable[[Path], T], path: Path) -> T | None:
    try:
        return load(path)
    except (NotFoundError, StoreCorrupt):
        return None


def _origin(path: Path) -> Origin | None:
    found = _load_if_whole(load_index, path)
    return found[1] if found else None


def _ids(index: Path, metadata: Path) -> tuple[set[str] | None, set[str] | None]:
    found, chunks = _load_if_whole(load_index, index), _load_if_whole(load_metadata, metadata)
    return set(found[0].pack().ids) if found else None, None if chunks is None else set(chunks)
