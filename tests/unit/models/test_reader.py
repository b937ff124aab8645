"""The weights of the reader: layers of our own over the default embedding model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.models import build_reader
from ragstone.models.runtime.encoder import Grouped, Tensor
from ragstone.models.weights import find_weights
from ragstone.models.weights.reader import BESIDE, FILE, READER, ReaderPack, read_layers, write_layers
from ragstone.settings.tree import EmbeddingSettings


def test_matrices_come_back_as_near_as_eight_bits_allow(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    matrix, shift = random.normal(size=(6, 128)).astype(np.float32), np.arange(6, dtype=np.float32)
    digest = write_layers(tmp_path / "layers.npz", {"l2.ao.w": matrix, "l2.ao.b": shift})
    read = read_layers(replaced(tmp_path / "layers.npz", digest).read())
    assert sorted(read) == ["l2.ao.b", "l2.ao.w"]
    assert isinstance(read["l2.ao.w"], Grouped)
    steps = np.abs(matrix.reshape(6, 2, 64)).max(axis=2, keepdims=True) / 127
    wide = read["l2.ao.w"].dense().reshape(6, 2, 64)
    assert (np.abs(wide - matrix.reshape(6, 2, 64)) <= steps / 2 + 1e-6).all()
    assert np.array_equal(read["l2.ao.b"], shift)


def replaced(path: Path, sha256: str) -> ReaderPack:
    return ReaderPack(ReaderPack.installed().base, path, sha256)


def test_an_altered_file_is_refused(tmp_path: Path) -> None:
    content = bytearray(FILE.read_bytes())
    content[1_000_000] ^= 1
    (tmp_path / "reader.npz").write_bytes(content)
    pack = replaced(tmp_path / "reader.npz", ReaderPack.sha256)
    with pytest.raises(ModelError, match=r"reader\.npz is not what was published"):
        pack.encoder()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"reader\.npz cannot be read: No such file") as raised:
        replaced(tmp_path / "reader.npz", ReaderPack.sha256).encoder()
    assert "pip install" in raised.value.advice


def test_its_revision_tells_both_files_apart() -> None:
    pack = ReaderPack.installed()
    assert pack.base.revision in pack.revision
    assert BESIDE.endswith(pack.base.revision)
    assert replaced(FILE, "another").revision != pack.revision


def test_the_reader_is_the_default_model_with_layers_and_a_head_of_its_own() -> None:
    pack = ReaderPack.installed()
    own, base = pack.encoder(), pack.base.encoder()
    assert own.has_head
    assert not own.uses_types
    base_tensors = {**base.tensors, "type_emb": own.tensors["type_emb"]}
    changed = {name for name in own.tensors if not same(own.tensors[name], base_tensors.get(name))}
    heads = {name for name in changed if name.startswith("head.")}
    assert heads == {"head.dense.w", "head.dense.b", "head.out.w", "head.out.b"}
    assert {name.partition(".")[0] for name in changed - heads} == {"l2", "l3", "l4", "l5"}
    assert all(own.tensors[name].shape == base.tensors[name].shape for name in changed - heads)
    assert pack.tokenizer_json() == pack.base.tokenizer_json()


def same(tensor: Tensor, other: Tensor | None) -> bool:
    widened = [each.dense() if isinstance(each, Grouped) else each for each in (tensor, other)]
    return other is not None and np.array_equal(*widened)


def test_it_embeds_nothing(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable):
        find_weights(READER, path=None, cache=tmp_path)


QUESTION = "What is the default checkpoint interval?"
ANSWERS = "The default is five minutes (5min). | checkpoint_timeout (integer) | PostgreSQL > WAL"
HAS_ITS_WORDS = "Maximum time between automatic WAL checkpoints. | checkpoint_timeout (integer) | PostgreSQL > WAL"


@pytest.mark.parametrize(
    ("question", "answers", "other"),
    [
        (QUESTION, ANSWERS, HAS_ITS_WORDS),
        (
            "Who founded the company?",
            "Our firm was set up in 1990 by two sisters from Leeds. | | About us",
            "Refunds take five working days. | | About us",
        ),
    ],
)
async def test_what_answers_is_told_from_what_has_the_words(question: str, answers: str, other: str) -> None:
    reader = build_reader(EmbeddingSettings())
    told, less = await reader.score(question, [answers, other])
    await reader.close()
    assert told > 0.5
    assert told > less


async def test_both_runtimes_say_the_same() -> None:
    said = []
    for runtime in ("openvino", "onnxruntime"):
        reader = build_reader(EmbeddingSettings(runtime=runtime, threads=1))
        said.append(await reader.score(QUESTION, [ANSWERS, HAS_ITS_WORDS]))
        await reader.close()
    assert said[0] == pytest.approx(said[1], abs=0.03)


async def test_a_text_that_no_tokenizer_takes_does_not_end_the_reading() -> None:
    reader = build_reader(EmbeddingSettings())
    [odd, fine] = await reader.score(f"{QUESTION} \ud800", [f"{ANSWERS} \udfff", ANSWERS])
    await reader.close()
    assert 0 < odd < 1
    assert 0 < fine < 1
