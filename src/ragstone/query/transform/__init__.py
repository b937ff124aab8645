"""Transforms of a query: other words, parts and passages to search for in its place."""

from __future__ import annotations

from ragstone.query.context import Variants
from ragstone.query.transform.transformer import LLM_TRANSFORMS, RephraseStage, Transformer, build_transformer

__all__ = ["LLM_TRANSFORMS", "RephraseStage", "Transformer", "Variants", "build_transformer"]
