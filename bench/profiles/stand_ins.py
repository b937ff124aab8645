"""Local models in place of those that are paid for or cannot be had here, each said in the record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from pydantic import SecretStr
from tests.doubles.openai import OpenAIDouble, Reply, Request, chat_reply

from ragstone.core.errors import ModelUnavailable
from ragstone.core.protocols import Embedder, Reranker
from ragstone.language.relevance import term_share
from ragstone.models import build_embedder
from ragstone.models.weights.artefacts import cache_folder
from ragstone.models.weights.catalogue import canonical_name, known_model
from ragstone.models.weights.packages import find_installed
from ragstone.settings.retrieval import RerankingStage
from ragstone.settings.tree import EmbeddingSettings, Settings

EMBEDDER = "granite-embedding-30m-english"
READER = "all-MiniLM-L6-v2"
"""As large as the cross-encoder ms-marco-MiniLM-L-6, and half as large as L-12."""


LONGEST = 2_000
"""Characters of a passage that are read: about the 512 tokens of the cross-encoders."""


class ReadingReranker:
    """Reads every passage at query time, as a cross-encoder does, and scores it by its cosine to the query."""

    name = READER

    def __init__(self) -> None:
        self._embedder: Embedder = build_embedder(EmbeddingSettings(model=READER))

    async def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        asked = await self._embedder.embed([query], "query")
        read = await self._embedder.embed([passage[:LONGEST] for passage in passages], "document")
        return [float(np.clip(cosine, 0.0, 1.0)) for cosine in read.vectors @ asked.vectors[0]]

    async def close(self) -> None:
        await self._embedder.close()


def with_local_embedder(settings: Settings) -> tuple[Settings, list[str]]:
    """Return settings whose embedder runs here and falls back to no paid one, and what is to be said about it."""
    own = settings.embedding
    if _is_here(own.model):
        return _with_embedding(settings, fallback=None), []
    size = known_model(EMBEDDER)
    assert size is not None
    said = f"embedder {EMBEDDER} with {size.dimension} dimensions in place of {own.model} with {own.dimensions}"
    return _with_embedding(settings, model=EMBEDDER, dimensions=size.dimension, fallback=None), [said]


def _with_embedding(settings: Settings, **changes: Any) -> Settings:
    return settings.model_copy(update={"embedding": settings.embedding.model_copy(update=changes)})


def _is_here(model: str) -> bool:
    known = known_model(model)
    if known is None or not known.local:
        return False
    try:
        return find_installed(canonical_name(model), cache_folder(None)) is not None
    except ModelUnavailable:
        return False


@contextmanager
def with_local_reranker(settings: Settings) -> Iterator[tuple[Settings, list[str]]]:
    """Yield settings whose reranker runs here, and what is to be said about it."""
    named = settings.reranking.model
    if settings.reranking.kind == "none":
        yield settings, []
    elif settings.reranking.kind == "llm":
        with OpenAIDouble(_rank) as double:
            llm = settings.llm.model_copy(update={"base_url": double.url, "api_key": SecretStr("stand-in")})
            said = f"an HTTP service on this machine, which ranks by shared words, in place of the LLM {named}"
            yield settings.model_copy(update={"llm": llm}), [said]
    else:
        with patch("ragstone.engine.components.build_reranker", _reading_reranker):
            yield settings, [f"reranker {READER}, which reads each passage at query time, in place of {named}"]


def _reading_reranker(stage: RerankingStage) -> Reranker | None:
    return None if stage.kind == "none" else ReadingReranker()


def _rank(request: Request) -> Reply:
    body: Any = request.body
    asked = json.loads(body["messages"][-1]["content"])
    points = {entry["id"]: term_share(asked["query"], entry["text"]) for entry in asked["passages"]}
    ordered = sorted(points, key=lambda number: -points[number])
    return chat_reply(json.dumps([{"id": number, "points": round(10 * points[number])} for number in ordered]))
