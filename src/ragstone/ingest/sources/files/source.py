"""Sources of files: the documents of a folder, or one text; and what a new one has in common with others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragstone.core.errors import SourceError
from ragstone.core.filters import Equals
from ragstone.core.jobs import SourceRecord
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import TenantSources
from ragstone.core.types import Failure, Item, Json, Page
from ragstone.ingest.sources.config import SourceContext, StatelessSource
from ragstone.ingest.sources.files.owners import folder_of, is_one_in_the_other
from ragstone.ingest.sources.files.read import SOURCE, list_ids, read_documents
from ragstone.ingest.sources.files.walk import FoundFile, Patterns, Selection, as_text, find, real
from ragstone.ingest.sources.paging import in_batches
from ragstone.settings.base import SettingsModel

CORPUS = "corpus"
PAGE = 1000


class FilesConfig(SettingsModel):
    """A folder, or one file, and which documents of it are meant."""

    path: Path
    glob: Patterns = ()
    """Such as `**/*.md`; pictures are taken only where a pattern names their suffix."""
    exclude: Patterns = ()


class FilesSource(StatelessSource):
    """The documents under a folder, known by their path under it."""

    def __init__(self, config: FilesConfig, name: str, context: SourceContext) -> None:
        self._root = config.path.expanduser()
        self._selection = Selection(config.glob, config.exclude)
        self._name = name
        self._limits = context.limits

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield all documents there are. The first page lists them, unless a part of the folder could not be seen."""
        found = await asyncio.to_thread(self._find)
        listed = await asyncio.to_thread(list_ids, found, self._origin, self._limits)
        if listed is not None:
            yield Page((), listed=listed)
        async for entries in in_batches(self._read(found)):
            yield Page(entries)

    def _find(self) -> list[FoundFile | Failure]:
        if not self._root.exists():
            raise SourceError(
                f"the folder {self._root} of source '{self._name}' does not exist",
                hint="check the path, or whether its disk is mounted; nothing was removed",
            )
        return list(_files_before_links(list(find(self._root, self._selection))))

    def _read(self, found: Sequence[FoundFile | Failure]) -> Iterator[Item | Failure]:
        for entry in found:
            if isinstance(entry, Failure):
                yield entry
            else:
                yield from read_documents(entry, self._origin(entry), self._limits)

    def _origin(self, found: FoundFile) -> Item:
        return Item(
            self._name, found.relative, found.shown, b"", metadata={"source_type": SOURCE}, media_type=found.media_type
        )


def _files_before_links(entries: Sequence[FoundFile | Failure]) -> Iterator[FoundFile | Failure]:
    """Yield each file once, under its own path if it was found there, else under that of the first link to it."""
    files = (entry.path for entry in entries if isinstance(entry, FoundFile))
    seen = {real(path) for path in files if not path.is_symlink()}
    for entry in entries:
        if isinstance(entry, FoundFile) and entry.path.is_symlink():
            if (target := real(entry.path)) in seen:
                continue
            seen.add(target)
        yield entry


class CorpusConfig(SettingsModel):
    """The path of the text."""

    corpus_path: Path = Path("data/corpus.txt")


class CorpusSource(StatelessSource):
    """A single text file, known by the path it was configured with."""

    def __init__(self, config: CorpusConfig, name: str, context: SourceContext) -> None:
        self._path = config.corpus_path.expanduser()
        self._name = name
        self._limits = context.limits

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield the document as it is now."""
        if not self._path.is_file():
            raise SourceError(
                f"the corpus {self._path} of source '{self._name}' does not exist",
                hint="set corpus_path to a text file",
            )
        shown = as_text(self._path.name)
        found = FoundFile(self._path, shown, shown)
        external_id = as_text(self._path.as_posix())
        origin = Item(self._name, external_id, shown, b"", metadata={"source_type": CORPUS})
        entries = read_documents(found, origin, self._limits)
        async for batch in in_batches(entries):
            yield Page(batch, listed=frozenset({external_id}))


@dataclass(frozen=True, slots=True)
class Overlaps:
    """Other ways by which documents under the folder of a source have come or will come."""

    folder: Path
    is_missing: bool = False
    """The folder does not exist: a sync fails until it does."""
    sources: tuple[SourceRecord, ...] = ()
    """Sources that read the same files."""
    document_ids: tuple[str, ...] = ()
    """Documents that were ingested from there."""


async def find_overlaps(ledger: Ledger, sources: TenantSources, tenant: str, added: SourceRecord) -> Overlaps | None:
    """Return what a new source has in common with the other sources of its kb and with what was ingested there.

    None for a source of another kind, and for a folder that only its environment knows.
    """
    path = str(added.config.get("path", ""))
    if added.kind != SOURCE or not path or "${" in path:
        return None
    folder = _resolve(path)
    if not folder.exists():
        return Overlaps(folder, is_missing=True)
    meeting = (
        other
        for other in await sources.all(added.kb)
        if other.name != added.name and (root := folder_of(other)) and is_one_in_the_other(folder, root)
    )
    ids = await _list_ingested(ledger, tenant, added.kb, folder)
    return Overlaps(folder, sources=tuple(meeting), document_ids=tuple(ids))


async def _list_ingested(ledger: Ledger, tenant: str, name: str, folder: Path) -> list[str]:
    """Return the ids of documents under a folder that were ingested without a source."""
    kb = await ledger.of(tenant).kb(name)
    ids: list[str] = []
    after, where = "", Equals("connector", SOURCE)
    while kb and (page := await ledger.of(tenant).documents(kb, where=where, after=after, limit=PAGE)):
        ids += [document.id for document in page if Path(document.external_id).is_relative_to(folder)]
        after = page[-1].id
    return ids


def _resolve(path: str) -> Path:
    return real(Path(path).expanduser())
