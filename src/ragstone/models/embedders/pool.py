"""The default embedder and others by name, each of them built once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cached_property

from ragstone.core.errors import ModelMismatch, ModelUnavailable, SettingsError
from ragstone.core.model_types import model_name
from ragstone.core.protocols import Embedder
from ragstone.core.remedies import Action, Remedy


class EmbedderPool:
    """Embedders by model: a kb is searched and filled with the model it was built with."""

    def __init__(self, default: Embedder, build: Callable[[str], Embedder]) -> None:
        self.default = default
        """The configured embedder; its owner closes it."""
        self._build = build
        self._others: dict[str, Embedder] = {}
        self._by_name: dict[str, Embedder] = {}
        self._building = asyncio.Lock()

    @cached_property
    def default_id(self) -> str:
        """Return the id of the configured model, also after its fallback has taken its place."""
        return self.default.model.id

    async def for_space(self, model: str) -> Embedder:
        """Return the embedder of a Space's model."""
        if model in (self.default_id, self.default.model.id):
            return self.default
        async with self._building:
            if model not in self._others:
                self._others[model] = await self._build_other(model)
        return self._others[model]

    async def get(self, name: str) -> Embedder:
        """Return the embedder of a model by the name that the settings would give it."""
        async with self._building:
            if name not in self._by_name:
                self._by_name[name] = await self._build_named(name)
        return self._by_name[name]

    async def close(self) -> None:
        """Close every embedder but the default."""
        async with AsyncExitStack() as stack:
            for other in self._others.values():
                stack.push_async_callback(other.close)

    async def _build_named(self, name: str) -> Embedder:
        embedder = await asyncio.to_thread(self._build, name)
        known = self.default if embedder.model.id == self.default_id else self._others.get(embedder.model.id)
        if known is None:
            self._others[embedder.model.id] = embedder
            return embedder
        if known is not embedder:
            await embedder.close()
        return known

    async def _build_other(self, model: str) -> Embedder:
        try:
            embedder = await asyncio.to_thread(self._build, model_name(model))
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
