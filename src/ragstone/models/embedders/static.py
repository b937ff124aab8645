"""Embeds text as the mean of its tokens' vectors: no network to run, thousands of texts a second."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ragstone.core.batches import batched
from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.core.model_types import EmbeddingModel, Embeddings, unit_rows
from ragstone.core.types import Matrix, Role, Vector
from ragstone.models.runtime.inference import ModelTokenizer
from ragstone.models.weights.artefacts import cache_folder
from ragstone.models.weights.catalogue import STATIC, canonical_name, check_dimension, known_model
from ragstone.models.weights.folder import file_sha256, read_tensors
from ragstone.models.weights.packages import WORDLLAMA, installed_file

NO_WINDOW = 1_000_000
TOKENS_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True)
class _Files:
    table: Path
    tokenizer: Path


@dataclass(frozen=True, slots=True, eq=False)
class _Loaded:
    table: Matrix
    tokenizer: ModelTokenizer


class StaticEmbedder:
    """Static token vectors: wordllama's when that package is installed, or a folder's."""

    def __init__(
        self,
        model: str,
        *,
        path: Path | None = None,
        dimensions: int | None = None,
        normalize: bool = True,
        cache_dir: Path | None = None,
    ) -> None:
        self._name = canonical_name(model)
        self._dimensions = dimensions
        self._path = path
        self._normalize = normalize
        self._cache_dir = cache_dir
        self._loading = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ragstone-static")

    @property
    def model(self) -> EmbeddingModel:
        """Return facts about the model; only the catalogue's while its weights are not on this machine."""
        known = known_model(self._name) or EmbeddingModel(self._name, dimension=0, max_tokens=NO_WINDOW)
        try:
            dimension = self._content.table.shape[1]
            return replace(known, dimension=dimension, max_tokens=NO_WINDOW, revision=self._revision, local=True)
        except ModelUnavailable:
            return known

    @property
    def tokenizer(self) -> ModelTokenizer:
        """Return the tokenizer whose tokens have the vectors."""
        return self._content.tokenizer

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        """Return one row per text, in order."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, list(texts))

    async def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _embed(self, texts: Sequence[str]) -> Embeddings:
        loaded, model = self._content, self.model
        check_dimension(model, self._dimensions)
        vectors = np.zeros((len(texts), model.dimension), np.float32)
        failed = []
        for index, ids in enumerate(loaded.tokenizer.ids(texts)):
            if not ids or not texts[index].strip():
                failed.append(index)
                continue
            vectors[index] = _mean(loaded.table, ids)
        if self._normalize:
            vectors = unit_rows(vectors)
        return Embeddings(vectors, model.id, tuple(failed))

    @cached_property
    def _files(self) -> _Files:
        if self._path is None:
            if self._name != STATIC:
                raise ModelUnavailable(
                    f"'{self._name}' is not a static model that installs as a package",
                    hint="set embedding.path to its folder",
                )
            table = installed_file(*WORDLLAMA, self._name)
            return _Files(table, table.parents[1] / "tokenizers" / "l2_supercat_tokenizer_config.json")
        files = _Files(self._path / "model.safetensors", self._path / "tokenizer.json")
        for file in (files.table, files.tokenizer):
            if not file.is_file():
                raise ModelUnavailable(
                    f"the model folder {self._path} has no {file.name}",
                    hint="name a folder with model.safetensors and tokenizer.json",
                )
        return files

    @cached_property
    def _revision(self) -> str:
        return file_sha256(self._files.table, cache_folder(self._cache_dir))[:12]

    @property
    def _content(self) -> _Loaded:
        with self._loading:
            return self._read_content

    @cached_property
    def _read_content(self) -> _Loaded:
        matrices = [tensor for tensor in read_tensors(self._files.table).values() if tensor.ndim == 2]
        if len(matrices) != 1:
            raise ModelError(
                f"{self._files.table} holds {len(matrices)} matrices; a static model has one",
                hint="name a folder whose model.safetensors is one table of token vectors",
            )
        return _Loaded(matrices[0], ModelTokenizer(self._name, self._files.tokenizer.read_bytes()))


def is_static_folder(path: Path | None) -> bool:
    """Return whether a folder holds token vectors: weights without an encoder's config."""
    return path is not None and (path / "model.safetensors").is_file() and not (path / "config.json").exists()


def _mean(table: Matrix, ids: Sequence[int]) -> Vector:
    # In stretches, so that a very long text does not need a very large matrix.
    total = np.zeros(table.shape[1], np.float64)
    for part in batched(ids, TOKENS_AT_ONCE):
        total += table[part].sum(axis=0, dtype=np.float64)
    mean: Vector = (total / len(ids)).astype(np.float32)
    return mean
