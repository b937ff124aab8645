"""Models on this machine: which are here, how to get the others, and whether the configured one works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from typing import Literal

from ragstone.core.errors import ModelError, ModelUnavailable, RagstoneError
from ragstone.core.health import Check
from ragstone.models import build_embedder, build_reader
from ragstone.models.weights import Weights, find_weights
from ragstone.models.weights.artefacts import cache_folder
from ragstone.models.weights.catalogue import DEFAULT, MODELS, STATIC, canonical_name, known_model
from ragstone.models.weights.packages import WORDLLAMA, installed_file
from ragstone.models.weights.reader import READER, ReaderPack
from ragstone.settings.retrieval import CROSS_ENCODER
from ragstone.settings.tree import EmbeddingSettings, Settings

ModelState = Literal["installed", "missing", "remote"]


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model that Ragstone knows; `get` is what to type to have it."""

    name: str
    kind: Literal["embedding", "reader", "reranker"]
    state: ModelState
    dimension: int | None
    max_tokens: int | None
    get: str
    configured: bool
    """True if the settings name it or, for the reader, if it is used beside what they name."""


def list_models(settings: Settings) -> Iterator[ModelEntry]:
    """List the models of the catalogue, those that the settings name, and the reader, with their state here."""
    configured = canonical_name(settings.embedding.model)
    for name, facts in MODELS.items():
        chosen = settings.embedding if name == configured else EmbeddingSettings(model=name)
        state, get = _state(chosen)
        yield ModelEntry(name, "embedding", state, facts.dimension, facts.max_tokens, get, name == configured)
    if configured not in MODELS:
        state, get = _state(settings.embedding)
        yield ModelEntry(configured, "embedding", state, None, None, get, True)
    yield _reader(_has_reader(settings.embedding))
    yield _reranker(settings)


def is_remote(embedding: EmbeddingSettings) -> bool:
    """Return True when the embedding model is behind an address."""
    known = known_model(embedding.model)
    if embedding.path is not None:
        return False
    return not known.local if known else embedding.remote.base_url is not None


def verify_weights(embedding: EmbeddingSettings) -> None:
    """Check that a local model's weights are here and are what was published; raises `ModelError` if not."""
    weights = _weights(embedding)
    if weights is not None:
        weights.encoder()


def _weights(embedding: EmbeddingSettings) -> Weights | None:
    """Find the weights; None for static vectors, which have no encoder."""
    if embedding.path is None and canonical_name(embedding.model) == STATIC:
        installed_file(*WORDLLAMA, STATIC)
        return None
    return find_weights(embedding.model, path=embedding.path, cache=cache_folder())


def _state(embedding: EmbeddingSettings) -> tuple[ModelState, str]:
    if is_remote(embedding):
        return "remote", f"export RAGSTONE_EMBEDDING__MODEL={embedding.model}"
    try:
        _weights(embedding)
    except ModelUnavailable as error:
        return "missing", error.advice
    return "installed", ""


def _has_reader(embedding: EmbeddingSettings) -> bool:
    return embedding.path is None and canonical_name(embedding.model) == DEFAULT


def _reader(is_used: bool) -> ModelEntry:
    state: ModelState = "installed"
    get = ""
    try:
        ReaderPack.installed().read()
    except ModelError as error:
        state, get = "missing", error.advice
    return ModelEntry(READER, "reader", state, None, ReaderPack.max_tokens, get, is_used)


def _reranker(settings: Settings) -> ModelEntry:
    chosen = settings.reranking
    model = chosen.model if chosen.kind == "cross_encoder" and chosen.model else CROSS_ENCODER
    state: ModelState = "installed"
    get = ""
    try:
        find_weights(model, path=chosen.path, cache=cache_folder())
    except ModelUnavailable as error:
        state, get = "missing", error.advice
    return ModelEntry(model, "reranker", state, None, None, get, chosen.kind == "cross_encoder")


def check_runtime(settings: Settings) -> Check:
    """Check the runtime of local models."""
    wanted = settings.embedding.runtime
    if wanted in ("auto", "openvino") and find_spec("openvino"):
        return Check("runtime", "ok", f"openvino {metadata.version('openvino')}")
    if wanted in ("auto", "onnxruntime") and find_spec("onnxruntime") and find_spec("onnx"):
        return Check("runtime", "ok", f"onnxruntime {metadata.version('onnxruntime')}")
    fix = 'pip install "ragstone[onnx]"' if wanted == "onnxruntime" else "pip install openvino"
    return Check("runtime", "fail", f"{wanted}: not installed", fix)


async def check_model(settings: Settings) -> Check:
    """Check that the embedding model's weights are here, are what was published, and give a vector."""
    if is_remote(settings.embedding):
        return Check("model", "ok", f"{settings.embedding.model} is remote and was not called")
    try:
        verify_weights(settings.embedding)
        embedder = build_embedder(settings.embedding)
        try:
            made = await embedder.embed(["a sentence to try it"], "query")
        finally:
            await embedder.close()
    except RagstoneError as error:
        return Check("model", "fail", str(error), error.advice)
    return Check("model", "ok", f"{made.model}, {made.vectors.shape[1]} dimensions, weights verified")


async def check_reader(settings: Settings) -> Check:
    """Check that the reader, which helps to choose what is quoted, works where it is used."""
    if not _has_reader(settings.embedding):
        return Check("reader", "ok", f"not used beside {settings.embedding.model}")
    reader = build_reader(settings.embedding)
    try:
        ReaderPack.installed().read()
        await reader.score("a question to try it", ["a sentence to try it"])
    except RagstoneError as error:
        return Check("reader", "fail", str(error), error.advice)
    finally:
        await reader.close()
    return Check("reader", "ok", f"{READER}, weights verified")
