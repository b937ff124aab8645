"""Every embedder keeps to the suite."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from safetensors.numpy import save_file
from tests.doubles.openai import OpenAIDouble, Reply, Request, json_reply
from tests.unit.models.tiny import tiny_tensors, tiny_tokenizer

from ragstone.models.embedders.local import LocalEmbedder
from ragstone.models.embedders.pool import CachedEmbedder, FallbackEmbedder
from ragstone.models.embedders.remote import RemoteEmbedder
from ragstone.models.embedders.static import StaticEmbedder
from ragstone.settings.tree import RemoteModel
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.suites.embedders import EmbedderSuite


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


class TestFakeEmbedder(EmbedderSuite):
    def make_embedder(self) -> FakeEmbedder:
        return FakeEmbedder()


class TestCachedEmbedder(EmbedderSuite):
    def make_embedder(self) -> CachedEmbedder:
        return CachedEmbedder(FakeEmbedder())


class TestFallbackEmbedder(EmbedderSuite):
    def make_embedder(self) -> FallbackEmbedder:
        return FallbackEmbedder(FakeEmbedder(name="first"), FakeEmbedder(name="second"))


class LocalSuite(EmbedderSuite):
    model: ClassVar[str]
    runtime: ClassVar[str]

    @pytest.fixture(autouse=True)
    def _cache(self, model_cache: Path) -> None:
        self.cache = model_cache

    def make_embedder(self) -> LocalEmbedder:
        return LocalEmbedder.open(self.model, runtime=self.runtime, cache_dir=self.cache)


class TestGraniteOnOpenVino(LocalSuite):
    model = "granite-embedding-30m-english"
    runtime = "openvino"
    alike = 0.9995  # without bf16 it multiplies in int8, and rounds a little otherwise in batches of another shape


class TestGraniteOnOnnxruntime(LocalSuite):
    model = "granite-embedding-30m-english"
    runtime = "onnxruntime"


class TestMiniLM(LocalSuite):
    model = "all-MiniLM-L6-v2"
    runtime = "openvino"


class TestStaticEmbedder(EmbedderSuite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "static"
        self.folder.mkdir()
        (self.folder / "tokenizer.json").write_text(tiny_tokenizer().to_str())
        table = tiny_tensors("bert", 0, seed=3)["embeddings.word_embeddings.weight"]
        save_file({"embedding.weight": table}, self.folder / "model.safetensors")

    def make_embedder(self) -> StaticEmbedder:
        return StaticEmbedder("tiny", path=self.folder, cache_dir=self.folder.parent / "cache")


class TestRemoteEmbedder(EmbedderSuite):
    @pytest.fixture(autouse=True)
    def _service(self) -> Iterator[None]:
        behind = FakeEmbedder(dimension=1536, max_tokens=8191)

        def embeddings(request: Request) -> Reply:
            texts = request.body["input"]
            made = asyncio.run(behind.embed(texts))
            rows = [
                {"object": "embedding", "index": index, "embedding": vector.tolist()}
                for index, vector in enumerate(made.vectors)
            ]
            usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
            # Out of order, as the interface allows.
            return json_reply({"object": "list", "data": rows[::-1], "model": "m", "usage": usage})

        with OpenAIDouble(embeddings) as self.service:
            yield

    def make_embedder(self) -> RemoteEmbedder:
        return RemoteEmbedder("text-embedding-3-small", RemoteModel(base_url=self.service.url, retries=0))
