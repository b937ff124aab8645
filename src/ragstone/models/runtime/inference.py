"""A local model at work: loaded at first use, with threads of its own for tokenising and for inference."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from ragstone.core.errors import ModelError
from ragstone.core.types import Vector
from ragstone.models.runtime.batches import padded
from ragstone.models.runtime.encoder import Encoder, Runtime
from ragstone.models.runtime.runtime import RuntimeName, open_runtime
from ragstone.models.runtime.scheduler import BatchScheduler
from ragstone.models.runtime.tokenizing import ModelTokenizer
from ragstone.models.weights import Weights, find_weights
from ragstone.models.weights.artefacts import cache_folder

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """One input of the model: token ids with their special tokens, and types for a pair."""

    ids: Sequence[int]
    types: Sequence[int] | None = None


class LocalModel:
    """Weights, tokenizer and runtime of one model. Opening touches nothing; the first use loads, once."""

    def __init__(
        self,
        name: str,
        *,
        path: Path | None = None,
        runtime: RuntimeName = "auto",
        threads: int = 0,
        batch_size: int = 32,
        cache_dir: Path | None = None,
        head: bool = False,
    ) -> None:
        self.name = name
        self._head = head
        self._path = path
        self._runtime_name: RuntimeName = runtime
        self._threads = threads
        self._batch_size = batch_size
        self._cache_dir = cache_dir
        self._loading = threading.Lock()
        self._tokens = ThreadPoolExecutor(1, thread_name_prefix="ragstone-tokens")
        self._opening = ThreadPoolExecutor(1, thread_name_prefix="ragstone-load")
        self._rooms: dict[str, BatchScheduler[Row, Vector | ModelError]] = {}

    @cached_property
    def weights(self) -> Weights:
        """Return the weights; raises `ModelUnavailable` when they are not on this machine."""
        return find_weights(self.name, path=self._path, cache=self._cache)

    @property
    def id(self) -> str:
        """Name and revision."""
        return f"{self.name}@{self.weights.revision}"

    @cached_property
    def tokenizer(self) -> ModelTokenizer:
        return ModelTokenizer(self.name, self.weights.tokenizer_json())

    async def load(self) -> None:
        """Load what is not loaded yet. A failure is raised again by the next call, which tries again."""
        if not self._rooms:
            await asyncio.get_running_loop().run_in_executor(self._opening, self._load_once)

    async def tokenize(self, work: Callable[..., T], *arguments: object) -> T:
        """Run tokenising work on its own thread."""
        return await asyncio.get_running_loop().run_in_executor(self._tokens, work, *arguments)

    async def run(self, rows: Sequence[Row], *, urgent: bool = False) -> list[Vector | ModelError]:
        """The model's output for each row, or why there is none. `urgent` does not queue behind batches."""
        await self.load()
        return await self._rooms["urgent" if urgent else "batches"].run(rows, [len(row.ids) for row in rows])

    async def close(self) -> None:
        """Let the threads and the model go."""
        for pool in (self._tokens, self._opening):
            pool.shutdown(wait=False, cancel_futures=True)
        for room in self._rooms.values():
            room.close()
        self._rooms = {}

    @cached_property
    def _cache(self) -> Path:
        return cache_folder(self._cache_dir)

    def _load_once(self) -> None:
        with self._loading:
            if self._rooms:
                return
            # The tokenizer takes about as long to read as the model: both at once.
            tokenizer = self._tokens.submit(lambda: self.tokenizer)
            runtime = open_runtime(
                self._runtime_name,
                f"{self.id}-head" if self._head else self.id,
                self._encoder,
                threads=self._threads,
                cache=self._cache,
            )
            tokenizer.result()
            run = partial(self._run_batch, runtime)
            self._rooms = {
                name: BatchScheduler(run, workers=workers, batch_size=self._batch_size)
                for name, workers in (("batches", runtime.workers), ("urgent", 1))
            }

    def _encoder(self) -> Encoder:
        encoder = self.weights.encoder()
        if not self._head:
            return encoder.without_head()
        if not encoder.has_head:
            raise ModelError(f"{self.name} has no classification head, so it cannot score pairs")
        return encoder

    def _run_batch(self, runtime: Runtime, rows: Sequence[Row]) -> Sequence[Vector | ModelError]:
        longest = self.weights.max_tokens
        ids, mask = padded([row.ids for row in rows], self.tokenizer.padding, longest=longest)
        types = None
        if rows[0].types is not None:
            types, _ = padded([row.types or () for row in rows], 0, longest=longest)
        try:
            made = runtime.run(ids, mask, types)
        except ModelError as error:
            # Run one by one: a passing fault gets its second chance, a bad row does not spoil the others.
            return [error] if len(rows) == 1 else [self._run_batch(runtime, [row])[0] for row in rows]
        return [
            row if np.isfinite(row).all() else ModelError(f"{self.name} gave a vector that is not finite")
            for row in made
        ]
