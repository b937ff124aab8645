"""Switches to another model when the first one fails."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ragstone.core.errors import ModelError, ModelMismatch
from ragstone.core.model_types import EmbeddingModel, Embeddings
from ragstone.core.protocols import Embedder, Tokenizer
from ragstone.core.types import Role
from ragstone.models.runtime.token_counts import tokenizer_of

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
        """The model in use now."""
        return self._active.model

    @property
    def tokenizer(self) -> Tokenizer:
        return tokenizer_of(self._active)

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        """Vectors of the active model; a failure of the first one switches for good."""
        if self._active is self._primary:
            try:
                return await self._primary.embed(texts, role)
            except ModelMismatch:
                raise  # a wrong setting, not a model that fails
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
