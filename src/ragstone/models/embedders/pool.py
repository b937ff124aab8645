"""The configured embedder and others that can be had by name, each of them built once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cached_property

from ragstone.core.errors import ModelMismatch, ModelUnavailable, SettingsError
from ragstone.core.model_types import model_name
from ragstone.core.protocols import Embedder
from ragstone.core.remedies import Action, Remedy


class EmbedderShelf:
    """Embedders by the model they are of: a kb is searched and filled with the one it was made with."""

    def __init__(self, own: Embedder, build: Callable[[str], Embedder]) -> None:
        self.own = own
        """The configured one, which others close."""
        self._build = build
        self._others: dict[str, Embedder] = {}
        self._by_name: dict[str, Embedder] = {}
        self._building = asyncio.Lock()

    @cached_property
    def configured(self) -> str:
        """The configured model, also after its fallback has taken its place."""
        return self.own.model.id

    async def of(self, model: str) -> Embedder:
        """The embedder of a Space's model: the configured one, or another that can be had by name."""
        if model in (self.configured, self.own.model.id):
            return self.own
        async with self._building:
            if model not in self._others:
                self._others[model] = await self._build_other(model)
        return self._others[model]

    async def named(self, name: str) -> Embedder:
        """The embedder of a model by the name that the settings would give it."""
        async with self._building:
            if name not in self._by_name:
                self._by_name[name] = await self._build_named(name)
        return self._by_name[name]

    async def close(self) -> None:
        """Let go of the others."""
        async with AsyncExitStack() as stack:
            for other in self._others.values():
                stack.push_async_callback(other.close)

    async def _build_named(self, name: str) -> Embedder:
        embedder = await asyncio.to_thread(self._build, name)
        known = self.own if embedder.model.id == self.configured else self._others.get(embedder.model.id)
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
