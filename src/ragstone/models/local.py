"""Embeds text with a model on this machine, off the event loop, tokenising ahead while the model works."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.core.model_types import EmbeddingModel, Embeddings
from ragstone.core.protocols import Tokenizer
from ragstone.core.tokens import WordTokenizer
from ragstone.core.types import Matrix, Role
from ragstone.models.batches import Window, unit_rows, windows
from ragstone.models.catalogue import canonical_name, check_dimension, known_model
from ragstone.models.inference import LocalModel, Row
from ragstone.models.runtime import RuntimeName

SLICE = 256
"""Texts tokenised, sorted by length and run together; the next slice is tokenised meanwhile."""


@dataclass(frozen=True, slots=True)
class LocalTokenizer:
    """A local model's tokenizer, read when it is first asked for offsets."""

    _local: LocalModel
    name: str

    def offsets(self, text: str) -> Sequence[tuple[int, int]]:
        """Where each token stands in the text, in characters, special tokens left out."""
        return self._local.tokenizer.offsets(text)


class LocalEmbedder:
    """An encoder with weights on this machine, run on OpenVINO or onnxruntime."""

    def __init__(self, local: LocalModel, *, dimensions: int | None = None, normalize: bool = True) -> None:
        self._local = local
        self._dimensions = dimensions
        self._normalize = normalize

    @classmethod
    def open(
        cls,
        model: str,
        *,
        path: Path | None = None,
        runtime: RuntimeName = "auto",
        threads: int = 0,
        batch_size: int = 32,
        dimensions: int | None = None,
        normalize: bool = True,
        cache_dir: Path | None = None,
    ) -> LocalEmbedder:
        """Name a model. It is looked for, and loaded, when it is first used."""
        local = LocalModel(
            canonical_name(model),
            path=path,
            runtime=runtime,
            threads=threads,
            batch_size=batch_size,
            cache_dir=cache_dir,
        )
        return cls(local, dimensions=dimensions, normalize=normalize)

    @property
    def model(self) -> EmbeddingModel:
        """Facts about the model; only the catalogue's while its weights are not on this machine."""
        known = known_model(self._local.name) or EmbeddingModel(self._local.name, dimension=0, max_tokens=512)
        try:
            weights = self._local.weights
            return replace(
                known,
                dimension=weights.dimension,
                max_tokens=weights.max_tokens,
                revision=weights.revision,
                local=True,
            )
        except ModelUnavailable:
            return known

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's own tokenizer, for chunkers that count its tokens; words while its weights are missing."""
        try:
            return LocalTokenizer(self._local, self._local.id)
        except ModelUnavailable:
            return WordTokenizer()

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        """One row per text, in order; a text over the model's window is embedded by windows and averaged."""
        await self._local.load()
        model = self.model
        check_dimension(model, self._dimensions)
        vectors = np.zeros((len(texts), model.dimension), np.float32)
        failed: list[int] = []
        starts = range(0, len(texts), SLICE)
        ahead = asyncio.ensure_future(self._windows(texts[:SLICE], role))
        try:
            for start in starts:
                pieces = await ahead
                ahead = asyncio.ensure_future(self._windows(texts[start + SLICE : start + 2 * SLICE], role))
                rows = vectors[start : start + SLICE]
                failed += [start + text for text in await self._fill(rows, pieces, urgent=role == "query")]
        finally:
            ahead.cancel()
        return Embeddings(vectors, model.id, tuple(failed))

    async def close(self) -> None:
        """Let the threads and the model go."""
        await self._local.close()

    async def _windows(self, texts: Sequence[str], role: Role) -> list[Window]:
        return await self._local.tokenize(self._cut, texts, role)

    def _cut(self, texts: Sequence[str], role: Role) -> list[Window]:
        tokenizer, weights = self._local.tokenizer, self._local.weights
        prompt = weights.prompts.get(role, "")
        # An empty text stays empty, whatever the prompt: it has nothing to find.
        prompted = [prompt + text if text.strip() else "" for text in texts]
        return [
            window
            for text, ids in enumerate(tokenizer.ids(prompted))
            if ids
            for window in windows(text, ids, weights.max_tokens - 2)
        ]

    async def _fill(self, rows: Matrix, pieces: Sequence[Window], *, urgent: bool) -> list[int]:
        """Write the vectors of a slice into `rows` and return the texts that got none."""
        before, after = self._local.tokenizer.brackets
        inputs = [Row((before, *piece.ids, after)) for piece in pieces]
        outputs = await self._local.run(inputs, urgent=urgent)
        counts = np.zeros((len(rows), 1), np.float32)
        errors = []
        for piece, output in zip(pieces, outputs, strict=True):
            if isinstance(output, ModelError):
                errors.append(output)
                continue
            rows[piece.text] += output / np.linalg.norm(output) if self._normalize else output
            counts[piece.text] += 1
        if errors and not counts.any():
            raise ModelError(f"{self._local.name} could not embed any of {len(rows)} texts") from errors[0]
        np.divide(rows, counts, out=rows, where=counts > 0)
        if self._normalize:
            rows[:] = unit_rows(rows)
        return [int(text) for text in np.flatnonzero(counts == 0)]
