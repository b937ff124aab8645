from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

import numpy as np
import pytest

from ragstone.core.model_types import EmbeddingModel, Embeddings
from ragstone.core.types import Hit, Role
from ragstone.language.analyzer import analyze


class WordEmbedder:
    """Texts are near each other as far as they share words."""

    model = EmbeddingModel("words", 512, 512)

    def __init__(self) -> None:
        self.calls: list[tuple[Role, int]] = []

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        self.calls.append((role, len(texts)))
        vectors = np.zeros((len(texts), 512), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for term in analyze(text):
                row[crc32(term.encode()) % 512] += 1
            row /= np.linalg.norm(row)
        return Embeddings(vectors, self.model.id)

    async def close(self) -> None: ...


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def make_hit() -> Callable[..., Hit]:
    """A hit that is `text` at `start` of its document."""

    def make(text: str, document: str = "doc", start: int = 0, score: float = 0.9, **facts: object) -> Hit:
        values: dict[str, object] = {
            "chunk_id": f"{document}:{start}",
            "title": document.title(),
            "uri": f"{document}.md",
            "section": "",
            "page": None,
            "scores": {},
            "metadata": {},
        }
        values.update(facts)
        return Hit(document_id=document, text=text, score=score, start=start, end=start + len(text), **values)

    return make
