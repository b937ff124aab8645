"""One text file as one document."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from ragstone.core.errors import SourceError
from ragstone.core.types import Item, Json, Page
from ragstone.ingest.sources.context import SourceContext
from ragstone.ingest.sources.files.archives import MEGABYTE
from ragstone.ingest.sources.files.batches import in_batches
from ragstone.ingest.sources.files.reading import read_documents
from ragstone.ingest.sources.files.walk import FoundFile, as_text
from ragstone.settings.base import SettingsModel

SOURCE_TYPE = "corpus"


class CorpusConfig(SettingsModel):
    """The path of the text."""

    corpus_path: Path = Path("data/corpus.txt")


class CorpusSource:
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
        origin = Item(self._name, external_id, shown, b"", metadata={"source_type": SOURCE_TYPE})
        entries = read_documents(found, origin, self._limits, self._limits.file_mb * MEGABYTE)
        async for batch in in_batches(entries):
            yield Page(batch, listed=frozenset({external_id}))

    async def close(self) -> None:
        """Nothing is held open."""
