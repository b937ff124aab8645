"""Stand-ins for what a search talks to: they hold a few chunks and remember what they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ragstone.core.errors import RagstoneError
from ragstone.core.filters import Filter, matches
from ragstone.core.protocols import Reranker
from ragstone.core.types import Candidate, Chunk, Document, KnowledgeBase, LiveChunk, Space, Stats, Vector
from ragstone.query.compress import CompressStage
from ragstone.query.context import SearchRequest
from ragstone.query.pipeline import SearchPipeline
from ragstone.query.transform import Transformer
from ragstone.settings.retrieval import RerankingSettings, RetrievalSettings
from ragstone.testing.fakes import FakeEmbedder

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Index:
    """Both kinds of index: brings its candidates in order, those that the filter lets through."""

    found: list[Candidate]
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    error: RagstoneError | None = None
    barrier: asyncio.Barrier | None = None
    hangs: bool = False
    by_query: Mapping[str, list[Candidate]] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    async def search(
        self, tenant: str, kb: KnowledgeBase, query: object, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        self.asked.append(k)
        if self.barrier:
            await self.barrier.wait()
        if self.hangs:
            await asyncio.Event().wait()
        if self.error:
            raise self.error
        found = self.by_query.get(str(query), self.found)
        kept = [one for one in found if matches(where, self.metadata.get(one.chunk_id, {}))]
        return kept[:k]


class Shelf:
    """The part of a ledger that searching reads. Chunk `d1#0` is the first of document `d1`."""

    def __init__(self, texts: Mapping[str, str], metadata: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.texts = dict(texts)
        self.embedded = True
        self.apart = False
        """Whether chunks of a document stand one after the other."""
        self.metadata = metadata or {}

    def of(self, tenant: str) -> Shelf:
        return self

    async def chunks(self, kb: KnowledgeBase, chunk_ids: Sequence[str]) -> Mapping[str, LiveChunk]:
        return {name: self._live(name) for name in chunk_ids if name in self.texts}

    async def document(self, document_id: str) -> Document | None:
        chunks = await self.document_chunks(document_id)
        if not chunks:
            return None
        return Document(
            id=document_id,
            kb="other" if document_id.startswith("other") else "default",
            source="files",
            external_id=document_id,
            uri=f"test:{document_id}",
            title=f"Title of {document_id}",
            content_hash="",
            version=1,
            chunks=len(chunks),
            tokens=0,
            media_type="text/plain",
            metadata=self.metadata.get(document_id, {}),
            recipe="",
            embedded=self.embedded,
            modified_at=MOMENT if document_id == "dated" else None,
            created_at=MOMENT,
            updated_at=MOMENT,
        )

    async def document_chunks(self, document_id: str) -> list[LiveChunk]:
        return [self._live(name) for name in sorted(self.texts) if name.partition("#")[0] == document_id]

    async def known_vectors(self, kb: KnowledgeBase, texts: Sequence[str]) -> Mapping[str, Vector]:
        embedded = await EMBEDDER.embed(texts)
        return dict(zip(texts, embedded.vectors, strict=True))

    async def stats(self, kb: KnowledgeBase) -> Stats:
        return Stats(0, len(self.texts), 0, 0, 0, 0, "")

    def _live(self, name: str) -> LiveChunk:
        document, _, number = name.partition("#")
        text = self.texts[name]
        start = 7 + 100 * int(number) * self.apart
        chunk = Chunk(
            index=int(number),
            text=text,
            start=start,
            end=start + len(text),
            context="Part: ",
            page=int(number) + 1,
            section=("Guide", "Part"),
            metadata={"of_chunk": True},
        )
        metadata = self.metadata.get(document, {})
        return LiveChunk(name, document, 1, chunk, f"Title of {document}", f"test:{document}", "files", metadata)


class Clock:
    """A clock that goes only when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def perf_counter(self) -> float:
        return self.seconds


class Judge:
    """A reranker with given scores by text, that takes a given time, fails, or never comes back."""

    name = "judge"

    def __init__(self, scores: Mapping[str, float], clock: Clock | None = None, seconds: float = 0.0) -> None:
        self.scores = scores
        self.clock = clock
        self.seconds = seconds
        self.error: RagstoneError | None = None
        self.hangs = False
        self.asked: list[tuple[str, ...]] = []

    async def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        self.asked.append(tuple(passages))
        if self.clock:
            self.clock.seconds += self.seconds
        if self.hangs:
            await asyncio.Event().wait()
        if self.error:
            raise self.error
        return [self.scores[passage.removeprefix("Part: ")] for passage in passages]

    async def close(self) -> None: ...


EMBEDDER = FakeEmbedder()
SPACE = Space(1, EMBEDDER.model.id, EMBEDDER.model.dimension, 1, "live")
KB = KnowledgeBase(1, "default", SPACE)


async def fake_embedder(space: Space) -> FakeEmbedder:
    return EMBEDDER


def candidates(*names: str, start: float = 1.0, step: float = 0.1) -> list[Candidate]:
    """Names in order of rank, with falling scores."""
    return [Candidate(name, start - step * rank) for rank, name in enumerate(names)]


def make_pipeline(
    shelf: Shelf,
    dense: Index,
    lexical: Index,
    *,
    embedder_for: Callable[[str], Awaitable[Any]] = fake_embedder,
    reranker: Reranker | None = None,
    second_reranker: Reranker | None = None,
    transformer: Transformer | None = None,
    retrieval: RetrievalSettings | None = None,
    reranking: RerankingSettings | None = None,
    compress: CompressStage | None = None,
) -> SearchPipeline:
    return SearchPipeline(
        shelf,
        dense,
        lexical,
        embedder_for,
        reranker,
        retrieval or RetrievalSettings(),
        reranking or RerankingSettings(),
        second_reranker=second_reranker,
        transformer=transformer,
        compress=compress,
    )


def ask(query: str = "some words", **changes: Any) -> SearchRequest:
    settings = {"k": 10, "mode": "balanced", "arms": "hybrid", "fusion": "rrf", "candidates": 100}
    return SearchRequest(query, **(settings | changes))
