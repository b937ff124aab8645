"""Settings of how passages are found: retrieval and reranking."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from ragstone.core.types import Mode
from ragstone.settings.base import SettingsModel

Fusion = Literal["zscore", "rrf", "weighted", "weighted_rrf"]
Transform = Literal[
    "normalize",
    "stop_words",
    "stem",
    "synonyms",
    "entities",
    "decompose",
    "feedback",
    "rewrite",
    "expand",
    "hyde",
    "subqueries",
]
Compress = Literal["off", "words", "meaning", "llm"]
"""The way to choose the sentences of a hit that bear on the query."""
Name = Annotated[str, Field(min_length=2, max_length=80)]
CROSS_ENCODER = "cross-encoder/ms-marco-MiniLM-L-6-v2"


class VocabularySettings(SettingsModel):
    """A tenant's names of products and services, by which queries about them are recognized."""

    product: tuple[Name, ...] = Field(default=(), max_length=1000)
    service: tuple[Name, ...] = Field(default=(), max_length=1000)


class RetrievalSettings(SettingsModel):
    mode: Mode = "balanced"
    k: int = Field(default=10, ge=1, le=1000)
    arms: Literal["hybrid", "dense", "lexical"] = "hybrid"
    candidates: int = Field(default=100, ge=1, le=10_000)
    """The number of candidates of each arm."""
    fusion: Fusion = "zscore"
    dense_weight: float = Field(default=0.7, ge=0, le=1)
    """The dense arm's say in a weighted fusion; at most 0.2 for a query that is nothing but names."""
    rrf_k: int = Field(default=60, ge=1)
    min_similarity: float = Field(default=0.0, ge=-1, le=1)
    """Cosine under which the dense arm's candidates are dropped before fusion."""
    min_score: float = Field(default=0.0, ge=0, le=1)
    """Score under which passages are dropped; a score compares the passages of one search only."""
    min_relevance: float = Field(default=0.0, ge=0, le=1)
    """Relevance under which passages are dropped; it means the same for every query."""
    timeout: float = Field(default=2.0, gt=0, le=60)
    """Seconds after which one retrieval gives what it has found so far."""
    neighbours: int = Field(default=0, ge=0, le=5)
    """Chunks before and after a hit whose text is given with it, as `context`."""
    parents: bool = False
    """Give the section that a hit stands in with it, as `context`."""
    collapse: float | None = Field(default=None, gt=0, le=1)
    """Share of common text from which a passage is left out as a copy of a better one."""
    diversity: float = Field(default=0.0, ge=0, lt=1)
    """The weight of being unlike the passages before it, against fitting the query better."""
    compress: Compress = "off"
    """Give of each hit only the sentences that bear on the query, and no hit without one."""
    transforms: tuple[Transform, ...] = ()
    """The steps that a query goes through before it is searched for."""
    dictionary: Path | None = None
    """A YAML or JSON file of terms and what else they are called, for `synonyms`."""
    wordnet: Path | None = None
    """A folder with WordNet's database files, for `synonyms`."""
    routing: Literal["off", "auto"] = "off"
    """Let a query decide how it is searched for: not at all, cheaply, deeply, or on the web as well."""
    sufficient: float = Field(default=0.4, ge=0, le=1)
    """The relevance of the best passage from which routing does not ask the web."""
    vocabulary: VocabularySettings = VocabularySettings()
    """Names by which routing tells products and services."""


class RerankingStage(SettingsModel):
    kind: Literal["none", "cross_encoder", "llm"] = "none"
    model: str | None = None
    """By default cross-encoder/ms-marco-MiniLM-L-6-v2 for a cross-encoder and `llm.model` for an LLM."""
    path: Path | None = None
    candidates: int = Field(default=50, ge=1, le=1000)
    """The number of the best that are scored again."""
    threshold: float = Field(default=0.0, ge=0, le=1)

    @model_validator(mode="after")
    def _model_by_kind(self) -> RerankingStage:
        if self.kind == "cross_encoder" and self.model is None:
            object.__setattr__(self, "model", CROSS_ENCODER)
        return self


class RerankingSettings(RerankingStage):
    then: RerankingStage = RerankingStage(candidates=10)
    """A second stage, over the best of the first."""
