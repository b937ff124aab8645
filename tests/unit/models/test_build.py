from __future__ import annotations

import sys
from pathlib import Path

import pytest
from safetensors.numpy import save_file
from tests.unit.models.tiny import tiny_tensors, tiny_tokenizer, write_tiny_model

from ragstone.core.errors import ModelUnavailable, SettingsError
from ragstone.core.model_types import WordTokenizer
from ragstone.models import build_embedder, build_llm, build_llm_reranker, build_reranker, tokenizer_of
from ragstone.models.embedders.local import LocalEmbedder
from ragstone.models.embedders.pool import CachedEmbedder, FallbackEmbedder
from ragstone.models.embedders.remote import RemoteEmbedder
from ragstone.models.embedders.static import StaticEmbedder
from ragstone.models.rerankers.cross_encoder import CrossEncoder
from ragstone.models.rerankers.llm import LLMReranker
from ragstone.models.runtime import inference
from ragstone.settings.retrieval import RerankingSettings
from ragstone.settings.tree import EmbeddingSettings, LLMSettings, RemoteModel


def inside(embedder: object) -> object:
    assert isinstance(embedder, CachedEmbedder)
    return embedder._inner


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        (EmbeddingSettings(), LocalEmbedder),
        (EmbeddingSettings(model="sentence-transformers/all-mpnet-base-v2"), LocalEmbedder),
        (EmbeddingSettings(model="wordllama-256"), StaticEmbedder),
        (EmbeddingSettings(model="text-embedding-3-small"), RemoteEmbedder),
        (EmbeddingSettings(model="mistral-embed", remote=RemoteModel(base_url="http://m/v1")), RemoteEmbedder),
        (EmbeddingSettings(model="nomic", remote=RemoteModel(base_url="http://m/v1")), RemoteEmbedder),
        (EmbeddingSettings(model="org/some-model"), LocalEmbedder),
    ],
)
def test_the_settings_choose(settings: EmbeddingSettings, kind: type, tmp_path: Path) -> None:
    assert isinstance(inside(build_embedder(settings, cache_dir=tmp_path)), kind)


def test_a_folder_chooses_by_what_it_holds(tmp_path: Path) -> None:
    encoder = write_tiny_model(tmp_path / "encoder")
    static = tmp_path / "static"
    static.mkdir()
    (static / "tokenizer.json").write_text(tiny_tokenizer().to_str())
    save_file({"t": tiny_tensors("bert", 0, 0)["embeddings.word_embeddings.weight"]}, static / "model.safetensors")
    assert isinstance(inside(build_embedder(EmbeddingSettings(path=encoder))), LocalEmbedder)
    assert isinstance(inside(build_embedder(EmbeddingSettings(path=static))), StaticEmbedder)


@pytest.mark.req("R-EMB-01", "R-EMB-03")
def test_a_local_model_with_a_remote_fallback(tmp_path: Path) -> None:
    settings = EmbeddingSettings(
        model="all-mpnet-base-v2",
        dimensions=768,
        fallback="text-embedding-3-small",
        remote=RemoteModel(base_url="http://gateway/v1"),
    )
    embedder = inside(build_embedder(settings, cache_dir=tmp_path))
    assert isinstance(embedder, FallbackEmbedder)
    assert isinstance(embedder._primary, LocalEmbedder)
    assert isinstance(embedder._fallback, RemoteEmbedder)
    assert (embedder._primary.model.dimension, embedder._fallback.model.dimension) == (768, 1536)


def test_a_model_elsewhere_needs_an_address() -> None:
    with pytest.raises(SettingsError, match=r"embedding\.remote\.base_url must say where"):
        build_embedder(EmbeddingSettings(model="mistral-embed"))


def test_tokenizers(tmp_path: Path) -> None:
    own = tokenizer_of(build_embedder(EmbeddingSettings(), cache_dir=tmp_path))
    assert own.name == "granite-embedding-30m-english@6a1cc24734a5"
    remote = build_embedder(EmbeddingSettings(model="text-embedding-3-small"))
    assert isinstance(tokenizer_of(remote), WordTokenizer)
    wrapped = build_embedder(EmbeddingSettings(fallback="text-embedding-3-small"), cache_dir=tmp_path)
    assert tokenizer_of(wrapped).name == own.name


@pytest.mark.req("R-RRK-13")
def test_rerankers() -> None:
    assert build_reranker(RerankingSettings()) is None
    reranker = build_reranker(RerankingSettings(kind="cross_encoder"))
    assert isinstance(reranker, CrossEncoder)
    assert reranker.name == "cross-encoder/ms-marco-MiniLM-L-6-v2"
    own = LLMSettings(model="small", base_url="http://127.0.0.1:1/v1")
    by_llm = build_llm_reranker(RerankingSettings(kind="llm", model="large"), own)
    assert isinstance(by_llm, LLMReranker)
    assert by_llm.name == "large"
    assert build_llm_reranker(RerankingSettings(kind="llm"), own).name == "small"


def test_llms() -> None:
    assert build_llm(LLMSettings()) is None
    llm = build_llm(LLMSettings(model="small", base_url="http://127.0.0.1:1/v1"))
    assert llm is not None
    assert llm.name == "small"


@pytest.mark.parametrize(
    ("wanted", "installed", "chosen"),
    [
        ("auto", {"openvino", "onnx", "onnxruntime"}, ["openvino", "onnxruntime"]),
        ("auto", {"onnx", "onnxruntime"}, ["onnxruntime"]),
        ("onnxruntime", {"openvino", "onnx", "onnxruntime"}, ["onnxruntime"]),
    ],
)
def test_the_runtime_that_is_there(
    monkeypatch: pytest.MonkeyPatch, wanted: inference.RuntimeName, installed: set[str], chosen: list[str]
) -> None:
    monkeypatch.setattr(inference, "find_spec", lambda name: name in installed)
    assert inference._list_installed(wanted) == chosen


@pytest.mark.parametrize(
    ("wanted", "installed", "hint"),
    [
        ("auto", set(), "pip install openvino"),
        ("openvino", {"onnx", "onnxruntime"}, "pip install openvino"),
        ("onnxruntime", {"openvino", "onnxruntime"}, 'pip install "ragstone[onnx]"'),
    ],
)
def test_no_runtime_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, wanted: inference.RuntimeName, installed: set[str], hint: str
) -> None:
    monkeypatch.setattr(inference, "find_spec", lambda name: name in installed)
    with pytest.raises(ModelUnavailable) as caught:
        inference._list_installed(wanted)
    assert caught.value.hint == hint


async def test_where_openvino_does_not_load_onnxruntime_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(inference, "find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "openvino", None)
    folder = write_tiny_model(tmp_path / "model")
    embedder = build_embedder(EmbeddingSettings(model="tiny", path=folder), cache_dir=tmp_path / "cache")
    made = await embedder.embed(["the cat"])
    assert made.vectors.shape == (1, 32)
    assert "onnxruntime is used instead" in caplog.text
    await embedder.close()
