"""Embedders that stand for others: a pool by model, a memory for query vectors, and a switch to a second model."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Protocol, runtime_checkable

import numpy as np

from ragstone.core.errors import BudgetSpent, ModelError, ModelMismatch, ModelUnavailable, SettingsError
from ragstone.core.model_types import EmbeddingModel, Embeddings, WordTokenizer, model_name
from ragstone.core.protocols import Embedder, Tokenizer
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Role, Space, Vector


class EmbedderPool:
    """Embedders by model: a kb is searched and filled with the model it was built with."""

    def __init__(self, default: Embedder, build: Callable[[str, int | None], Embedder]) -> None:
        self.default = default
        """The configured embedder; its owner closes it."""
        self._build = build
        self._others: dict[str, Embedder] = {}
        self._resized: dict[tuple[str, int], Embedder] = {}
        """Embedders of another dimension than their model has by itself, or by the settings."""
        self._by_name: dict[str, Embedder] = {}
        self._building = asyncio.Lock()

    @property
    def default_id(self) -> str:
        """Return the id of the configured model, also after its fallback has taken its place."""
        return configured_model(self.default).id

    async def for_space(self, space: Space) -> Embedder:
        """Return the embedder of a Space's model, in the dimension of the Space."""
        embedder = await self._of_model(space.model)
        if embedder.model.id != space.model or embedder.model.fits(space):
            return embedder  # another model is a fallback
        key = space.model, space.dimension
        async with self._building:
            if key not in self._resized:
                self._resized[key] = await self._build_other(*key)
        return self._resized[key]

    async def get(self, name: str) -> Embedder:
        """Return the embedder of a model by the name that the settings would give it."""
        async with self._building:
            if name not in self._by_name:
                self._by_name[name] = await self._build_named(name)
        return self._by_name[name]

    async def close(self) -> None:
        """Close every embedder but the default."""
        async with AsyncExitStack() as stack:
            for other in (*self._others.values(), *self._resized.values()):
                stack.push_async_callback(other.close)

    async def _of_model(self, model: str) -> Embedder:
        if model in (self.default_id, self.default.model.id):
            return self.default
        async with self._building:
            if model not in self._others:
                self._others[model] = await self._build_other(model)
        return self._others[model]

    async def _build_named(self, name: str) -> Embedder:
        embedder = await asyncio.to_thread(self._build, name, None)
        known = self.default if embedder.model.id == self.default_id else self._others.get(embedder.model.id)
        if known is None:
            self._others[embedder.model.id] = embedder
            return embedder
        if known is not embedder:
            await embedder.close()
        return known

    async def _build_other(self, model: str, dimension: int | None = None) -> Embedder:
        try:
            embedder = await asyncio.to_thread(self._build, model_name(model), dimension)
        except SettingsError as error:
            raise ModelUnavailable(
                f"this index was built with {model}: {error}", hint=error.hint, remedy=error.remedy
            ) from error
        if embedder.model.id != model:
            await embedder.close()
            raise ModelMismatch(
                f"this index was built with {model}; {embedder.model.id} is what is installed",
                hint="install the weights it was built with, or",
                remedy=Remedy(Action.REEMBED),
            )
        return embedder


SECONDS = 300.0

ENTRIES = 4096

Key = tuple[str, Role, bytes]


class CachedEmbedder:
    """Wraps any embedder. Document vectors are kept for good by the ledger, so only queries are kept here."""

    def __init__(self, inner: Embedder, *, entries: int = ENTRIES, clock: Callable[[], float] = time.monotonic) -> None:
        self._inner = inner
        self._entries = entries
        self._clock = clock
        self._kept: OrderedDict[Key, tuple[float, Vector]] = OrderedDict()

    @property
    def model(self) -> EmbeddingModel:
        return self._inner.model

    @property
    def configured(self) -> EmbeddingModel:
        return configured_model(self._inner)

    @property
    def tokenizer(self) -> Tokenizer:
        return tokenizer_of(self._inner)

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        """Return what the wrapped embedder does, from memory where possible."""
        model = self._inner.model.id
        known = self._recall(model, texts) if role == "query" else {}
        missing = list(dict.fromkeys(text for text in texts if text not in known))
        if not missing and texts:
            return Embeddings(np.stack([known[text] for text in texts]), model)
        made = await self._inner.embed(missing, role)
        if made.model != model:
            # The wrapped embedder has changed models: what was remembered is of another space.
            if known:
                return await self.embed(texts, role)
            model = made.model
        place = {text: index for index, text in enumerate(missing)}
        refused = {missing[index] for index in made.failed}
        if role == "query":
            self._remember(model, {text: made.vectors[place[text]] for text in missing if text not in refused})
        rows = [known[text] if text in known else made.vectors[place[text]] for text in texts]
        vectors = np.stack(rows) if rows else made.vectors
        return Embeddings(vectors, model, tuple(i for i, text in enumerate(texts) if text in refused))

    async def close(self) -> None:
        self._kept.clear()
        await self._inner.close()

    def _recall(self, model: str, texts: Sequence[str]) -> dict[str, Vector]:
        found = {}
        for text in texts:
            key = _key(model, text)
            kept = self._kept.get(key)
            if kept is None:
                continue
            if kept[0] <= self._clock():
                del self._kept[key]
                continue
            self._kept.move_to_end(key)
            found[text] = kept[1]
        return found

    def _remember(self, model: str, vectors: dict[str, Vector]) -> None:
        expires = self._clock() + SECONDS
        for text, vector in vectors.items():
            self._kept[_key(model, text)] = (expires, vector.copy())
        while len(self._kept) > self._entries:
            self._kept.popitem(last=False)


def _key(model: str, text: str) -> Key:
    return model, "query", hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


logger = logging.getLogger(__name__)


class FallbackEmbedder:
    """Uses the first embedder until it fails, and from then on the second.

    The two make vectors of different spaces. `Embeddings.model` says who made them; keeping them apart is the
    caller's part.
    """

    def __init__(self, primary: Embedder, fallback: Embedder) -> None:
        self._primary = primary
        self._fallback = fallback
        self._active = primary

    @property
    def model(self) -> EmbeddingModel:
        """Return the model in use now."""
        return self._active.model

    @property
    def configured(self) -> EmbeddingModel:
        """Return the model that is used until it fails."""
        return self._primary.model

    @property
    def tokenizer(self) -> Tokenizer:
        return tokenizer_of(self._active)

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        """Return vectors of the active model; a failure of the first one switches for good."""
        if self._active is self._primary:
            try:
                return await self._primary.embed(texts, role)
            except (ModelMismatch, BudgetSpent):
                raise  # a wrong setting or an empty purse, not a model that fails
            except ModelError as error:
                if self._active is self._primary:
                    logger.warning(
                        "%s failed (%s); %s is used from now on",
                        self._primary.model.name,
                        error,
                        self._fallback.model.name,
                    )
                self._active = self._fallback
        return await self._fallback.embed(texts, role)

    async def close(self) -> None:
        try:
            await self._primary.close()
        finally:
            await self._fallback.close()


@runtime_checkable
class _MayHaveFallback(Protocol):
    @property
    def configured(self) -> EmbeddingModel: ...


def configured_model(embedder: Embedder) -> EmbeddingModel:
    """Return the model that an embedder was made for, also after its fallback has taken its place."""
    return embedder.configured if isinstance(embedder, _MayHaveFallback) else embedder.model


@runtime_checkable
class _HasTokenizer(Protocol):
    @property
    def tokenizer(self) -> Tokenizer: ...


def tokenizer_of(embedder: Embedder) -> Tokenizer:
    """Return the embedder's own tokenizer, or words where it has none to offer (a model behind an address)."""
    return embedder.tokenizer if isinstance(embedder, _HasTokenizer) else WordTokenizer()
