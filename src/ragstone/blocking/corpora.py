"""Collections from corpus files without async."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragstone.blocking.run import Run
from ragstone.core.collections import BuildRequest, BuildResult, ChunkMetadata, CollectionHealth
from ragstone.core.types import KnowledgeBase

if TYPE_CHECKING:
    from ragstone.corpora.builder import CorpusBuilder


class BlockingCorpora:
    """`CorpusBuilder` without async, for the loop of a `Ragstone`."""

    def __init__(self, builder: CorpusBuilder, run: Run) -> None:
        self._builder = builder
        self._run = run

    def build(self, request: BuildRequest, **options: Any) -> BuildResult:
        return self._run(self._builder.build(request, **options))

    def health(self, collection: str | None = None, **options: Any) -> CollectionHealth:
        return self._run(self._builder.health(collection, **options))

    def chunk(self, chunk_id: str, collection: str | None = None, **options: Any) -> ChunkMetadata | None:
        return self._run(self._builder.chunk(chunk_id, collection, **options))

    def rename(self, collection: str, name: str, **options: Any) -> KnowledgeBase:
        return self._run(self._builder.rename(collection, name, **options))
