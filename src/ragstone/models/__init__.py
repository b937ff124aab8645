"""The costly calls: embedders, rerankers and language models, on this machine and behind an address."""

from __future__ import annotations

from pathlib import Path

from ragstone.core.errors import SettingsError
from ragstone.core.protocols import LLM, Embedder, Reranker
from ragstone.models.embedders.pool import tokenizer_of
from ragstone.models.weights.catalogue import STATIC, canonical_name, known_model, model_info
from ragstone.settings.prices import PriceSettings
from ragstone.settings.retrieval import CROSS_ENCODER, RerankingStage
from ragstone.settings.tree import EmbeddingSettings, LLMSettings

LOCAL_BATCH = 32
REMOTE_BATCH = 100

__all__ = [
    "build_embedder",
    "build_llm",
    "build_llm_reranker",
    "build_reader",
    "build_reranker",
    "model_info",
    "tokenizer_of",
]


def build_embedder(settings: EmbeddingSettings, *, cache_dir: Path | None = None) -> Embedder:
    """Return the embedder the settings ask for, with its fallback and a memory for queries. Nothing is loaded yet."""
    from ragstone.models.embedders.pool import CachedEmbedder

    embedder = _embedder(settings, cache_dir)
    if settings.fallback:
        from ragstone.models.embedders.pool import FallbackEmbedder

        # The fallback is another model: neither the folder nor the dimension of the first one are its own.
        other = settings.model_copy(
            update={"model": settings.fallback, "path": None, "dimensions": None, "price": None}
        )
        embedder = FallbackEmbedder(embedder, _embedder(other, cache_dir))
    return CachedEmbedder(embedder)


def build_reranker(settings: RerankingStage) -> Reranker | None:
    """Return the reranker the settings ask for; None when they ask for none."""
    if settings.kind == "none":
        return None
    from ragstone.models.rerankers.cross_encoder import CrossEncoder

    return CrossEncoder.open(settings.model or CROSS_ENCODER, path=settings.path)


def build_reader(settings: EmbeddingSettings, *, cache_dir: Path | None = None) -> Reranker:
    """Return the model that tells whether a sentence answers a question; it runs as the embedding model does."""
    from ragstone.models.rerankers.cross_encoder import CrossEncoder
    from ragstone.models.runtime.inference import LocalModel
    from ragstone.models.weights.reader import READER, ReaderPack

    return CrossEncoder(
        LocalModel(
            READER,
            find=ReaderPack.installed,
            runtime=settings.runtime,
            threads=settings.threads,
            cache_dir=cache_dir,
            head=True,
        )
    )


def build_llm_reranker(settings: RerankingStage, llm: LLMSettings, prices: PriceSettings | None = None) -> Reranker:
    """Return a reranker that asks an LLM: at the address of `llm`, and its model unless the stage names one."""
    from ragstone.models.llm.client import OpenAILLM
    from ragstone.models.rerankers.llm import LLMReranker

    name = settings.model or llm.model
    if name is None:
        raise SettingsError(
            "reranking.kind is llm, and neither reranking.model nor llm.model names a model",
            hint="set RAGSTONE_LLM__MODEL and RAGSTONE_LLM__BASE_URL, or reranking.kind to none",
        )
    read = (prices or PriceSettings()).reranking_million(llm.price_in, llm.base_url)
    written = llm.price_out or read
    return LLMReranker(OpenAILLM(name, llm, prices=(read, written), kind="rerank"), seconds=llm.timeout)


def build_llm(settings: LLMSettings) -> LLM | None:
    """Return the language model the settings ask for; None when they name none."""
    if settings.model is None:
        return None
    from ragstone.models.llm.client import OpenAILLM

    return OpenAILLM(settings.model, settings, prices=(settings.price_in, settings.price_out))


def _embedder(settings: EmbeddingSettings, cache_dir: Path | None) -> Embedder:
    known = known_model(settings.model)
    # A model of the catalogue is where the catalogue says; the address may be meant for its fallback.
    remote = not known.local if known is not None else settings.remote.base_url is not None
    if remote and settings.path is None:
        return _remote(settings)
    from ragstone.models.embedders.static import StaticEmbedder, is_static_folder

    if canonical_name(settings.model) == STATIC or is_static_folder(settings.path):
        return StaticEmbedder(
            settings.model,
            path=settings.path,
            dimensions=settings.dimensions,
            normalize=settings.normalize,
            cache_dir=cache_dir,
        )
    from ragstone.models.embedders.local import LocalEmbedder

    return LocalEmbedder.open(
        settings.model,
        path=settings.path,
        runtime=settings.runtime,
        threads=settings.threads,
        batch_size=settings.batch_size or LOCAL_BATCH,
        dimensions=settings.dimensions,
        normalize=settings.normalize,
        cache_dir=cache_dir,
    )


def _remote(settings: EmbeddingSettings) -> Embedder:
    from ragstone.models.embedders.remote import RemoteEmbedder

    if settings.remote.base_url is None and not canonical_name(settings.model).startswith("text-embedding-"):
        raise SettingsError(
            f"'{settings.model}' is not an OpenAI model, so embedding.remote.base_url must say where it is",
            hint="set embedding.remote.base_url and embedding.remote.api_key",
        )
    return RemoteEmbedder(
        settings.model,
        settings.remote,
        dimensions=settings.dimensions,
        normalize=settings.normalize,
        batch_size=settings.batch_size or REMOTE_BATCH,
        price=settings.price,
    )
