"""A model that waits where a test wants it to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ragstone.core.model_types import Embeddings
from ragstone.core.types import Role
from ragstone.testing.fakes import FakeEmbedder


class GatedEmbedder(FakeEmbedder):
    """Waits at texts with a word until it may go on."""

    def __init__(self, word: str = "") -> None:
        super().__init__()
        self.word = word
        self.reached = asyncio.Event()
        self.left = asyncio.Event()
        self.open = asyncio.Event()

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        if self.word and any(self.word in text for text in texts):
            self.reached.set()
            try:
                await self.open.wait()
            except asyncio.CancelledError:
                self.left.set()
                await asyncio.sleep(0.1)  # what it holds takes its time to be let go
                raise
        return await super().embed(texts, role)
