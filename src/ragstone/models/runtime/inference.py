"""A local model: weights, tokenizer and runtime, loaded at first use, with threads for tokenising and for inference."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from ragstone.core.background import is_patient
from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.core.types import Matrix, Vector
from ragstone.models.runtime.encoder import Encoder, Ids, Runtime
from ragstone.models.runtime.scheduler import BatchScheduler
from ragstone.models.weights import Weights, find_weights
from ragstone.models.weights.artefacts import cache_folder

# Texts come in batches from threads of our own; the library's pool would fight the model for the cores
# and warns after a fork.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


class ModelTokenizer:
    """A model's tokenizer: `offsets` for chunkers, ids for the model. Safe from several threads."""

    def __init__(self, name: str, definition: bytes) -> None:
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_buffer(definition)
        except Exception as error:  # The library raises bare Exception for what it cannot read.
            raise ModelError(f"the tokenizer of {name} cannot be read: {error}") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self.name = name
        self.padding = _padding_id(tokenizer)

    @cached_property
    def brackets(self) -> tuple[int, int]:
        """Return the special tokens before and after a text."""
        special = self._tokenizer.encode("").ids
        if len(special) != 2:
            raise ModelError(f"the tokenizer of {self.name} does not put one token before and one after a text")
        return special[0], special[1]

    def offsets(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the span of each token in characters, special tokens left out."""
        offsets: list[tuple[int, int]] = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return offsets

    def ids(self, texts: Sequence[str]) -> list[list[int] | None]:
        """Return the ids of each text without special tokens; None for a text that cannot be tokenised."""
        try:
            return self._ids(texts)
        except (TypeError, ValueError):  # One text that is not valid Unicode fails the whole batch.
            return [self._ids_or_none(text) for text in texts]

    def pairs(self, query: str, passages: Sequence[str], longest: int) -> list[tuple[list[int], list[int]]]:
        """Return ids and type ids of (query, passage); only the passage is cut, unless the query alone is too long."""
        query = self._shorten(_encodable(query), longest // 2)
        encodings = self._tokenizer.encode_batch([(query, _encodable(passage)) for passage in passages])
        return [self._cut_pair(encoding, longest) for encoding in encodings]

    def _ids(self, texts: Sequence[str]) -> list[list[int] | None]:
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def _ids_or_none(self, text: str) -> list[int] | None:
        try:
            return self._ids([text])[0]
        except (TypeError, ValueError):
            return None

    def _shorten(self, text: str, tokens: int) -> str:
        offsets = self.offsets(text)
        return text if len(offsets) <= tokens else text[: offsets[tokens - 1][1]]

    def _cut_pair(self, encoding: Any, longest: int) -> tuple[list[int], list[int]]:
        ids, types = encoding.ids, encoding.type_ids
        if len(ids) <= longest:
            return ids, types
        # The passage stands last, before one end token: cutting there leaves the query whole.
        return [*ids[: longest - 1], ids[-1]], [*types[: longest - 1], types[-1]]


def _encodable(text: str) -> str:
    """Return the text without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _padding_id(tokenizer: Any) -> int:
    for token in ("<pad>", "[PAD]"):
        found = tokenizer.token_to_id(token)
        if found is not None:
            return int(found)
    return 0


T = TypeVar("T")
QUERY_SECONDS = 1.0
"""The time after a query for which others are expected."""


@dataclass(frozen=True, slots=True)
class ModelInput:
    """One input of the model: token ids with their special tokens, and types for a pair."""

    ids: Sequence[int]
    types: Sequence[int] | None = None


class BatchLanes:
    """Leaves room for queries between batches of documents.

    A batch takes as long as many queries, and one that runs cannot be interrupted. So while there are queries, one of
    the runs that a model makes at once is left to them, and after each batch the processor rests for as long again.
    """

    def __init__(
        self, workers: int, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._workers = workers
        self._clock = clock
        self._sleep = sleep
        self._changed = threading.Condition()
        self._running = 0
        self._last_query = -math.inf

    def run_urgent(self, work: Callable[[], T]) -> T:
        """Run a query at once."""
        self._last_query = self._clock()
        return work()

    def run_batch(self, work: Callable[[], T]) -> T:
        """Run a batch when one more may run."""
        with self._changed:
            while self._running >= self._most():
                self._changed.wait(QUERY_SECONDS)
            self._running += 1
        started = self._clock()
        try:
            return work()
        finally:
            if self._has_queries():
                self._sleep(min(self._clock() - started, QUERY_SECONDS))
            with self._changed:
                self._running -= 1
                self._changed.notify()

    def _most(self) -> int:
        return max(1, self._workers - 1) if self._has_queries() else self._workers

    def _has_queries(self) -> bool:
        return self._clock() - self._last_query < QUERY_SECONDS


class LocalModel:
    """Weights, tokenizer and runtime of one model. Opening touches nothing; the first use loads, once."""

    def __init__(
        self,
        name: str,
        *,
        path: Path | None = None,
        find: Callable[[], Weights] | None = None,
        runtime: RuntimeName = "auto",
        threads: int = 0,
        batch_size: int = 32,
        cache_dir: Path | None = None,
        head: bool = False,
    ) -> None:
        self.name = name
        self._head = head
        self._path = path
        self._find = find
        self._runtime_name: RuntimeName = runtime
        self._threads = threads
        self._batch_size = batch_size
        self._cache_dir = cache_dir
        self._loading = threading.Lock()
        self._tokens = ThreadPoolExecutor(1, thread_name_prefix="ragstone-tokens")
        self._opening = ThreadPoolExecutor(1, thread_name_prefix="ragstone-load")
        self._rooms: dict[str, BatchScheduler[ModelInput, Vector | ModelError]] = {}

    @cached_property
    def weights(self) -> Weights:
        """Return the weights; raises `ModelUnavailable` when they are not on this machine."""
        return self._find() if self._find else find_weights(self.name, path=self._path, cache=self._cache)

    @cached_property
    def id(self) -> str:
        """Return the name and revision."""
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

    async def run(self, rows: Sequence[ModelInput]) -> list[Vector | ModelError]:
        """Return the model's output for each row, or the error; what a question waits for does not queue."""
        await self.load()
        return await self._rooms["batches" if is_patient() else "urgent"].run(rows, [len(row.ids) for row in rows])

    async def close(self) -> None:
        """End the threads and release the model."""
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
            lanes = BatchLanes(runtime.workers)
            self._rooms = {
                name: BatchScheduler(
                    partial(self._run_batch, runtime, lane), workers=workers, batch_size=self._batch_size
                )
                for name, workers, lane in (
                    ("batches", runtime.workers, lanes.run_batch),
                    ("urgent", runtime.workers, lanes.run_urgent),
                )
            }

    def _encoder(self) -> Encoder:
        encoder = self.weights.encoder()
        if not self._head:
            return encoder.without_head()
        if not encoder.has_head:
            raise ModelError(f"{self.name} has no classification head, so it cannot score pairs")
        return encoder

    def _run_batch(
        self, runtime: Runtime, lane: Callable[[Callable[[], Matrix]], Matrix], rows: Sequence[ModelInput]
    ) -> Sequence[Vector | ModelError]:
        longest = self.weights.max_tokens
        ids, mask = pad_rows([row.ids for row in rows], self.tokenizer.padding, longest=longest)
        types = None
        if rows[0].types is not None:
            types, _ = pad_rows([row.types or () for row in rows], 0, longest=longest)
        try:
            made = lane(lambda: runtime.run(ids, mask, types))
        except ModelError as error:
            # Run one by one: a passing fault gets its second chance, a bad row does not spoil the others.
            return [error] if len(rows) == 1 else [self._run_batch(runtime, lane, [row])[0] for row in rows]
        return [
            row if np.isfinite(row).all() else ModelError(f"{self.name} gave a vector that is not finite")
            for row in made
        ]


logger = logging.getLogger(__name__)

Installable = Literal["openvino", "onnxruntime"]

RuntimeName = Literal["auto", "openvino", "onnxruntime"]


def open_runtime(
    name: RuntimeName, model_id: str, encoder: Callable[[], Encoder], *, threads: int, cache: Path
) -> Runtime:
    """Load a model. `encoder` is called only when no usable graph is cached under its id."""
    first, *others = _list_installed(name)
    try:
        return _open(first, model_id, encoder, threads, cache)
    except ModelUnavailable as error:
        if not others:
            raise
        logger.warning("%s; %s is used instead", error, others[0])
    return _open(others[0], model_id, encoder, threads, cache)


def _open(name: Installable, model_id: str, encoder: Callable[[], Encoder], threads: int, cache: Path) -> Runtime:
    if name == "openvino":
        from ragstone.models.runtime.openvino import OpenVinoRuntime

        return OpenVinoRuntime.open(model_id, encoder, threads=threads, cache=cache)
    from ragstone.models.runtime.onnx import OnnxRuntime

    return OnnxRuntime.open(model_id, encoder, threads=threads, cache=cache)


def _list_installed(name: RuntimeName) -> list[Installable]:
    """Return the installed runtimes that the name allows, best first."""
    found: list[Installable] = []
    if name in ("auto", "openvino") and find_spec("openvino"):
        found.append("openvino")
    if name in ("auto", "onnxruntime") and find_spec("onnxruntime") and find_spec("onnx"):
        found.append("onnxruntime")
    if not found:
        wanted = "openvino or onnxruntime" if name == "auto" else name
        raise ModelUnavailable(
            f"{wanted} is not installed, so local models cannot run",
            hint='pip install "ragstone[onnx]"' if name == "onnxruntime" else "pip install openvino",
        )
    return found


STEP = 16
"""Long rows are this many numbers wide or a multiple: vector instructions work off sixteen at a time."""

LONG = 128
"""From here on the columns that this adds cost less than the odd ones."""


def pad_rows(rows: Sequence[Sequence[int]], padding: int, *, longest: int = 0) -> tuple[Ids, Ids]:
    """Return rows as one matrix, filled up on the right, and the mask that says what is real.

    With `longest`, the most that the model takes, a long matrix gets a width that is fast to work off.
    """
    width = max(len(row) for row in rows)
    if width >= LONG:
        width = max(width, min(-(-width // STEP) * STEP, longest))
    ids = np.full((len(rows), width), padding, np.int64)
    mask = np.zeros((len(rows), width), np.int64)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
        mask[index, : len(row)] = 1
    return ids, mask
