from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.unit.models.tiny import HIDDEN, POSITIONS, write_tiny_model

from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.models.weights import find_weights
from ragstone.models.weights.folder import ModelFolder, file_sha256, read_tensors


def test_facts_come_from_the_folder(tmp_path: Path) -> None:
    folder = ModelFolder(write_tiny_model(tmp_path / "model", "roberta"))
    assert folder.dimension == HIDDEN
    assert folder.max_tokens == POSITIONS - 2
    assert len(folder.revision) == 12
    assert folder.prompts == {"query": "", "document": ""}


def test_the_shortest_limit_counts(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "model")
    (path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 10**30}))
    assert ModelFolder(path).max_tokens == POSITIONS
    (path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 24}))
    assert ModelFolder(path).max_tokens == 24


def test_prompts_of_a_sentence_model(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "model")
    said = {"prompts": {"query": "query: ", "passage": "passage: "}}
    (path / "config_sentence_transformers.json").write_text(json.dumps(said))
    assert ModelFolder(path).prompts == {"query": "query: ", "document": "passage: "}


def test_the_revision_follows_the_weights(tmp_path: Path) -> None:
    one = ModelFolder(write_tiny_model(tmp_path / "one", seed=1))
    same = ModelFolder(write_tiny_model(tmp_path / "same", seed=1))
    other = ModelFolder(write_tiny_model(tmp_path / "other", seed=2))
    assert one.revision == same.revision
    assert one.revision != other.revision


def test_a_hash_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"first")
    first = file_sha256(file, tmp_path / "memory")
    (note,) = (tmp_path / "memory").iterdir()
    note.write_text(note.read_text().replace(first, "f" * 64))
    assert file_sha256(file, tmp_path / "memory") == "f" * 64
    file.write_bytes(b"second")
    os.utime(file, (5, 5))
    assert file_sha256(file, tmp_path / "memory") == file_sha256(file)


def test_published_weights_must_be_what_was_published(tmp_path: Path) -> None:
    folder = ModelFolder(write_tiny_model(tmp_path / "model"), sha256="0" * 64)
    with pytest.raises(ModelError, match="SHA-256 differs"):
        folder.encoder()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt"])
def test_a_pickle_is_never_read(tmp_path: Path, name: str) -> None:
    path = write_tiny_model(tmp_path / "model")
    (path / "model.safetensors").rename(path / name)
    with pytest.raises(ModelUnavailable, match="is a pickle, which can run code") as caught:
        ModelFolder(path).encoder()
    assert "safetensors" in caught.value.hint


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    path = write_tiny_model(tmp_path / "model")
    (path / missing).unlink()
    folder = ModelFolder(path)
    with pytest.raises(ModelUnavailable, match=missing):
        (folder.encoder if missing != "tokenizer.json" else folder.tokenizer_json)()


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="does not exist"):
        find_weights("mine", path=tmp_path / "nowhere", cache=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "deberta-v2"}, "of the family 'deberta-v2'"),
        ({"hidden_act": "swish"}, "uses 'swish' activations"),
        ({"position_embedding_type": "relative_key"}, "'relative_key' positions"),
        ({"num_hidden_layers": 3}, "no tensor encoder.layer.2"),
    ],
)
def test_a_model_that_cannot_be_run_is_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = write_tiny_model(tmp_path / "model")
    config = json.loads((path / "config.json").read_text()) | change
    (path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=message):
        ModelFolder(path).encoder()


def test_a_pooling_that_cannot_be_run_is_refused(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "model", pooling="max")
    with pytest.raises(ModelError, match="pools in a way"):
        ModelFolder(path).encoder()


@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff" * 64])
def test_broken_weights_are_named(tmp_path: Path, content: bytes) -> None:
    path = write_tiny_model(tmp_path / "model")
    (path / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelError, match=r"model.safetensors cannot be read"):
        ModelFolder(path).encoder()


def test_a_broken_config_is_named(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "model")
    (path / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config.json cannot be read"):
        ModelFolder(path).encoder()


def test_half_precision_is_widened(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "model")
    full = load_file(path / "model.safetensors")
    halves = {name: tensor.astype(np.float16) for name, tensor in full.items()}
    save_file(halves, path / "model.safetensors")
    read = read_tensors(path / "model.safetensors")
    assert all(tensor.dtype == np.float32 for tensor in read.values())
    np.testing.assert_allclose(read["embeddings.LayerNorm.bias"], full["embeddings.LayerNorm.bias"], atol=1e-3)


def test_bfloat16_is_widened(tmp_path: Path) -> None:
    values = np.array([1.0, -2.5, 3.140625], np.float32)
    upper = (values.view(np.uint32) >> 16).astype(np.uint16)
    header = json.dumps({"x": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}).encode()
    file = tmp_path / "model.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + upper.tobytes())
    assert read_tensors(file)["x"].tolist() == [1.0, -2.5, 3.140625]
