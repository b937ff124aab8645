"""Facts about embedding models: what they give, what they take, what they cost."""

from __future__ import annotations

from ragstone.core.errors import ModelMismatch, ModelUnavailable
from ragstone.core.model_types import EmbeddingModel

DEFAULT = "granite-embedding-30m-english"
STATIC = "wordllama-256"

MODELS: dict[str, EmbeddingModel] = {
    model.name: model
    for model in (
        EmbeddingModel(DEFAULT, dimension=384, max_tokens=512, revision="6a1cc24734a5"),
        EmbeddingModel("all-MiniLM-L6-v2", 384, max_tokens=256, revision="53aa51172d14", latency_ms=5, mteb=58.8),
        EmbeddingModel("all-mpnet-base-v2", 768, max_tokens=384, revision="78c0197b6159", latency_ms=15, mteb=63.3),
        # A mean of token vectors has no window.
        EmbeddingModel(STATIC, dimension=256, max_tokens=1_000_000, revision="64b47a2dc493"),
        EmbeddingModel("bge-large-en-v1.5", dimension=1024, max_tokens=512, latency_ms=25),
        EmbeddingModel(
            "text-embedding-3-small",
            dimension=1536,
            max_tokens=8191,
            price_per_million=0.02,
            latency_ms=50,
            mteb=62.3,
            local=False,
        ),
        EmbeddingModel("text-embedding-3-large", 3072, max_tokens=8191, price_per_million=0.13, mteb=64.6, local=False),
        EmbeddingModel("text-embedding-ada-002", 1536, max_tokens=8191, price_per_million=0.10, local=False),
        EmbeddingModel("mistral-embed", 1024, max_tokens=8192, price_per_million=0.10, mteb=77.8, local=False),
        EmbeddingModel("embed-english-v3.0", 1024, max_tokens=512, price_per_million=0.10, mteb=64.5, local=False),
    )
}

ALIASES = {
    "ibm-granite/granite-embedding-30m-english": DEFAULT,
    "sentence-transformers/all-MiniLM-L6-v2": "all-MiniLM-L6-v2",
    "sentence-transformers/all-mpnet-base-v2": "all-mpnet-base-v2",
    "wordllama": STATIC,
    "BAAI/bge-large-en-v1.5": "bge-large-en-v1.5",
    "bge-large": "bge-large-en-v1.5",
    "ada-002": "text-embedding-ada-002",
    "embed-v3": "embed-english-v3.0",
}
HUB_NAMES = {
    DEFAULT: "ibm-granite/granite-embedding-30m-english",
    "all-MiniLM-L6-v2": "sentence-transformers/all-MiniLM-L6-v2",
    "all-mpnet-base-v2": "sentence-transformers/all-mpnet-base-v2",
    "bge-large-en-v1.5": "BAAI/bge-large-en-v1.5",
}


def canonical_name(name: str) -> str:
    """Return the one name of a model: `sentence-transformers/all-MiniLM-L6-v2` is `all-MiniLM-L6-v2`."""
    return ALIASES.get(name, name)


def known_model(name: str) -> EmbeddingModel | None:
    """Return the catalogue's facts about a model; None when it does not know it."""
    return MODELS.get(canonical_name(name))


def model_info(name: str) -> EmbeddingModel:
    """Return the catalogue's facts about a model."""
    model = known_model(name)
    if model is None:
        raise ModelUnavailable(f"the catalogue does not know the model '{name}'", hint=f"it knows {', '.join(MODELS)}")
    return model


def check_dimension(model: EmbeddingModel, expected: int | None) -> None:
    """Refuse a model that does not give the dimension the settings ask for."""
    if expected is not None and model.dimension != expected:
        raise ModelMismatch(
            f"{model.name} gives vectors of {model.dimension} dimensions where {expected} were expected",
            hint=f"set embedding.dimensions to {model.dimension}, or name another model",
        )
