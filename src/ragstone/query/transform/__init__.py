"""Transforms of a query: other words, parts and passages to search for in its place."""

from __future__ import annotations

from ragstone.query.transform.proposals import Variants, unchanged
from ragstone.query.transform.transformer import LLM_TRANSFORMS, Transformer, build_transformer

__all__ = ["LLM_TRANSFORMS", "Transformer", "Variants", "build_transformer", "unchanged"]
