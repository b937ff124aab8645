"""Settings of how passages are found: retrieval and reranking."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from ragstone.core.section import Section
from ragstone.core.types import Mode

Fusion = Literal["zscore", "rrf", "weighted", "weighted_rrf"]


class RetrievalSettings(Section):
    mode: Mode = "balanced"
    k: int = Field(default=10, ge=1, le=1000)
    arms: Literal["hybrid", "dense", "lexical"] = "hybrid"
    candidates: int = Field(default=100, ge=1, le=10_000)
    """How many each arm brings."""
    fusion: Fusion = "zscore"
    dense_weight: float = Field(default=0.7, ge=0, le=1)
    """The dense arm's say in a weighted fusion; at most 0.2 for a query that is nothing but names."""
    rrf_k: int = Field(default=60, ge=1)
    min_similarity: float = Field(default=0.0, ge=-1, le=1)
    """Cosine under which the dense arm's candidates are dropped before fusion."""
    min_score: float = Field(default=0.0, ge=0, le=1)


class RerankingSettings(Section):
    kind: Literal["none", "cross_encoder"] = "none"
    model: str = "cross-encoder/ms-marco-MiniLM-L-6-v2"
    path: Path | None = None
    candidates: int = Field(default=50, ge=1, le=1000)
    threshold: float = Field(default=0.0, ge=0, le=1)
