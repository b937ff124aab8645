"""A workspace as evaluations measure it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ragstone.core.documents import IngestReport
from ragstone.core.search import Arm, SearchQuery, SearchResult
from ragstone.core.types import Document, Failure, Item, KnowledgeBase, LiveChunk, Mode, Stats
from ragstone.engine.engine import Engine
from ragstone.engine.workspace import Workspace


@dataclass(frozen=True, slots=True)
class MeasuredWorkspace:
    """The workspace of the tenant of an engine's settings. Implements `evaluate.experiments.Subject`."""

    engine: Engine

    @property
    def _workspace(self) -> Workspace:
        return self.engine.workspace(self.engine.settings.tenant)

    async def search(
        self, query: str, *, k: int | None = None, arms: Arm | None = None, mode: Mode | None = None
    ) -> SearchResult:
        return await self._workspace.search(SearchQuery(query, k=k, arms=arms, mode=mode))

    async def warm(self) -> None:
        await self.engine.warm(self.engine.settings.tenant)

    async def stats(self) -> Stats:
        return await self._workspace.knowledge_bases.stats()

    async def kbs(self) -> Sequence[KnowledgeBase]:
        return await self._workspace.knowledge_bases.list()

    async def documents(self, *, after: str = "", limit: int = 100) -> Sequence[Document]:
        return await self._workspace.documents.list(after=after, limit=limit)

    async def chunks(self, document_id: str) -> Sequence[LiveChunk]:
        return await self._workspace.documents.chunks(document_id)

    async def ingest_items(self, items: Iterable[Item | Failure], *, on_progress: Any = None) -> IngestReport:
        return await self._workspace.documents.ingest_items(items, on_progress=on_progress)

    async def delete(self, document_id: str) -> bool:
        return await self._workspace.documents.delete(document_id)

    async def delete_kb(self, kb: str) -> int:
        return await self._workspace.knowledge_bases.delete(kb)
