from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.unit.models.tiny import tiny_tensors, tiny_tokenizer, write_tiny_model

from ragstone.core.errors import ModelError, ModelMismatch, ModelUnavailable
from ragstone.models.embedders.static import StaticEmbedder, is_static_folder
from ragstone.models.weights import packages

TABLE = tiny_tensors("bert", 0, seed=3)["embeddings.word_embeddings.weight"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "static"
    path.mkdir()
    (path / "tokenizer.json").write_text(tiny_tokenizer().to_str())
    save_file({"embedding.weight": TABLE.astype(np.float16)}, path / "model.safetensors")
    return path


async def test_a_text_is_the_mean_of_its_tokens(folder: Path) -> None:
    embedder = StaticEmbedder("tiny", path=folder, cache_dir=folder)
    made = await embedder.embed(["the cat the"])
    tokens = [tiny_tokenizer().token_to_id(word) for word in ("the", "cat", "the")]
    mean = TABLE[tokens].mean(axis=0)
    np.testing.assert_allclose(made.vectors[0], mean / np.linalg.norm(mean), atol=1e-3)
    assert made.model == embedder.model.id
    assert embedder.model.id.startswith("tiny@")
    await embedder.close()


async def test_without_normalisation_it_is_the_plain_mean(folder: Path) -> None:
    embedder = StaticEmbedder("tiny", path=folder, normalize=False, cache_dir=folder)
    made = await embedder.embed(["cat"])
    np.testing.assert_allclose(made.vectors[0], TABLE[tiny_tokenizer().token_to_id("cat")], atol=1e-3)
    await embedder.close()


async def test_a_very_long_text_needs_no_window(folder: Path) -> None:
    embedder = StaticEmbedder("tiny", path=folder, cache_dir=folder)
    short, long = (await embedder.embed(["the cat", "the cat " * 50_000])).vectors
    np.testing.assert_allclose(short, long, atol=1e-4)
    await embedder.close()


async def test_another_dimension_than_expected_is_refused(folder: Path) -> None:
    embedder = StaticEmbedder("tiny", path=folder, dimensions=256, cache_dir=folder)
    with pytest.raises(ModelMismatch, match="32 dimensions where 256"):
        await embedder.embed(["the cat"])
    await embedder.close()


async def test_wordllama_that_is_not_installed_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages.metadata, "files", lambda _: None)
    embedder = StaticEmbedder("wordllama", cache_dir=tmp_path)
    assert embedder.model.dimension == 256
    with pytest.raises(ModelUnavailable, match="wordllama-256 are not installed") as caught:
        await embedder.embed(["the cat"])
    assert caught.value.hint == "pip install --no-deps wordllama==0.4.0.post1"
    await embedder.close()


async def test_an_encoder_is_not_a_table(tmp_path: Path) -> None:
    embedder = StaticEmbedder("tiny", path=write_tiny_model(tmp_path / "model"), cache_dir=tmp_path)
    with pytest.raises(ModelError, match="a static model has one"):
        await embedder.embed(["the cat"])
    await embedder.close()


def test_a_folder_says_what_it_is(folder: Path, tmp_path: Path) -> None:
    assert is_static_folder(folder)
    assert not is_static_folder(write_tiny_model(tmp_path / "model"))
    assert not is_static_folder(tmp_path / "nowhere")
    assert not is_static_folder(None)
