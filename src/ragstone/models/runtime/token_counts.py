"""The tokenizer that goes with an embedder."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ragstone.core.model_types import WordTokenizer
from ragstone.core.protocols import Embedder, Tokenizer


@runtime_checkable
class _HasTokenizer(Protocol):
    @property
    def tokenizer(self) -> Tokenizer: ...


def tokenizer_of(embedder: Embedder) -> Tokenizer:
    """The embedder's own tokenizer, or words where it has none to offer (a model behind an address)."""
    return embedder.tokenizer if isinstance(embedder, _HasTokenizer) else WordTokenizer()
