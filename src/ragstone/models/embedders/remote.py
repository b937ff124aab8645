"""Embeds text with a model behind an OpenAI-compatible address."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ragstone.core.batches import batched
from ragstone.core.errors import ModelError, ModelMismatch, ModelUnavailable
from ragstone.core.model_types import EmbeddingModel, Embeddings, add_cost, require_budget, unit_rows
from ragstone.core.types import Matrix, Role
from ragstone.models.llm.openai_client import CallFailed, OpenAIService
from ragstone.models.weights.catalogue import canonical_name, known_model
from ragstone.settings.tree import RemoteModel

REFUSALS = 32
"""Refused requests of one call after which a plain text must show that the model still works."""
PLAIN = ["text"]
"""Texts that every model takes: where they are refused, too, the model is what is wrong."""


@dataclass(slots=True)
class _Job:
    """One call's work: what has been made, what was refused."""

    texts: Sequence[str]
    vectors: dict[int, list[float]] = field(default_factory=dict)
    failed: list[int] = field(default_factory=list)
    refusals: int = 0


class RemoteEmbedder:
    """A remote embedding model, many texts a call; a text that is refused is found, skipped and counted."""

    def __init__(
        self,
        model: str,
        settings: RemoteModel | None = None,
        *,
        dimensions: int | None = None,
        normalize: bool = True,
        batch_size: int = 100,
        price: float | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._service = OpenAIService(settings or RemoteModel(), sleep=sleep)
        name = canonical_name(model)
        known = known_model(name) or EmbeddingModel(name, dimension=0, max_tokens=8191)
        self._model = replace(known, dimension=dimensions or known.dimension, revision="", local=False)
        if price is not None:
            self._model = replace(self._model, price_per_million=price)
        # Only the models that can shorten their vectors take the wish; for others it is what we expect.
        self._wish = {"dimensions": dimensions} if dimensions and name.startswith("text-embedding-3") else {}
        self._normalize = normalize
        self._batch_size = batch_size
        self.tokens_used = 0
        """Tokens the service has counted so far."""

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        """Return one row per text, in order."""
        job = _Job(texts)
        sendable = [index for index, text in enumerate(texts) if _sendable(text)]
        job.failed += sorted(set(range(len(texts))) - set(sendable))
        for positions in batched(sendable, self._batch_size):
            await self._embed(job, positions)
        if sendable and not job.vectors:
            await self._try_plain()
        return Embeddings(self._matrix(job), self._model.id, tuple(sorted(job.failed)))

    async def close(self) -> None:
        await self._service.close()

    async def _embed(self, job: _Job, positions: Sequence[int]) -> None:
        try:
            made = await self._request([job.texts[position] for position in positions])
        except CallFailed as failure:
            if failure.reason != "refused":
                kind = ModelUnavailable if failure.reason in ("no_client", "no_key") else ModelError
                raise kind(f"{self._model.name}: {failure}", hint=failure.hint) from failure
            await self._find_refused(job, positions)
        else:
            job.vectors.update(zip(positions, made, strict=True))

    async def _find_refused(self, job: _Job, positions: Sequence[int]) -> None:
        """Halve until the refused text stands alone."""
        job.refusals += 1
        if job.refusals > REFUSALS:
            await self._try_plain()
            job.refusals = 0
        if len(positions) == 1:
            job.failed.append(positions[0])
            return
        half = len(positions) // 2
        await self._embed(job, positions[:half])
        await self._embed(job, positions[half:])

    async def _try_plain(self) -> None:
        """Raise `ModelError` if the service refuses a plain text, too; else the dimension is known."""
        plain = _Job(PLAIN)
        await self._embed(plain, [0])
        if plain.failed:
            raise ModelError(
                f"{self._service.host} refuses every text for {self._model.name}", hint="check the model's name"
            )
        self._matrix(plain)

    async def _request(self, texts: list[str]) -> list[list[float]]:
        if self._model.price_per_million:
            require_budget()

        async def request(client: Any) -> list[list[float]]:
            reply = await client.embeddings.create(
                model=self._model.name, input=texts, encoding_format="float", **self._wish
            )
            rows = sorted(reply.data, key=lambda row: row.index)
            if [row.index for row in rows] != list(range(len(texts))):
                raise ValueError("the reply does not have one vector per text")
            vectors = [[float(value) for value in row.embedding] for row in rows]
            used = reply.usage.total_tokens if reply.usage else 0
            self.tokens_used += used
            add_cost("embedding", used / 1_000_000 * self._model.price_per_million, used)
            return vectors

        return await self._service.call(request)

    def _matrix(self, job: _Job) -> Matrix:
        dimensions = {len(vector) for vector in job.vectors.values()}
        expected = self._model.dimension or next(iter(dimensions), 0)
        if dimensions - {expected}:
            raise ModelMismatch(
                f"{self._model.name} gave vectors of {min(dimensions - {expected})} dimensions "
                f"where {expected} were expected",
                hint="set embedding.dimensions to what the model gives, in a kb of its own",
            )
        self._model = replace(self._model, dimension=expected)
        vectors = np.zeros((len(job.texts), expected), np.float32)
        for position, vector in job.vectors.items():
            vectors[position] = vector
        return unit_rows(vectors) if self._normalize else vectors


def _sendable(text: str) -> bool:
    """Return whether a text is not blank and can be written as JSON."""
    try:
        return bool(text.strip() and text.encode())
    except UnicodeEncodeError:
        return False
