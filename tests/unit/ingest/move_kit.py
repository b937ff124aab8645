"""A kb that can be moved between models that need no weights."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.unit.ingest.kit import Kit

from ragstone.core.errors import ModelError
from ragstone.core.model_types import Embeddings
from ragstone.core.protocols import Embedder
from ragstone.core.spaces import GRACE_DAYS, SpaceRecord
from ragstone.core.types import Role
from ragstone.engine.embeddings.reembed import Reembedder, ReembedReport
from ragstone.ingest.backfill import SpaceFiller
from ragstone.ingest.embed import ModelChoice
from ragstone.models.embedders.pool import EmbedderPool
from ragstone.query.pipeline import SearchPipeline
from ragstone.settings.retrieval import RerankingSettings, RetrievalSettings
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger.spaces import SqlSpaceBook
from ragstone.stores.lexical.sqlite import SqliteLexicalIndex
from ragstone.stores.vectors.sqlite import SqliteVectorIndex
from ragstone.testing.fakes import FakeEmbedder


class Deaf(FakeEmbedder):
    """Everything sounds the same to it."""

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        made = await super().embed(texts, role)
        same = np.full(self.model.dimension, self.model.dimension**-0.5, np.float32)
        return Embeddings(np.tile(same, (len(texts), 1)), made.model)


class Tired(FakeEmbedder):
    """Falls over once, after it has embedded so many documents."""

    def __init__(self, *, after: int, **facts: Any) -> None:
        super().__init__(**facts)
        self._left: int | None = after

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        if role == "document" and self._left is not None:
            self._left -= len(texts)
            if self._left < 0:
                self._left = None
                raise ModelError("the model fell over")
        return await super().embed(texts, role)

    def documents(self) -> list[str]:
        """Texts that it embedded as documents since the last look."""
        texts = [text for call, role in self.calls if role == "document" for text in call]
        self.calls.clear()
        return texts


class Interrupted(FakeEmbedder):
    """Lets something happen before it answers."""

    def __init__(self, happens: Callable[[], Awaitable[Any]] | None = None, **facts: Any) -> None:
        super().__init__(**facts)
        self.happens = happens

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        if self.happens:
            happens, self.happens = self.happens, None
            await happens()
        return await super().embed(texts, role)


class MoveKit(Kit):
    """`fake` is the configured model; `other` and whatever a test adds can be had by name."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.models: dict[str, FakeEmbedder] = {
            "fake": self.embedder,
            "other": FakeEmbedder(name="other", dimension=32),
        }
        self.pool = EmbedderPool(self.embedder, self._build)
        self.book = SqlSpaceBook(self.ledger)
        self.filler = SpaceFiller(self.book, self.pool.for_space)
        self.vectors = SqliteVectorIndex(self.ledger, IndexCache(16))
        search = SearchPipeline(
            self.ledger,
            self.vectors,
            SqliteLexicalIndex(self.ledger, IndexCache(16)),
            self.pool.for_space,
            None,
            RetrievalSettings(),
            RerankingSettings(),
        )
        self.reembedder = Reembedder(self.ledger, self.book, self.pool, search)

    async def reembed(self, model: str | None = "other", **options: Any) -> ReembedReport:
        given = {"mode": None, "queries": None, "force": False, "grace_days": GRACE_DAYS, "on_progress": None}
        return await self.reembedder.run("t", "default", model, **{**given, **options})

    async def rollback(self) -> ReembedReport:
        return await self.reembedder.rollback("t", "default", grace_days=GRACE_DAYS, on_progress=None)

    def following(self, embedder: Embedder) -> ModelChoice:
        """The choice of a process that was started with this model."""
        return ModelChoice(embedder.model.id, embedder, self.book, self.pool.for_space)

    def _build(self, name: str, dimension: int | None) -> FakeEmbedder:
        known = self.models[name]
        return known if dimension is None else FakeEmbedder(name=name, dimension=dimension)

    async def spaces(self) -> list[SpaceRecord]:
        return await self.book.of("t").all(await self.kb())

    async def states(self) -> list[tuple[str, int, str, int]]:
        """Model, generation, state and number of vectors of each Space."""
        return [(one.space.model, one.space.generation, one.space.state, one.vectors) for one in await self.spaces()]

    async def near(self, query: str) -> set[str]:
        """Documents found by meaning with the model of the live Space."""
        kb = await self.kb()
        assert kb.space is not None
        vector = (await (await self.pool.for_space(kb.space)).embed([query], "query")).vectors[0]
        found = await self.vectors.search("t", kb, vector, 50)
        return await self._owners([one.chunk_id for one in found])
