"""Embeds text with a model on this machine, off the event loop, tokenising ahead while the model works."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.core.model_types import EmbeddingModel, Embeddings, WordTokenizer, unit_rows
from ragstone.core.protocols import Tokenizer
from ragstone.core.types import Matrix, Role
from ragstone.models.runtime.inference import LocalModel, ModelInput, RuntimeName
from ragstone.models.weights.catalogue import canonical_name, check_dimension, known_model

OVERLAP = 64
"""Tokens that neighbouring windows of a long text share, at most."""


@dataclass(frozen=True, slots=True)
class TokenWindow:
    """A stretch of one text that fits the model."""

    text: int
    ids: tuple[int, ...]


def windows(text: int, ids: Sequence[int], longest: int) -> list[TokenWindow]:
    """Return a text in evenly spread windows of at most `longest` tokens; one window when it fits."""
    if len(ids) <= longest:
        return [TokenWindow(text, tuple(ids))]
    overlap = min(OVERLAP, longest // 4)
    count = -(-(len(ids) - overlap) // (longest - overlap))
    step = (len(ids) - longest) / (count - 1)
    starts = [round(index * step) for index in range(count)]
    return [TokenWindow(text, tuple(ids[start : start + longest])) for start in starts]


SLICE = 128
"""Texts tokenised together, while the model works on those before."""
FIRST = 32
"""The model need not wait until more of them are tokenised."""
AHEAD = 4
"""Slices that may be with the model: what waits there together makes batches of like length."""


class _Filled(NamedTuple):
    """The texts of a slice that got no vector, and why not if the model is to blame."""

    failed: list[int]
    error: ModelError | None


@dataclass(frozen=True, slots=True)
class LocalTokenizer:
    """A local model's tokenizer, read when it is first asked for offsets."""

    _local: LocalModel
    name: str

    def offsets(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the span of each token in characters, special tokens left out."""
        return self._local.tokenizer.offsets(text)


class LocalEmbedder:
    """An encoder with weights on this machine, run on OpenVINO or onnxruntime."""

    def __init__(self, local: LocalModel, *, dimensions: int | None = None, normalize: bool = True) -> None:
        self._local = local
        self._dimensions = dimensions
        self._normalize = normalize
        self._facts: EmbeddingModel | None = None

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
        """Return a model by name. It is looked for, and loaded, when it is first used."""
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
        """Return facts about the model; only the catalogue's while its weights are not on this machine."""
        if self._facts is None:
            known = known_model(self._local.name) or EmbeddingModel(self._local.name, dimension=0, max_tokens=512)
            try:
                weights = self._local.weights
                self._facts = replace(
                    known,
                    dimension=weights.dimension,
                    max_tokens=weights.max_tokens,
                    revision=weights.revision,
                    local=True,
                )
            except ModelUnavailable:
                return known
        return self._facts

    @property
    def tokenizer(self) -> Tokenizer:
        """Return the model's own tokenizer, for chunkers that count its tokens; words while its weights are missing."""
        try:
            return LocalTokenizer(self._local, self._local.id)
        except ModelUnavailable:
            return WordTokenizer()

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        """Return one row per text, in order; a text over the model's window is embedded by windows and averaged."""
        await self._local.load()
        model = self._checked_model
        vectors = np.zeros((len(texts), model.dimension), np.float32)
        flying: list[asyncio.Future[_Filled]] = []
        try:
            for part in _slices(texts):
                pieces = await self._local.tokenize(self._cut, [texts[number] for number in part], role)
                flying.append(asyncio.ensure_future(self._fill(vectors, part, pieces)))
                if len(flying) > AHEAD:
                    await flying[-1 - AHEAD]
            filled = await asyncio.gather(*flying)
        finally:
            for filling in flying:
                filling.cancel()
        failed = sorted(number for part in filled for number in part.failed)
        error = next((part.error for part in filled if part.error), None)
        if error and len(failed) == len(texts):
            raise ModelError(f"{self._local.name} could not embed any of {len(texts)} texts") from error
        return Embeddings(vectors, model.id, tuple(failed))

    async def close(self) -> None:
        """End the threads and release the model."""
        await self._local.close()

    @cached_property
    def _checked_model(self) -> EmbeddingModel:
        check_dimension(self.model, self._dimensions)
        return self.model

    def _cut(self, texts: Sequence[str], role: Role) -> list[TokenWindow]:
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

    async def _fill(self, vectors: Matrix, numbers: Sequence[int], pieces: Sequence[TokenWindow]) -> _Filled:
        """Write the vectors of a slice into the rows of its texts."""
        before, after = self._local.tokenizer.brackets
        inputs = [ModelInput((before, *piece.ids, after)) for piece in pieces]
        outputs = await self._local.run(inputs)
        rows = np.zeros((len(numbers), vectors.shape[1]), np.float32)
        counts = np.zeros((len(numbers), 1), np.float32)
        error = None
        for piece, output in zip(pieces, outputs, strict=True):
            if isinstance(output, ModelError):
                error = output
                continue
            rows[piece.text] += output / np.linalg.norm(output) if self._normalize else output
            counts[piece.text] += 1
        np.divide(rows, counts, out=rows, where=counts > 0)
        vectors[numbers] = unit_rows(rows) if self._normalize else rows
        return _Filled([numbers[text] for text in np.flatnonzero(counts == 0).tolist()], error)


def _slices(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield positions of texts, the longest first, so that those of like length meet; few at first."""
    order = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
    start, size = 0, FIRST
    while start < len(order):
        yield order[start : start + size]
        start, size = start + size, SLICE
